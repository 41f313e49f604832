/* SPDX-License-Identifier: Apache-2.0 */
/* The collector thread. Ten times a second it looks for new libraries and threads and drains the rings into the open window; at a
 * window's end, or on a flush, it closes the window, names the addresses, and builds one profile per destination.
 *
 * Naming may take seconds when a huge debug file is opened for the first time. Rings hold a fraction of a second, so the thread goes on
 * draining, into the next window, between any two addresses. */
#include "sdk/collector.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/log.h"
#include "core/steal.h"
#include "profile/builder.h"
#include "sampler/wall.h"
#include "sdk/budget.h"
#include "sdk/discovery.h"
#include "sdk/drain.h"
#include "tracer/provider.h"

enum { DRAIN_MS = 40, FOLLOW_MS = 500, DESTINATIONS_MAX = 4, REQUEST_MAX_BYTES = 64 * 1024 * 1024 };

struct sp_collector {
    sp_collector_config config;
    pthread_t thread;

    /* Guards what follows up to the windows; order: before the sampler's and the registry's lock. */
    pthread_mutex_t lock;
    pthread_cond_t wake;      /* the thread's: a flush, or the end */
    pthread_cond_t done;      /* the callers': flushed moved, or the thread ended */
    uint64_t flush_requested; /* tickets */
    uint64_t flushed;
    uint32_t wished_hz, wished_wall_hz;
    bool edge_wished; /* the window is to end */
    bool ending;
    bool ended;
    /* Stop has given up waiting: the thread touches neither rings nor exporter any more and frees everything itself. Written with the
     * lock held; whoever acts on it being false holds the lock, too. */
    _Atomic bool abandoned;
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
    sp_sampler_state sampler;        /* at the last window's end: what windows borrow names from */
    uint64_t residual_unreported_ns; /* of windows without samples, which are not sent */
    sp_drain drain;
    sp_steal steal;
    _Atomic uint64_t handed_over; /* ticks of the windows that were closed to the end */
    uint64_t spans_lost;          /* as last said */
    bool said_no_ticks, said_replaced, said_repaired, said_ring_full;
    bool exiting; /* the application's threads have all ended */
    sp_symbolizer *symbolizer;
    sp_profile_destination destinations[DESTINATIONS_MAX];
    size_t destination_count;
};

static void drain_once(sp_collector *collector)
{
    uint64_t before = sp_clock_realtime_ns();
    sp_modules_refresh(collector->config.modules);
    uint32_t oldest = sp_drain_oldest_generation(collector->config.modules);
    pthread_mutex_lock(&collector->lock);
    bool mine = !sp_load_relaxed(&collector->abandoned);
    if (mine)
        sp_drain_run(&collector->drain, &collector->windows[collector->open],
                     collector->config.modules, collector->config.max_samples);
    pthread_mutex_unlock(&collector->lock);
    /* What was sampled under an older generation has been drained now, or shows in a hazard read before. */
    if (mine)
        sp_modules_reclaim(collector->config.modules, oldest);
    collector->last_edge_ns = before;
    collector->drained_at_ns = sp_clock_monotonic_ns();
}

static void drain_if_due(sp_collector *collector)
{
    if (sp_clock_monotonic_ns() - collector->drained_at_ns >= DRAIN_MS / 2 * SP_NS_PER_MS)
        drain_once(collector);
}

/* In between the pieces of what the symbolizer reads. */
static void drain_meanwhile(void *user)
{
    sp_collector *collector = user;
    if (!sp_load_relaxed(&collector->abandoned))
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

/* Ordered, so that each part of the debug information is read once, however little of it may be kept. When memory is short building
 * finds the names. */
static void name_each(sp_collector *collector, const sp_window *window)
{
    uint32_t count = window->locations.count;
    const sp_window_location **locations = malloc(count * sizeof *locations);
    for (uint32_t n = 0; n < count && locations; n++)
        locations[n] = sp_intern_key(&window->locations, n);
    if (locations && count)
        qsort(locations, count, sizeof *locations, compare_locations);
    for (uint32_t n = 0; n < count && locations && !sp_load_relaxed(&collector->abandoned); n++) {
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
    while (!sp_load_relaxed(&collector->abandoned) &&
           sp_symbolizer_wait(collector->symbolizer, DRAIN_MS / 2)) {
        better = true;
        drain_if_due(collector);
    }
    if (better)
        name_each(collector, window);
}

static void submit(sp_collector *collector, size_t index, sp_buffer *body, uint64_t samples)
{
    pthread_mutex_lock(&collector->lock);
    if (!sp_load_relaxed(&collector->abandoned))
        sp_exporter_submit_profiles(collector->config.exporter, index, body, samples);
    else
        sp_buffer_deinit(body);
    pthread_mutex_unlock(&collector->lock);
}

static void export_to(sp_collector *collector, const sp_window *window, size_t index,
                      const sp_profile_destination *destination)
{
    sp_build_options options = {.link_scope = destination->link_scope,
                                .thread_attributes = destination->thread_attributes,
                                .wait_attributes = destination->wait_attributes,
                                .without_cpu = collector->config.without_cpu};
    sp_profile_data data = {0};
    sp_buffer body = SP_BUFFER_INIT(REQUEST_MAX_BYTES);
    bool built = sp_profile_build(&data, window, collector->symbolizer, &options);
    if (built && data.profile_count > 0)
        built =
            sp_otlp_encode_profiles(&body, destination->format, collector->config.resource, &data);
    if (!built) {
        sp_count_owned(&collector->drain.totals.dropped_memory, window->cpu.count);
        sp_count_owned(&collector->drain.totals.visits_dropped, window->wall.count);
        sp_log_warn("collector", "a profile of %u samples was dropped: %s",
                    window->cpu.keys.count + window->wall.keys.count,
                    body.failed ? "its request would exceed 64 MiB, or memory is short"
                                : "memory is short");
        sp_buffer_deinit(&body);
    } else if (body.length > 0) {
        submit(collector, index, &body, window->cpu.count + window->wall.count);
    }
    sp_profile_data_deinit(&data);
}

/* The host may have put another handler over ours, or closed descriptors that it did not know. */
static void look_after_the_engine(sp_collector *collector, const sp_window *window)
{
    bool ticks_missing = window->cpu.count == 0 && window->residual_ns > SP_NS_PER_S / 10 &&
                         window->residual_ns > 20 * window->period_ns;
    if (ticks_missing && !collector->said_replaced && !sp_sampler_owns_signal()) {
        collector->said_replaced = true;
        sp_log_warn(
            "sampler",
            "the handler of the sampling signal has been replaced by one that does not pass "
            "ticks on: nothing is sampled; SPANPROF_SIGNAL chooses another signal");
    }
    uint32_t repaired = sp_sampler_repair();
    if (repaired && !collector->said_repaired) {
        collector->said_repaired = true;
        sp_log_warn("sampler",
                    "the perf events of %u threads had been closed by the application, and were "
                    "opened again",
                    repaired);
    }
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
    uint64_t unseen = sp_load_relaxed(&totals->residual_ns);
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
    sp_sampler_follow_switches();
}

static uint32_t wished_rate(sp_collector *collector)
{
    pthread_mutex_lock(&collector->lock);
    uint32_t wished = collector->wished_hz;
    collector->edge_wished = false;
    pthread_mutex_unlock(&collector->lock);
    return wished;
}

/* The visits that are not in the ring yet belong to this window, and from now on they are of the rate that is wished for. */
static void settle_wall(sp_collector *collector, sp_window *window)
{
    if (!collector->wall_hz)
        return;
    pthread_mutex_lock(&collector->lock);
    uint32_t wished = collector->wished_wall_hz;
    if (!sp_load_relaxed(&collector->abandoned))
        sp_drain_settle_wall(&collector->drain, window, collector->config.modules,
                             collector->config.max_samples);
    pthread_mutex_unlock(&collector->lock);
    window->wall_period_ns = SP_NS_PER_S / collector->wall_hz;
    window->wall_of_all = collector->config.wall_of_all;
    if (wished != collector->wall_hz)
        sp_wall_set_rate(wished);
    collector->wall_hz = wished;
}

/* What the host took from the threads that are visited, and of whose ticks wall time is made (window.h). */
static void settle_steal(sp_collector *collector, sp_window *window)
{
    const sp_window_samples *cpu = &window->cpu;
    uint64_t periods =
        window->wall_of_all ? cpu->linked + cpu->none + cpu->unknown + cpu->boundary : cpu->linked;
    if (window->wall_period_ns && !collector->sampler.counts_steal)
        window->steal =
            sp_steal_share(&collector->steal, window->wall_on_core_ns, periods * window->period_ns);
}

/* Drain to the end of the open window, settle its books, and let the other one open. A new rate begins here: no thread ticks between
 * the last drain of the old one and the first tick of the new. */
static sp_window *end_window(sp_collector *collector)
{
    sp_window *window = &collector->windows[collector->open];
    sp_sampler_state_get(&collector->sampler);
    uint32_t rate = sp_budget_rate(&collector->budget, &collector->sampler,
                                   &collector->drain.totals, wished_rate(collector));
    bool changes = rate != collector->sampler.cpu_hz;
    bool quiet = changes && sp_sampler_hold();
    drain_once(collector);
    settle_wall(collector, window);
    sp_drain_residual(&collector->drain, window);
    window->period_ns = sp_sampler_period_ns();
    settle_steal(collector, window);
    window->engine = collector->sampler.engine;
    window->engine_reason = collector->sampler.reason;
    window->end_time_ns = sp_max_u64(sp_clock_realtime_ns(), window->start_time_ns + 1);
    collector->open ^= 1;
    /* A sample that the next drain finds was taken after the previous one began, so windows overlap by that drain's length. */
    collector->windows[collector->open].start_time_ns = collector->last_edge_ns;
    collector->window_ends_ns =
        sp_deadline_after(sp_clock_monotonic_ns(), collector->config.window_ms * SP_NS_PER_MS);
    if (changes)
        sp_sampler_go_on(quiet ? rate : collector->sampler.cpu_hz);
    return window;
}

static void export_window(sp_collector *collector, sp_window *window)
{
    collector->residual_unreported_ns += window->residual_ns;
    if (collector->destination_count == 0 || window->cpu.keys.count + window->wall.keys.count == 0)
        return;
    window->residual_ns = collector->residual_unreported_ns;
    collector->residual_unreported_ns = 0;
    name_addresses(collector, window);
    for (size_t i = 0; i < collector->destination_count && !sp_load_relaxed(&collector->abandoned);
         i++)
        export_to(collector, window, i, &collector->destinations[i]);
}

/* The window that is open becomes a profile; the other one opens. */
static void close_window(sp_collector *collector)
{
    sp_window *window = end_window(collector);
    export_window(collector, window);
    sp_store_relaxed(&collector->handed_over,
                     sp_load_relaxed(&collector->handed_over) + window->cpu.count);
    look_after_the_engine(collector, window);
    warn_of_losses(collector);
    sp_symbolizer_rest(collector->symbolizer);
    sp_window_clear(window);
}

/* What the thread was woken for. */
typedef struct work {
    uint64_t flush_ticket;
    bool flush, edge, ending;
} work;

/* Sleep until the next drain or a request. */
static work wait_for_work(sp_collector *collector)
{
    struct timespec until = sp_timespec_from_ns(collector->drained_at_ns + DRAIN_MS * SP_NS_PER_MS);
    pthread_mutex_lock(&collector->lock);
    while (!collector->ending && !collector->edge_wished &&
           collector->flush_requested == collector->flushed)
        if (pthread_cond_timedwait(&collector->wake, &collector->lock, &until) != 0)
            break;
    work work = {
        .flush_ticket = collector->flush_requested,
        .flush = collector->ending || collector->flush_requested != collector->flushed,
        .edge = collector->edge_wished,
        .ending = collector->ending,
    };
    pthread_mutex_unlock(&collector->lock);
    return work;
}

static void publish_flushed(sp_collector *collector, uint64_t ticket)
{
    pthread_mutex_lock(&collector->lock);
    collector->flushed = ticket;
    pthread_cond_broadcast(&collector->done);
    pthread_mutex_unlock(&collector->lock);
}

static void destroy(sp_collector *collector)
{
    sp_symbolizer_destroy(collector->symbolizer);
    sp_window_deinit(&collector->windows[0]);
    sp_window_deinit(&collector->windows[1]);
    sp_drain_deinit(&collector->drain);
    if (!collector->keep_modules)
        sp_modules_destroy(collector->config.modules);
    pthread_cond_destroy(&collector->wake);
    pthread_cond_destroy(&collector->done);
    pthread_mutex_destroy(&collector->lock);
    free(collector);
}

static void *exit_process(void *unused)
{
    (void)unused;
    sp_thread_self_internal();
    exit(0);
}

/* A process ends, as if by exit(0), when its last thread does (pthread_exit(3)). Our threads must not keep it. */
static void end_with_the_last_thread(sp_collector *collector)
{
    pthread_t thread;
    if (collector->exiting || !sp_threads_all_ended())
        return;
    collector->exiting = true;
    if (pthread_create(&thread, NULL, exit_process, NULL) == 0)
        pthread_detach(thread);
}

static void *run(void *argument)
{
    sp_collector *collector = argument;
    pthread_setname_np(pthread_self(), "spanprof-collec");
    sp_thread_self_internal();
    work work = {0};
    while (!work.ending) {
        work = wait_for_work(collector);
        if (!work.flush && !work.edge)
            drain_once(collector);
        follow_switches(collector);
        if (sp_discovery_look(&collector->discovery, &collector->drain))
            end_with_the_last_thread(collector);
        if (work.flush || work.edge || sp_clock_monotonic_ns() >= collector->window_ends_ns)
            close_window(collector);
        if (work.flush)
            publish_flushed(collector, work.flush_ticket);
    }
    pthread_mutex_lock(&collector->lock);
    collector->ended = true;
    bool abandoned = sp_load_relaxed(&collector->abandoned);
    pthread_cond_broadcast(&collector->done);
    pthread_mutex_unlock(&collector->lock);
    if (abandoned)
        destroy(collector);
    return NULL;
}

static void init_conditions(sp_collector *collector)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&collector->wake, &attributes);
    pthread_cond_init(&collector->done, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&collector->lock, NULL);
}

/* Signals are the application's: none is ever handled on this thread. */
static bool start_thread(sp_collector *collector)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&collector->thread, NULL, run, collector);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error == 0;
}

sp_collector *sp_collector_create(const sp_collector_config *config)
{
    sp_collector *collector = calloc(1, sizeof *collector);
    if (!collector)
        return NULL;
    collector->config = *config;
    init_conditions(collector);
    uint64_t now = sp_clock_monotonic_ns();
    collector->drained_at_ns = now;
    collector->window_ends_ns = sp_deadline_after(now, config->window_ms * SP_NS_PER_MS);
    collector->last_edge_ns = collector->windows[0].start_time_ns = sp_clock_realtime_ns();
    collector->destination_count =
        sp_exporter_profile_destinations(config->exporter, collector->destinations);
    collector->wished_hz = config->cpu_hz;
    collector->wall_hz = collector->wished_wall_hz = config->wall_hz;
    sp_steal_begin(&collector->steal);
    sp_budget_begin(&collector->budget, config->cpu_budget);
    if (config->sample_attributes)
        collector->drain.filter.list = strdup(config->sample_attributes);
    sp_drain_begin(&collector->drain);
    sp_threads_set_collected(true);
    collector->symbolizer = sp_symbolizer_create();
    if (collector->symbolizer)
        configure_symbolizer(collector);
    if (collector->symbolizer && start_thread(collector))
        return collector;
    sp_threads_set_collected(false);
    collector->keep_modules = true;
    destroy(collector);
    return NULL;
}

/* With the lock held: wait until FLAG or the deadline. */
static bool wait_until(sp_collector *collector, const bool *ended, uint64_t ticket,
                       uint64_t deadline_ns)
{
    struct timespec until = sp_timespec_from_ns(deadline_ns);
    while (ended ? !*ended : collector->flushed < ticket) {
        int error = deadline_ns == UINT64_MAX
                        ? pthread_cond_wait(&collector->done, &collector->lock)
                        : pthread_cond_timedwait(&collector->done, &collector->lock, &until);
        if (error == ETIMEDOUT)
            return ended ? *ended : collector->flushed >= ticket;
    }
    return true;
}

spanprof_status sp_collector_flush(sp_collector *collector, uint64_t deadline_ns)
{
    pthread_mutex_lock(&collector->lock);
    uint64_t ticket = ++collector->flush_requested;
    pthread_cond_signal(&collector->wake);
    bool done = wait_until(collector, NULL, ticket, deadline_ns);
    pthread_mutex_unlock(&collector->lock);
    return done ? SPANPROF_OK : SPANPROF_ERROR_TIMEOUT;
}

void sp_collector_set_rate(sp_collector *collector, uint32_t cpu_hz)
{
    pthread_mutex_lock(&collector->lock);
    collector->wished_hz = cpu_hz;
    collector->edge_wished = true;
    pthread_cond_signal(&collector->wake);
    pthread_mutex_unlock(&collector->lock);
}

void sp_collector_set_wall_rate(sp_collector *collector, uint32_t wall_hz)
{
    pthread_mutex_lock(&collector->lock);
    collector->wished_wall_hz = wall_hz;
    collector->edge_wished = true;
    pthread_cond_signal(&collector->wake);
    pthread_mutex_unlock(&collector->lock);
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
    pthread_mutex_lock(&collector->lock);
    collector->ending = true;
    collector->keep_modules = modules_in_use;
    pthread_cond_signal(&collector->wake);
    bool ended = wait_until(collector, &collector->ended, 0, deadline_ns);
    sp_store_relaxed(&collector->abandoned, !ended);
    sp_collector_stats(collector, stats);
    stats->dropped_samples_at_stop = ended ? 0 : unfinished(collector);
    pthread_t thread = collector->thread;
    pthread_mutex_unlock(&collector->lock);
    sp_threads_set_collected(false); /* one that was given up on does not drain any more */
    if (!ended) {
        pthread_detach(thread);
        return SPANPROF_ERROR_TIMEOUT;
    }
    pthread_join(thread, NULL);
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
    stats->residual_ns = sp_load_relaxed(&totals->residual_ns);
    stats->dropped_samples_ring_full = sp_load_relaxed(&totals->dropped_ring_full);
    stats->dropped_samples_memory = sp_load_relaxed(&totals->dropped_memory);
    stats->dropped_samples_small_stack = sp_load_relaxed(&totals->dropped_small_stack);
    stats->visits_linked = sp_load_relaxed(&totals->visits_linked);
    stats->visits_none = sp_load_relaxed(&totals->visits_none);
    stats->visits_unknown = sp_load_relaxed(&totals->visits_unknown);
    stats->dropped_visits = sp_load_relaxed(&totals->visits_dropped);
    stats->tick_cost_ns = sp_load_relaxed(&collector->budget.tick_cost_ns);
}
