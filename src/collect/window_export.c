/* SPDX-License-Identifier: Apache-2.0 */
/* Exports a window to one destination: names, builds, encodes, submits. */
#include <stdlib.h>

#include "collect/collector_run.h"
#include "collect/requests.h"
#include "core/clock.h"
#include "core/counted.h"
#include "core/log.h"
#include "profile/builder.h"

static int compare_locations(const void *a, const void *b)
{
    const sp_window_location *const *left = a, *const *right = b;
    if ((*left)->module != (*right)->module)
        return (uintptr_t)(*left)->module < (uintptr_t)(*right)->module ? -1 : 1;
    return ((*left)->address > (*right)->address) - ((*left)->address < (*right)->address);
}

/* Whether LOCATION can be named now. Code in no module is of just-in-time compilers. Their files
 * are read once a window, so they are read when it is over (IS_OVER): until then they miss
 * functions. */
static bool can_name(const sp_window_location *location, bool is_over)
{
    return location->module || (is_over && !sp_pc_is_marker(location->address));
}

/* Name the locations from FIRST on, ordered by address: so each part of the debug information is
 * read once, even if little of it may be kept. When memory is short, building names them. */
static void name_each(sp_collector *collector, const sp_window *window, uint32_t first,
                      bool is_over)
{
    uint32_t count = window->locations.count - first;
    const sp_window_location **locations = malloc(count * sizeof *locations);
    for (uint32_t n = 0; n < count && locations; n++)
        locations[n] = sp_intern_key(&window->locations, first + n);
    if (locations && count)
        qsort(locations, count, sizeof *locations, compare_locations);
    for (uint32_t n = 0; n < count && locations && !sp_collector_is_abandoned(collector); n++) {
        const sp_frame *frames;
        if (can_name(locations[n], is_over))
            sp_symbolizer_frames(collector->symbolizer, locations[n]->module, locations[n]->address,
                                 &frames);
        sp_collector_drain_if_due(collector);
    }
    free(locations);
}

static void name_locks(sp_collector *collector, const sp_window *window)
{
    for (uint32_t n = 0; n < window->locks.count && !sp_collector_is_abandoned(collector); n++) {
        const sp_window_location *lock = sp_intern_key(&window->locks, n);
        if (lock->module)
            sp_symbolizer_variable(collector->symbolizer, lock->module, lock->address);
        sp_collector_drain_if_due(collector);
    }
}

static void name_all(sp_collector *collector, const sp_window *window)
{
    name_each(collector, window, 0, true);
    name_locks(collector, window);
}

void sp_collector_name(sp_collector *collector, const sp_window *window)
{
    bool better = false;
    name_all(collector, window);
    while (!sp_collector_is_abandoned(collector) &&
           sp_symbolizer_wait(collector->symbolizer, SP_DRAIN_MS / 2)) {
        better = true;
        sp_collector_drain_if_due(collector);
    }
    if (better)
        name_all(collector, window);
    collector->first_is_over = true;
}

void sp_collector_name_ahead(sp_collector *collector)
{
    const sp_window *window = &collector->windows[collector->open];
    if (collector->first_is_over || sp_clock_monotonic_ns() < collector->names_due_ns)
        return;
    uint32_t count = window->locations.count;
    if (collector->named_ahead < count)
        name_each(collector, window, collector->named_ahead, false);
    name_locks(collector, window);
    sp_symbolizer_close_files(collector->symbolizer);
    collector->named_ahead = count;
    collector->names_wait_ms *= 4;
    collector->names_due_ns = sp_clock_monotonic_ns() + collector->names_wait_ms * SP_NS_PER_MS;
}

static void submit(sp_collector *collector, size_t index, sp_buffer *body, uint64_t samples)
{
    if (sp_worker_enter(&collector->worker)) {
        sp_exporter_submit_profiles(collector->config.exporter, index, body, samples);
        sp_worker_leave(&collector->worker);
    } else {
        sp_buffer_deinit(body);
    }
}

/* The export of a window to one destination. */
typedef struct window_export {
    sp_collector *collector;
    size_t destination;
    uint64_t ticks, visits, calls; /* of the window */
    uint32_t samples;              /* that its profiles have */
} window_export;

/* The part of COUNT, which belongs to all samples, that belongs to those of RANGE. The shares of
 * all ranges sum up to COUNT. */
static uint64_t share_of(uint64_t count, const window_export *e, sp_sample_range range)
{
    uint64_t end = (uint64_t)range.first + range.count;
    return count * end / e->samples - count * range.first / e->samples;
}

/* Submit a request, and drain: the rings would become full while a large window is encoded. */
static void submit_request(void *user, sp_buffer *body, sp_sample_range range)
{
    const window_export *e = user;
    submit(e->collector, e->destination, body, share_of(e->ticks + e->visits, e, range));
    sp_collector_drain_meanwhile(e->collector);
}

/* Count and log that DROPPED of the window's samples are in no request. */
static void count_dropped(const window_export *e, uint32_t dropped)
{
    sp_drain_totals *totals = &e->collector->drain.totals;
    sp_sample_range range = {0, dropped};
    sp_count_owned(&totals->dropped_memory, share_of(e->ticks, e, range));
    sp_count_owned(&totals->visits_dropped, share_of(e->visits, e, range));
    sp_count_owned(&totals->calls_dropped, share_of(e->calls, e, range));
    if (sp_worker_enter(&e->collector->worker)) {
        sp_exporter_note_lost(e->collector->config.exporter);
        sp_worker_leave(&e->collector->worker);
    }
    sp_log_warn("collector", "memory is short: %s of a window dropped",
                SP_COUNTED(dropped, "sample"));
}

/* The number of calls in WINDOW, without the snapshot of live blocks, which the next window makes
 * anew. */
static uint64_t count_calls(const sp_window *window)
{
    uint64_t calls = 0;
    for (int kind = 0; kind < SP_CALL_KINDS; kind++)
        calls += kind == SP_CALL_HEAP ? 0 : window->calls[kind].count;
    return calls;
}

void sp_collector_export(sp_collector *collector, const sp_window *window, size_t index,
                         const sp_profile_destination *destination)
{
    sp_build_options options = {.link_scope = destination->link_scope,
                                .thread_attributes = destination->thread_attributes,
                                .wait_attributes = destination->wait_attributes,
                                .without_cpu = collector->config.without_cpu};
    sp_request_bounds bounds = {destination->request_bytes, destination->request_samples};
    window_export e = {collector,           index,
                       window->cpu.count,   window->wall.count,
                       count_calls(window), sp_window_sample_total(window)};
    sp_profile_data data = {0};
    uint32_t dropped = e.samples;
    if (sp_profile_build(&data, window, collector->symbolizer, &options)) {
        dropped = 0;
        e.samples = sp_profile_sample_total(&data);
        if (e.samples)
            dropped = sp_requests_make(&data, destination->format, collector->config.resource,
                                       &bounds, submit_request, &e);
    }
    if (dropped)
        count_dropped(&e, dropped);
    sp_profile_data_deinit(&data);
}
