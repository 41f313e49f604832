/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/model/key_sums.h"

#include <stdlib.h>

#include "core/reach.h"
#include "tool/model/sum.h"

bool sp_key_sums_add(sp_key_sums *table, const void *key, size_t length, uint64_t value)
{
    bool is_new;
    uint32_t number = sp_intern_put(&table->keys, key, length, &is_new);
    if (number == SP_INTERN_FAILED || !SP_REACH(table->sums, number, table->capacity, 64))
        return false;
    if (is_new)
        table->sums[number] = 0;
    sp_sum_add(&table->sums[number], value);
    return true;
}

uint32_t sp_key_sums_largest(const sp_key_sums *table)
{
    uint32_t best = table->keys.count ? 0 : SP_INTERN_FAILED;
    for (uint32_t i = 1; i < table->keys.count; i++)
        if (table->sums[i] > table->sums[best])
            best = i;
    return best;
}

void sp_key_sums_deinit(sp_key_sums *table)
{
    sp_intern_deinit(&table->keys);
    free(table->sums);
    *table = (sp_key_sums){0};
}
