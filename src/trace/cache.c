/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/cache.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "core/cancel.h"
#include "core/clock.h"
#include "core/lock.h"
#include "trace/random_id.h"
#include "trace/trace_internal.h"

_Thread_local sp_span_cache *sp_cache_mine;

static struct {
    sp_lock lock; /* guards in_use and additions to the list; never held while taking another */
    _Atomic(sp_span_cache *) all;
    pthread_key_t exit_key;
    bool has_key;
    _Atomic uint64_t shared_counts[SP_COUNT_COUNTERS];
} caches = {.lock = SP_LOCK_AT(SP_LOCK_SPAN_CACHES)};

/* The fallback when getrandom fails (an old kernel, or one too early in its boot): mix values into
 * SEED that differ between threads and processes. */
static void seed_weakly(uint64_t seed[4])
{
    uint64_t x = sp_clock_realtime_ns() ^ (uint64_t)getpid() << 32 ^ (uint64_t)(uintptr_t)seed;
    for (int i = 0; i < 4; i++) {
        x += UINT64_C(0x9e3779b97f4a7c15); /* splitmix64 */
        uint64_t z = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        seed[i] ^= z ^ (z >> 31) ^ sp_clock_monotonic_ns();
    }
}

static void seed(sp_span_cache *cache)
{
    uint64_t fresh[4];
    if (getrandom(fresh, sizeof fresh, GRND_NONBLOCK) != (ssize_t)sizeof fresh) {
        memcpy(fresh, cache->random, sizeof fresh);
        seed_weakly(fresh);
    }
    fresh[0] |= 1; /* the generator never leaves a state of all zero */
    memcpy(cache->random, fresh, sizeof fresh);
}

/* A thread with a cache exits. */
static void run_exit(void *value)
{
    sp_span_cache *cache = value;
    sp_cache_mine = NULL;
    sp_store_release(&cache->calling, 0); /* the thread may have ended in a callback */
    sp_pool_drain(&sp_record_pool, &cache->records);
    sp_pool_drain(&sp_light_pool, &cache->lights);
    sp_lock_take(&caches.lock);
    cache->in_use = false;
    sp_lock_give(&caches.lock);
}

static sp_span_cache *reuse_locked(void)
{
    sp_span_cache *cache = sp_load_relaxed(&caches.all);
    while (cache && cache->in_use)
        cache = cache->next;
    return cache;
}

static sp_span_cache *add_locked(void)
{
    sp_span_cache *cache = aligned_alloc(SP_CACHE_LINE, (sizeof *cache + SP_CACHE_LINE - 1) &
                                                            ~(size_t)(SP_CACHE_LINE - 1));
    if (!cache)
        return NULL;
    memset(cache, 0, sizeof *cache);
    cache->next = sp_load_relaxed(&caches.all);
    sp_store_release(&caches.all, cache); /* pairs with sp_cache_sum */
    return cache;
}

static sp_span_cache *get_cache_and_key(bool *has_key)
{
    sp_lock_take(&caches.lock);
    if (!caches.has_key)
        caches.has_key = pthread_key_create(&caches.exit_key, run_exit) == 0;
    *has_key = caches.has_key;
    sp_span_cache *cache = reuse_locked();
    if (!cache)
        cache = add_locked();
    if (cache)
        cache->in_use = true;
    sp_lock_give(&caches.lock);
    return cache;
}

__attribute__((noinline)) sp_span_cache *sp_cache_create(void)
{
    SP_UNCANCELLED;          /* getrandom is a cancellation point */
    int saved_errno = errno; /* the application's: starting a span does not change it */
    bool has_key;
    sp_span_cache *cache = get_cache_and_key(&has_key);
    if (cache) {
        seed(cache);
        /* Without a key the cache and its slots are lost when the thread ends: at most two batches
         * for each thread. */
        if (has_key)
            pthread_setspecific(caches.exit_key, cache);
        sp_cache_mine = cache;
    }
    errno = saved_errno;
    return cache;
}

void sp_cache_count_shared(sp_tracer_counter counter)
{
    sp_count(&caches.shared_counts[counter], 1);
}

void sp_cache_sum(uint64_t totals[SP_COUNT_COUNTERS])
{
    for (int i = 0; i < SP_COUNT_COUNTERS; i++)
        totals[i] = sp_load_relaxed(&caches.shared_counts[i]);
    for (sp_span_cache *cache = sp_load_acquire(&caches.all); cache; cache = cache->next)
        for (int i = 0; i < SP_COUNT_COUNTERS; i++)
            totals[i] += sp_load_relaxed(&cache->counts[i]);
}

bool sp_cache_any_calling(void)
{
    for (sp_span_cache *cache = sp_load_acquire(&caches.all); cache; cache = cache->next)
        if (atomic_load_explicit(&cache->calling, memory_order_seq_cst) > 0)
            return true;
    return false;
}

static void reset(sp_span_cache *cache)
{
    cache->records = cache->lights = (sp_magazine){0};
    for (int i = 0; i < SP_COUNT_COUNTERS; i++)
        sp_store_relaxed(&cache->counts[i], 0);
    cache->in_use = cache == sp_cache_mine;
    if (!cache->in_use)
        sp_store_relaxed(&cache->calling, 0); /* this thread may have forked in a callback */
}

/* The parent's other threads do not exist in the child, so their caches are free, whatever state
 * the fork found them in. */
void sp_cache_after_fork(void)
{
    sp_lock_init(&caches.lock, SP_LOCK_SPAN_CACHES);
    for (sp_span_cache *cache = sp_load_relaxed(&caches.all); cache; cache = cache->next)
        reset(cache);
    for (int i = 0; i < SP_COUNT_COUNTERS; i++)
        sp_store_relaxed(&caches.shared_counts[i], 0);
    if (sp_cache_mine)
        seed(sp_cache_mine);
}

void sp_random_id(uint8_t *out, size_t bytes)
{
    sp_span_cache *cache = sp_cache_get();
    sp_span_cache emergency;
    if (!cache) {
        memset(&emergency, 0, sizeof emergency);
        cache = &emergency;
        seed(cache);
    }
    while (bytes > 0) {
        uint64_t id = sp_cache_id(cache);
        size_t count = bytes < sizeof id ? bytes : sizeof id;
        memcpy(out, &id, count);
        if (count == sizeof id ||
            out[0]) { /* with fewer than 8 bytes left, the first byte must not be zero */
            out += count;
            bytes -= count;
        }
    }
}
