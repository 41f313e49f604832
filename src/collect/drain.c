/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/drain.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "alloc/block_samples.h"
#include "call/call.h"
#include "collect/aggregate_stacks.h"
#include "core/clock.h"
#include "unwind/stack_bounds.h"

sp_drain_slot *sp_drain_slot_of(sp_drain *drain, const sp_thread *thread)
{
    sp_drain_slot **page = &drain->slots[thread->slot / 256];
    if (!*page)
        *page = calloc(256, sizeof **page);
    if (!*page)
        return NULL;
    sp_drain_slot *slot = &(*page)[thread->slot % 256];
    if (slot->generation != thread->registered.generation) {
        free(slot->attributes);
        memset(slot, 0, sizeof *slot);
        slot->generation = thread->registered.generation;
        slot->thread.tid = thread->registered.tid;
    }
    return slot;
}

/* The name may change at any time. For a thread with samples it is read once a window, and for a
 * call of a thread without state at each call. A thread that is gone keeps its last name. */
void sp_drain_refresh_name(sp_drain_slot *slot)
{
    char path[64], name[sizeof slot->thread.name] = "";
    slot->name_is_fresh = true;
    snprintf(path, sizeof path, "/proc/self/task/%d/comm", (int)slot->thread.tid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    ssize_t length = read(fd, name, sizeof name);
    close(fd);
    if (length <= 0)
        return;
    name[length - 1] = 0; /* the newline; comm has at most 15 characters */
    memset(slot->thread.name, 0, sizeof slot->thread.name);
    memcpy(slot->thread.name, name, strnlen(name, sizeof name));
}

/* The attributes are copied, because the interval leaves the ring before its last sample does. When
 * memory is short its samples have no attributes. */
static void drain_interval(sp_drain *drain, sp_drain_slot *slot, const sp_interval_record *interval)
{
    sp_join_interval(&slot->join, interval);
    slot->attribute_bytes = 0;
    if (interval->attribute_bytes && !slot->attributes)
        slot->attributes = malloc(SP_ATTRIBUTE_BYTES_MAX);
    if (interval->attribute_bytes && slot->attributes)
        slot->attribute_bytes = sp_attribute_filter_copy(&drain->filter, slot->attributes,
                                                         (const uint8_t *)interval->attributes,
                                                         interval->attribute_bytes);
}

static void drain_sample(sp_drain *drain, sp_drain_slot *slot, const sp_sample_record *record,
                         sp_window *window, const sp_modules *modules, uint32_t max_samples)
{
    if (!slot->name_is_fresh)
        sp_drain_refresh_name(slot);
    sp_aggregate_sample sample = {
        .record = record,
        .generation = sp_modules_generation(modules, record->generation),
        .changed = record->generation != sp_modules_newest_number(modules) ? modules : NULL,
        .thread = &slot->thread,
        .weight = record->periods,
        .count = 1,
        .counted = record->periods,
        .time_ns = sp_sample_time_ns(record),
    };
    sample.result = sp_join_sample(&slot->join, &drain->fallback, record, &sample.link);
    if (sample.result != SP_JOIN_UNKNOWN) {
        sample.attributes = slot->attributes;
        sample.attribute_bytes = slot->attribute_bytes;
    }
    if (!sp_aggregate_add(window, &window->cpu, &sample, max_samples)) {
        window->dropped_memory++;
        sp_count_owned(&drain->totals.dropped_memory, 1);
        return;
    }
    _Atomic uint64_t *counters[] = {
        [SP_JOIN_LINKED] = &drain->totals.linked,
        [SP_JOIN_NONE] = &drain->totals.none,
        [SP_JOIN_UNKNOWN] = &drain->totals.unknown,
    };
    sp_count_owned(counters[sample.result], 1);
    sp_walk_end end = sp_aggregate_stack_end(&sample);
    if (end == SP_WALK_TRUNCATED)
        sp_count_owned(&drain->totals.truncated, 1);
    else if (end != SP_WALK_COMPLETE)
        sp_count_owned(&drain->totals.incomplete, 1);
}

/* Where the records of visits and calls are put. */
typedef struct visit_drain {
    sp_drain *drain;
    sp_window *window;
    sp_modules *modules;
    uint32_t max_samples;
} visit_drain;

/* The data about the thread that was visited, also when it has ended since and its slot was freed.
 * NULL: another thread has the slot now and the drain has no data of the earlier one, or memory is
 * short. */
static sp_drain_slot *slot_of_visit(sp_drain *drain, const sp_visit_record *visit)
{
    const sp_thread *thread = sp_thread_by_slot(visit->slot);
    sp_drain_slot *page = drain->slots[visit->slot / 256];
    if (page && page[visit->slot % 256].generation == visit->generation)
        return &page[visit->slot % 256];
    return sp_load_relaxed(&thread->registered.generation) == visit->generation
               ? sp_drain_slot_of(drain, thread)
               : NULL;
}

static sp_window_thread visited_thread(sp_drain *drain, const sp_visit_record *visit)
{
    sp_drain_slot *slot = slot_of_visit(drain, visit);
    if (!slot)
        return (sp_window_thread){.tid = visit->tid};
    if (!slot->name_is_fresh)
        sp_drain_refresh_name(slot);
    return slot->thread;
}

/* As sp_aggregate_sample.changed. */
static const sp_modules *changed_since(const visit_drain *to, const sp_sample_record *record)
{
    bool is_newest = record->generation == sp_modules_newest_number(to->modules);
    return is_newest ? NULL : to->modules;
}

/* Make a sample of RECORD with the context of INTERVAL; both are parts of one record of a ring. The
 * caller sets thread and weights. ATTRIBUTES is room for those of the context. */
static sp_aggregate_sample join_record(const visit_drain *to, const sp_sample_record *record,
                                       const sp_interval_record *interval,
                                       uint8_t attributes[SP_ATTRIBUTE_BYTES_MAX])
{
    sp_join join = {0};
    sp_aggregate_sample sample = {.record = record,
                                  .generation =
                                      sp_modules_generation(to->modules, record->generation),
                                  .changed = changed_since(to, record)};
    sp_join_interval(&join, interval);
    sample.result = sp_join_sample(&join, &to->drain->fallback, record, &sample.link);
    if (interval->attribute_bytes && sample.result != SP_JOIN_UNKNOWN) {
        sample.attributes = attributes;
        sample.attribute_bytes = sp_attribute_filter_copy(&to->drain->filter, attributes,
                                                          (const uint8_t *)interval->attributes,
                                                          interval->attribute_bytes);
    }
    return sample;
}

static void drain_visit(void *user, const sp_visit_record *visit)
{
    const visit_drain *to = user;
    uint8_t attributes[SP_ATTRIBUTE_BYTES_MAX];
    sp_window_thread thread = visited_thread(to->drain, visit);
    sp_aggregate_sample sample =
        join_record(to, sp_visit_sample(visit), sp_visit_interval(visit), attributes);
    sample.thread = &thread;
    sample.wait.wait_class = visit->wait_class;
    sample.wait.descriptor = visit->descriptor;
    sample.weight = visit->weight_ns;
    sample.count = sample.counted = visit->visits;
    sp_drain_totals *totals = &to->drain->totals;
    if (!sp_aggregate_add(to->window, &to->window->wall, &sample, to->max_samples)) {
        to->window->dropped_visits += visit->visits;
        sp_count_owned(&totals->visits_dropped, visit->visits);
        return;
    }
    _Atomic uint64_t *counters[] = {
        [SP_JOIN_LINKED] = &totals->visits_linked,
        [SP_JOIN_NONE] = &totals->visits_none,
        [SP_JOIN_UNKNOWN] = &totals->visits_unknown,
    };
    sp_count_owned(counters[sample.result], visit->visits);
}

/* Count how often the ring was found corrupt while it was drained. That is rare. */
static void take_corrupt(sp_drain *drain, sp_ring *ring)
{
    if (ring->corrupt == 0)
        return;
    sp_count_owned(&drain->totals.corrupt_rings, ring->corrupt);
    ring->corrupt = 0;
}

static void drain_wall(sp_drain *drain, sp_window *window, sp_modules *modules,
                       uint32_t max_samples)
{
    sp_ring *ring = sp_wall_ring();
    visit_drain to = {drain, window, modules, max_samples};
    if (!sp_ring_exists(ring))
        return;
    uint64_t head =
        sp_load_acquire(&ring->head); /* pairs with sp_ring_commit: records below are whole */
    if (sp_ring_peek(ring, head) != NULL)
        sp_modules_refresh(modules);
    for (const sp_record *record; (record = sp_ring_peek(ring, head)) != NULL;
         sp_ring_pop(ring, record))
        if (record->kind == SP_RECORD_VISIT)
            drain_visit(&to, (const sp_visit_record *)record);
    take_corrupt(drain, ring);
}

/* --- calls ------------------------------------------------------------------------------------ */

/* The thread of a call. It may have ended, and its id may be reused: then the name is that of the
 * new thread. */
static sp_window_thread calling_thread(sp_drain *drain, int64_t tid)
{
    sp_thread *state = sp_thread_find((pid_t)tid);
    sp_drain_slot *slot = state ? sp_drain_slot_of(drain, state) : NULL;
    sp_drain_slot unknown = {.thread.tid = tid};
    if (!slot)
        slot = &unknown;
    if (!slot->name_is_fresh)
        sp_drain_refresh_name(slot);
    return slot->thread;
}

static void count_call(sp_drain_totals *totals, sp_join_result result)
{
    _Atomic uint64_t *counters[] = {
        [SP_JOIN_LINKED] = &totals->calls_linked,
        [SP_JOIN_NONE] = &totals->calls_none,
        [SP_JOIN_UNKNOWN] = &totals->calls_unknown,
    };
    sp_count_owned(counters[result], 1);
}

static void keep_call(visit_drain *to, const sp_call_record *call,
                      const sp_aggregate_sample *sample)
{
    bool is_block = call->kind == SP_CALL_ALLOC;
    if (call->kind >= SP_CALL_KINDS)
        return;
    count_call(&to->drain->totals, sample->result);
    if (is_block && to->drain->with_heap && call->live_id)
        sp_live_blocks_add(&to->drain->live, sample,
                           (sp_live_entry){call->live_slot, call->live_id}, sp_alloc_is_live,
                           sp_clock_monotonic_ns());
    if (is_block && !to->drain->with_alloc)
        return;
    if (sp_aggregate_add(to->window, &to->window->calls[call->kind], sample, to->max_samples))
        return;
    to->window->dropped_calls++;
    sp_count_owned(&to->drain->totals.calls_dropped, 1);
}

/* Fill OUT with the lock of CALL and its holder. False when CALL has neither. */
static bool holder_of(const visit_drain *to, const sp_call_record *call, sp_aggregate_holder *out)
{
    *out = (sp_aggregate_holder){.stack = sp_call_holder_stack(call),
                                 .lock = to->drain->with_locks ? call->lock : 0};
    memcpy(out->link.trace_id, call->holder.trace_id, sizeof out->link.trace_id);
    memcpy(out->link.span_id, &call->holder.span_id, sizeof out->link.span_id);
    if (out->stack) {
        out->generation = sp_modules_generation(to->modules, out->stack->generation);
        out->changed = changed_since(to, out->stack);
    }
    return out->stack || out->lock || call->holder.span_id != 0;
}

static void drain_call(visit_drain *to, const sp_call_record *call)
{
    uint8_t attributes[SP_ATTRIBUTE_BYTES_MAX];
    sp_aggregate_holder holder;
    sp_window_thread thread = calling_thread(to->drain, call->tid);
    sp_aggregate_sample sample =
        join_record(to, sp_call_sample(call), sp_call_interval(call), attributes);
    sample.thread = &thread;
    sample.weight = call->value;
    sample.count = sample.counted = call->count;
    sample.holder = holder_of(to, call, &holder) ? &holder : NULL;
    keep_call(to, call, &sample);
}

static void drain_calls(sp_drain *drain, sp_window *window, sp_modules *modules,
                        uint32_t max_samples)
{
    visit_drain to = {drain, window, modules, max_samples};
    drain->calls_are_many = false;
    for (uint32_t n = 0; n < SP_CALL_RINGS; n++) {
        sp_ring *ring = sp_call_ring(n);
        if (!sp_ring_exists(ring))
            continue;
        uint64_t head =
            sp_load_acquire(&ring->head); /* pairs with sp_ring_commit: records below are whole */
        if (sp_ring_peek(ring, head) != NULL)
            sp_modules_refresh(modules);
        drain->calls_are_many |= head - sp_load_relaxed(&ring->tail) > ring->size / 4;
        for (const sp_record *record; (record = sp_ring_peek(ring, head)) != NULL;
             sp_ring_pop(ring, record))
            if (record->kind == SP_RECORD_CALL)
                drain_call(&to, (const sp_call_record *)record);
        take_corrupt(drain, ring);
    }
}

/* What has ended of the request and the span of LINK. USER: the sp_live_spans. */
static sp_live_end end_of(void *user, const sp_window_link *link)
{
    static const uint8_t none[sizeof link->root_span_id];
    const sp_live_spans *spans = user;
    /* Another tracer that does not report the starts of spans does not report their ends either. */
    if (memcmp(link->root_span_id, none, sizeof none) == 0)
        return SP_LIVE_END_NONE;
    if (!sp_live_spans_has(spans, link->trace_id, link->root_span_id))
        return SP_LIVE_END_REQUEST;
    return sp_live_spans_has(spans, link->trace_id, link->span_id) ? SP_LIVE_END_NONE
                                                                   : SP_LIVE_END_SPAN;
}

/* What COUNTER has gained since *SEEN. */
static uint64_t gain(uint64_t counter, uint64_t *seen)
{
    uint64_t gained = counter - *seen;
    *seen = counter;
    return gained;
}

void sp_drain_settle_calls(sp_drain *drain, sp_window *window, uint32_t max_samples)
{
    sp_drain_totals *totals = &drain->totals;
    uint64_t lost = gain(sp_calls_dropped(), &drain->calls_lost);
    window->dropped_calls += lost;
    sp_count_owned(&totals->calls_dropped, lost);
    window->dropped_live = gain(sp_alloc_live_full(), &drain->live_full);
    sp_count_owned(&totals->live_full, window->dropped_live);
    if (!drain->with_heap)
        return;
    const sp_live_view view = {.now_ns = sp_clock_monotonic_ns(),
                               .max_samples = max_samples,
                               .is_live = sp_alloc_is_live,
                               .end_of = end_of,
                               .user = &drain->live_spans};
    sp_live_spans_gather(&drain->live_spans);
    uint64_t before = window->dropped_calls;
    sp_live_blocks_snapshot(&drain->live, window, &view);
    sp_count_owned(&totals->calls_dropped, window->dropped_calls - before);
    sp_store_relaxed(&totals->live_blocks, drain->live.count);
}

/* The modules are refreshed for each visit: the next visit may be made while this one is drained.
 */
static void drain_settled(void *user, const sp_visit_record *visit)
{
    sp_modules_refresh(((const visit_drain *)user)->modules);
    drain_visit(user, visit);
}

void sp_drain_settle_wall(sp_drain *drain, sp_window *window, sp_modules *modules,
                          uint32_t max_samples)
{
    visit_drain to = {drain, window, modules, max_samples};
    sp_wall_state state;
    sp_wall_settle(drain_settled, &to, sp_modules_newest_number(modules));
    sp_wall_state_get(&state);
    const sp_wall_state *before = &drain->wall;
    window->wall_on_core_ns = state.on_core_ns - before->on_core_ns;
    window->wall_unmoved = state.unmoved - before->unmoved;
    window->wall_discarded = state.discarded - before->discarded;
    window->dropped_visits += state.dropped - before->dropped;
    window->fp_by_call = state.fp.by_call - before->fp.by_call;
    window->fp_by_return = state.fp.by_return - before->fp.by_return;
    window->fp_not_found = state.fp.not_found - before->fp.not_found;
    drain->wall = state;
}

/* The loader's counters are read after the head: if they are as at the last refresh, no library had
 * changed when the samples below the head were taken. */
static void drain_ring(sp_drain *drain, sp_drain_slot *slot, sp_ring *ring, sp_window *window,
                       sp_modules *modules, uint32_t max_samples)
{
    uint64_t head =
        sp_load_acquire(&ring->head); /* pairs with sp_ring_commit: records below are whole */
    if (sp_ring_peek(ring, head) == NULL)
        return;
    sp_modules_refresh(modules);
    for (const sp_record *record; (record = sp_ring_peek(ring, head)) != NULL;
         sp_ring_pop(ring, record)) {
        if (record->kind == SP_RECORD_INTERVAL)
            drain_interval(drain, slot, (const sp_interval_record *)record);
        else if (record->kind == SP_RECORD_SAMPLE)
            drain_sample(drain, slot, (const sp_sample_record *)record, window, modules,
                         max_samples);
    }
}

/* Add what COUNTER gained since *SEEN to TOTAL. */
static uint64_t take_counter(_Atomic uint64_t *counter, uint64_t *seen, _Atomic uint64_t *total)
{
    uint64_t now = sp_load_acquire(counter);
    uint64_t gained = now >= *seen ? now - *seen : now;
    *seen = now;
    sp_count_owned(total, gained);
    return gained;
}

static void take_counters(sp_drain *drain, sp_drain_slot *slot, sp_thread *thread,
                          sp_window *window)
{
    sp_drain_totals *totals = &drain->totals;
    if (take_counter(&thread->tick.ticks, &slot->ticks, &totals->ticks) == 0)
        return; /* no other count changes without this one; most threads sleep */
    take_counter(&thread->tick.weights, &slot->weights, &totals->weights);
    take_counter(&thread->tick.tick_cycles, &slot->cycles, &totals->tick_cycles);
    take_counter(&thread->tick.costed_ticks, &slot->costed_ticks, &totals->costed_ticks);
    window->dropped_small_stack += take_counter(&thread->tick.dropped_small_stack,
                                                &slot->small_stack, &totals->dropped_small_stack);
    window->dropped_ring_full +=
        take_counter(&thread->tick.dropped_ring_full, &slot->dropped, &totals->dropped_ring_full);
}

/* Called before another thread can get the slot: once it has, the name of this thread is lost. */
static void settle_slot(sp_drain *drain, sp_window *window, sp_modules *modules,
                        uint32_t max_samples, uint32_t slot)
{
    visit_drain to = {drain, window, modules, max_samples};
    sp_wall_settle_slot(slot, drain_settled, &to, sp_modules_newest_number(modules));
}

/* A thread that has ended counts as gone only when the kernel has removed it, because until then a
 * tick may be pending. */
static bool is_gone(sp_thread *thread)
{
    uint64_t ignored;
    return sp_load_acquire(&thread->registered.life) == SP_THREAD_EXITED &&
           !sp_clock_thread_cpu_ns(thread->registered.tid, &ignored);
}

static void look_for_forgotten(sp_drain_slot *slot, sp_thread *thread, uint64_t now_ns)
{
    if (!sp_forgotten_look(&slot->forgotten, thread, now_ns))
        return;
    sp_drain_refresh_name(slot);
    sp_forgotten_note(slot->thread.name, (int)slot->thread.tid);
}

void sp_drain_run(sp_drain *drain, sp_window *window, sp_modules *modules, uint32_t max_samples)
{
    sp_join_default_refresh(&drain->fallback);
    drain_wall(drain, window, modules, max_samples); /* first: slots are freed below */
    drain_calls(drain, window, modules, max_samples);
    uint64_t now_ns = sp_clock_monotonic_ns();
    for (uint32_t n = 0; n < sp_thread_slots(); n++) {
        sp_thread *thread = sp_thread_by_slot(n);
        if (sp_load_acquire(&thread->registered.life) == SP_THREAD_FREE)
            continue;
        sp_drain_slot *slot = sp_drain_slot_of(drain, thread);
        if (!slot)
            continue;
        bool gone = is_gone(thread); /* checked before the ring is read, so no record follows */
        sp_stack_learn(thread);
        look_for_forgotten(slot, thread, now_ns);
        if (sp_ring_exists(&thread->tick.ring)) {
            drain_ring(drain, slot, &thread->tick.ring, window, modules, max_samples);
            take_corrupt(drain, &thread->tick.ring);
            take_counters(drain, slot, thread, window);
        }
        if (gone) {
            settle_slot(drain, window, modules, max_samples, n);
            sp_thread_free(thread);
        }
    }
}

uint32_t sp_drain_oldest_generation(const sp_modules *modules)
{
    uint32_t oldest = sp_modules_newest_number(modules), held = sp_wall_held_generation();
    oldest = held < oldest ? held : oldest;
    for (uint32_t n = 0; n < SP_CALL_RINGS; n++) {
        held = sp_modules_hazard_number(modules, sp_call_hazard(n));
        oldest = held < oldest ? held : oldest;
    }
    for (uint32_t n = 0; n < sp_thread_slots(); n++) {
        held = sp_modules_hazard_number(modules, &sp_thread_by_slot(n)->tick.hazard);
        oldest = held < oldest ? held : oldest;
    }
    return oldest;
}

void sp_drain_deinit(sp_drain *drain)
{
    free(drain->filter.list);
    sp_live_blocks_deinit(&drain->live);
    sp_live_spans_deinit(&drain->live_spans);
    for (size_t page = 0; page < SP_ARRAY_LENGTH(drain->slots); page++) {
        for (size_t i = 0; drain->slots[page] && i < 256; i++)
            free(drain->slots[page][i].attributes);
        free(drain->slots[page]);
    }
}
