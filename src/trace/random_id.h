/* SPDX-License-Identifier: Apache-2.0 */
/* Random ids. trace/cache.c has the generators, one for each thread. */
#ifndef SP_TRACE_RANDOM_ID_H
#define SP_TRACE_RANDOM_ID_H

#include <stddef.h>
#include <stdint.h>

/* BYTES random bytes, never all zero, from this thread's generator (seeded by getrandom). Any
 * thread. */
void sp_random_id(uint8_t *out, size_t bytes);

#endif
