/* SPDX-License-Identifier: Apache-2.0 */
#include "alloc/block_samples.h"

#include <errno.h>

#include <spanprof/alloc.h>
#include "call/call.h"
#include "call/call_sampling.h"
#include "call/preload_find.h"
#include "call/sampling_run.h"
#include "core/atomic.h"
#include "core/compiler.h"
#include "core/log.h"

/* A thread may still use the config of an earlier run when the next run has started, so several are
 * kept. */
enum { CONFIGS_KEPT = 8 };

static struct {
    sp_sampling_run run;
    sp_alloc_config configs[CONFIGS_KEPT]; /* by number of the run; written before it begins */
    sp_preload *preload;                   /* NULL: not loaded, or used by another copy */
    sp_live_table live;
} alloc;

/* The filter if nothing is preloaded. */
static _Atomic uint8_t own_filter[SP_FILTER_SIZE];

static const sp_alloc_config *config_of(uint32_t run)
{
    return &alloc.configs[run % CONFIGS_KEPT];
}

/* --- a block ---------------------------------------------------------------------------------- */

/* The block is in the table before its sample is in a ring: a sample without an entry would say
 * that it was freed. */
static bool take(void *pointer, bool heap, sp_sampling_weight weight, const void *return_address)
{
    sp_live_entry entry = {0};
    if (heap)
        sp_live_put(&alloc.live, pointer, &entry);
    sp_call call = {.kind = SP_CALL_ALLOC,
                    .live_slot = entry.slot,
                    .live_id = entry.id,
                    .value = weight.size,
                    .count = weight.count,
                    .return_address = return_address};
    bool taken = sp_call_take(&call);
    if (!taken && entry.id)
        sp_live_remove(&alloc.live, pointer);
    return taken;
}

/* Sample the block if it is its turn, and return whether it was sampled. Blocks that are allocated
 * meanwhile, by this code or by a handler that interrupts it, are not sampled. */
static bool sample_block(sp_sampling_thread *thread, void *pointer, uint64_t bytes,
                         const void *return_address)
{
    uint32_t run = sp_load_acquire(&alloc.run.number); /* then its config is stored */
    if (run == 0)
        return false;
    const sp_alloc_config *config = config_of(run);
    uint64_t period = config->period_bytes;
    int error = errno;
    if (!sp_sampling_enter(thread, run, period))
        return false;
    sp_sampling_weight weight;
    bool taken = sp_sampling_pass(&thread->left, &thread->random, period, bytes, &weight) &&
                 take(pointer, config->heap, weight, return_address);
    errno = error;
    sp_sampling_leave(thread);
    return taken;
}

static void seen(sp_sampling_thread *thread, void *pointer, size_t bytes,
                 const void *return_address)
{
    sample_block(thread, pointer, bytes, return_address);
}

static void freed(void *pointer)
{
    sp_live_remove(&alloc.live, pointer);
}

static uint32_t hold(void *pointer)
{
    return sp_live_hold(&alloc.live, pointer);
}

static void settle(uint32_t held, bool is_freed)
{
    sp_live_settle(&alloc.live, held, is_freed);
}

bool spanprof_alloc_sampled(void *pointer, size_t bytes)
{
    static _Thread_local sp_sampling_thread own;
    uint32_t run = sp_load_relaxed(&alloc.run.number);
    if (SP_LIKELY(run == 0) || !pointer)
        return false;
    if (SP_LIKELY(own.run == run && bytes < own.left)) {
        own.left -= bytes;
        return false;
    }
    return sample_block(&own, pointer, bytes, __builtin_return_address(0));
}

void spanprof_alloc_freed(void *pointer)
{
    const sp_live_table *live = &alloc.live;
    if (sp_load_acquire(&live->size) && sp_load_relaxed(&live->filter[sp_filter_index(pointer)]))
        freed(pointer);
}

/* --- the preloaded library -------------------------------------------------------------------- */

/* The library if it can be used now; else NULL, and *REASON says why not. */
static sp_preload *find_preload(const char **reason)
{
    sp_preload *preload = sp_preload_find("spanprof_preload", SP_PRELOAD_VERSION, "malloc", reason);
    if (!preload || sp_load_relaxed(&preload->run) == 0)
        return preload;
    *reason = "another copy of spanprof in this process samples them";
    return NULL;
}

static sp_preload *find_usable_preload(void)
{
    const char *reason;
    sp_preload *preload = find_preload(&reason);
    if (!preload)
        sp_log_warn("alloc", "allocations are not seen: %s", reason);
    return preload;
}

/* From here on the library calls the SDK. */
static void publish(void)
{
    if (!alloc.preload)
        return;
    sp_store_relaxed(&alloc.preload->hold, hold);
    sp_store_relaxed(&alloc.preload->settle, settle);
    sp_store_release(&alloc.preload->freed, freed); /* pairs with the library's acquire of each */
    sp_store_release(&alloc.preload->seen, seen);
}

/* --- life ------------------------------------------------------------------------------------- */

static void start_live(sp_alloc_config *config)
{
    _Atomic uint8_t *filter = alloc.preload ? alloc.preload->filter : own_filter;
    if (sp_load_relaxed(&alloc.live.size)) {
        sp_live_clear(&alloc.live); /* blocks of an earlier run, or of the parent of a fork */
        alloc.live.filter = filter;
    } else if (!sp_live_init(&alloc.live, config->live_max, filter)) {
        config->heap = false;
        sp_log_warn("alloc", "no memory for the table of live blocks: none are kept");
    }
}

void sp_alloc_start(const sp_alloc_config *config)
{
    sp_alloc_config *own = &alloc.configs[sp_sampling_run_next(&alloc.run) % CONFIGS_KEPT];
    *own = *config;
    alloc.preload = find_usable_preload();
    if (own->heap)
        start_live(own);
    publish();
    if (alloc.preload)
        sp_store_relaxed(&alloc.preload->maps, config->maps);
    sp_sampling_run_start(&alloc.run, alloc.preload ? &alloc.preload->run : NULL);
}

void sp_alloc_stop(void)
{
    sp_sampling_run_stop(&alloc.run);
}

void sp_alloc_pause(void)
{
    sp_sampling_run_pause(&alloc.run);
}

void sp_alloc_resume(void)
{
    sp_sampling_run_resume(&alloc.run);
}

bool sp_alloc_is_live(sp_live_entry entry)
{
    return sp_live_has(&alloc.live, entry);
}

uint64_t sp_alloc_live_full(void)
{
    return sp_load_relaxed(&alloc.live.full);
}
