/* SPDX-License-Identifier: Apache-2.0 */
/* Eight bytes as one number, in memory order. Ids are moved in this way, because a load that is
 * wider than the store before it waits until that store has reached the cache (8 ns). Threads: any.
 * Signals: safe. Where another thread writes meanwhile, core/atomic.h has the loads. */
#ifndef SP_CORE_WORD_H
#define SP_CORE_WORD_H

#include <stdint.h>
#include <string.h>

/* Word NUMBER, from 0, of those at BYTES, which may have any alignment. */
static inline uint64_t sp_word_load(const void *bytes, size_t number)
{
    uint64_t word;
    memcpy(&word, (const uint8_t *)bytes + 8 * number, sizeof word);
    return word;
}

/* The same, by a separate load. Otherwise the compiler joins two neighbouring loads into a vector,
 * and a vector of words that were just written one by one is slow to read. */
static inline uint64_t sp_word_load_alone(const void *bytes, size_t number)
{
    uint64_t word = sp_word_load(bytes, number);
    __asm__("" : "+r"(word));
    return word;
}

static inline void sp_word_store(void *bytes, size_t number, uint64_t word)
{
    memcpy((uint8_t *)bytes + 8 * number, &word, sizeof word);
}

#endif
