/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the name that was probably meant by a misspelled one. Threads: any. Signals: not safe. */
#ifndef SP_CORE_SPELLING_H
#define SP_CORE_SPELLING_H

#include <stddef.h>
#include <stdint.h>

/* Longer names are not compared. */
enum { SP_SPELLING_LONGEST = 64 };

typedef struct sp_spelling {
    const char *text;
    size_t length;
    uint32_t far_off;  /* names that differ in this many letters or more are ignored */
    const char *found; /* the nearest name so far; NULL: none is near */
} sp_spelling;

/* The first far_off for a text of LENGTH bytes. */
static inline uint32_t sp_spelling_far(size_t length)
{
    return (uint32_t)length / 3 + 2;
}

/* Compare NAME with the text. If it differs in fewer letters than the names before, it becomes
 * `found`. */
void sp_spelling_try(sp_spelling *spelling, const char *name);

#endif
