/* SPDX-License-Identifier: Apache-2.0 */
/* jit-PID.dump, perf's format for just-in-time compilers (OpenJDK's and LLVM's agents, node, .NET):
 * the names, files and lines of code, and how code is moved. Collector thread only. */
#ifndef SP_SYMBOL_JITDUMP_H
#define SP_SYMBOL_JITDUMP_H

#include "symbol/code_table.h"

/* The caller must offer this many bytes at once when the file has them. The lines of one function
 * are left out when they take more. */
#define SP_JITDUMP_RECORD_MAX ((size_t)1024 * 1024)

/* Zero-initialised: nothing has been read. */
typedef struct sp_jitdump {
    sp_code_table table;
    bool begun;          /* the header has been read */
    const char *problem; /* why nothing more is read, in a few words; NULL: none */
    uint32_t process;    /* from the header */
    uint64_t
        lines_of; /* start of the code that the newest lines belong to, whose record is the next */
    uint32_t pending_lines;
} sp_jitdump;

/* Read the records in the LENGTH bytes at DATA. The file has AVAILABLE bytes from DATA on, which
 * may be more than LENGTH. Returns how many bytes are done, up to AVAILABLE, because parts that are
 * not needed are skipped without being read. 0 when the next record is not complete, or with a
 * problem. */
uint64_t sp_jitdump_read(sp_jitdump *dump, const uint8_t *data, size_t length, uint64_t available);
void sp_jitdump_deinit(sp_jitdump *dump);

#endif
