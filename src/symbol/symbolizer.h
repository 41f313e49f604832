/* SPDX-License-Identifier: Apache-2.0 */
/* The symbolizer: names for addresses that were sampled, by elfutils: functions, inlined functions,
 * files, lines, from the module's file, its separate debug file (build id, debuglink), or at least
 * its symbol table; C++ and Rust names demangled. Cached. Collector thread only (or one thread at a
 * time). */
#ifndef SP_SYMBOL_SYMBOLIZER_H
#define SP_SYMBOL_SYMBOLIZER_H

#include <sys/types.h>

#include "symbol/demangle.h"
#include "symbol/frame.h"
#include "symbol/meanwhile.h"
#include "unwind/module.h"

typedef struct sp_symbolizer sp_symbolizer;

/* Zero-initialised is what a new symbolizer has. */
typedef struct sp_symbolizer_options {
    sp_demangle_style style;
    bool debuginfod; /* ask the servers that DEBUGINFOD_URLS names for debug files that are not here
                      */
    sp_meanwhile meanwhile;
    pid_t process; /* whose just-in-time compilers' names are used; 0: this one */
} sp_symbolizer_options;

/* NULL when memory is short. */
sp_symbolizer *sp_symbolizer_create(void);
void sp_symbolizer_destroy(sp_symbolizer *symbolizer);
/* Before the first question. Threads: setup. */
void sp_symbolizer_configure(sp_symbolizer *symbolizer, const sp_symbolizer_options *options);

/* The frames at ELF virtual ADDRESS of MODULE, innermost inlined function first, the physical
 * function last: *FRAMES with the count returned, valid until the next sp_symbolizer_rest. Always
 * at least one: an address that could not be named gives the name "module+0xaddr" (module: the last
 * part of the path) and no file. MODULE NULL: runtime ADDRESS lies in no module; its one frame is
 * what a just-in-time compiler told (perf-PID.map, jitdump), a function of the kernel,
 * "[kernel]+0xaddr" or
 * "[unknown]+0xaddr". Names are cut to 16 KiB. 0 only when memory is short, or the path of a module
 * without build id is longer than that. */
uint32_t sp_symbolizer_frames(sp_symbolizer *symbolizer, const sp_module *module, uint64_t address,
                              const sp_frame **frames);

/* What the variable at ELF virtual ADDRESS of MODULE is called, valid as frames are: "cache_mutex",
 * "shop::inventory+0x28" inside of one, or "module+0xaddr" where no symbol covers it; "" where the
 * module's file says that it has no data there. Where runtime ADDRESS lies in no module (NULL) it
 * is
 * "[heap]+0xoffset", or "". NULL only as frames are 0. */
const char *sp_symbolizer_variable(sp_symbolizer *symbolizer, const sp_module *module,
                                   uint64_t address);

/* Wait MS milliseconds at most for debug files that a server was asked for; what was named then may
 * have better names, so ask again. False, at once, when there is nothing to wait for, or when
 * waiting took two seconds without an answer. */
bool sp_symbolizer_wait(sp_symbolizer *symbolizer, uint32_t ms);

/* To be called once a window: closes the files of modules that were not needed for the last six
 * calls, and those that are quickly opened again (below 2 % of the time between two calls), and
 * gives their memory back to the system. What was named stays named, as far as the bound allows (16
 * MiB; what was not asked for lately goes first); a new address opens the files again. */
void sp_symbolizer_rest(sp_symbolizer *symbolizer);

/* Closes all files at once, and gives their memory back to the system. What was named stays named,
 * and what was handed out stays valid. */
void sp_symbolizer_close_files(sp_symbolizer *symbolizer);

/* What the names take of memory. */
size_t sp_symbolizer_bytes(const sp_symbolizer *symbolizer);
/* Other bounds: of the names, 16 MiB unless told otherwise, and of what was read of one module's
 * debug information before its files are closed in the middle of a window, 128 MiB. For tests. */
void sp_symbolizer_set_limits(sp_symbolizer *symbolizer, size_t names_bytes, size_t index_bytes);
/* Name a whole function at once where opening its files took OPENING_NS of CPU time; 5 ms unless
 * told otherwise; 0: each function, however long that takes. For tests. */
void sp_symbolizer_set_long_opening(sp_symbolizer *symbolizer, uint64_t opening_ns);

#endif
