/* SPDX-License-Identifier: Apache-2.0 */
/* Which of some names was probably meant by a misspelled one.  Threads: any.  Signals: not safe. */
#ifndef SP_CORE_SPELLING_H
#define SP_CORE_SPELLING_H

#include <stddef.h>
#include <stdint.h>

/* Longer names are not compared. */
enum { SP_SPELLING_LONGEST = 64 };

typedef struct sp_spelling {
    const char *text;
    size_t length;
    uint32_t far_off;  /* a name that differs in so many letters is not meant */
    const char *found; /* the nearest name so far; NULL: none is near */
} sp_spelling;

/* Names that differ in fewer letters from a text of LENGTH bytes may be meant by it. */
static inline uint32_t sp_spelling_far(size_t length)
{
    return (uint32_t)length / 3 + 2;
}

/* Letters are added, removed or changed (Levenshtein). */
void sp_spelling_try(sp_spelling *spelling, const char *name);

#endif
