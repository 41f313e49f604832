/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <sys/stat.h>

#include "core/lock.h"
#include "core/log.h"
#include "core/log_queue.h"
#include "core/worker.h"
#include "export/export_internal.h"

enum {
    DEFAULT_QUEUE_BYTES = 64 * 1024 * 1024,
    DEFAULT_BATCH_SPANS = 512,
    BATCH_SPANS_MAX = 16384,
    BATCH_DELAY_MIN_MS = 10, /* the thread may wake that often without work */
};

#define END_GRACE_NS SP_NS_PER_S

/* ---- Setting up ---- */

static void fill_defaults(sp_export_config *config)
{
    if (config->queue_maximum_bytes == 0)
        config->queue_maximum_bytes = DEFAULT_QUEUE_BYTES;
    if (config->batch_spans == 0)
        config->batch_spans = DEFAULT_BATCH_SPANS;
    if (config->batch_spans > BATCH_SPANS_MAX)
        config->batch_spans = BATCH_SPANS_MAX;
    if (config->batch_delay_ms < BATCH_DELAY_MIN_MS)
        config->batch_delay_ms = BATCH_DELAY_MIN_MS;
    for (int i = 0; i < 2; i++)
        config->http[i].enabled &= config->http[i].url != NULL;
    config->file_enabled &= config->file_prefix != NULL;
}

static bool wants_network(const sp_export_config *config)
{
    return (config->http[SP_TRACES].enabled && config->http[SP_TRACES].url) ||
           (config->http[SP_PROFILES].enabled && config->http[SP_PROFILES].url);
}

static bool open_network(sp_exporter *exporter)
{
    const sp_export_config *config = &exporter->config;
    if (!wants_network(config))
        return true;
    exporter->multi = curl_multi_init();
    if (!exporter->multi)
        return false;
    for (int i = 0; i < 2; i++)
        if (config->http[i].enabled &&
            !sp_sender_init(&exporter->senders[i], (sp_telemetry_signal)i, &config->http[i],
                            exporter->multi, config->queue_maximum_bytes, &exporter->counters))
            return false;
    return true;
}

/* A spool that cannot be opened is no reason to fail: without it, requests that cannot be sent are
 * dropped. */
static void open_spool(sp_exporter *exporter)
{
    const sp_export_config *config = &exporter->config;
    const char *service = sp_resource_get(exporter->resource, "service.name");
    if (!config->spool || !exporter->multi)
        return;
    for (int i = 0; i < 2; i++) {
        exporter->spool.formats[i] = sp_http_target_format(&config->http[i]);
        exporter->spool.wanted[i] = config->http[i].enabled;
    }
    if (!sp_spool_open(&exporter->spool, config->spool, service ? service : "",
                       config->spool_maximum_bytes))
        return;
    for (int i = 0; i < 2; i++)
        if (config->http[i].enabled)
            sp_sender_use_spool(&exporter->senders[i], &exporter->spool);
}

bool sp_export_open(sp_exporter *exporter)
{
    sp_export_config *config = &exporter->config;
    if (!open_network(exporter))
        return false;
    open_spool(exporter);
    if (config->http[SP_PROFILES].enabled)
        exporter->profile_destinations[exporter->profile_destination_count++] = SP_DESTINATION_HTTP;
    if (config->file_enabled && !sp_file_runs_open(exporter->files, config, &exporter->counters))
        return false;
    if (config->file_enabled)
        exporter->profile_destinations[exporter->profile_destination_count++] = SP_DESTINATION_FILE;
    return true;
}

void sp_export_close(sp_exporter *exporter)
{
    for (int i = 0; i < 2; i++) {
        sp_sender_deinit(&exporter->senders[i]);
        sp_file_deinit(&exporter->files[i]);
    }
    if (exporter->spool.folder)
        sp_spool_close(&exporter->spool);
    if (exporter->multi)
        curl_multi_cleanup(exporter->multi);
}

static bool init(sp_exporter *exporter, const sp_export_config *config)
{
    sp_worker_init(&exporter->worker, SP_LOCK_EXPORTER);
    exporter->inbox_last = &exporter->inbox;
    if (!sp_export_config_copy(&exporter->config, config))
        return false;
    fill_defaults(&exporter->config);
    exporter->batch = calloc(exporter->config.batch_spans, sizeof *exporter->batch);
    return exporter->batch != NULL;
}

/* Wait until the thread has opened its files: the start reports a file that cannot be made before
 * it returns. */
static bool wait_for_start(sp_exporter *exporter)
{
    bool started = sp_worker_wait_until_ready(&exporter->worker);
    if (!started) {
        sp_worker_end(&exporter->worker, UINT64_MAX);
        sp_worker_release(&exporter->worker);
    }
    sp_log_settle(UINT64_MAX);
    return started;
}

static void destroy(void *owner)
{
    sp_exporter *exporter = owner;
    sp_export_config_deinit(&exporter->config);
    sp_worker_deinit(&exporter->worker);
    free(exporter->batch);
    free(exporter);
}

static const sp_worker_role role = {.name = "spanprof-export",
                                    .run = sp_export_loop,
                                    .destroy = destroy,
                                    .signals = SP_WORKER_KEEPS_FAULTS};

static int start_threads(sp_exporter *exporter)
{
    int error = sp_log_relay_start(&exporter->log_relay);
    return error ? error : sp_worker_start(&exporter->worker, &role, exporter);
}

static sp_exporter *fail(sp_exporter *exporter, spanprof_error *error, spanprof_error why)
{
    if (exporter) {
        sp_log_relay_stop(&exporter->log_relay, UINT64_MAX);
        destroy(exporter);
    }
    if (error)
        *error = why;
    return NULL;
}

/* Load libcurl. False, with *WHY, when it is missing, or lacks a protocol that CONFIG needs. */
static bool load_network(const sp_export_config *config, const char **why)
{
    bool grpc = false;
    *why = "spanprof_start: libcurl could not be loaded or started: install libcurl.so.4, or set "
           "SPANPROF_EXPORTER=file";
    if (!sp_network_load())
        return false;
    for (int i = 0; i < 2; i++)
        grpc |= config->http[i].enabled && config->http[i].protocol == SP_PROTOCOL_GRPC;
    *why = "spanprof_start: libcurl was built without HTTP/2: set OTEL_EXPORTER_OTLP_PROTOCOL to "
           "http/protobuf";
    return !grpc || (curl_version_info(CURLVERSION_NOW)->features & CURL_VERSION_HTTP2);
}

sp_exporter *sp_exporter_create(const sp_export_config *config, const sp_resource *resource,
                                spanprof_error *error)
{
    static const spanprof_error no_memory = {
        .status = SPANPROF_ERROR_NO_MEMORY,
        .message = "spanprof_start: the exporter does not fit into memory: give the process more "
                   "(RLIMIT_AS, the cgroup's memory.max)"};
    const char *why;
    if (wants_network(config) && !load_network(config, &why))
        return fail(NULL, error, (spanprof_error){.status = SPANPROF_ERROR_SYSTEM, .message = why});
    sp_exporter *exporter = calloc(1, sizeof *exporter);
    if (!exporter)
        return fail(NULL, error, no_memory);
    exporter->resource = resource;
    if (!init(exporter, config))
        return fail(exporter, error, no_memory);
    int failed = start_threads(exporter);
    if (failed)
        return fail(exporter, error,
                    (spanprof_error){.status = SPANPROF_ERROR_SYSTEM,
                                     .message =
                                         "spanprof_start: the exporter's thread could not be "
                                         "created: raise RLIMIT_NPROC, or the cgroup's pids.max",
                                     .system_errno = failed});
    if (!wait_for_start(exporter))
        return fail(exporter, error, no_memory);
    return exporter;
}

bool sp_exporter_writes_to(const sp_exporter *exporter, const char *path)
{
    struct stat wanted, own;
    if (stat(path, &wanted) != 0)
        return false;
    for (int i = 0; i < 2; i++) {
        const char *name = exporter->files[i].path; /* constant since the thread has opened it */
        if (name && stat(name, &own) == 0 && S_ISREG(own.st_mode) && own.st_dev == wanted.st_dev &&
            own.st_ino == wanted.st_ino)
            return true;
    }
    return false;
}

void sp_exporter_after_fork(void)
{
    sp_files_after_fork();
}

bool sp_exporter_network_is_loaded(void)
{
    return sp_network_is_loaded();
}

/* ---- Calls of other threads ---- */

static sp_allowance *allowance_of(sp_exporter *exporter, size_t destination)
{
    return destination == SP_DESTINATION_HTTP ? &exporter->senders[SP_PROFILES].allowance
                                              : &exporter->files[SP_PROFILES].allowance;
}

/* Make BODY (taken) a request. NULL, with BODY not taken, when the queue of its destination is full
 * or memory is short. */
static sp_request *make_request(sp_exporter *exporter, size_t destination, sp_buffer *body,
                                uint64_t samples)
{
    if (!sp_allowance_take(allowance_of(exporter, destination), body->length))
        return NULL;
    sp_request *request = calloc(1, sizeof *request);
    if (!request) {
        sp_allowance_give(allowance_of(exporter, destination), body->length);
        return NULL;
    }
    *request = (sp_request){
        .body = *body, .charged_bytes = body->length, .items = samples, .destination = destination};
    *body = (sp_buffer){0};
    return request;
}

bool sp_exporter_submit_profiles(sp_exporter *exporter, size_t destination, sp_buffer *body,
                                 uint64_t samples)
{
    sp_request *request = NULL;
    if (destination < exporter->profile_destination_count)
        request =
            make_request(exporter, exporter->profile_destinations[destination], body, samples);
    if (!request) {
        sp_buffer_deinit(body);
        sp_count(&exporter->counters.dropped_queue_full, 1);
        return false;
    }
    sp_lock_take(&exporter->worker.lock);
    *exporter->inbox_last = request;
    exporter->inbox_last = &request->next;
    sp_lock_give(&exporter->worker.lock);
    sp_exporter_wake(exporter);
    return true;
}

void sp_exporter_wake(sp_exporter *exporter)
{
    sp_worker_wake(&exporter->worker);
}

void sp_exporter_note_lost(sp_exporter *exporter)
{
    sp_count(&exporter->counters.lost_before, 1);
}

static uint64_t drops_of(const sp_exporter *exporter)
{
    const sp_export_counters *counters = &exporter->counters;
    return sp_load_relaxed(&counters->dropped_queue_full) +
           sp_load_relaxed(&counters->dropped_refused) +
           sp_load_relaxed(&counters->dropped_unreachable) +
           sp_load_relaxed(&counters->dropped_spool) + sp_load_relaxed(&counters->lost_before);
}

/* With the lock held: the status of a complete flush, ERROR_EXPORT when something was dropped since
 * the last one. */
static spanprof_status report_drops(sp_exporter *exporter)
{
    uint64_t drops = drops_of(exporter);
    bool more = drops != exporter->drops_reported;
    exporter->drops_reported = drops;
    return more ? SPANPROF_ERROR_EXPORT : SPANPROF_OK;
}

spanprof_status sp_exporter_flush(sp_exporter *exporter, uint64_t deadline_ns)
{
    spanprof_status status = SPANPROF_ERROR_TIMEOUT;
    if (sp_worker_flush(&exporter->worker, deadline_ns)) {
        sp_lock_take(&exporter->worker.lock);
        status = report_drops(exporter);
        sp_lock_give(&exporter->worker.lock);
    }
    sp_log_settle(deadline_ns);
    return status;
}

/* Wait for the end of the thread. It ends by DEADLINE_NS, or soon after when that has passed,
 * unless a system call does not return. Returns whether it ended, and holds the lock in both cases.
 */
static bool end_worker(sp_exporter *exporter, uint64_t deadline_ns)
{
    sp_lock_take(&exporter->worker.lock);
    exporter->stop_deadline_ns = deadline_ns;
    sp_lock_give(&exporter->worker.lock);
    uint64_t wait_ns = sp_max_u64(deadline_ns, sp_clock_monotonic_ns());
    return sp_worker_end(&exporter->worker, sp_deadline_after(wait_ns, END_GRACE_NS));
}

/* Called with the lock held. The thread frees the exporter when its system call returns, if ever.
 */
static void count_abandoned(sp_exporter *exporter)
{
    exporter->counters.thread_left = true;
    sp_count(&exporter->counters.dropped_unreachable, 1);
    sp_log_error("export", "stopping: a disk does not answer: what was not written is lost");
}

/* End the thread. False: it was abandoned, and owns EXPORTER from now on. */
static bool end_thread(sp_exporter *exporter, uint64_t deadline_ns, sp_export_counters *counters,
                       spanprof_status *status)
{
    if (!end_worker(exporter, deadline_ns))
        count_abandoned(exporter);
    if (counters)
        *counters = exporter->counters;
    *status =
        sp_worker_is_flushed(&exporter->worker) ? report_drops(exporter) : SPANPROF_ERROR_TIMEOUT;
    return sp_worker_release(&exporter->worker);
}

spanprof_status sp_exporter_destroy(sp_exporter *exporter, uint64_t deadline_ns,
                                    sp_export_counters *counters)
{
    if (!exporter)
        return SPANPROF_OK;
    sp_log_relay log_relay = exporter->log_relay;
    spanprof_status status;
    if (end_thread(exporter, deadline_ns, counters, &status))
        destroy(exporter);
    sp_log_relay_stop(&log_relay, deadline_ns);
    return status;
}

const sp_export_counters *sp_exporter_counters(const sp_exporter *exporter)
{
    return &exporter->counters;
}

/* Receivers have limits by default: Pyroscope takes 16,000 samples a profile and, after its
 * conversion, about 2 MiB. A file has only the specification's limit. */
static void set_bounds(sp_profile_destination *out, const sp_export_config *config, bool is_file)
{
    enum { DEFAULT_BYTES = 2 * 1024 * 1024, FILE_BYTES = 64 * 1024 * 1024, SAMPLES = 16000 };
    out->request_bytes = is_file                         ? FILE_BYTES
                         : config->request_maximum_bytes ? config->request_maximum_bytes
                                                         : DEFAULT_BYTES;
    out->request_samples = is_file ? 0 : SAMPLES;
}

size_t sp_exporter_profile_destinations(const sp_exporter *exporter, sp_profile_destination *out)
{
    const sp_export_config *config = &exporter->config;
    for (size_t i = 0; i < exporter->profile_destination_count; i++) {
        bool file = exporter->profile_destinations[i] == SP_DESTINATION_FILE;
        out[i] = (sp_profile_destination){
            .link_scope = file ? SPANPROF_LINK_SCOPE_INNERMOST : SPANPROF_LINK_SCOPE_ROOT,
            .thread_attributes = file,
            .wait_attributes = file,
            .format =
                file ? config->file_format : sp_http_target_format(&config->http[SP_PROFILES])};
        set_bounds(&out[i], config, file);
        if (config->link_scope != SPANPROF_LINK_SCOPE_DEFAULT)
            out[i].link_scope = config->link_scope;
        if (config->thread_attributes != SP_THREAD_ATTRIBUTES_DEFAULT)
            out[i].thread_attributes = config->thread_attributes == SP_THREAD_ATTRIBUTES_ON;
    }
    return exporter->profile_destination_count;
}
