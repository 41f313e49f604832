/* SPDX-License-Identifier: Apache-2.0 */
/* jit-PID.dump, perf's format for just-in-time compilers (OpenJDK's and LLVM's agents, node, .NET):
 * code with name, file and lines, and what becomes of it.  Collector thread only. */
#ifndef SP_SYMBOL_JITDUMP_H
#define SP_SYMBOL_JITDUMP_H

#include "symbol/code_table.h"

/* Who reads has to offer this many bytes at once when there are as many: lines of one function that
 * take more are left out. */
#define SP_JITDUMP_RECORD_MAX ((size_t)1024 * 1024)

/* Zero-initialised has read nothing. */
typedef struct sp_jitdump {
    sp_code_table table;
    bool begun;          /* the header has been read */
    const char *problem; /* why nothing more is read, in a few words; NULL */
    uint32_t process;    /* of the header */
    uint64_t lines_of;   /* the code that the newest lines are of, which comes next */
    uint32_t pending_lines;
} sp_jitdump;

/* Read the records in LENGTH bytes at DATA, behind which the file has more, AVAILABLE bytes from
 * DATA on. How many bytes are done, at most AVAILABLE: what is not needed is not read. 0 when a
 * record is not all there, or with a problem. */
uint64_t sp_jitdump_read(sp_jitdump *dump, const uint8_t *data, size_t length, uint64_t available);
void sp_jitdump_deinit(sp_jitdump *dump);

#endif
