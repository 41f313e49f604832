/* SPDX-License-Identifier: Apache-2.0 */
#include "core/spelling.h"

#include <string.h>

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* How many letters have to be added, removed or changed (Levenshtein). UINT32_MAX: A or B is too
 * long. */
static uint32_t distance(const char *a, size_t length, const char *b)
{
    uint32_t row[SP_SPELLING_LONGEST];
    size_t b_length = strlen(b);
    if (length >= SP_SPELLING_LONGEST || b_length >= SP_SPELLING_LONGEST)
        return UINT32_MAX;
    for (uint32_t j = 0; j <= b_length; j++)
        row[j] = j;
    for (uint32_t i = 1; i <= length; i++) {
        uint32_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            uint32_t changed = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            row[j] = least(changed, least(row[j], row[j - 1]) + 1);
        }
    }
    return row[b_length];
}

void sp_spelling_try(sp_spelling *spelling, const char *name)
{
    uint32_t far = distance(spelling->text, spelling->length, name);
    if (far >= spelling->far_off)
        return;
    spelling->far_off = far;
    spelling->found = name;
}
