/* SPDX-License-Identifier: Apache-2.0 */
/* The last of the span processors: the queue between the threads that end spans and the exporter
 * thread that takes them. The exporter is woken when a batch is complete (the batch processor), or
 * by the first span (the simple processor): config->wake_spans. Spans that are not sampled were
 * recorded for registered processors, and are not exported.
 *
 * The queue is one word and the slots' own links. The word holds the newest waiting slot and how
 * many wait in all; pushing is one compare-and-swap, which also enforces the bound. The consumer
 * detaches the whole list at once, copies its indices to an array of its own, and hands out the
 * oldest first from there; the count falls only as spans are handed out, so it is exact for the
 * bound. (An array, because each step along the links waits for memory that other threads have
 * written; slots that are named in an array can be prefetched.) There is no A-B-A problem: pushing
 * reads nothing through the old newest, it only links to it. */
#include <stdlib.h>

#include "trace/record.h"

static struct {
    _Alignas(
        SP_CACHE_LINE) _Atomic uint64_t word; /* index of the newest slot << 32 | spans waiting */
    /* Used only by the consumer: the indices of detached slots, the newest first. */
    _Alignas(SP_CACHE_LINE) uint32_t *detached;
    uint32_t detached_count, detached_room;
} queue;

static void push(sp_span_processor *self, sp_span_data *data);

sp_span_processor sp_batch_processor = {.on_end = push};

static void drop(sp_span_data *data, sp_tracer_counter reason)
{
    sp_cache_count(sp_cache_mine, reason);
    sp_span_data_release(data);
}

static void push(sp_span_processor *self, sp_span_data *data)
{
    (void)self;
    if (SP_UNLIKELY(!(data->flags & SPANPROF_TRACE_FLAG_SAMPLED))) {
        sp_span_data_release(data); /* recorded only: not to be exported */
        return;
    }
    sp_span_record *record = sp_record_of_data(data);
    const sp_tracer_config *config = &record->session->config;
    if (SP_UNLIKELY(!config->record)) {
        drop(data, SP_COUNT_NOT_EXPORTED);
        return;
    }
    uint64_t word = sp_load_relaxed(&queue.word), next;
    do {
        if ((uint32_t)word >= config->queue_spans) {
            drop(data, SP_COUNT_QUEUE_FULL);
            return;
        }
        record->head.next = (uint32_t)(word >> 32);
        next = (uint64_t)record->head.index << 32 | ((uint32_t)word + 1);
    } while (!atomic_compare_exchange_weak_explicit(
        &queue.word, &word, next, memory_order_release, /* pairs with detach_list */
        memory_order_relaxed));
    if (SP_UNLIKELY((uint32_t)next == config->wake_spans) && config->wake)
        config->wake(config->wake_user);
}

/* False when there is no memory for COUNT indices: then the spans stay in the queue. */
static bool make_room(uint32_t count)
{
    if (count <= queue.detached_room)
        return true;
    uint32_t *longer = realloc(queue.detached, (size_t)count * sizeof *longer);
    if (!longer)
        return false;
    queue.detached = longer;
    queue.detached_room = count;
    return true;
}

/* A thread gets and gives slots in batches, so the next ones of the list most likely lie in a row
 * with SLOT, in one direction or the other. */
static void fetch_neighbours(const sp_slot *slot)
{
    enum { DISTANCE = 6 * SP_RECORD_BYTES };
    __builtin_prefetch((const uint8_t *)slot - DISTANCE);
    __builtin_prefetch((const uint8_t *)slot + DISTANCE);
}

/* Move the pushed spans to the consumer's array, which is empty. */
static void detach_list(void)
{
    uint64_t word = sp_load_relaxed(&queue.word);
    do {
        if (!make_room((uint32_t)word))
            return;
    } while (!atomic_compare_exchange_weak_explicit(&queue.word, &word, (uint32_t)word,
                                                    memory_order_acquire, /* pairs with push */
                                                    memory_order_relaxed));
    for (uint32_t index = (uint32_t)(word >> 32); index;) {
        const sp_slot *slot = sp_pool_at(&sp_record_pool, index);
        fetch_neighbours(slot);
        queue.detached[queue.detached_count++] = index;
        index = slot->next;
    }
}

/* Prefetch the record of the span that is handed out FETCH_AHEAD spans from now. */
static void fetch_ahead(void)
{
    enum { FETCH_AHEAD = 8 };
    if (queue.detached_count < FETCH_AHEAD)
        return;
    uint32_t index = queue.detached[queue.detached_count - FETCH_AHEAD];
    const uint8_t *slot = (const uint8_t *)sp_pool_at(&sp_record_pool, index);
    for (size_t i = 0; i < SP_RECORD_BYTES; i += SP_CACHE_LINE)
        __builtin_prefetch(slot + i);
}

size_t sp_tracer_take(sp_span_data **out, size_t maximum)
{
    size_t count = 0;
    while (count < maximum) {
        if (!queue.detached_count)
            detach_list();
        if (!queue.detached_count)
            break;
        fetch_ahead();
        sp_slot *slot = sp_pool_at(&sp_record_pool, queue.detached[--queue.detached_count]);
        out[count++] = &sp_record_of_slot(slot)->data;
    }
    atomic_fetch_sub_explicit(&queue.word, count, memory_order_relaxed);
    return count;
}

size_t sp_tracer_queued(void)
{
    return (uint32_t)sp_load_relaxed(&queue.word);
}

void sp_span_data_release(sp_span_data *data)
{
    if (!data)
        return;
    sp_span_record *record = sp_record_of_data(data);
    sp_record_release_memory(record);
    sp_span_cache *cache = sp_cache_get();
    sp_pool_give(&sp_record_pool, cache ? &cache->records : NULL, &record->head);
}

/* The parent sends the spans that it had queued. The fork may have interrupted a realloc of the
 * array, so the child does not free it. */
void sp_batch_after_fork(void)
{
    sp_store_relaxed(&queue.word, 0);
    queue.detached = NULL;
    queue.detached_count = queue.detached_room = 0;
}
