/* SPDX-License-Identifier: Apache-2.0 */
/* The collector thread. Twenty-five times a second it checks for new libraries and threads and
 * drains the rings into the open window; at a window's end, or on a flush, it closes the window,
 * names the addresses, and builds one profile per destination.
 *
 * Naming may take seconds when a huge debug file is opened for the first time. Rings hold a
 * fraction of a second, so between any two addresses the thread drains them into the next window.
 *
 * When naming takes longer than a stop may, the thread is abandoned (docs/design/worker.md). It
 * touches objects that a later run may own only between sp_worker_enter and sp_worker_leave, or by
 * functions that take the number of its run. */
#include "collect/collector_run.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "call/own_values.h"
#include "core/clock.h"
#include "core/lock.h"
#include "core/log.h"
#include "wall/wall.h"

enum { DRAIN_SOON_MS = 5, FOLLOW_MS = 500 };

static void drain_once(sp_collector *collector)
{
    uint64_t before = sp_clock_realtime_ns();
    sp_modules_refresh(collector->config.modules);
    uint32_t oldest = sp_drain_oldest_generation(collector->config.modules);
    if (sp_worker_enter(&collector->worker)) {
        sp_drain_run(&collector->drain, &collector->windows[collector->open],
                     collector->config.modules, collector->config.max_samples);
        sp_worker_leave(&collector->worker);
        /* A sample under an older generation has been drained now, or a hazard pointer that was
         * read before holds that generation. */
        sp_modules_reclaim(collector->config.modules, oldest);
    }
    collector->last_edge_ns = before;
    collector->drained_at_ns = sp_clock_monotonic_ns();
}

void sp_collector_drain_if_due(sp_collector *collector)
{
    if (sp_clock_monotonic_ns() - collector->drained_at_ns >=
        (collector->drain.calls_are_many ? DRAIN_SOON_MS : SP_DRAIN_MS / 2) * SP_NS_PER_MS)
        drain_once(collector);
}

void sp_collector_drain_meanwhile(void *user)
{
    sp_collector *collector = user;
    if (!sp_collector_is_abandoned(collector))
        sp_collector_drain_if_due(collector);
}

static void configure_symbolizer(sp_collector *collector)
{
    sp_symbolizer_options options = collector->config.symbols;
    options.meanwhile = (sp_meanwhile){sp_collector_drain_meanwhile, collector};
    sp_symbolizer_configure(collector->symbolizer, &options);
}

static void follow_switches(sp_collector *collector)
{
    uint64_t now = sp_clock_monotonic_ns();
    if (now - collector->followed_at_ns < FOLLOW_MS * SP_NS_PER_MS)
        return;
    collector->followed_at_ns = now;
    sp_engine_follow_switches(collector->config.engine_run);
}

static uint32_t requested_rate(sp_collector *collector)
{
    sp_lock_take(&collector->worker.lock);
    uint32_t requested = collector->requested_hz;
    sp_lock_give(&collector->worker.lock);
    return requested;
}

/* Put the visits that are not in the ring yet into WINDOW. From now on visits have the requested
 * rate. */
static void settle_wall(sp_collector *collector, sp_window *window)
{
    if (!collector->wall_hz || !sp_worker_enter(&collector->worker))
        return;
    sp_drain_settle_wall(&collector->drain, window, collector->config.modules,
                         collector->config.max_samples);
    window->wall_period_ns = SP_NS_PER_S / collector->wall_hz;
    window->wall_of_all = collector->config.wall_of_all;
    if (collector->requested_wall_hz != collector->wall_hz)
        sp_wall_set_rate(collector->requested_wall_hz);
    collector->wall_hz = collector->requested_wall_hz;
    sp_worker_leave(&collector->worker);
}

static void settle_calls(sp_collector *collector, sp_window *window)
{
    if (!sp_worker_enter(&collector->worker))
        return;
    sp_drain_settle_calls(&collector->drain, window, collector->config.max_samples);
    window->alloc_bytes = collector->config.alloc_bytes;
    window->lock_ns = collector->config.lock_ns;
    window->value_types = sp_value_types();
    sp_worker_leave(&collector->worker);
}

/* The time that the host of a virtual machine took from the visited threads, as a fraction of their
 * CPU time. */
static double steal_share(sp_collector *collector, const sp_window *window)
{
    const sp_window_samples *cpu = &window->cpu;
    uint64_t periods =
        window->wall_of_all ? cpu->linked + cpu->none + cpu->unknown + cpu->boundary : cpu->linked;
    if (collector->engine.counts_steal)
        return 0;
    return sp_steal_share(&collector->steal, window->wall_on_core_ns, periods * window->period_ns);
}

/* Drain the rings into the open window, complete its sums, and open the other window. A new rate
 * begins here: no thread ticks between the last drain of the old one and the first tick of the new.
 */
static sp_window *end_window(sp_collector *collector)
{
    sp_window *window = &collector->windows[collector->open];
    sp_engine_state_get(&collector->engine);
    uint32_t rate = sp_budget_rate(&collector->budget, &collector->engine, &collector->drain.totals,
                                   requested_rate(collector));
    bool changes = rate != collector->engine.cpu_hz;
    bool quiet = changes && sp_engine_hold_ticks(collector->config.engine_run);
    drain_once(collector);
    settle_wall(collector, window);
    settle_calls(collector, window);
    sp_drain_settle_unattributed(&collector->drain, window);
    window->period_ns = sp_engine_period_ns();
    if (window->wall_period_ns)
        sp_window_complete_wall(window, steal_share(collector, window));
    window->engine = collector->engine.engine;
    window->engine_reason = collector->engine.reason;
    window->end_time_ns = sp_max_u64(sp_clock_realtime_ns(), window->start_time_ns + 1);
    collector->open ^= 1;
    /* A sample that the next drain finds was taken after the previous drain began, so windows
     * overlap by that drain's length. */
    collector->windows[collector->open].start_time_ns = collector->last_edge_ns;
    collector->window_ends_ns =
        sp_deadline_after(sp_clock_monotonic_ns(), collector->config.window_ms * SP_NS_PER_MS);
    if (changes)
        sp_engine_resume_ticks(collector->config.engine_run,
                               quiet ? rate : collector->engine.cpu_hz);
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
    for (size_t i = 0; i < collector->destination_count && !sp_collector_is_abandoned(collector);
         i++)
        sp_collector_export(collector, window, i, &collector->destinations[i]);
}

static void give_to_puller(sp_collector *collector, const sp_pull_order *order,
                           const sp_window *window)
{
    const sp_build_options options = {.link_scope = collector->config.pull_link_scope,
                                      .thread_attributes =
                                          collector->config.pull_thread_attributes};
    if (order->number && !sp_collector_is_abandoned(collector))
        sp_pull_window_make(&collector->pulled, order, window, &options, collector->symbolizer,
                            collector->config.resource);
}

/* Make profiles of the open window, and open the other one. */
static void close_window(sp_collector *collector)
{
    sp_pull_order order = sp_pull_window_ends(collector->config.pull_run);
    sp_window *window = end_window(collector);
    if (collector->destination_count || order.number)
        sp_collector_name(collector, window);
    give_to_puller(collector, &order, window);
    export_window(collector, window);
    sp_store_relaxed(&collector->handed_over,
                     sp_load_relaxed(&collector->handed_over) + window->cpu.count);
    if (!sp_collector_is_abandoned(collector)) {
        sp_collector_check_engine(collector, window);
        sp_collector_warn_of_losses(collector);
        sp_collector_warn_of_corruption(collector);
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

/* A process ends, as if by exit(0), when its last thread ends (pthread_exit(3)). Our threads would
 * prevent that, so the process is ended when all others have ended. */
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
    uint64_t pause_ms = collector->drain.calls_are_many ? DRAIN_SOON_MS : SP_DRAIN_MS;
    return sp_worker_wait(&collector->worker, collector->drained_at_ns + pause_ms * SP_NS_PER_MS);
}

static void run(void *owner)
{
    sp_collector *collector = owner;
    sp_thread_self_internal();
    sp_worker_orders orders = {0};
    while (!orders.ending && !sp_collector_is_abandoned(collector)) {
        orders = wait_for_work(collector);
        bool is_edge = orders.flush || orders.woken;
        if (!is_edge)
            drain_once(collector);
        follow_switches(collector);
        look_for_threads(collector);
        if (!is_edge && collector->destination_count)
            sp_collector_name_ahead(collector);
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

static bool wants_waits(const sp_collector *collector)
{
    bool wants = false;
    for (size_t i = 0; i < collector->destination_count; i++)
        wants |= collector->destinations[i].wait_attributes;
    return wants;
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
    collector->names_wait_ms = SP_NAME_AHEAD_MS;
    collector->names_due_ns = now + SP_NAME_AHEAD_MS * SP_NS_PER_MS;
    collector->last_edge_ns = collector->windows[0].start_time_ns = sp_clock_realtime_ns();
    collector->destination_count =
        sp_exporter_profile_destinations(config->exporter, collector->destinations);
    collector->requested_hz = config->cpu_hz;
    collector->wall_hz = collector->requested_wall_hz = config->wall_hz;
    sp_misuse_begin(&collector->misuse);
    sp_steal_begin(&collector->steal);
    sp_budget_begin(&collector->budget, config->cpu_budget);
    if (config->sample_attributes)
        collector->drain.filter.list = strdup(config->sample_attributes);
    collector->drain.without_ticks = config->without_ticks;
    collector->drain.with_alloc = config->with_alloc;
    collector->drain.with_heap = config->with_heap;
    collector->drain.with_locks = wants_waits(collector);
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

static void request_rate(sp_collector *collector, uint32_t *requested_hz, uint32_t hz)
{
    sp_lock_take(&collector->worker.lock);
    *requested_hz = hz;
    sp_lock_give(&collector->worker.lock);
    sp_worker_wake(&collector->worker);
}

void sp_collector_end_window(sp_collector *collector)
{
    sp_worker_wake(&collector->worker);
}

void sp_collector_set_rate(sp_collector *collector, uint32_t cpu_hz)
{
    request_rate(collector, &collector->requested_hz, cpu_hz);
}

void sp_collector_set_wall_rate(sp_collector *collector, uint32_t wall_hz)
{
    request_rate(collector, &collector->requested_wall_hz, wall_hz);
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
