/* SPDX-License-Identifier: Apache-2.0 */
/* The collector thread. Twenty-five times a second it looks for new libraries and threads and
 * drains the rings into the open window; at a window's end, or on a flush, it closes the window,
 * names the addresses, and builds one profile per destination.
 *
 * Naming may take seconds when a huge debug file is opened for the first time. Rings hold a
 * fraction of a second, so the thread goes on draining, into the next window, between any two
 * addresses.
 *
 * When naming takes longer than a stop may, the thread is abandoned (docs/design/worker.md). It
 * reaches what a later run may own only between sp_worker_enter and sp_worker_leave, or by
 * functions that take the number of its run. */
#include "collect/collector.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "call/own_values.h"
#include "collect/budget.h"
#include "collect/discovery.h"
#include "collect/drain.h"
#include "collect/misuse.h"
#include "collect/pull_window.h"
#include "collect/requests.h"
#include "core/clock.h"
#include "core/lock.h"
#include "core/log.h"
#include "core/steal.h"
#include "core/worker.h"
#include "profile/builder.h"
#include "trace/provider.h"
#include "wall/wall.h"

enum { DRAIN_MS = 40, DRAIN_SOON_MS = 5, FOLLOW_MS = 500, DESTINATIONS_MAX = 4 };

struct sp_collector {
    sp_collector_config config;

    /* Its lock guards what follows up to the windows; order: before the sampler's and the
     * registry's lock. A wake ends the window. */
    sp_worker worker;
    uint32_t wished_hz, wished_wall_hz;
    bool keep_modules;

    /* The thread's. */
    sp_window windows[2];
    uint32_t open;           /* the window that fills */
    uint32_t wall_hz;        /* of the open window */
    uint64_t window_ends_ns; /* monotonic */
    uint64_t drained_at_ns;  /* monotonic */
    uint64_t followed_at_ns; /* monotonic */
    uint64_t last_edge_ns;   /* realtime, before the last drain */
    sp_discovery discovery;
    sp_budget budget;
    sp_sampler_state sampler; /* at the last window's end: what windows borrow names from */
    uint64_t unattributed_unreported_ns; /* of windows without samples, which are not sent */
    sp_drain drain;
    sp_steal steal;
    _Atomic uint64_t handed_over; /* ticks of the windows that were closed to the end */
    uint64_t spans_lost;          /* as last said */
    sp_window_misuse misuse;      /* as last reported */
    bool said_no_ticks, said_replaced, said_repaired, said_ring_full, said_corrupt;
    bool exiting; /* the application's threads have all ended */
    sp_symbolizer *symbolizer;
    sp_profile_destination destinations[DESTINATIONS_MAX];
    size_t destination_count;
    sp_pull_windows pulled;
};

static bool is_abandoned(const sp_collector *collector)
{
    return sp_worker_is_abandoned(&collector->worker);
}

static void drain_once(sp_collector *collector)
{
    uint64_t before = sp_clock_realtime_ns();
    sp_modules_refresh(collector->config.modules);
    uint32_t oldest = sp_drain_oldest_generation(collector->config.modules);
    if (sp_worker_enter(&collector->worker)) {
        sp_drain_run(&collector->drain, &collector->windows[collector->open],
                     collector->config.modules, collector->config.max_samples);
        sp_worker_leave(&collector->worker);
        /* What was sampled under an older generation has been drained now, or shows in a hazard
         * read before. */
        sp_modules_reclaim(collector->config.modules, oldest);
    }
    collector->last_edge_ns = before;
    collector->drained_at_ns = sp_clock_monotonic_ns();
}

static void drain_if_due(sp_collector *collector)
{
    if (sp_clock_monotonic_ns() - collector->drained_at_ns >=
        (collector->drain.calls_are_many ? DRAIN_SOON_MS : DRAIN_MS / 2) * SP_NS_PER_MS)
        drain_once(collector);
}

/* In between the pieces of what the symbolizer reads. */
static void drain_meanwhile(void *user)
{
    sp_collector *collector = user;
    if (!is_abandoned(collector))
        drain_if_due(collector);
}

static void configure_symbolizer(sp_collector *collector)
{
    sp_symbolizer_options options = collector->config.symbols;
    options.meanwhile = (sp_meanwhile){drain_meanwhile, collector};
    sp_symbolizer_configure(collector->symbolizer, &options);
}

static int compare_locations(const void *a, const void *b)
{
    const sp_window_location *const *left = a, *const *right = b;
    if ((*left)->module != (*right)->module)
        return (uintptr_t)(*left)->module < (uintptr_t)(*right)->module ? -1 : 1;
    return ((*left)->address > (*right)->address) - ((*left)->address < (*right)->address);
}

/* Ordered, so that each part of the debug information is read once, however little of it may be
 * kept. When memory is short building finds the names. */
static void name_each(sp_collector *collector, const sp_window *window)
{
    uint32_t count = window->locations.count;
    const sp_window_location **locations = malloc(count * sizeof *locations);
    for (uint32_t n = 0; n < count && locations; n++)
        locations[n] = sp_intern_key(&window->locations, n);
    if (locations && count)
        qsort(locations, count, sizeof *locations, compare_locations);
    for (uint32_t n = 0; n < count && locations && !is_abandoned(collector); n++) {
        const sp_frame *frames;
        if (locations[n]->module || !sp_pc_is_marker(locations[n]->address))
            sp_symbolizer_frames(collector->symbolizer, locations[n]->module, locations[n]->address,
                                 &frames);
        drain_if_due(collector);
    }
    free(locations);
}

/* Put every address's name into the symbolizer's cache, so that building does not wait. */
static void name_addresses(sp_collector *collector, const sp_window *window)
{
    bool better = false;
    name_each(collector, window);
    while (!is_abandoned(collector) && sp_symbolizer_wait(collector->symbolizer, DRAIN_MS / 2)) {
        better = true;
        drain_if_due(collector);
    }
    if (better)
        name_each(collector, window);
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

/* A window on its way to one destination. */
typedef struct window_export {
    sp_collector *collector;
    size_t destination;
    uint64_t ticks, visits, calls; /* of the window */
    uint32_t samples;              /* that its profiles have */
} window_export;

/* What of COUNT, which belongs to all samples, belongs to those of RANGE. The shares of all ranges
 * sum up to COUNT. */
static uint64_t share_of(uint64_t count, const window_export *e, sp_sample_range range)
{
    uint64_t end = (uint64_t)range.first + range.count;
    return count * end / e->samples - count * range.first / e->samples;
}

/* Encoding a large window takes longer than the rings hold. */
static void submit_request(void *user, sp_buffer *body, sp_sample_range range)
{
    const window_export *e = user;
    submit(e->collector, e->destination, body, share_of(e->ticks + e->visits, e, range));
    drain_meanwhile(e->collector);
}

/* DROPPED of the window's samples are in no request. */
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
    sp_log_warn("collector", "%u samples of a window were dropped: memory is short", dropped);
}

/* Of the calls that threads made; a snapshot of live blocks is made anew by the next window. */
static uint64_t count_calls(const sp_window *window)
{
    uint64_t calls = 0;
    for (int kind = 0; kind < SP_CALL_KINDS; kind++)
        calls += kind == SP_CALL_HEAP ? 0 : window->calls[kind].count;
    return calls;
}

static void export_to(sp_collector *collector, const sp_window *window, size_t index,
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

/* The host may have put another handler over ours, or closed descriptors that it did not know. */
static void look_after_the_engine(sp_collector *collector, const sp_window *window)
{
    bool ticks_missing = window->cpu.count == 0 && window->unattributed_ns > SP_NS_PER_S / 10 &&
                         window->unattributed_ns > 20 * window->period_ns;
    if (ticks_missing && !collector->said_replaced &&
        !sp_sampler_owns_signal(collector->config.sampler_run)) {
        collector->said_replaced = true;
        sp_log_warn(
            "sampler",
            "the handler of the sampling signal has been replaced by one that does not pass "
            "ticks on: nothing is sampled; SPANPROF_SIGNAL chooses another signal");
    }
    uint32_t repaired = sp_sampler_repair(collector->config.sampler_run);
    if (repaired && !collector->said_repaired) {
        collector->said_repaired = true;
        sp_log_warn("sampler",
                    "the perf events of %u threads had been closed by the application, and were "
                    "opened again",
                    repaired);
    }
}

static void warn_of_corruption(sp_collector *collector)
{
    if (collector->said_corrupt || !sp_load_relaxed(&collector->drain.totals.corrupt_rings))
        return;
    collector->said_corrupt = true;
    sp_log_warn(
        "sampler",
        "a ring of samples is corrupt, maybe because the application wrote to memory that is "
        "not its own (AddressSanitizer finds that); what lay in the ring was skipped; "
        "further ones are counted only");
}

/* What a person would wonder about, once each; losses of spans again when there are more. */
static void warn_of_losses(sp_collector *collector)
{
    sp_drain_totals *totals = &collector->drain.totals;
    sp_tracer_counters spans;
    sp_tracer_counters_get(&spans);
    if (spans.dropped_queue_full > collector->spans_lost)
        sp_log_warn(
            "tracer",
            "%llu spans dropped, the queue is full: a larger OTEL_BSP_MAX_QUEUE_SIZE keeps bursts",
            (unsigned long long)(spans.dropped_queue_full - collector->spans_lost));
    collector->spans_lost = spans.dropped_queue_full;
    uint64_t unseen = sp_load_relaxed(&totals->unattributed_ns);
    if (sp_load_relaxed(&totals->dropped_ring_full) && !collector->said_ring_full) {
        collector->said_ring_full = true;
        sp_log_warn("sampler",
                    "samples were dropped, for the collector's thread does not get to its work in "
                    "time; a lower SPANPROF_CPU_HZ or SPANPROF_MAX_DEPTH helps; further ones are "
                    "counted only");
    }
    if (collector->said_no_ticks || collector->said_replaced || sp_load_relaxed(&totals->ticks) ||
        unseen < 20 * sp_sampler_period_ns() || unseen < SP_NS_PER_S / 2)
        return;
    collector->said_no_ticks = true;
    sp_log_warn("sampler",
                "the threads used %llu ms of CPU time and no tick arrived: is the signal blocked?",
                (unsigned long long)(unseen / SP_NS_PER_MS));
}

static void follow_switches(sp_collector *collector)
{
    uint64_t now = sp_clock_monotonic_ns();
    if (now - collector->followed_at_ns < FOLLOW_MS * SP_NS_PER_MS)
        return;
    collector->followed_at_ns = now;
    sp_sampler_follow_switches(collector->config.sampler_run);
}

static uint32_t wished_rate(sp_collector *collector)
{
    sp_lock_take(&collector->worker.lock);
    uint32_t wished = collector->wished_hz;
    sp_lock_give(&collector->worker.lock);
    return wished;
}

/* The visits that are not in the ring yet belong to this window, and from now on they are of the
 * rate that is wished for. */
static void settle_wall(sp_collector *collector, sp_window *window)
{
    if (!collector->wall_hz || !sp_worker_enter(&collector->worker))
        return;
    sp_drain_settle_wall(&collector->drain, window, collector->config.modules,
                         collector->config.max_samples);
    window->wall_period_ns = SP_NS_PER_S / collector->wall_hz;
    window->wall_of_all = collector->config.wall_of_all;
    if (collector->wished_wall_hz != collector->wall_hz)
        sp_wall_set_rate(collector->wished_wall_hz);
    collector->wall_hz = collector->wished_wall_hz;
    sp_worker_leave(&collector->worker);
}

static void settle_calls(sp_collector *collector, sp_window *window)
{
    if (!sp_worker_enter(&collector->worker))
        return;
    sp_drain_settle_calls(&collector->drain, window, collector->config.max_samples);
    window->alloc_bytes = collector->config.alloc_bytes;
    window->value_types = sp_value_types();
    sp_worker_leave(&collector->worker);
}

/* What the host took from the threads that are visited, beside each second of their CPU time. */
static double steal_share(sp_collector *collector, const sp_window *window)
{
    const sp_window_samples *cpu = &window->cpu;
    uint64_t periods =
        window->wall_of_all ? cpu->linked + cpu->none + cpu->unknown + cpu->boundary : cpu->linked;
    if (collector->sampler.counts_steal)
        return 0;
    return sp_steal_share(&collector->steal, window->wall_on_core_ns, periods * window->period_ns);
}

/* Drain to the end of the open window, settle its books, and let the other one open. A new rate
 * begins here: no thread ticks between the last drain of the old one and the first tick of the new.
 */
static sp_window *end_window(sp_collector *collector)
{
    sp_window *window = &collector->windows[collector->open];
    sp_sampler_state_get(&collector->sampler);
    uint32_t rate = sp_budget_rate(&collector->budget, &collector->sampler,
                                   &collector->drain.totals, wished_rate(collector));
    bool changes = rate != collector->sampler.cpu_hz;
    bool quiet = changes && sp_sampler_hold(collector->config.sampler_run);
    drain_once(collector);
    settle_wall(collector, window);
    settle_calls(collector, window);
    sp_drain_unattributed(&collector->drain, window);
    window->period_ns = sp_sampler_period_ns();
    if (window->wall_period_ns)
        sp_window_complete_wall(window, steal_share(collector, window));
    window->engine = collector->sampler.engine;
    window->engine_reason = collector->sampler.reason;
    window->end_time_ns = sp_max_u64(sp_clock_realtime_ns(), window->start_time_ns + 1);
    collector->open ^= 1;
    /* A sample that the next drain finds was taken after the previous one began, so windows overlap
     * by that drain's length. */
    collector->windows[collector->open].start_time_ns = collector->last_edge_ns;
    collector->window_ends_ns =
        sp_deadline_after(sp_clock_monotonic_ns(), collector->config.window_ms * SP_NS_PER_MS);
    if (changes)
        sp_sampler_go_on(collector->config.sampler_run, quiet ? rate : collector->sampler.cpu_hz);
    return window;
}

static void export_window(sp_collector *collector, sp_window *window)
{
    collector->unattributed_unreported_ns += window->unattributed_ns;
    if (collector->destination_count == 0 || sp_window_sample_total(window) == 0)
        return;
    window->unattributed_ns = collector->unattributed_unreported_ns;
    collector->unattributed_unreported_ns = 0;
    sp_misuse_take(&collector->misuse, window);
    for (size_t i = 0; i < collector->destination_count && !is_abandoned(collector); i++)
        export_to(collector, window, i, &collector->destinations[i]);
}

static void give_to_puller(sp_collector *collector, const sp_pull_order *order,
                           const sp_window *window)
{
    const sp_build_options options = {.link_scope = collector->config.pull_link_scope,
                                      .thread_attributes =
                                          collector->config.pull_thread_attributes};
    if (order->number && !is_abandoned(collector))
        sp_pull_window_make(&collector->pulled, order, window, &options, collector->symbolizer,
                            collector->config.resource);
}

/* The window that is open becomes a profile; the other one opens. */
static void close_window(sp_collector *collector)
{
    sp_pull_order order = sp_pull_window_ends(collector->config.pull_run);
    sp_window *window = end_window(collector);
    if (collector->destination_count || order.number)
        name_addresses(collector, window);
    give_to_puller(collector, &order, window);
    export_window(collector, window);
    sp_store_relaxed(&collector->handed_over,
                     sp_load_relaxed(&collector->handed_over) + window->cpu.count);
    if (!is_abandoned(collector)) {
        look_after_the_engine(collector, window);
        warn_of_losses(collector);
        warn_of_corruption(collector);
    }
    sp_symbolizer_rest(collector->symbolizer);
    sp_window_clear(window);
}

static void destroy(void *owner)
{
    sp_collector *collector = owner;
    sp_symbolizer_destroy(collector->symbolizer);
    sp_window_deinit(&collector->windows[0]);
    sp_window_deinit(&collector->windows[1]);
    sp_drain_deinit(&collector->drain);
    if (!collector->keep_modules)
        sp_modules_destroy(collector->config.modules);
    sp_worker_deinit(&collector->worker);
    free(collector);
}

static void *exit_process(void *unused)
{
    (void)unused;
    sp_thread_self_internal();
    exit(0);
}

/* A process ends, as if by exit(0), when its last thread does (pthread_exit(3)). Our threads must
 * not keep it. */
static void end_with_the_last_thread(sp_collector *collector)
{
    pthread_t thread;
    if (collector->exiting || !sp_threads_all_ended())
        return;
    collector->exiting = true;
    if (sp_worker_thread_create(&thread, SP_WORKER_BLOCKS_ALL, exit_process, NULL) == 0)
        pthread_detach(thread);
}

/* A scan of the next run's collector must not overlap with one of ours. */
static void look_for_threads(sp_collector *collector)
{
    if (!sp_discovery_is_due(&collector->discovery, &collector->drain) ||
        !sp_worker_enter(&collector->worker))
        return;
    sp_discovery_scan(&collector->discovery);
    end_with_the_last_thread(collector);
    sp_worker_leave(&collector->worker);
}

static sp_worker_orders wait_for_work(sp_collector *collector)
{
    uint64_t pause_ms = collector->drain.calls_are_many ? DRAIN_SOON_MS : DRAIN_MS;
    return sp_worker_wait(&collector->worker, collector->drained_at_ns + pause_ms * SP_NS_PER_MS);
}

static void run(void *owner)
{
    sp_collector *collector = owner;
    sp_thread_self_internal();
    sp_worker_orders orders = {0};
    while (!orders.ending && !is_abandoned(collector)) {
        orders = wait_for_work(collector);
        bool is_edge = orders.flush || orders.woken;
        if (!is_edge)
            drain_once(collector);
        follow_switches(collector);
        look_for_threads(collector);
        if (is_edge || sp_clock_monotonic_ns() >= collector->window_ends_ns)
            close_window(collector);
        if (orders.flush)
            sp_worker_publish_flushed(&collector->worker, orders.flush_ticket);
    }
}

static const sp_worker_role role = {.name = "spanprof-collec", .run = run, .destroy = destroy};

static sp_collector *fail(sp_collector *collector, spanprof_error *error, int thread_error)
{
    static const spanprof_error no_memory = {
        .status = SPANPROF_ERROR_NO_MEMORY,
        .message = "spanprof_start: the collector does not fit into memory: give the process more "
                   "(RLIMIT_AS, the cgroup's memory.max)"};
    *error = no_memory;
    if (thread_error)
        *error =
            (spanprof_error){.status = SPANPROF_ERROR_SYSTEM,
                             .message = "spanprof_start: the collector's thread could not be "
                                        "created: raise RLIMIT_NPROC, or the cgroup's pids.max",
                             .system_errno = thread_error};
    if (collector) {
        collector->keep_modules = true;
        destroy(collector);
    }
    return NULL;
}

sp_collector *sp_collector_create(const sp_collector_config *config, spanprof_error *error)
{
    sp_collector *collector = calloc(1, sizeof *collector);
    if (!collector)
        return fail(NULL, error, 0);
    collector->config = *config;
    sp_worker_init(&collector->worker, SP_LOCK_COLLECTOR);
    uint64_t now = sp_clock_monotonic_ns();
    collector->drained_at_ns = now;
    collector->window_ends_ns = sp_deadline_after(now, config->window_ms * SP_NS_PER_MS);
    collector->last_edge_ns = collector->windows[0].start_time_ns = sp_clock_realtime_ns();
    collector->destination_count =
        sp_exporter_profile_destinations(config->exporter, collector->destinations);
    collector->wished_hz = config->cpu_hz;
    collector->wall_hz = collector->wished_wall_hz = config->wall_hz;
    sp_misuse_begin(&collector->misuse);
    sp_steal_begin(&collector->steal);
    sp_budget_begin(&collector->budget, config->cpu_budget);
    if (config->sample_attributes)
        collector->drain.filter.list = strdup(config->sample_attributes);
    collector->drain.without_ticks = config->without_ticks;
    collector->drain.with_alloc = config->with_alloc;
    collector->drain.with_heap = config->with_heap;
    sp_drain_begin(&collector->drain);
    collector->symbolizer = sp_symbolizer_create();
    if (!collector->symbolizer)
        return fail(collector, error, 0);
    configure_symbolizer(collector);
    int thread_error = sp_worker_start(&collector->worker, &role, collector);
    return thread_error ? fail(collector, error, thread_error) : collector;
}

spanprof_status sp_collector_flush(sp_collector *collector, uint64_t deadline_ns)
{
    return sp_worker_flush(&collector->worker, deadline_ns) ? SPANPROF_OK : SPANPROF_ERROR_TIMEOUT;
}

static void wish(sp_collector *collector, uint32_t *wished_hz, uint32_t hz)
{
    sp_lock_take(&collector->worker.lock);
    *wished_hz = hz;
    sp_lock_give(&collector->worker.lock);
    sp_worker_wake(&collector->worker);
}

void sp_collector_end_window(sp_collector *collector)
{
    sp_worker_wake(&collector->worker);
}

void sp_collector_set_rate(sp_collector *collector, uint32_t cpu_hz)
{
    wish(collector, &collector->wished_hz, cpu_hz);
}

void sp_collector_set_wall_rate(sp_collector *collector, uint32_t wall_hz)
{
    wish(collector, &collector->wished_wall_hz, wall_hz);
}

/* Ticks that were joined into windows that are not closed. */
static uint64_t unfinished(sp_collector *collector)
{
    sp_drain_totals *totals = &collector->drain.totals;
    return sp_load_relaxed(&totals->linked) + sp_load_relaxed(&totals->none) +
           sp_load_relaxed(&totals->unknown) - sp_load_relaxed(&collector->handed_over);
}

spanprof_status sp_collector_stop(sp_collector *collector, uint64_t deadline_ns,
                                  bool modules_in_use, spanprof_stats *stats)
{
    bool ended = sp_worker_end(&collector->worker, deadline_ns);
    collector->keep_modules = modules_in_use;
    sp_collector_stats(collector, stats);
    stats->dropped_samples_at_stop = ended ? 0 : unfinished(collector);
    bool freed_here = sp_worker_release(&collector->worker);
    sp_threads_set_collected(false); /* an abandoned collector does not drain any more */
    if (!freed_here)
        return SPANPROF_ERROR_TIMEOUT;
    destroy(collector);
    return SPANPROF_OK;
}

void sp_collector_stats(sp_collector *collector, spanprof_stats *stats)
{
    sp_drain_totals *totals = &collector->drain.totals;
    stats->ticks = sp_load_relaxed(&totals->ticks);
    stats->weights = sp_load_relaxed(&totals->weights);
    stats->samples_linked = sp_load_relaxed(&totals->linked);
    stats->samples_none = sp_load_relaxed(&totals->none);
    stats->samples_unknown = sp_load_relaxed(&totals->unknown);
    stats->stacks_truncated = sp_load_relaxed(&totals->truncated);
    stats->stacks_incomplete = sp_load_relaxed(&totals->incomplete);
    stats->unattributed_ns = sp_load_relaxed(&totals->unattributed_ns);
    stats->dropped_samples_ring_full = sp_load_relaxed(&totals->dropped_ring_full);
    stats->dropped_samples_memory = sp_load_relaxed(&totals->dropped_memory);
    stats->corrupt_rings = sp_load_relaxed(&totals->corrupt_rings);
    stats->dropped_samples_small_stack = sp_load_relaxed(&totals->dropped_small_stack);
    stats->visits_linked = sp_load_relaxed(&totals->visits_linked);
    stats->visits_none = sp_load_relaxed(&totals->visits_none);
    stats->visits_unknown = sp_load_relaxed(&totals->visits_unknown);
    stats->dropped_visits = sp_load_relaxed(&totals->visits_dropped);
    stats->calls_linked = sp_load_relaxed(&totals->calls_linked);
    stats->calls_none = sp_load_relaxed(&totals->calls_none);
    stats->calls_unknown = sp_load_relaxed(&totals->calls_unknown);
    stats->dropped_calls = sp_load_relaxed(&totals->calls_dropped);
    stats->live_blocks = sp_load_relaxed(&totals->live_blocks);
    stats->dropped_live_blocks = sp_load_relaxed(&totals->live_full);
    stats->tick_cost_ns = sp_load_relaxed(&collector->budget.tick_cost_ns);
}
