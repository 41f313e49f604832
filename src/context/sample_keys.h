/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of attributes on samples. Records name a key by its number (OTEP 4947's
 * threadlocal.attribute_key_map). The table only grows: a number means the same key for the life of
 * the process, also in forked children.
 *
 * Threads: any, for all of it; only an addition takes a lock. Signals: not safe, except
 * sp_sample_keys_count and sp_sample_key. */
#ifndef SP_CONTEXT_SAMPLE_KEYS_H
#define SP_CONTEXT_SAMPLE_KEYS_H

#include <stdint.h>

enum { SP_SAMPLE_KEYS_MAX = 256, SP_SAMPLE_KEY_BYTES_MAX = 255 };

/* The number of keys. Each number below it has a key. */
uint32_t sp_sample_keys_count(void);
/* The key of number INDEX, which lives as long as the process; NULL when there is none. */
const char *sp_sample_key(uint32_t index);
/* The number of KEY, which is added when it is new, and copied. SP_SAMPLE_KEYS_MAX when the table
 * is full, or memory is short. */
uint32_t sp_sample_key_put(const char *key);
/* Set the function that is called after each addition, with no lock held, on the thread that added.
 * NULL: none. Setup. */
void sp_sample_keys_set_hook(void (*added)(void));

#endif
