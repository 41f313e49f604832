/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of values by key: values of equal keys are added up. Threads: one at a time. */
#ifndef SP_TOOL_MODEL_KEY_SUMS_H
#define SP_TOOL_MODEL_KEY_SUMS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/intern.h"

/* All zero is an empty table. The key with number n has sums[n]. */
typedef struct sp_key_sums {
    sp_intern keys;
    uint64_t *sums;
    size_t capacity;
} sp_key_sums;

/* Add VALUE to the sum of KEY, which has LENGTH bytes and is copied. Returns false when memory is
 * short. */
bool sp_key_sums_add(sp_key_sums *table, const void *key, size_t length, uint64_t value);
/* The number of the key with the largest sum, of equal ones the first; SP_INTERN_FAILED: there is
 * no key. */
uint32_t sp_key_sums_largest(const sp_key_sums *table);
void sp_key_sums_deinit(sp_key_sums *table);

#endif
