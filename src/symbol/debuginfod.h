/* SPDX-License-Identifier: Apache-2.0 */
/* Fetches debug files by build id from the servers that DEBUGINFOD_URLS names, only when
 * SPANPROF_DEBUGINFOD=1. A separate thread fetches one file after the other; only
 * sp_debuginfod_wait waits for it. */
#ifndef SP_SYMBOL_DEBUGINFOD_H
#define SP_SYMBOL_DEBUGINFOD_H

#include "core/compiler.h"

typedef struct sp_debuginfod sp_debuginfod;

typedef enum sp_debuginfod_answer {
    SP_DEBUGINFOD_PENDING,
    SP_DEBUGINFOD_NONE, /* no server has it or answers, or there were too many requests; final */
    SP_DEBUGINFOD_FETCHED,
} sp_debuginfod_answer;

/* Load libdebuginfod. NULL when the library is not installed or no server is named, both with a
 * warning, or when memory is short. Threads: setup, because a fork while a library is being loaded
 * would leave the loader's lock held in the child. */
sp_debuginfod *sp_debuginfod_create(void);
/* Abandons the current fetch, and waits at most two seconds for the thread to end. */
void sp_debuginfod_destroy(sp_debuginfod *debuginfod);

/* The state of the debug file of build id ID (LENGTH bytes). The first call requests the file.
 * *PATH is the file in libdebuginfod's cache, NULL unless it was fetched; it lives until destroy.
 * Threads: collector. */
sp_debuginfod_answer sp_debuginfod_ask(sp_debuginfod *debuginfod, const uint8_t *id, size_t length,
                                       const char **path);

/* Wait at most MS milliseconds for an answer. Returns false at once when no request is pending, or
 * when two seconds of waiting brought no answer; the next answer allows two seconds more. Threads:
 * collector. */
bool sp_debuginfod_wait(sp_debuginfod *debuginfod, uint32_t ms);

#endif
