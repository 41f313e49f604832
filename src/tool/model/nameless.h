/* SPDX-License-Identifier: Apache-2.0 */
/* Samples in functions that have no name, such as functions of a stripped program. Threads: the
 * main thread.
 */
#ifndef SP_TOOL_MODEL_NAMELESS_H
#define SP_TOOL_MODEL_NAMELESS_H

#include "tool/model/select.h"

#define SP_NAMELESS_MODULE 128

typedef struct sp_nameless {
    uint64_t all; /* the selected samples */
    /* of these, those whose innermost function is MODULE+0xADDRESS, or most functions are */
    uint64_t nameless;
    char module[SP_NAMELESS_MODULE]; /* the module with the most of them; "": none */
} sp_nameless;

/* Count the samples of SELECTION that have no name. Code that belongs to no file does not count,
 * because no symbols could name it. Returns false when memory is short. */
bool sp_selection_find_nameless(sp_nameless *out, const sp_selection *selection);
/* Whether NAME is that of a function without a name: MODULE+0xADDRESS. */
bool sp_is_nameless(const char *name);
/* How to get names; after "install its debug symbols ". */
#define SP_NAMELESS_REMEDY                                                                         \
    "(on Debian a package that ends in -dbgsym or -dbg), or set SPANPROF_DEBUGINFOD=1 and "        \
    "DEBUGINFOD_URLS to fetch them, or build it with -g and without strip; then record again"
/* Write a note when most of the samples have no name. It says how to get names. SIDE, such as
 * "A: ", begins the note. Returns whether a note was written. */
bool sp_selection_note_nameless(const sp_selection *selection, const char *side);

#endif
