/* SPDX-License-Identifier: Apache-2.0 */
/* The span processors that the application added (include/spanprof/processor.h), called on its
 * threads without a lock.
 *
 * No callback may run after shutdown. So a thread sets `calling` in its cache before it reads the
 * list of processors, and closing first empties the list, then waits until no thread is inside. The
 * two stores and the two loads are sequentially consistent, so at least one side reads the other's
 * store. `calling` also marks spans that start inside a callback. They are not reported to
 * processors; else a processor that starts spans would call itself for ever. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/cancel.h"
#include "core/clock.h"
#include "core/lock.h"
#include "core/word.h"
#include "trace/record.h"

struct sp_registered {
    spanprof_processor processor;
    _Atomic(sp_registered *) next;
};

_Atomic(sp_registered *) sp_registered_active;

static struct {
    sp_lock lock;         /* guards what follows, and additions */
    bool open;            /* the SDK runs: a processor that is added is called from then on */
    sp_registered *first; /* in the order of registration */
    sp_registered
        *dropped; /* lists that could not be freed, because a thread may still read them */
} registered = {.lock = SP_LOCK_AT(SP_LOCK_SPAN_PROCESSORS)};

/* --- adding ----------------------------------------------------------------------------------- */

/* Copy the fields of PROCESSOR that this version knows. False when PROCESSOR is NULL or has size 0,
 * and when an unknown or a reserved field is not zero. */
static bool read_processor(spanprof_processor *out, const spanprof_processor *processor)
{
    const uint8_t *bytes = (const uint8_t *)processor;
    *out = (spanprof_processor){0};
    if (!processor || processor->struct_size == 0)
        return false;
    for (size_t i = sizeof *out; i < processor->struct_size; i++)
        if (bytes[i] != 0)
            return false;
    memcpy(out, processor, sp_min_u64(processor->struct_size, sizeof *out));
    return out->reserved == 0;
}

/* Add it to the end of the list. */
static void append_locked(sp_registered *added)
{
    sp_registered *last = registered.first, *next;
    while (last && (next = sp_load_relaxed(&last->next)) != NULL)
        last = next;
    if (last)
        sp_store_release(&last->next, added); /* pairs with next_active: the entry is complete */
    else
        registered.first = added;
    if (registered.open && !last)
        sp_store_release(&sp_registered_active, added); /* pairs with enter */
}

spanprof_status spanprof_processor_add(const spanprof_processor *processor)
{
    spanprof_processor known;
    if (!read_processor(&known, processor))
        return SPANPROF_ERROR_INVALID_ARGUMENT;
    sp_registered *added = calloc(1, sizeof *added);
    if (!added)
        return SPANPROF_ERROR_NO_MEMORY;
    added->processor = known;
    sp_lock_take(&registered.lock);
    append_locked(added);
    sp_lock_give(&registered.lock);
    return SPANPROF_OK;
}

void sp_registered_open(void)
{
    sp_lock_take(&registered.lock);
    registered.open = true;
    sp_store_release(&sp_registered_active, registered.first); /* pairs with enter */
    sp_lock_give(&registered.lock);
}

/* --- reporting spans -------------------------------------------------------------------------- */

/* One pass of this thread over the processors, from enter to leave. */
typedef struct pass {
    sp_registered *first; /* the first processor to call */
    sp_span_cache *cache;
    uint32_t depth; /* of the passes that this one is nested in */
    uint32_t forks; /* sp_tracer_forks when it began */
    int saved_errno;
} pass;

/* Without memory for the thread's cache no processor is called. */
static void enter(pass *pass)
{
    pass->saved_errno = errno;
    pass->first = NULL;
    pass->forks = sp_tracer_forks;
    pass->cache = sp_cache_get();
    if (!pass->cache)
        return;
    pass->depth = sp_load_relaxed(&pass->cache->calling);
    atomic_store_explicit(&pass->cache->calling, pass->depth + 1, memory_order_seq_cst);
    pass->first = atomic_load_explicit(&sp_registered_active, memory_order_seq_cst);
}

/* False when this is a child that a callback forked. */
static bool leave(const pass *pass)
{
    if (pass->cache)
        sp_store_release(&pass->cache->calling, pass->depth); /* pairs with wait_until_quiet */
    errno = pass->saved_errno;
    return pass->forks == sp_tracer_forks;
}

/* The processor after AT. NULL when the list was closed meanwhile, and in a child that a callback
 * forked. */
static sp_registered *next_active(const pass *pass, const sp_registered *at)
{
    bool same = sp_load_relaxed(&sp_registered_active) == pass->first;
    return same ? sp_load_acquire(&at->next) : NULL;
}

/* The parent context for callbacks. A PARENT that is not valid names no span, but may have baggage.
 * It is a copy, because the active context of this thread may change while callbacks run. */
static spanprof_context copy_parent(const spanprof_context *parent)
{
    if (sp_context_is_valid(parent))
        return *parent;
    return (spanprof_context){.carrier = parent->carrier};
}

/* The context of a span that has just started, or ended, whose record no other thread writes. */
static void fill_context(spanprof_context *out, sp_span_record *record)
{
    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < SP_CONTEXT_WORDS; i++)
        sp_word_store(out, i, sp_load_relaxed(&record->head.context[i]));
}

static void fill_view(spanprof_span_view *view, sp_span_data *data)
{
    *view = (spanprof_span_view){
        .struct_size = sizeof *view,
        .flags = data->flags,
        .kind = (spanprof_span_kind)data->kind,
        .status = (spanprof_span_status)data->status,
        .start_time_ns = data->start_time_ns,
        .end_time_ns = data->end_time_ns,
        .name = data->name,
        .status_message = data->status_message,
        .trace_state = data->trace_state,
        .scope = data->scope,
        .attributes = data->attributes,
        .events = data->events,
        .links = data->links,
        .attribute_count = data->attribute_count,
        .event_count = data->event_count,
        .link_count = data->link_count,
        .dropped_attributes_count = data->dropped_attributes_count,
        .dropped_events_count = data->dropped_events_count,
        .dropped_links_count = data->dropped_links_count,
    };
    memcpy(view->parent_span_id, data->parent_span_id, sizeof view->parent_span_id);
    fill_context(&view->context, sp_record_of_data(data));
}

static bool lives(sp_span_data *data, spanprof_span span)
{
    return sp_load_acquire(&sp_record_of_data(data)->head.word) == span.generation;
}

bool sp_registered_on_start(sp_span_data *data, spanprof_span span, const spanprof_context *parent)
{
    SP_UNCANCELLED;
    pass pass;
    spanprof_span_view view;
    enter(&pass);
    if (pass.cache && pass.depth > 0) {
        data->unreported = true;
        pass.first = NULL;
    }
    spanprof_context given = copy_parent(parent);
    for (sp_registered *at = pass.first; at && lives(data, span); at = next_active(&pass, at)) {
        if (!at->processor.on_start)
            continue;
        fill_view(&view, data);
        at->processor.on_start(at->processor.user, span, &view, &given);
    }
    return leave(&pass);
}

bool sp_registered_on_end(sp_span_data *data)
{
    SP_UNCANCELLED;
    pass pass;
    spanprof_span_view view;
    if (data->unreported)
        return true;
    enter(&pass);
    if (pass.first)
        fill_view(&view, data);
    for (sp_registered *at = pass.first; at; at = next_active(&pass, at))
        if (at->processor.on_end)
            at->processor.on_end(at->processor.user, &view);
    return leave(&pass);
}

bool sp_registered_calling(void)
{
    return sp_cache_mine && sp_load_relaxed(&sp_cache_mine->calling) > 0;
}

void sp_registered_leave(void)
{
    if (sp_cache_mine)
        sp_store_release(&sp_cache_mine->calling, 0); /* pairs with wait_until_quiet */
}

/* --- flush and shutdown ----------------------------------------------------------------------- */

static uint64_t time_left(uint64_t deadline_ns)
{
    if (deadline_ns == UINT64_MAX)
        return UINT64_MAX;
    uint64_t now = sp_clock_monotonic_ns();
    return deadline_ns > now ? deadline_ns - now : 0;
}

/* Call flush, or shutdown, of the processors from AT on. Returns the first error. */
static spanprof_status call_each(sp_registered *at, bool shutdown, uint64_t deadline_ns)
{
    pass pass;
    spanprof_status status = SPANPROF_OK;
    enter(&pass);
    for (; at; at = sp_load_acquire(&at->next)) {
        const spanprof_processor *processor = &at->processor;
        spanprof_status (*call)(void *, uint64_t) =
            shutdown ? processor->shutdown : processor->flush;
        spanprof_status result = call ? call(processor->user, time_left(deadline_ns)) : SPANPROF_OK;
        status = status == SPANPROF_OK ? result : status;
    }
    leave(&pass);
    return status;
}

spanprof_status sp_registered_flush(uint64_t deadline_ns)
{
    return call_each(sp_load_acquire(&sp_registered_active), false, deadline_ns);
}

/* Wait until no callback is under way. False when one still is at DEADLINE_NS. */
static bool wait_until_quiet(uint64_t deadline_ns)
{
    static const struct timespec pause = {.tv_nsec = 50 * 1000};
    while (sp_cache_any_calling()) {
        if (time_left(deadline_ns) == 0)
            return false;
        nanosleep(&pause, NULL);
    }
    return true;
}

static void free_list(sp_registered *at)
{
    for (sp_registered *next; at; at = next) {
        next = sp_load_relaxed(&at->next);
        free(at);
    }
}

/* Move LIST to the lists that are never freed. */
static void drop_list(sp_registered *list)
{
    if (!list)
        return;
    sp_registered *last = list, *next;
    while ((next = sp_load_relaxed(&last->next)) != NULL)
        last = next;
    sp_store_relaxed(&last->next, registered.dropped);
    registered.dropped = list;
}

/* Remove the list from the registry and return it to the caller, who frees it. NULL when the SDK
 * does not run. */
static sp_registered *take_list(void)
{
    sp_lock_take(&registered.lock);
    sp_registered *list = registered.open ? registered.first : NULL;
    if (registered.open)
        registered.first = NULL;
    registered.open = false;
    atomic_store_explicit(&sp_registered_active, NULL, memory_order_seq_cst);
    sp_lock_give(&registered.lock);
    return list;
}

spanprof_status sp_registered_close(uint64_t deadline_ns)
{
    sp_registered *list = take_list();
    if (!list)
        return SPANPROF_OK;
    bool quiet = wait_until_quiet(deadline_ns);
    spanprof_status status = call_each(list, true, deadline_ns);
    if (quiet) {
        free_list(list);
        return status;
    }
    sp_lock_take(&registered.lock);
    drop_list(list);
    sp_lock_give(&registered.lock);
    return SPANPROF_ERROR_TIMEOUT;
}

/* Nothing is freed: this thread may have forked inside a callback, while it iterates over the
 * list. */
void sp_registered_after_fork(void)
{
    sp_lock_init(&registered.lock, SP_LOCK_SPAN_PROCESSORS);
    sp_store_relaxed(&sp_registered_active, NULL);
    if (registered.open) {
        drop_list(registered.first);
        registered.first = NULL;
    }
    registered.open = false;
}
