/* SPDX-License-Identifier: Apache-2.0 */
/* Spans: how they start and end, and their contexts (include/spanprof/tracer.h).
 *
 * A start sets the slot's generation to that of a live span as its last step before the processors
 * are called. An end stores the next generation, which releases the slot's lock and invalidates all
 * handles in one store; then the record belongs to the processors. The calls that write to a live
 * span are in span_write.c. */
#include <string.h>

#include "context/self.h"
#include "context/thread.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/word.h"
#include "trace/handle.h"
#include "trace/record.h"
#include "trace/sampling.h"
#include "trace/span_carrier.h"
#include "trace/span_cpu_time.h"
#include "trace/starts.h"
#include "trace/struct_read.h"

static const spanprof_context no_context;

/* Make SLOT, whose contents are written, a live span, and return its handle. KIND is 0 or
 * SP_HANDLE_LIGHT. */
static spanprof_span make_handle(sp_slot *slot, uint64_t kind)
{
    return (spanprof_span){.slot = (uint64_t)slot->index << 1 | kind,
                           .generation = sp_slot_start(slot)};
}

/* --- start ------------------------------------------------------------------------------------ */

static const spanprof_span_options no_options;

/* Indices of the words of a context. FLAGS is the word of the flags and of `remote`. */
enum { TRACE_ID = 0, SPAN_ID = 2, LOCAL_ROOT = 3, FLAGS = 4, CARRIER = 5 };

static inline bool is_valid(const spanprof_context *context)
{
    return (sp_word_load_alone(context, TRACE_ID) | sp_word_load_alone(context, TRACE_ID + 1)) !=
               0 &&
           sp_word_load_alone(context, SPAN_ID) != 0;
}

/* The word FLAGS of a local context whose trace flags are FLAGS. The compiler computes it when they
 * are constant. */
static inline uint64_t flags_word(uint8_t flags)
{
    const uint8_t bytes[8] = {flags};
    return sp_word_load(bytes, 0);
}

static inline bool is_kind(spanprof_span_kind kind)
{
    return (unsigned)kind <= SPANPROF_SPAN_KIND_CONSUMER;
}

/* The arguments of a start, with defaults filled in, and the decisions about the new span. */
typedef struct start_request {
    sp_session *session;
    sp_span_cache *cache;
    spanprof_tracer *tracer;
    const char *name;
    const spanprof_span_options *options; /* never NULL */
    const spanprof_context *parent;       /* never NULL */
    uint64_t context[SP_CONTEXT_WORDS];   /* the new span's */
    bool is_recording;                    /* the sampler's decision is not DROP */
    uint32_t sampler_attribute_count;
    const spanprof_attribute *sampler_attributes;
} start_request;

/* Ask the sampler about a span under a parent of the kind WHICH, when no threshold decides. */
static __attribute__((noinline)) void ask_sampler(start_request *start, sp_sampling_parent which)
{
    const spanprof_span_options *options = start->options;
    spanprof_carrier carrier = sp_span_carrier(start->context[CARRIER]);
    spanprof_sampling_result result;
    spanprof_sampling_request request = {
        .struct_size = sizeof request,
        .kind = is_kind(options->kind) ? options->kind : SPANPROF_SPAN_KIND_INTERNAL,
        .parent = start->parent,
        .trace_id = (const uint8_t *)&start->context[TRACE_ID],
        .name = start->name ? start->name : "",
        .attributes = options->attributes,
        .links = options->links,
        .attribute_count = options->attributes ? options->attribute_count : 0,
        .link_count = options->links ? options->link_count : 0,
    };
    spanprof_sampling_decision decision =
        sp_sampling_ask(&start->session->sampling.rules[which], &request, &result, &carrier);
    memcpy(&start->context[CARRIER], &carrier, sizeof carrier);
    start->is_recording = decision == SPANPROF_SAMPLING_RECORD_ONLY ||
                          decision == SPANPROF_SAMPLING_RECORD_AND_SAMPLE;
    if (decision == SPANPROF_SAMPLING_RECORD_AND_SAMPLE)
        start->context[FLAGS] |= flags_word(SPANPROF_TRACE_FLAG_SAMPLED);
    start->sampler_attributes = result.attributes;
    start->sampler_attribute_count = result.attributes ? result.attribute_count : 0;
}

/* Decide whether the span is recorded and sampled. Its trace id is set. */
static inline void decide(start_request *start, sp_sampling_parent which)
{
    uint64_t threshold = start->session->sampling.thresholds[which];
    if (SP_UNLIKELY(threshold == SP_SAMPLING_ASK)) {
        ask_sampler(start, which);
        return;
    }
    start->sampler_attribute_count = 0;
    start->is_recording = sp_sampling_takes(threshold, start->context[TRACE_ID + 1]);
    if (start->is_recording)
        start->context[FLAGS] |= flags_word(SPANPROF_TRACE_FLAG_SAMPLED);
}

/* The context of a new span, in the order of the specification ("SDK span creation"): trace id,
 * sampler, span id. A new trace has the W3C random flag, because the SDK's trace ids are random.
 * The span is a local root if it has no local parent, or if its parent names no local root and is
 * not in the table of another tracer's spans. */
static inline void derive_context(start_request *start)
{
    const spanprof_context *parent = start->parent;
    uint64_t *out = start->context;
    bool has_parent = is_valid(parent);
    const uint64_t random = flags_word(SPANPROF_TRACE_FLAG_RANDOM);
    out[TRACE_ID] = has_parent ? sp_word_load_alone(parent, TRACE_ID) : sp_cache_id(start->cache);
    out[TRACE_ID + 1] =
        has_parent ? sp_word_load_alone(parent, TRACE_ID + 1) : sp_cache_random(start->cache);
    out[FLAGS] = has_parent ? sp_word_load_alone(parent, FLAGS) & random : random;
    out[CARRIER] = sp_word_load_alone(parent, CARRIER);
    if (SP_UNLIKELY(out[CARRIER] != 0 && !has_parent))
        out[CARRIER] = sp_span_carrier_of_root(parent->carrier);
    decide(start, has_parent ? sp_sampling_parent_of(parent) : SP_PARENT_NONE);
    out[SPAN_ID] = sp_cache_id(start->cache);
    uint64_t root = has_parent && !parent->remote ? sp_word_load_alone(parent, LOCAL_ROOT) : 0;
    if (SP_UNLIKELY(!root && has_parent))
        root = sp_starts_local_root(parent);
    out[LOCAL_ROOT] = root ? root : out[SPAN_ID];
}

static inline bool is_sampled(uint64_t flags)
{
    return (flags & flags_word(SPANPROF_TRACE_FLAG_SAMPLED)) != 0;
}

/* Start a span that has a context and records nothing: it is not sampled, or spans are neither
 * exported nor reported to processors. */
static spanprof_span start_light(sp_span_cache *cache, uint64_t context[SP_CONTEXT_WORDS])
{
    sp_slot *slot = sp_pool_take(&sp_light_pool, &cache->lights);
    if (SP_UNLIKELY(!slot)) {
        sp_cache_count(cache, SP_COUNT_MEMORY);
        return (spanprof_span){0};
    }
    sp_cache_count(cache, is_sampled(context[FLAGS]) ? SP_COUNT_STARTED : SP_COUNT_UNSAMPLED);
    sp_span_carrier_pin(&context[CARRIER]);
    sp_slot_write_context(slot, context);
    return make_handle(slot, SP_HANDLE_LIGHT);
}

static void fill_identity(sp_span_data *data, const uint64_t context[SP_CONTEXT_WORDS],
                          const spanprof_context *parent)
{
    uint8_t flags;
    memcpy(data->trace_id, &context[TRACE_ID], sizeof data->trace_id);
    memcpy(data->span_id, &context[SPAN_ID], sizeof data->span_id);
    memcpy(&flags, &context[FLAGS], 1);
    data->flags = flags | 0x100u;
    if (is_valid(parent)) {
        memcpy(data->parent_span_id, parent->span_id, sizeof data->parent_span_id);
        data->flags |= parent->remote ? 0x200u : 0;
    }
}

static void fill_options(sp_span_record *record, const spanprof_span_options *options)
{
    if (is_kind(options->kind))
        record->data.kind = (uint8_t)options->kind;
    for (uint32_t i = 0; options->attributes && i < options->attribute_count; i++)
        sp_record_set(record, &options->attributes[i]);
    for (uint32_t i = 0; options->links && i < options->link_count; i++)
        sp_record_add_link(record, &options->links[i]);
}

static void fill_start_time(sp_span_record *record, uint64_t given_ns)
{
    uint64_t now = sp_clock_monotonic_ns();
    record->start_monotonic_ns = given_ns ? 0 : now;
    record->data.start_time_ns = given_ns ? given_ns : now + sp_span_clock_offset(now);
}

/* The last step of a start, because a registered processor may write to the span, keep its handle,
 * or end it. Returns the handle, or the zero handle in a child that a callback forked. */
static inline spanprof_span report_start(sp_span_record *record, spanprof_span span,
                                         const spanprof_context *parent)
{
    if (SP_UNLIKELY(sp_registered_any()) && !sp_registered_on_start(&record->data, span, parent))
        return (spanprof_span){0};
    return span;
}

/* The bytes that a start writes of a record, with a name and an attribute of usual length after the
 * head. */
enum { FETCHED_BYTES = SP_RECORD_HEAD_BYTES + 128 };

static spanprof_span start_record(start_request *start)
{
    sp_slot *slot = sp_pool_take(&sp_record_pool, &start->cache->records);
    if (SP_UNLIKELY(!slot)) {
        sp_cache_count(start->cache, SP_COUNT_MEMORY);
        return (spanprof_span){0};
    }
    sp_pool_fetch_next(&sp_record_pool, &start->cache->records, FETCHED_BYTES);
    sp_cache_count(start->cache,
                   is_sampled(start->context[FLAGS]) ? SP_COUNT_STARTED : SP_COUNT_UNSAMPLED);
    sp_span_carrier_pin(&start->context[CARRIER]);
    sp_slot_write_context(slot, start->context);
    spanprof_context context = {0};
    memcpy(&context, start->context, sizeof start->context);
    sp_span_record *record = sp_record_of_slot(slot);
    sp_record_begin(record, start->session, start->name);
    record->data.scope = start->tracer ? &start->tracer->scope : &sp_tracer_default.scope;
    fill_identity(&record->data, start->context, start->parent);
    if (SP_UNLIKELY(start->session->config.cpu_time != SP_CPU_TIME_NONE) &&
        is_sampled(start->context[FLAGS]))
        sp_span_cpu_time_begin(record);
    for (uint32_t i = 0; i < start->sampler_attribute_count; i++)
        sp_record_set(record, &start->sampler_attributes[i]);
    if (start->options != &no_options)
        fill_options(record, start->options);
    fill_start_time(record, start->options->start_time_ns);
    sp_span_processor *correlation = start->session->correlation;
    if (correlation)
        correlation->on_start(correlation, &record->data, &context);
    return report_start(record, make_handle(slot, 0), start->parent);
}

/* Logged once: the first one shows where to look, and such a program does it with each request. */
static __attribute__((noinline)) void note_ended_parent(const char *name)
{
    if (atomic_fetch_add(&sp_thread_counts.misuse_ended_parent, 1) == 0)
        sp_log_warn("tracer",
                    "span %s is started below a span that this thread has ended before: was its "
                    "scope detached? Each spanprof_span_attach needs a spanprof_scope_detach, else "
                    "what comes next counts for the wrong request. (misuse_ended_parent counts "
                    "them; said once)",
                    name ? name : "");
}

/* The rare cases: another thread has detached a scope of THREAD, which must not be a parent any
 * more; or the thread ended the span ENDED, and has attached nothing since. */
static __attribute__((noinline)) const spanprof_context *
checked_parent(sp_thread *thread, uint64_t ended, const char *name)
{
    sp_context_drop_posted(thread);
    const spanprof_context *parent = sp_context_current_borrow();
    if (ended && ended == sp_word_load_alone(parent, SPAN_ID)) {
        sp_store_relaxed(&thread->owned.ended_span_id, 0); /* not counted again at its attach */
        note_ended_parent(name);
    }
    return parent;
}

static inline const spanprof_context *active_parent(const char *name)
{
    const spanprof_context *parent = sp_context_current_borrow();
    sp_thread *thread = sp_self_get();
    if (!thread)
        return parent;
    uint64_t ended = sp_load_relaxed(&thread->owned.ended_span_id);
    bool is_ended = SP_UNLIKELY(ended) && ended == sp_word_load_alone(parent, SPAN_ID);
    bool is_posted =
        sp_load_relaxed(&thread->owned.posts) != sp_load_relaxed(&thread->owned.posts_seen);
    return SP_UNLIKELY(is_ended || is_posted) ? checked_parent(thread, ended, name) : parent;
}

spanprof_span spanprof_span_start(spanprof_tracer *tracer, const char *name,
                                  const spanprof_span_options *options)
{
    start_request start; /* set field by field, because gcc would clear it by `rep stos`, in 6 ns */
    spanprof_span_options known;
    start.tracer = tracer;
    start.name = name;
    start.options = &no_options;
    start.session =
        sp_load_acquire(&sp_session_current); /* pairs with the release in sp_tracer_start */
    if (SP_UNLIKELY(!start.session)) {
        sp_tracer_say_absent();
        return (spanprof_span){0};
    }
    start.cache = sp_cache_get();
    if (SP_UNLIKELY(!start.cache)) {
        sp_cache_count(NULL, SP_COUNT_MEMORY);
        return (spanprof_span){0};
    }
    start.tracer = tracer;
    start.name = name;
    start.options = &no_options;
    if (options && SP_STRUCT_READ(&known, options, "spanprof_span_options"))
        start.options = &known;
    start.parent = start.options->parent ? start.options->parent : active_parent(name);
    derive_context(&start);
    if (SP_LIKELY(start.is_recording && sp_session_records(start.session)))
        return start_record(&start);
    return start_light(start.cache, start.context);
}

/* --- end -------------------------------------------------------------------------------------- */

/* Remember that the active span of this thread has ended. It stays active until its scope is
 * detached, usually soon. */
static inline void note_end(uint64_t span_id)
{
    sp_thread *thread = sp_self_get();
    if (thread && sp_load_relaxed(&thread->published.record.span_id) == span_id)
        sp_store_relaxed(&thread->owned.ended_span_id, span_id);
}

static void end_light(spanprof_span span)
{
    sp_slot *slot = sp_handle_slot(span);
    uint64_t generation = span.generation;
    if (!slot || !atomic_compare_exchange_strong_explicit(
                     &slot->word, &generation, generation + SP_SLOT_STEP, memory_order_acq_rel,
                     memory_order_relaxed)) {
        sp_handle_count_misuse(span);
        return;
    }
    sp_span_cache *cache = sp_cache_get();
    if (is_sampled(sp_load_relaxed(&slot->context[FLAGS])))
        sp_cache_count(cache, SP_COUNT_ENDED);
    note_end(sp_load_relaxed(&slot->context[SPAN_ID]));
    sp_span_carrier_unpin(sp_load_relaxed(&slot->context[CARRIER]));
    sp_pool_give(&sp_light_pool, cache ? &cache->lights : NULL, slot);
}

/* GIVEN_NS, or, if that is 0, NOW; but never before the start. */
static uint64_t end_time(const sp_span_record *record, uint64_t now, uint64_t given_ns)
{
    uint64_t end = given_ns ? given_ns : sp_record_time(record, now);
    return sp_max_u64(record->data.start_time_ns, end);
}

/* Log what was dropped, and report the end to the registered processors. Both may run the
 * application's code. False in a child that such code forked, because the record belongs to the
 * parent. */
static __attribute__((noinline)) bool report_end(sp_span_record *record)
{
    uint32_t forks = sp_tracer_forks;
    if (record->data.dropped_something)
        sp_record_warn_of_drops(record);
    return forks == sp_tracer_forks && sp_registered_on_end(&record->data);
}

static inline __attribute__((always_inline)) void end_span(spanprof_span span, uint64_t time_ns)
{
    if (SP_UNLIKELY(span.slot & SP_HANDLE_LIGHT)) {
        end_light(span);
        return;
    }
    uint64_t now = sp_clock_monotonic_ns();
    sp_span_record *record = sp_handle_lock(span);
    if (SP_UNLIKELY(!record))
        return;
    /* All handles are invalid, so only this thread uses the record. */
    sp_handle_unlock(&record->head, span.generation + SP_SLOT_STEP);
    note_end(sp_load_relaxed(&record->head.context[SPAN_ID]));
    sp_span_carrier_end(record, sp_load_relaxed(&record->head.context[CARRIER]));
    record->data.end_time_ns = end_time(record, now, time_ns);
    sp_session *session = record->session;
    if (SP_UNLIKELY(session->config.cpu_time != SP_CPU_TIME_NONE))
        sp_span_cpu_time_end(record);
    if (SP_UNLIKELY(session != sp_load_acquire(&sp_session_current))) {
        sp_span_data_release(&record->data);
        return;
    }
    if (SP_LIKELY(record->data.flags & SPANPROF_TRACE_FLAG_SAMPLED))
        sp_cache_count(sp_cache_get(), SP_COUNT_ENDED);
    if (SP_UNLIKELY(record->data.dropped_something || sp_registered_any()) && !report_end(record))
        return;
    session->last->on_end(session->last, &record->data);
}

void spanprof_span_end(spanprof_span span)
{
    end_span(span, 0);
}

void spanprof_span_end_at(spanprof_span span, uint64_t time_ns)
{
    end_span(span, time_ns);
}

/* --- the context of a span -------------------------------------------------------------------- */

/* Copy the context of SPAN to OUT. A dead span is counted, and OUT is then all zero. */
static inline void read_context(spanprof_span span, spanprof_context *out)
{
    sp_slot *slot = sp_handle_slot(span);
    if (SP_LIKELY(slot != NULL) && SP_LIKELY(sp_slot_read_context(slot, span.generation, out)))
        return;
    sp_handle_count_misuse(span);
    *out = no_context;
}

spanprof_context spanprof_span_context(spanprof_span span)
{
    spanprof_context context;
    read_context(span, &context);
    return context;
}

spanprof_scope spanprof_span_attach(spanprof_span span)
{
    sp_slot *slot = sp_handle_slot(span);
    uint64_t words[SP_CONTEXT_WORDS];
    if (SP_LIKELY(slot != NULL) && SP_LIKELY(sp_slot_read_words(slot, span.generation, words)))
        return sp_context_attach_words(words[TRACE_ID], words[TRACE_ID + 1], words[SPAN_ID],
                                       words[LOCAL_ROOT], words[FLAGS], words[CARRIER]);
    sp_handle_count_misuse(span);
    return spanprof_context_attach(NULL);
}
