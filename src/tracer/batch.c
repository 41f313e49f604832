/* SPDX-License-Identifier: Apache-2.0 */
/* The last of the span processors: the queue between the threads that end spans and the exporter thread that takes them, who is woken
 * when a batch has come together (the batch processor), or by the first span (the simple one): config->wake_spans. Spans that are not sampled
 * were recorded for others, and are not exported.
 *
 * The queue is one word and the slots' own links. The word holds the newest waiting slot and how many wait in all; pushing is one
 * compare-and-swap, which also enforces the bound. The consumer detaches the whole list at once, turns it round (the oldest first)
 * and hands it out from there; the count falls only as spans are handed out, so it is exact for the bound.
 * There is no A-B-A problem: pushing reads nothing through the old newest, it only links to it. */
#include "tracer/record.h"

static struct {
    _Alignas(
        SP_CACHE_LINE) _Atomic uint64_t word; /* index of the newest slot << 32 | spans waiting */
    _Alignas(SP_CACHE_LINE) uint32_t oldest;  /* the consumer's list */
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

/* Move what was pushed to the consumer's list, which is empty. */
static void detach_list(void)
{
    uint64_t word = atomic_fetch_and_explicit(&queue.word, UINT32_MAX,
                                              memory_order_acquire); /* pairs with push */
    for (uint32_t index = (uint32_t)(word >> 32); index;) {
        sp_slot *slot = sp_pool_at(&sp_record_pool, index);
        uint32_t older = slot->next;
        slot->next = queue.oldest;
        queue.oldest = index;
        index = older;
    }
}

size_t sp_tracer_take(sp_span_data **out, size_t maximum)
{
    size_t count = 0;
    while (count < maximum) {
        if (!queue.oldest)
            detach_list();
        if (!queue.oldest)
            break;
        sp_slot *slot = sp_pool_at(&sp_record_pool, queue.oldest);
        queue.oldest = slot->next;
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

/* What the parent had queued is the parent's to send. */
void sp_batch_after_fork(void)
{
    sp_store_relaxed(&queue.word, 0);
    queue.oldest = 0;
}
