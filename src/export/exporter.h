/* SPDX-License-Identifier: Apache-2.0 */
/* The exporter: one thread that encodes finished spans in batches and delivers requests to its
 * destinations (OTLP over HTTP, files). Only create, flush and destroy wait. Queues are bounded;
 * requests that are dropped are counted by reason.
 *
 * | operation                    | setup | any thread | collector | exporter thread |
 * | sp_exporter_create, destroy  |  yes  |            |           |                 |
 * | sp_exporter_submit_profiles  |       |            |    yes    |                 |
 * | sp_exporter_wake             |       |    yes     |    yes    |                 |
 * | sp_exporter_flush            |       |    yes     |           |                 |
 */
#ifndef SP_EXPORT_EXPORTER_H
#define SP_EXPORT_EXPORTER_H

#include <spanprof/sdk.h>
#include "core/atomic.h"
#include "trace/resource.h"
#include "wire/otlp.h"

typedef enum sp_telemetry_signal {
    SP_TRACES = 0,
    SP_PROFILES = 1,
} sp_telemetry_signal;

/* As OTEL_EXPORTER_OTLP_PROTOCOL names them. */
typedef enum sp_otlp_protocol {
    SP_PROTOCOL_HTTP_PROTOBUF = 0,
    SP_PROTOCOL_GRPC = 1,
    SP_PROTOCOL_HTTP_JSON = 2,
} sp_otlp_protocol;

/* The destination of one signal over HTTP or gRPC. The configuration owns the strings. */
typedef struct sp_http_target {
    bool enabled;
    sp_otlp_protocol protocol;
    char *url;     /* whole: http://host:4318/v1/traces */
    char *headers; /* "key=value,key=value", percent-encoded as in W3C baggage; NULL: none. Never
                      logged. */
    bool gzip;
    uint32_t timeout_ms; /* of one export with its retries; 0: no limit */
    char *ca_file;       /* PEM; NULL: the certificates of the system */
    char *client_key;    /* PEM; NULL: none */
    char *client_certificate;
} sp_http_target;

/* Whether samples have the attributes of their thread. DEFAULT: in files, and not on the network.
 * SPANPROF_THREAD_ATTRIBUTES sets it for both. */
typedef enum sp_thread_attributes {
    SP_THREAD_ATTRIBUTES_DEFAULT = 0,
    SP_THREAD_ATTRIBUTES_ON = 1,
    SP_THREAD_ATTRIBUTES_OFF = 2,
} sp_thread_attributes;

typedef struct sp_export_config {
    sp_http_target http[2]; /* by sp_telemetry_signal */
    bool file_enabled;
    char *file_prefix;
    sp_otlp_format file_format;
    uint32_t file_maximum_bytes; /* of one file; 0: no limit */
    uint32_t file_maximum_parts; /* files that are kept of one signal; 0: all */
    bool traces_enabled; /* some destination takes spans; OTEL_TRACES_EXPORTER=none stops those of
                            OTLP only, not files */
    uint32_t
        batch_spans; /* OTEL_BSP_MAX_EXPORT_BATCH_SIZE (512), at most the tracer's queue; 0: 512 */
    uint32_t batch_delay_ms; /* OTEL_BSP_SCHEDULE_DELAY (5,000); below 10 it is 10 */
    bool spans_at_once;      /* SPANPROF_SPAN_PROCESSOR=simple: neither of the two is waited for */
    size_t
        queue_maximum_bytes; /* of requests that wait, for each signal and destination; 0: 64 MiB */
    char *spool;             /* SPANPROF_SPOOL, a directory; NULL: none */
    size_t spool_maximum_bytes;     /* of its files of this process; 0: 256 MiB */
    spanprof_link_scope link_scope; /* DEFAULT: innermost in files, root on the network */
    sp_thread_attributes thread_attributes;
    size_t request_maximum_bytes; /* of one request of profiles to the network; 0: 2 MiB */
} sp_export_config;

/* The format of TARGET's bodies. */
sp_otlp_format sp_http_target_format(const sp_http_target *target);

/* Read the environment, and OPTIONS, which take precedence, into CONFIG. A value that cannot be
 * used is named in one warning. CONFIG owns its strings, which sp_export_config_deinit frees. False
 * when memory is short. */
bool sp_export_config_init(sp_export_config *config, const spanprof_options *options);
void sp_export_config_deinit(sp_export_config *config);

/* When no request is under way: the requests that were made, counted once for each destination, and
 * those found in the spool at the start = requests + dropped_queue_full + dropped_refused +
 * dropped_unreachable + dropped_spool + spooled. */
typedef struct sp_export_counters {
    _Atomic uint64_t dropped_queue_full; /* requests; also because memory was short */
    _Atomic uint64_t dropped_refused; /* by the receiver (4xx, partial success counts as delivered)
                                         or the disk */
    _Atomic uint64_t dropped_unreachable; /* given up after retries or at stop */
    _Atomic uint64_t dropped_spool; /* requests whose file in the spool is gone or not whole */
    _Atomic uint64_t lost_before;   /* windows of which some samples became no request */
    _Atomic uint64_t spooled;       /* requests in the spool now, or left there at the stop */
    _Atomic uint64_t taken_over;    /* requests that were in the spool at the start */
    _Atomic uint64_t spans;         /* delivered; counted for each destination */
    _Atomic uint64_t samples;
    _Atomic uint64_t requests;
    _Atomic uint64_t bytes;    /* as sent, after compression */
    _Atomic uint64_t rejected; /* spans and profiles that a partial success refused; they are not
                                  among `spans` */
    bool thread_left; /* by sp_exporter_destroy: the thread, which uses the resource, is still there
                       */
} sp_export_counters;

/* Write to OUT (cut to SIZE) the prefix of the files of one process among several: PREFIX.PID, or
 * PREFIX.pidPID where PREFIX.PID is the name of an earlier run (SP_RUNS_KEPT): in a container a PID
 * may be as small as that. Exported for libspanprof-run.so. */
__attribute__((visibility("default"))) void sp_file_own_prefix(char *out, size_t size,
                                                               const char *prefix, long pid);

typedef struct sp_exporter sp_exporter;

/* Start the thread, and wait until it has opened its files. RESOURCE is borrowed until destroy (and
 * for good when that says thread_left), CONFIG is copied. On failure it returns NULL, and fills
 * *ERROR (may be NULL). When a file cannot be created only that destination fails: one warning is
 * logged before this returns, and each request is counted as dropped. */
sp_exporter *sp_exporter_create(const sp_export_config *config, const sp_resource *resource,
                                spanprof_error *error);

/* Whether libcurl has been loaded, which the first exporter that sends to the network does. TLS
 * libraries register their own handlers for the process's exit then. A handler that flushes at exit
 * must be registered after them, so that it runs before them. */
bool sp_exporter_network_is_loaded(void);

/* A destination of profiles, and the form that profiles have there. */
typedef struct sp_profile_destination {
    spanprof_link_scope link_scope; /* not DEFAULT */
    bool thread_attributes;
    bool wait_attributes;
    sp_otlp_format format;
    size_t request_bytes;     /* one request is shorter than this, before compression */
    uint32_t request_samples; /* a profile in it has at most so many; 0: any number */
} sp_profile_destination;
/* Fill OUT, which has room for 4, and return how many there are. Constant for the exporter's life.
 */
size_t sp_exporter_profile_destinations(const sp_exporter *exporter, sp_profile_destination *out);

/* Pass the encoded request BODY (taken: its memory is the exporter's afterwards, whatever is
 * returned) with SAMPLES samples to destination number DESTINATION. False when the queue was full
 * (counted). */
bool sp_exporter_submit_profiles(sp_exporter *exporter, size_t destination, sp_buffer *body,
                                 uint64_t samples);

/* Count that some samples of a window became no request, because memory was short. The next flush
 * returns ERROR_EXPORT. Any thread. */
void sp_exporter_note_lost(sp_exporter *exporter);

/* Wake the thread because there are spans to take (sp_tracer_take). Does not block; any thread. */
void sp_exporter_wake(sp_exporter *exporter);

/* Wait until everything submitted, and every span that ended, before this call is delivered or
 * dropped; at most until the monotonic DEADLINE_NS (UINT64_MAX: for ever). SPANPROF_OK,
 * ERROR_TIMEOUT, or ERROR_EXPORT when something was dropped since the last flush. */
spanprof_status sp_exporter_flush(sp_exporter *exporter, uint64_t deadline_ns);

/* Deliver what is queued, but end the thread by DEADLINE_NS at the latest; a request under way is
 * cancelled then, and the rest is dropped and counted. Files still get what is queued. Frees
 * everything. A thread whose disk does not answer for one second more is abandoned. COUNTERS (may
 * be NULL) gets the final counts. A NULL exporter is fine. A receiver that is not there at all is
 * not waited for: the rest is dropped at once. Returns as sp_exporter_flush does. Fork: not in a
 * child, which has no such thread. */
spanprof_status sp_exporter_destroy(sp_exporter *exporter, uint64_t deadline_ns,
                                    sp_export_counters *counters);

/* Whether PATH is one of the files that it writes, by whatever name. */
bool sp_exporter_writes_to(const sp_exporter *exporter, const char *path);

/* Call it in a forked child, which does not free the parent's exporter: it closes the child's
 * copies of the exporter's files. */
void sp_exporter_after_fork(void);

/* Counters, valid while the exporter lives. */
const sp_export_counters *sp_exporter_counters(const sp_exporter *exporter);

#endif
