/* SPDX-License-Identifier: Apache-2.0 */
/* The life of the SDK in a process: start, flush, stop, and its counters.
 *
 * Threads: any; start, flush and stop are serialized among themselves. Signals: not safe. Fork: the
 * child of a process that runs the SDK does not sample and does not send (spanprof_stats says
 * forked = 1); it may call spanprof_start for itself. Its files are then named PREFIX.PID, so that
 * they are not its parent's, unless options name others. If its PID is 1 to 3, as in a container,
 * they are named PREFIX.pid1 to PREFIX.pid3, because PREFIX.1 to PREFIX.3 are earlier runs.
 * Descriptors of the parent's perf events are closed in it. Exec: ends sampling; all descriptors of
 * the SDK are closed. A program that calls exec *without* fork while the engine `perf` runs calls
 * spanprof_pause or spanprof_stop first: a tick while the kernel replaces the program would end the
 * new one, because the handlers are removed by then (signal(7)). fork and exec, vfork, posix_spawn,
 * system and popen need nothing. */
#ifndef SPANPROF_SDK_H
#define SPANPROF_SDK_H

#include <spanprof/status.h>

SPANPROF_BEGIN_DECLS

typedef enum spanprof_log_level {
    SPANPROF_LOG_DEFAULT = 0, /* warn */
    SPANPROF_LOG_OFF = 1,
    SPANPROF_LOG_ERROR = 2,
    SPANPROF_LOG_WARN = 3,
    SPANPROF_LOG_INFO = 4,
    SPANPROF_LOG_DEBUG = 5,
} spanprof_log_level;

/* Which span of a sample's chain its link names (docs/design/span-context.md). */
typedef enum spanprof_link_scope {
    SPANPROF_LINK_SCOPE_DEFAULT = 0, /* innermost in files, root on the network */
    SPANPROF_LINK_SCOPE_INNERMOST = 1,
    SPANPROF_LINK_SCOPE_ROOT = 2,
    SPANPROF_LINK_SCOPE_BOTH = 3,
    SPANPROF_LINK_SCOPE_NONE = 4,
} spanprof_link_scope;

/* What is sampled: SPANPROF_PROFILES. */
typedef enum spanprof_profile_kind {
    SPANPROF_PROFILE_CPU = 0,
    SPANPROF_PROFILE_WALL = 1,
    SPANPROF_PROFILE_ALLOC = 2,
    SPANPROF_PROFILE_HEAP = 3,
    SPANPROF_PROFILE_LOCK = 4,
} spanprof_profile_kind;

/* Receives the SDK's messages: LEVEL, a line without newline (borrowed for the call), and the
 * user's pointer. It may be called by any thread of the SDK and by threads inside start, flush and
 * stop. It is never called from a signal handler, nor by a thread that does the application's work:
 * the messages of such a thread wait for one of these threads. It must not call spanprof. While it
 * does not return, lines wait, and are dropped and counted when there are too many; start, flush
 * and stop wait for it, 1 second at most. */
typedef void (*spanprof_log_function)(spanprof_log_level level, const char *line, void *user);

/* Zero means default, for every field: the environment variable named next to it, else the value in
 * parentheses. A set field replaces the environment's value; resource_attributes do so for each
 * key, and a service.name in them also replaces OTEL_SERVICE_NAME. Strings are copied by
 * spanprof_start. Fields are only ever appended. */
typedef struct spanprof_options {
    uint32_t struct_size;            /* sizeof(spanprof_options) */
    uint32_t cpu_hz;                 /* SPANPROF_CPU_HZ (99), 1 to 10,000 */
    const char *service_name;        /* OTEL_SERVICE_NAME (unknown_service:PROGRAM) */
    const char *resource_attributes; /* OTEL_RESOURCE_ATTRIBUTES, "key=value,…" percent-encoded */
    const char *exporter;            /* SPANPROF_EXPORTER (otlp), list of otlp, file, none */
    const char *file;                /* SPANPROF_FILE (spanprof), path prefix; an earlier run's
                                      * files are renamed to PREFIX.1.…, at most 3 runs are kept */
    const char *file_format;         /* SPANPROF_FILE_FORMAT (jsonl), or proto */
    const char *endpoint;    /* OTEL_EXPORTER_OTLP_ENDPOINT (http://localhost:4318), base URL */
    const char *headers;     /* OTEL_EXPORTER_OTLP_HEADERS, "key=value,key=value" */
    const char *compression; /* OTEL_EXPORTER_OTLP_COMPRESSION (gzip), or none */
    uint32_t timeout_ms;     /* OTEL_EXPORTER_OTLP_TIMEOUT (10,000) of one export */
    uint32_t window_ms;      /* SPANPROF_WINDOW_MS (10,000), 100 to 10,000 */
    const char *profiles;    /* SPANPROF_PROFILES (cpu) */
    const char *signal;      /* SPANPROF_SIGNAL (SIGPROF), a name or a number */
    uint32_t max_depth;      /* SPANPROF_MAX_DEPTH (128) frames a stack, 2 to 512 */
    uint32_t max_samples;    /* SPANPROF_MAX_SAMPLES (10,000) distinct samples a window */
    spanprof_link_scope link_scope; /* SPANPROF_LINK_SCOPE */
    spanprof_log_level log_level;   /* SPANPROF_LOG, else OTEL_LOG_LEVEL (warn) */
    spanprof_log_function log;      /* (standard error) */
    void *log_user;
    const char *engine;     /* SPANPROF_ENGINE (auto: timer up to CONFIG_HZ), perf, timer */
    const char *cpu_budget; /* SPANPROF_CPU_BUDGET (none), share of the application's CPU time that
                             * ticks may take: "0.1%" or "0.001" */
    const char
        *demangle; /* SPANPROF_DEMANGLE (short), folded, full, none: how functions are named */
    const char *debuginfod;   /* SPANPROF_DEBUGINFOD (0), 1: ask the servers of DEBUGINFOD_URLS */
    uint32_t wall_hz;         /* SPANPROF_WALL_HZ (20), 1 to 1,000 visits a second of each thread */
    const char *wall_threads; /* SPANPROF_WALL_THREADS (spans): those with a sampled span, or all */
    const char
        *propagators; /* OTEL_PROPAGATORS (tracecontext,baggage), or none; see propagation.h */
    /* The limits of a span: see tracer.h. If two variables are named, the first one has precedence;
     * in the variables 0 means none at all. */
    uint32_t attribute_count_limit; /* OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT, OTEL_ATTRIBUTE_COUNT_LIMIT
                                       (128) */
    uint32_t
        attribute_value_length_limit;     /* OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT,
                                           * OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT (none), characters */
    uint32_t event_count_limit;           /* OTEL_SPAN_EVENT_COUNT_LIMIT (128) */
    uint32_t link_count_limit;            /* OTEL_SPAN_LINK_COUNT_LIMIT (128) */
    uint32_t event_attribute_count_limit; /* OTEL_EVENT_ATTRIBUTE_COUNT_LIMIT (128) */
    uint32_t link_attribute_count_limit;  /* OTEL_LINK_ATTRIBUTE_COUNT_LIMIT (128) */
    const char
        *span_processor; /* SPANPROF_SPAN_PROCESSOR (batch), simple: a span is handed to the
                          * exporter's thread and sent when it ends, not when OTEL_BSP_… say */
    /* Which traces are sampled: sampler.h. */
    const char *traces_sampler;             /* OTEL_TRACES_SAMPLER (parentbased_always_on) */
    const char *traces_sampler_arg;         /* OTEL_TRACES_SAMPLER_ARG (1), the ratio, 0 to 1 */
    const struct spanprof_sampler *sampler; /* replaces both */
    /* SPANPROF_CPU_TIME (none): root, all. These spans have spanprof.cpu_time_ns, the exact CPU
     * time of them and their descendants on all threads, for two reads of the thread's CPU clock.
     */
    const char *cpu_time;
    const char *switches; /* SPANPROF_SWITCHES (off), a path: the time recorder, each switch of a
                             thread to a file */
    const char *sample_attributes; /* SPANPROF_SAMPLE_ATTRIBUTES (none), a list of keys, or all:
                                      which attributes of contexts samples have */
    const char *protocol; /* OTEL_EXPORTER_OTLP_PROTOCOL (http/protobuf), grpc, http/json */
    /* SPANPROF_SPOOL (off), a directory: requests that cannot be sent are kept there, also when the
     * process ends, and are sent later, oldest first. */
    const char *spool;
    /* (2 MiB) 4 KiB to 4 MiB: a request of profiles to the network is shorter than this before
     * compression. A longer one is divided. */
    uint32_t request_maximum_bytes;
    const char *timestamps; /* SPANPROF_TIMESTAMPS (0), 1: samples of CPU time have the time of each
                               event */
    /* SPANPROF_FILE_MAX_BYTES (no limit), 4,096 to 2 GiB: a file that has no room for the next
     * request is kept as PREFIX.traces.0001.jsonl, PREFIX.traces.0002.jsonl and so on, and a new
     * one begins. */
    uint32_t file_maximum_bytes;
    /* SPANPROF_FILE_MAX_PARTS (no limit), 2 to 9,999: the number of files of each signal that are
     * kept; then the oldest is removed. */
    uint32_t file_maximum_parts;
    /* SPANPROF_ALLOC_BYTES (524,288), 1 to 2^30: of this many allocated bytes, one is sampled, on
     * average. */
    uint32_t alloc_bytes;
    /* SPANPROF_HEAP_SAMPLES (65,536), 1,000 to 10,000,000: the number of sampled blocks that may be
     * live at once. The value of the first start is used by the process. */
    uint32_t heap_samples;
    /* SPANPROF_LOCK_NS (100,000), 1 to 2^30: of this many nanoseconds that threads wait for locks,
     * one is sampled, on average. */
    uint32_t lock_ns;
    const char *alloc_mmap; /* SPANPROF_ALLOC_MMAP (0), 1: mappings of the program without a file
                               count as allocated */
} spanprof_options;

#define SPANPROF_OPTIONS_INIT SPANPROF_INIT(spanprof_options)

/* Counters since spanprof_start (misuse: since the process began). Set struct_size first. */
typedef struct spanprof_stats {
    uint32_t struct_size; /* sizeof(spanprof_stats) */
    uint32_t running;     /* 1 between start and stop */
    uint32_t forked; /* 1 in the child of a process in which the SDK ran, until it starts its own */
    uint32_t threads; /* threads that tick now */
    uint32_t cpu_hz;  /* rate of the CPU engine now */
    uint32_t paused;  /* 1 between spanprof_pause and spanprof_resume */
    char engine[16];  /* engine of the CPU ticks: "perf", "timer", or "" */

    /* Ticks and samples. A sample may weigh several periods. ticks = samples_* +
     * dropped_samples_ring_full, _memory and _small_stack once flushed. */
    uint64_t ticks;             /* signals that were handled */
    uint64_t weights;           /* periods that they stood for */
    uint64_t samples_linked;    /* joined with a sampled local span */
    uint64_t samples_none;      /* no span, or an unsampled or remote one */
    uint64_t samples_unknown;   /* between two contexts, or the interval was lost */
    uint64_t samples_boundary;  /* foreign samples too near to an edge */
    uint64_t stacks_truncated;  /* deeper than max_depth: frames in the middle are missing */
    uint64_t stacks_incomplete; /* ended early: no unwind table, or unreadable memory */
    uint64_t unattributed_ns;   /* CPU time of the threads that no sample stands for */

    /* Drops by reason. */
    uint64_t dropped_samples_ring_full;
    uint64_t dropped_samples_memory;
    uint64_t dropped_samples_small_stack; /* a signal stack too small for a tick */
    uint64_t dropped_samples_at_stop;     /* joined, but not handed over within the time */
    uint64_t dropped_spans_queue_full;
    uint64_t dropped_spans_memory;
    uint64_t dropped_exports_queue_full;  /* requests */
    uint64_t dropped_exports_refused;     /* requests that the receiver or the disk refused */
    uint64_t dropped_exports_unreachable; /* requests given up after retries, or at stop */
    uint64_t failed_threads;              /* threads that could not be made to tick */

    /* Spans and exports. */
    uint64_t spans_started; /* sampled ones */
    uint64_t spans_ended;
    uint64_t spans_unsampled; /* also those that are only recorded */
    uint64_t exported_spans;
    uint64_t exported_samples;
    uint64_t exported_requests;
    uint64_t exported_bytes; /* as sent, after compression */

    /* Misuse of the API, each a no-op. */
    uint64_t misuse_dead_span;     /* a call with a zero or ended span */
    uint64_t misuse_dead_scope;    /* a detach of a zero or ended scope */
    uint64_t misuse_foreign_scope; /* a detach on another thread than the attach */
    uint64_t failed_attaches;      /* no memory for a thread's state, scopes or fibers */

    /* The engine. */
    char engine_reason[192];   /* why this engine: one sentence */
    uint64_t fallback_threads; /* threads that tick by timer now though the engine is perf */
    uint64_t tick_cost_ns;     /* of a tick, as last measured; 0 without a budget */

    /* Wall time. A visit reads the state of a thread that waits; visits = visits_* + dropped_visits
     * once flushed. */
    uint32_t wall_hz;        /* rate of the visits now */
    uint32_t wall_running;   /* 1 while threads are visited */
    uint64_t visits;         /* of threads that waited */
    uint64_t visits_unmoved; /* of them: the thread had not run since its last visit */
    uint64_t visits_linked;  /* as samples_linked */
    uint64_t visits_none;
    uint64_t visits_unknown;
    uint64_t visits_discarded; /* discarded attempts, because the thread had run meanwhile */
    uint64_t dropped_visits;   /* no room */
    uint64_t failed_visits;    /* the thread could not be visited */
    uint64_t wall_cpu_ns;      /* CPU time of the sampler thread's rounds */
    char wall_reason[192]; /* why threads are not visited although wall time was requested; else ""
                            */

    /* Tracestates and baggage of contexts, since the process began. */
    uint64_t
        evicted_carriers; /* evicted to make room: contexts that still name them carry nothing */
    uint64_t dropped_carriers; /* no memory, or no room because live spans had it all */

    /* Spans that another tracer has reported (processor.h). */
    uint64_t foreign_spans_started;
    uint64_t foreign_spans_ended;
    uint64_t evicted_foreign_spans; /* removed while they lived, or not stored because memory was
                                       short */
    /* Exact CPU time (SPANPROF_CPU_TIME). First, the CPU time under sampled contexts of this
     * process whose local root is not alive. It is counted here also while a descendant of the root
     * is alive; with "all" the descendant has it in its own attribute, too. Second, spans that have
     * no such attribute, because memory was short. */
    uint64_t cpu_time_unattributed_ns;
    uint64_t dropped_cpu_times;
    /* The time recorder (SPANPROF_SWITCHES), of this run or the last: switches that are in the
     * file, and switches that found no room. */
    uint64_t switches_recorded;
    uint64_t dropped_switches;
    /* Attributes of samples (spanprof_context_set_attribute), since the process began: values that
     * were too long, and attributes for which there was no room. Profiles report the sets that
     * samples lost because a window had too many (spanprof.dropped.attributes). */
    uint64_t cut_attributes;
    uint64_t dropped_attributes;
    /* Of fiber.h: a fiber that is dead, run by two threads at once, or whose thread ended in it. */
    uint64_t misuse_fiber;
    /* How often the ring of a thread, or of the wall sampler, was found corrupt: the samples in it
     * were skipped, and are in no other count. */
    uint64_t corrupt_rings;
    /* The spool: requests that wait there (after the stop: were left there), requests that were
     * there at the start, and requests whose file was missing or incomplete. */
    uint64_t spooled_exports;
    uint64_t taken_over_exports;
    uint64_t dropped_exports_spool;
    /* Sampled calls: allocations, waits for locks, and the application's own values. Sampled blocks
     * that were still allocated at the end of the last window. Calls that found no room in rings or
     * memory, and blocks that found none in the table of live blocks. */
    uint64_t calls_linked; /* as samples_linked */
    uint64_t calls_none;
    uint64_t calls_unknown;
    uint64_t live_blocks;
    uint64_t dropped_calls;
    uint64_t dropped_live_blocks;
    /* A scope was not detached: a span was started under the active context of its thread, which
     * had ended that parent; or a thread continued for a second under a span that it had ended. A
     * warning names the first one. Since the process began. */
    uint64_t misuse_ended_parent;
} spanprof_stats;

#define SPANPROF_STATS_INIT SPANPROF_INIT(spanprof_stats)

/* Start spans, sampling and sending. OPTIONS NULL takes everything from the environment. ERROR may
 * be NULL. A value that cannot be used is not an error: a warning names it and its replacement.
 * Returns ERROR_ALREADY_STARTED while it runs, ERROR_DISABLED when OTEL_SDK_DISABLED=true (all
 * other calls are then no-ops), ERROR_INVALID_ARGUMENT for a struct_size of 0 or non-zero fields
 * that this version does not know, ERROR_SYSTEM when the exporter cannot be set up (libcurl is not
 * installed) or the signal's handler cannot be installed, ERROR_NO_MEMORY, ERROR_IN_CALLBACK
 * (processor.h). Return from main and exit() flush without a stop, for at most 5 seconds. Since
 * 0.1. */
SPANPROF_API spanprof_status spanprof_start(const spanprof_options *options, spanprof_error *error);

/* Prepare the tables by which stacks of the program and its libraries are unwound; they take most
 * of the time of a start. It is meant for a process that does not run the SDK itself, but forks
 * others that do, such as a server's master: they inherit the tables, and share the memory. It
 * starts nothing. The next start, here or in a child, uses the tables, and adds libraries that have
 * been loaded since. Another call adds libraries that have been loaded since. Returns
 * ERROR_ALREADY_STARTED while the SDK runs, ERROR_NO_MEMORY. No other thread may fork during the
 * call. Since 0.1. */
SPANPROF_API spanprof_status spanprof_prepare(void);

/* Join, build and hand over all samples and spans from before the call, and wait at most TIMEOUT_NS
 * until they are delivered or dropped. Processors (processor.h) are flushed first. With a spool,
 * requests whose attempts are over are safe in its files and not waited for, nor are those whose
 * next attempt is due later; they are no error. 0 does not wait, UINT64_MAX waits for ever. Returns
 * ERROR_TIMEOUT when time ran out (also while another thread starts, flushes or stops), without a
 * spool also as soon as the next attempt is known to be due later, ERROR_EXPORT when something was
 * dropped on the way since the last flush, what a processor returned, ERROR_NOT_STARTED,
 * ERROR_IN_CALLBACK. Since 0.1. */
SPANPROF_API spanprof_status spanprof_flush(uint64_t timeout_ns);

/* Shut processors down, flush as spanprof_flush does, then end all threads and timers, within
 * TIMEOUT_NS. Requests that could not be delivered by then are dropped and counted, or stay in the
 * spool, where the next start of the same service finds them (spooled_exports). With a spool there
 * is one more try for each receiver, and no wait for one that does not answer. A thread that writes
 * to a disk that does not answer is abandoned 1 second later. The host's signal handler is
 * restored. If there was none, the SDK's handler stays installed and does nothing, because a
 * pending tick would end the process otherwise. Start may follow. Returns as spanprof_flush does.
 * Since 0.1. */
SPANPROF_API spanprof_status spanprof_stop(uint64_t timeout_ns);

/* No ticks until spanprof_resume. When the call returns, no tick is under way. Allocations and
 * waits for locks are not sampled either. Spans, spanprof_record and sending continue. CPU time
 * that passes meanwhile is in no sample and not in unattributed_ns. A second call is not an error.
 * Returns ERROR_NOT_STARTED. Fork: the child is not paused, because it does not sample. Since
 * 0.1. */
SPANPROF_API spanprof_status spanprof_pause(void);
SPANPROF_API spanprof_status spanprof_resume(void);

/* Sample KIND at HZ, 1 to 10,000 (WALL: to 1,000). The window ends soon after the call and the next
 * one has the new rate, because a profile has one period. A budget (SPANPROF_CPU_BUDGET) may keep
 * the rate lower. Returns ERROR_INVALID_ARGUMENT, ERROR_UNSUPPORTED for a kind that is not sampled,
 * ERROR_NOT_STARTED. Since 0.1. */
SPANPROF_API spanprof_status spanprof_set_rate(spanprof_profile_kind kind, uint32_t hz);

/* From now on the calling thread is not sampled, in this run and in later ones. Earlier samples of
 * it stay. It is meant for a thread that observes the program and is not part of it: a watchdog, or
 * the thread of an adapter. It works at any time. Since 0.1. */
SPANPROF_API void spanprof_thread_exclude(void);

/* Copy the counters into OUT, up to its struct_size. Since 0.1. */
SPANPROF_API void spanprof_stats_get(spanprof_stats *out);

SPANPROF_END_DECLS

#endif
