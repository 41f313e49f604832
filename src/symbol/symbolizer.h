/* SPDX-License-Identifier: Apache-2.0 */
/* The symbolizer finds the names of sampled addresses with elfutils: functions, inlined functions,
 * files and lines. It reads the module's file, its separate debug file (by build id or debuglink),
 * or at least a symbol table, and demangles C++ and Rust names. Results are cached. Collector
 * thread only (or one thread at a time). */
#ifndef SP_SYMBOL_SYMBOLIZER_H
#define SP_SYMBOL_SYMBOLIZER_H

#include <sys/types.h>

#include "symbol/demangle.h"
#include "symbol/frame.h"
#include "symbol/meanwhile.h"
#include "unwind/module.h"

typedef struct sp_symbolizer sp_symbolizer;

/* A new symbolizer has zero-initialised options. */
typedef struct sp_symbolizer_options {
    sp_demangle_style style;
    bool debuginfod; /* ask the servers in DEBUGINFOD_URLS for missing debug files */
    sp_meanwhile meanwhile;
    pid_t process; /* whose just-in-time compilers' names are used; 0: this one */
} sp_symbolizer_options;

/* NULL when memory is short. */
sp_symbolizer *sp_symbolizer_create(void);
void sp_symbolizer_destroy(sp_symbolizer *symbolizer);
/* Call it before the first request. Threads: setup. */
void sp_symbolizer_configure(sp_symbolizer *symbolizer, const sp_symbolizer_options *options);

/* Find the frames at ELF virtual ADDRESS of MODULE: innermost inlined function first, the physical
 * function last. Returns how many are in *FRAMES, which is valid until the next sp_symbolizer_rest.
 * There is always at least one: an address without a symbol has the name "module+0xaddr" (module:
 * the last part of the path) and no file. When MODULE is NULL, runtime ADDRESS is in no module; its
 * one frame is named by a just-in-time compiler (perf-PID.map, jitdump), is a function of the
 * kernel, or has the name "[kernel]+0xaddr" or "[unknown]+0xaddr". Names are cut to 16 KiB. 0 only
 * when memory is short, or when a module without build id has a longer path than that. */
uint32_t sp_symbolizer_frames(sp_symbolizer *symbolizer, const sp_module *module, uint64_t address,
                              const sp_frame **frames);

/* The name of the variable at ELF virtual ADDRESS of MODULE, valid as frames are: "cache_mutex";
 * "shop::inventory+0x28" inside of a variable; "module+0xaddr" when no symbol covers ADDRESS; ""
 * when the module has no data there. When MODULE is NULL, runtime ADDRESS is in no module, and the
 * name is "[heap]+0xoffset" or "". NULL when sp_symbolizer_frames would return 0. */
const char *sp_symbolizer_variable(sp_symbolizer *symbolizer, const sp_module *module,
                                   uint64_t address);

/* Wait at most MS milliseconds for debug files that were requested from a server. Addresses that
 * were named before may have better names then, so request them again. Returns false at once when
 * nothing is pending, or when two seconds of waiting brought no answer. */
bool sp_symbolizer_wait(sp_symbolizer *symbolizer, uint32_t ms);

/* Call it once a window. It closes the files of modules that had no new address in the last six
 * calls, and those that open quickly again (below 2 % of the time between two calls), and returns
 * their memory to the system. Names are kept within the bound (16 MiB); those without recent
 * requests are freed first. A new address opens the files again. */
void sp_symbolizer_rest(sp_symbolizer *symbolizer);

/* Closes all files and returns their memory to the system. Names are kept, and frames that were
 * returned stay valid. */
void sp_symbolizer_close_files(sp_symbolizer *symbolizer);

/* The memory of the names, in bytes. */
size_t sp_symbolizer_bytes(const sp_symbolizer *symbolizer);
/* Set the bounds, in bytes: of the names (default 16 MiB), and of what was read of one module's
 * debug information (default 128 MiB), above which its files are closed in the middle of a window.
 * For tests. */
void sp_symbolizer_set_limits(sp_symbolizer *symbolizer, size_t names_bytes, size_t index_bytes);
/* Name a whole function at once when opening its files took OPENING_NS of CPU time (default 5 ms).
 * 0: name each function whole, however long that takes. For tests. */
void sp_symbolizer_set_long_opening(sp_symbolizer *symbolizer, uint64_t opening_ns);

#endif
