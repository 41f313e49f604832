/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a thread, so that starting and ending spans neither contends nor allocates: free
 * slots, the generator of ids, and the thread's share of the counters. The first span of a thread
 * makes its cache. When the thread exits, the slots go back to the pools, and the next new thread
 * takes the cache. Caches are never freed: there are as many as there were threads that used spans
 * at the same time. */
#ifndef SP_TRACE_CACHE_H
#define SP_TRACE_CACHE_H

#include "trace/pool.h"

typedef enum sp_tracer_counter {
    SP_COUNT_STARTED,
    SP_COUNT_ENDED,
    SP_COUNT_UNSAMPLED,
    SP_COUNT_QUEUE_FULL,
    SP_COUNT_MEMORY,
    SP_COUNT_MISUSE,
    SP_COUNT_NOT_EXPORTED,
    SP_COUNT_FOREIGN_STARTED,
    SP_COUNT_FOREIGN_ENDED,
    SP_COUNT_FOREIGN_EVICTED,
    SP_COUNT_COUNTERS
} sp_tracer_counter;

typedef struct sp_span_cache sp_span_cache;

struct sp_span_cache {
    uint64_t random[4]; /* xoshiro256++ */
    sp_magazine records;
    sp_magazine lights;
    _Atomic uint64_t counts[SP_COUNT_COUNTERS]; /* written by the owner only */
    _Atomic uint32_t calling; /* the nesting of callbacks of registered processors on the owner */
    sp_span_cache *next;      /* in the list of all caches */
    bool in_use;              /* guarded by the lock of cache.c */
};

extern __attribute__((visibility("hidden"))) _Thread_local sp_span_cache *sp_cache_mine;

sp_span_cache *sp_cache_create(void);

/* This thread's cache, or NULL when there is no memory for one. */
static inline sp_span_cache *sp_cache_get(void)
{
    sp_span_cache *cache = sp_cache_mine;
    return SP_LIKELY(cache != NULL) ? cache : sp_cache_create();
}

/* Count on a thread that has no cache. */
void sp_cache_count_shared(sp_tracer_counter counter);

static inline void sp_cache_count(sp_span_cache *cache, sp_tracer_counter counter)
{
    if (SP_LIKELY(cache != NULL))
        sp_count_owned(&cache->counts[counter], 1);
    else
        sp_cache_count_shared(counter);
}

/* The sum over all threads, since the process began. */
void sp_cache_sum(uint64_t totals[SP_COUNT_COUNTERS]);
/* Whether any thread is inside a callback of a processor. Its loads of `calling` are sequentially
 * consistent, as are the stores in registered.c. */
bool sp_cache_any_calling(void);
void sp_cache_after_fork(void);

static inline uint64_t sp_cache_rotate(uint64_t x, int k)
{
    return (x << k) | (x >> (64 - k));
}

/* The next number of xoshiro256++ (Blackman and Vigna, 2019). 256 bits of state, because the ids of
 * all threads of all processes have to differ: sequences of a 64-bit state seeded at random would
 * overlap within a large fleet. */
static inline uint64_t sp_cache_random(sp_span_cache *cache)
{
    uint64_t *s = cache->random;
    uint64_t result = sp_cache_rotate(s[0] + s[3], 23) + s[0];
    uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = sp_cache_rotate(s[3], 45);
    return result;
}

/* The same, never zero. */
static inline uint64_t sp_cache_id(sp_span_cache *cache)
{
    uint64_t id = sp_cache_random(cache);
    while (SP_UNLIKELY(id == 0))
        id = sp_cache_random(cache);
    return id;
}

#endif
