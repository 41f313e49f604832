/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays that grow. Threads: one at a time.  Signals: not safe. */
#ifndef SP_CORE_REACH_H
#define SP_CORE_REACH_H

#include <stdbool.h>
#include <stddef.h>

/* Make the array *ITEMS, which has *CAPACITY elements of SIZE bytes, long enough for element
 * NUMBER: it gets FIRST elements if it has none, and is doubled until it is long enough. It may
 * move; new elements are not initialised. The caller frees the array. False when memory is short:
 * then nothing has changed. */
bool sp_reach(void *items, size_t number, size_t *capacity, size_t first, size_t size);

/* If the array ITEMS has no element NUMBER, make it long enough. False when memory is short. ITEMS,
 * a pointer, and CAPACITY, a size_t, are variables. */
#define SP_REACH(items, number, capacity, first)                                                   \
    ((number) < (capacity) || sp_reach(&(items), (number), &(capacity), (first), sizeof *(items)))

#endif
