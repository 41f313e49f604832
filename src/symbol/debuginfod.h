/* SPDX-License-Identifier: Apache-2.0 */
/* Debug files by build id from the servers that DEBUGINFOD_URLS names, only when the user asks for
 * it (SPANPROF_DEBUGINFOD=1). A separate thread fetches one file after the other; only
 * sp_debuginfod_wait waits for it. */
#ifndef SP_SYMBOL_DEBUGINFOD_H
#define SP_SYMBOL_DEBUGINFOD_H

#include "core/compiler.h"

typedef struct sp_debuginfod sp_debuginfod;

typedef enum sp_debuginfod_answer {
    SP_DEBUGINFOD_PENDING,
    SP_DEBUGINFOD_NONE, /* no server has it, or none answers; not asked for again */
    SP_DEBUGINFOD_FETCHED,
} sp_debuginfod_answer;

/* Load libdebuginfod. NULL, with a warning, when it is not there, or no server is named. Threads:
 * setup, because a fork while a library is being loaded would leave the loader's lock held in the
 * child. */
sp_debuginfod *sp_debuginfod_create(void);
/* Gives up what is being fetched, and waits two seconds at most for the thread to notice. */
void sp_debuginfod_destroy(sp_debuginfod *debuginfod);

/* What became of the debug file of build id ID (LENGTH bytes): the first call asks for it. *PATH is
 * the file in libdebuginfod's cache, and lives until destroy. Threads: collector. */
sp_debuginfod_answer sp_debuginfod_ask(sp_debuginfod *debuginfod, const uint8_t *id, size_t length,
                                       const char **path);

/* Wait MS milliseconds at most for an answer. False, at once, when none is to come, or when no
 * answer came in two seconds of waiting: then waiting is over until the next one does. Threads:
 * collector. */
bool sp_debuginfod_wait(sp_debuginfod *debuginfod, uint32_t ms);

#endif
