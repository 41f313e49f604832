/* SPDX-License-Identifier: Apache-2.0 */
/* Start, flush, stop, fork, exit: puts the parts together.
 *
 * sdk.busy serializes start, flush and stop for as long as they take. sdk.life guards the state
 * below, and is held only for moments, because statistics and fork take it and must not wait for a
 * flush. sdk.parts guards the exporter for threads that end spans. Order: busy, life, parts, then
 * the engine's lock, then the registry's; the loader's last. */
#include <spanprof/sdk.h>

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "alloc/block_samples.h"
#include "lock/lock_samples.h"
#include "call/call.h"
#include "collect/collector.h"
#include "context/context_slot.h"
#include "core/at_fork.h"
#include "core/cancel.h"
#include "core/clock.h"
#include "core/env.h"
#include "core/lock.h"
#include "core/log.h"
#include "core/log_queue.h"
#include "export/process_context_publish.h"
#include "sdk/config.h"
#include "sdk/fill_stats.h"
#include "sdk/run_first.h"
#include "sdk/switch_file.h"
#include "sdk/synthetic.h"
#include "sdk/variables.h"
#include "trace/propagators.h"
#include "trace/sample_attributes.h"
#include "unwind/loader_snapshot.h"

#define EXIT_FLUSH_NS (5 * SP_NS_PER_S)
#define PULL_STOP_NS  (SP_NS_PER_S / 5)

static struct {
    sp_lock busy;
    sp_lock life;
    sp_lock parts;
    bool running;
    bool forked;        /* the SDK ran in the parent, and has not been started here since */
    bool is_child;      /* the SDK ran in a parent; stays true */
    bool stops_at_exit; /* registered with atexit, once a process */
    bool pull_is_above; /* a parent listened at SPANPROF_PULL when it forked */
    bool synthetic;     /* the next start takes no real ticks (tests) */
    sp_config config;
    sp_resource *resource;
    sp_exporter *exporter;
    sp_collector *collector;
    sp_pull_server *pull;
    spanprof_stats last; /* as the last stop left them */
} sdk = {.busy = SP_LOCK_AT(SP_LOCK_SDK_CALL),
         .life = SP_LOCK_AT(SP_LOCK_SDK_LIFE),
         .parts = SP_LOCK_AT(SP_LOCK_SDK_PARTS)};

/* This thread holds sdk.busy and is calling a processor's flush or shutdown: the application's
 * code, which may call exit. */
static _Thread_local bool is_in_processor;

void sp_sdk_use_synthetic_ticks(void)
{
    sdk.synthetic = true;
}

/* Called when the tracer's queue has a batch, rarely. Any thread. */
static void wake_exporter(void *unused)
{
    SP_UNCANCELLED;
    (void)unused;
    sp_lock_take(&sdk.parts);
    if (sdk.exporter)
        sp_exporter_wake(sdk.exporter);
    sp_lock_give(&sdk.parts);
}

static void set_exporter(sp_exporter *exporter)
{
    sp_lock_take(&sdk.parts);
    sdk.exporter = exporter;
    sp_lock_give(&sdk.parts);
}

static void fork_prepare(void)
{
    sp_lock_take(&sdk.life);
    sp_lock_take(&sdk.parts);
    sp_engine_fork_prepare();
    sp_wall_fork_prepare();
    sp_loader_fork_prepare();
    sp_process_context_fork_prepare();
}

static void fork_parent(void)
{
    sp_process_context_fork_parent();
    sp_loader_fork_done();
    sp_wall_fork_parent();
    sp_engine_fork_parent();
    sp_lock_give(&sdk.parts);
    sp_lock_give(&sdk.life);
}

/* The child has none of our threads: their data is not freed, and never touched again. */
static void fork_child(void)
{
    SP_UNCANCELLED;
    sp_process_context_fork_child();
    sp_loader_fork_done();
    sp_wall_fork_child();
    sp_engine_fork_child();
    sp_alloc_stop();
    sp_lock_samples_fork_child();
    sp_calls_fork_child();
    sp_tracer_after_fork();
    sp_switch_file_after_fork();
    sp_exporter_after_fork();
    sp_pull_server_after_fork(sdk.pull);
    sp_pull_after_fork();
    sdk.forked |= sdk.running;
    sdk.is_child |= sdk.forked;
    sdk.pull_is_above |= sdk.pull != NULL;
    sdk.running = false;
    sdk.collector = NULL;
    sdk.pull = NULL;
    sdk.exporter = NULL;
    sdk.resource = NULL;
    memset(&sdk.config, 0, sizeof sdk.config);
    memset(&sdk.last, 0, sizeof sdk.last);
    sp_lock_init(&sdk.busy, SP_LOCK_SDK_CALL); /* another thread of the parent may hold it */
    is_in_processor = false;
    sp_lock_give(&sdk.parts);
    sp_lock_give(&sdk.life);
}

SP_AT_FORK(SP_LOCK_SDK_LIFE, fork_prepare, fork_parent, fork_child);

static void stop_at_exit(void);

/* Called after the exporter has set up libcurl and its TLS library, because handlers run in reverse
 * order, and ours needs these libraries. */
static void install_exit_hook(void)
{
    static bool after_network;
    bool again = sp_exporter_network_is_loaded() && !after_network;
    if (sdk.stops_at_exit && !again)
        return;
    after_network |= again;
    if (atexit(stop_at_exit) != 0)
        sp_log_warn("sdk", "atexit refused: an exit without spanprof_stop loses the last window");
    sdk.stops_at_exit = true;
}

/* Fill ERROR, and return STATUS. Parts of a start return the result, so the returned code is always
 * the one in ERROR. */
static spanprof_status fail(spanprof_error *error, spanprof_status status, const char *message)
{
    *error = (spanprof_error){.status = status, .message = message};
    return status;
}

static spanprof_status start_resource(const spanprof_options *options, spanprof_error *error)
{
    sdk.resource = calloc(1, sizeof *sdk.resource);
    if (sdk.resource &&
        sp_resource_init(sdk.resource, options->service_name, options->resource_attributes))
        return SPANPROF_OK;
    return fail(error, SPANPROF_ERROR_NO_MEMORY,
                "spanprof_start: the resource's attributes do not fit into memory: give the "
                "process more (RLIMIT_AS, the cgroup's memory.max), or name fewer attributes");
}

static spanprof_status start_exporter(spanprof_error *error)
{
    set_exporter(sp_exporter_create(&sdk.config.export, sdk.resource, error));
    return sdk.exporter ? SPANPROF_OK : error->status;
}

static spanprof_status start_tracer(spanprof_error *error)
{
    sdk.config.tracer.wake_spans =
        sdk.config.export.spans_at_once ? 1 : sdk.config.export.batch_spans;
    sdk.config.tracer.wake = wake_exporter;
    spanprof_status status = sp_tracer_start(&sdk.config.tracer);
    return status == SPANPROF_OK
               ? SPANPROF_OK
               : fail(error, status,
                      "spanprof_start: the tracer does not fit into memory: give the process more "
                      "(RLIMIT_AS, the cgroup's memory.max)");
}

/* USER points to the pointer to the collector, which may still be NULL. */
static void end_window(void *user)
{
    sp_collector *const *collector = user;
    if (*collector)
        sp_collector_end_window(*collector);
}

/* The link scope of pulled profiles: in pprof a sample has one span. */
static spanprof_link_scope pull_link_scope(void)
{
    spanprof_link_scope scope = sdk.config.export.link_scope;
    return scope == SPANPROF_LINK_SCOPE_DEFAULT || scope == SPANPROF_LINK_SCOPE_BOTH
               ? SPANPROF_LINK_SCOPE_INNERMOST
               : scope;
}

static spanprof_status start_collector(sp_modules *modules, bool visits, spanprof_error *error)
{
    sp_collector_config config = {
        .window_ms = sdk.config.window_ms,
        .max_samples = sdk.config.max_samples,
        .symbols = sdk.config.symbols,
        .cpu_hz = sdk.config.cpu_engine.cpu_hz,
        .engine_run = sp_engine_run_number(),
        .wall_hz = visits ? sdk.config.wall_profiler.hz : 0,
        .wall_of_all = sdk.config.wall_profiler.all_threads,
        .without_cpu = !sdk.config.cpu,
        .without_ticks = sdk.config.cpu_engine.without_ticks,
        .with_alloc = sdk.config.alloc,
        .with_heap = sdk.config.heap,
        .alloc_bytes = sdk.config.allocations.period_bytes,
        .lock_ns = sdk.config.lock_period_ns,
        .sample_attributes = sdk.config.sample_attributes,
        .cpu_budget = sdk.config.cpu_budget,
        .modules = modules,
        .exporter = sdk.exporter,
        .pull_run = sp_pull_open(end_window, &sdk.collector),
        .pull_link_scope = pull_link_scope(),
        .pull_thread_attributes = sdk.config.export.thread_attributes != SP_THREAD_ATTRIBUTES_OFF,
        .resource = sdk.resource,
    };
    sdk.collector = sp_collector_create(&config, error);
    return sdk.collector ? SPANPROF_OK : error->status;
}

/* Start the wall profiler; false when it does not run. Wall time consists of ticks and visits, so
 * both run for it. Where threads cannot be visited, only CPU time is sampled. */
static bool start_wall(sp_modules *modules)
{
    sdk.config.wall_profiler.modules = modules;
    return sdk.config.wall && sp_wall_start(&sdk.config.wall_profiler);
}

static bool samples_anything(void)
{
    return sdk.config.cpu || sdk.config.wall || sdk.config.alloc || sdk.config.heap ||
           sdk.config.lock;
}

/* Called before the collector is created, because that reads counters of calls. */
static void start_calls(sp_modules *modules)
{
    const sp_calls_config config = {.modules = modules,
                                    .max_depth = sdk.config.cpu_engine.max_depth,
                                    .with_attributes = sdk.config.cpu_engine.with_attributes};
    bool allocations = sdk.config.alloc || sdk.config.heap, locks = sdk.config.lock;
    if ((allocations || locks) && !sp_calls_prepare()) {
        sp_log_warn("call", "no memory for the rings: allocations and locks are not sampled");
        allocations = locks = false;
    }
    sp_calls_start(&config);
    if (allocations)
        sp_alloc_start(&sdk.config.allocations);
    if (locks)
        sp_lock_samples_start(sdk.config.lock_period_ns);
}

/* End the sampling of calls. Returns whether no call is under way. */
static bool stop_calls(void)
{
    sp_alloc_stop();
    sp_lock_samples_stop();
    return sp_calls_stop();
}

/* The engine is started before the collector, because it replaces rings that the collector drains.
 */
static spanprof_status start_sampling(spanprof_error *error)
{
    if (!samples_anything())
        return SPANPROF_OK;
    sp_modules *modules = sp_modules_create();
    if (!modules)
        return fail(error, SPANPROF_ERROR_NO_MEMORY,
                    "spanprof_start: the unwind tables do not fit into memory: give the process "
                    "more (RLIMIT_AS, the cgroup's memory.max), or set SPANPROF_PROFILES=none");
    sp_context_layout_learn();      /* before a scan finds threads */
    sp_threads_set_collected(true); /* slots of ended threads stay until they are drained */
    sdk.config.cpu_engine.modules = modules;
    sdk.config.cpu_engine.synthetic = sdk.synthetic;
    spanprof_status status = sp_engine_start(&sdk.config.cpu_engine, error);
    if (status == SPANPROF_OK) {
        start_calls(modules);
        status = start_collector(modules, start_wall(modules), error);
        if (status == SPANPROF_OK)
            return SPANPROF_OK;
    }
    sp_wall_stop();
    sp_wall_free();
    bool quiet = stop_calls();
    if (sp_engine_stop() && quiet)
        sp_modules_destroy(modules);
    sp_threads_set_collected(false);
    return status;
}

static void drop_resource(void)
{
    if (sdk.resource)
        sp_resource_deinit(sdk.resource);
    free(sdk.resource);
    sdk.resource = NULL;
}

/* The collector and the exporter are hidden from other threads before they end. Their last counts
 * are kept afterwards. */
static spanprof_status end_collector(uint64_t deadline_ns, bool modules_in_use)
{
    sp_collector *collector = sdk.collector;
    spanprof_stats last = sdk.last;
    sp_lock_take(&sdk.life);
    sdk.collector = NULL;
    sp_lock_give(&sdk.life);
    spanprof_status status = sp_collector_stop(collector, deadline_ns, modules_in_use, &last);
    sp_stats_fill_engine(&last);
    sp_stats_fill_wall(&last);
    sp_lock_take(&sdk.life);
    sdk.last = last;
    sp_lock_give(&sdk.life);
    return status;
}

/* *LEFT: its thread is still there, and reads the resource. */
static spanprof_status end_exporter(uint64_t deadline_ns, bool *left)
{
    sp_exporter *exporter = sdk.exporter;
    sp_lock_take(&sdk.life);
    set_exporter(NULL);
    sp_lock_give(&sdk.life);
    sp_export_counters counters = {0};
    spanprof_status status = sp_exporter_destroy(exporter, deadline_ns, &counters);
    *left = counters.thread_left;
    sp_lock_take(&sdk.life);
    sp_stats_fill_tracer(&sdk.last);
    sp_stats_fill_exports(&sdk.last, &counters);
    sp_lock_give(&sdk.life);
    return status;
}

static spanprof_status first_error(spanprof_status first, spanprof_status second)
{
    return first == SPANPROF_OK ? second : first;
}

/* Called when the collector runs, or nothing is sampled. */
static void start_pull(void)
{
    if (!sdk.config.pull.address.length)
        return;
    sdk.config.pull.is_inherited = sdk.pull_is_above || sp_run_has_another_first();
    if (sdk.collector)
        sdk.pull = sp_pull_server_start(&sdk.config.pull);
    else
        sp_log_warn("pull", "SPANPROF_PULL=%s: nothing is sampled (SPANPROF_PROFILES): it is off",
                    sdk.config.pull.address.text);
}

/* Called before the collector ends. The server's thread checks twenty times a second whether to
 * end, and gets PULL_STOP_NS for that even after the deadline, because the next start needs the
 * same port. */
static void stop_pull(uint64_t deadline_ns)
{
    uint64_t least_ns = sp_clock_monotonic_ns() + PULL_STOP_NS;
    sp_pull_close();
    if (sdk.pull)
        sp_pull_server_stop(sdk.pull, sp_max_u64(deadline_ns, least_ns));
    sdk.pull = NULL;
}

/* End all parts that run, in the order in which data flows, by the deadline. */
static spanprof_status end_parts(uint64_t deadline_ns)
{
    sp_process_context_unpublish();
    stop_pull(deadline_ns);
    sp_wall_stop();
    bool called = !stop_calls();
    bool quiet = sp_engine_stop() && !called, left = false;
    sp_tracer_stop();
    spanprof_status status = sp_switch_file_stop(deadline_ns), collected = SPANPROF_OK;
    if (sdk.collector) {
        status = first_error(status, sp_collector_flush(sdk.collector, deadline_ns));
        collected = end_collector(deadline_ns, !quiet);
        sp_wall_free();
    }
    if (sdk.exporter)
        status = first_error(status, end_exporter(deadline_ns, &left));
    if (collected == SPANPROF_OK && !left)
        drop_resource();
    sdk.resource =
        NULL; /* when it was not freed, an abandoned thread may read it: then it is never freed */
    sp_config_deinit(&sdk.config);
    return first_error(status, collected);
}

/* When its file cannot be written the recorder is off, and all else runs. */
static void start_switches(const char *path)
{
    if (path && sp_exporter_writes_to(sdk.exporter, path))
        sp_log_error(
            "switches",
            "%s: profiles or spans are written to it (SPANPROF_FILE): no switch is recorded; "
            "give it another path",
            path);
    else if (path)
        sp_switch_file_start(path);
}

static spanprof_status start_locked(const spanprof_options *options, spanprof_error *error)
{
    sp_lock_take(&sdk.life);
    memset(&sdk.last, 0, sizeof sdk.last);
    sp_lock_give(&sdk.life);
    if (!sp_config_init(&sdk.config, options))
        return fail(error, SPANPROF_ERROR_NO_MEMORY,
                    "spanprof_start: the configuration does not fit into memory: give the process "
                    "more (RLIMIT_AS, the cgroup's memory.max)");
    spanprof_status status = start_resource(options, error);
    if (status == SPANPROF_OK)
        status = start_exporter(error);
    if (status == SPANPROF_OK)
        status = start_tracer(error);
    if (status == SPANPROF_OK)
        status = start_sampling(error);
    if (status == SPANPROF_OK) {
        start_switches(sdk.config.switches);
        start_pull();
        sp_process_context_follow_keys(sdk.resource);
    } else
        end_parts(sp_clock_monotonic_ns());
    return status;
}

typedef struct own_paths {
    char file[PATH_MAX], switches[PATH_MAX];
} own_paths;

/* Give a forked child paths of its own. With its parent's paths, from the environment, it would
 * move the parent's profiles away and empty the parent's recording of switches, once the parent has
 * ended. */
static void use_own_files(spanprof_options *options, own_paths *paths)
{
    const char *prefix = sp_env("SPANPROF_FILE"), *switches = sp_env("SPANPROF_SWITCHES");
    if (sdk.is_child && !options->file) {
        sp_file_own_prefix(paths->file, sizeof paths->file, prefix ? prefix : "spanprof", getpid());
        options->file = paths->file;
    }
    if (sdk.is_child && !options->switches && switches && strcasecmp(switches, "off") != 0) {
        snprintf(paths->switches, sizeof paths->switches, "%s.%d", switches, (int)getpid());
        options->switches = paths->switches;
    }
}

static void set_running(void)
{
    install_exit_hook();
    sp_registered_open();
    sp_lock_take(&sdk.life);
    sdk.running = true;
    sdk.forked = false;
    sp_lock_give(&sdk.life);
}

spanprof_status spanprof_start(const spanprof_options *options, spanprof_error *error)
{
    SP_UNCANCELLED;
    spanprof_options known;
    own_paths paths;
    spanprof_error unwanted;
    error = error ? error : &unwanted;
    spanprof_status status = sp_options_check(options, &known, error);
    if (status != SPANPROF_OK)
        return status;
    if (sp_registered_calling())
        return fail(
            error, SPANPROF_ERROR_IN_CALLBACK,
            "spanprof_start: called by a span processor's callback: call it from elsewhere");
    sp_lock_take(&sdk.busy);
    if (sdk.running) {
        status = fail(error, SPANPROF_ERROR_ALREADY_STARTED,
                      "spanprof_start: it runs already; call spanprof_stop first");
    } else {
        sp_config_log(&known);
        sp_variables_check();
        sp_propagation_configure(sp_config_propagators(&known));
        if (sp_env_bool("OTEL_SDK_DISABLED"))
            status = fail(error, SPANPROF_ERROR_DISABLED,
                          "spanprof_start: OTEL_SDK_DISABLED=true: unset it to start");
        else {
            use_own_files(&known, &paths);
            status = start_locked(&known, error);
        }
        if (status == SPANPROF_OK)
            set_running();
    }
    sp_lock_give(&sdk.busy);
    sp_log_settle(UINT64_MAX);
    return status;
}

spanprof_status spanprof_prepare(void)
{
    SP_UNCANCELLED;
    sp_lock_take(&sdk.busy);
    spanprof_status status = SPANPROF_ERROR_ALREADY_STARTED;
    if (!sdk.running)
        status = sp_modules_prepare() ? SPANPROF_OK : SPANPROF_ERROR_NO_MEMORY;
    sp_lock_give(&sdk.busy);
    return status;
}

/* False when another call held the lock until the deadline. pthread_mutex_timedlock has only the
 * realtime clock; ThreadSanitizer does not support the variant for the monotonic one. */
static bool lock_busy(uint64_t deadline_ns)
{
    if (deadline_ns == UINT64_MAX) {
        sp_lock_take(&sdk.busy);
        return true;
    }
    uint64_t now = sp_clock_monotonic_ns();
    uint64_t left = deadline_ns > now ? deadline_ns - now : 0;
    struct timespec until = sp_timespec_from_ns(sp_deadline_after(sp_clock_realtime_ns(), left));
    return sp_lock_take_until(&sdk.busy, &until) == 0;
}

static spanprof_status flush_parts(uint64_t deadline_ns)
{
    spanprof_status status = sp_switch_file_flush(deadline_ns);
    if (sdk.collector)
        status = first_error(status, sp_collector_flush(sdk.collector, deadline_ns));
    return status == SPANPROF_OK ? sp_exporter_flush(sdk.exporter, deadline_ns) : status;
}

spanprof_status spanprof_flush(uint64_t timeout_ns)
{
    SP_UNCANCELLED;
    uint64_t deadline = sp_deadline_after(sp_clock_monotonic_ns(), timeout_ns);
    if (sp_registered_calling())
        return SPANPROF_ERROR_IN_CALLBACK;
    if (!lock_busy(deadline))
        return SPANPROF_ERROR_TIMEOUT;
    spanprof_status status = SPANPROF_ERROR_NOT_STARTED;
    if (sdk.running) {
        is_in_processor = true;
        status = sp_registered_flush(deadline); /* first: the spans that it ends are sent, too */
        is_in_processor = false;
        status = first_error(status, flush_parts(deadline));
    }
    sp_lock_give(&sdk.busy);
    sp_log_settle(deadline);
    return status;
}

/* Fill in the counters of the parts that run now. */
static void fill_running(spanprof_stats *stats)
{
    stats->running = 1;
    if (sdk.collector) {
        sp_stats_fill_engine(stats);
        sp_collector_stats(sdk.collector, stats);
        sp_stats_fill_wall(stats);
    }
    sp_stats_fill_tracer(stats);
    if (sdk.exporter)
        sp_stats_fill_exports(stats, sp_exporter_counters(sdk.exporter));
}

void spanprof_thread_exclude(void)
{
    SP_UNCANCELLED;
    sp_thread_self_internal();
}

void spanprof_stats_get(spanprof_stats *out)
{
    SP_UNCANCELLED;
    if (!out || out->struct_size == 0)
        return;
    uint32_t size = out->struct_size;
    sp_lock_take(&sdk.life);
    spanprof_stats stats = sdk.last;
    if (sdk.running)
        fill_running(&stats);
    stats.forked = sdk.forked;
    sp_stats_fill_misuse(&stats);
    sp_stats_fill_carriers(&stats);
    sp_stats_fill_switches(&stats);
    sp_stats_fill_attributes(&stats);
    sp_lock_give(&sdk.life);
    stats.struct_size = size;
    memcpy(out, &stats, size < sizeof stats ? size : sizeof stats);
}

static spanprof_status stop_locked(uint64_t deadline_ns)
{
    if (!sdk.running)
        return SPANPROF_ERROR_NOT_STARTED;
    is_in_processor = true;
    spanprof_status status =
        sp_registered_close(deadline_ns); /* first: the spans that they end are sent, too */
    is_in_processor = false;
    status = first_error(status, end_parts(deadline_ns));
    sp_lock_take(&sdk.life);
    sdk.running = false;
    sp_lock_give(&sdk.life);
    return status;
}

spanprof_status spanprof_stop(uint64_t timeout_ns)
{
    SP_UNCANCELLED;
    uint64_t deadline = sp_deadline_after(sp_clock_monotonic_ns(), timeout_ns);
    if (sp_registered_calling())
        return SPANPROF_ERROR_IN_CALLBACK;
    if (!lock_busy(deadline))
        return SPANPROF_ERROR_TIMEOUT; /* another thread starts, flushes or stops */
    spanprof_status status = stop_locked(deadline);
    sp_lock_give(&sdk.busy);
    sp_log_settle(deadline);
    return status;
}

/* May be called from inside a callback, which then never returns. If flush or stop called that
 * callback, this thread still holds sdk.busy, and the parts still run: this function does the rest
 * of the work. */
static void stop_at_exit(void)
{
    SP_UNCANCELLED;
    uint64_t deadline = sp_deadline_after(sp_clock_monotonic_ns(), EXIT_FLUSH_NS);
    sp_registered_leave();
    if (!is_in_processor && !lock_busy(deadline))
        return;
    stop_locked(deadline);
    sp_lock_give(&sdk.busy);
    sp_log_settle(deadline);
}

spanprof_status spanprof_pause(void)
{
    SP_UNCANCELLED;
    sp_wall_pause();
    sp_alloc_pause();
    sp_lock_samples_pause();
    return sp_engine_pause();
}

spanprof_status spanprof_resume(void)
{
    SP_UNCANCELLED;
    sp_wall_resume();
    sp_alloc_resume();
    sp_lock_samples_resume();
    return sp_engine_resume();
}

spanprof_status spanprof_set_rate(spanprof_profile_kind kind, uint32_t hz)
{
    SP_UNCANCELLED;
    uint32_t highest = kind == SPANPROF_PROFILE_WALL ? SP_WALL_HZ_MAX : SP_CPU_HZ_MAX;
    if (hz == 0 || hz > highest || (unsigned)kind > SPANPROF_PROFILE_LOCK)
        return SPANPROF_ERROR_INVALID_ARGUMENT;
    spanprof_status status = SPANPROF_ERROR_NOT_STARTED;
    sp_lock_take(&sdk.life);
    if (sdk.running) {
        status = SPANPROF_OK;
        if (sdk.collector && kind == SPANPROF_PROFILE_CPU)
            sp_collector_set_rate(sdk.collector, hz);
        else if (sdk.collector && kind == SPANPROF_PROFILE_WALL && sdk.config.wall)
            sp_collector_set_wall_rate(sdk.collector, hz);
        else
            status = SPANPROF_ERROR_UNSUPPORTED;
    }
    sp_lock_give(&sdk.life);
    return status;
}
