/* SPDX-License-Identifier: Apache-2.0 */
/* Makes requests of spans: takes a batch from the tracer's queue, encodes it once for each format
 * that a destination needs, and passes it to the destinations. A request stays below 4 MiB, which
 * is what receivers take by default; a larger batch is halved until it fits. */
#include <stdlib.h>

#include "core/log.h"
#include "export/export_internal.h"
#include "trace/provider.h"

enum { REQUEST_BYTES = 4 * 1024 * 1024 - 65536, REQUEST_MAX_BYTES = 64 * 1024 * 1024 };

enum { COLLECT_MS = 20 };

typedef struct encodings {
    sp_buffer bodies[2]; /* by sp_otlp_format; maximum 0: not wanted */
} encodings;

static bool to_http(const sp_exporter *exporter)
{
    return exporter->config.http[SP_TRACES].enabled;
}

static bool to_file(const sp_exporter *exporter)
{
    return exporter->config.file_enabled && exporter->config.traces_enabled;
}

/* False when SPANS do not fit into a request, or memory is short. */
static bool encode(sp_exporter *exporter, encodings *out, sp_span_data *const *spans, size_t count)
{
    bool wanted[2] = {false};
    wanted[sp_http_target_format(&exporter->config.http[SP_TRACES])] |= to_http(exporter);
    wanted[exporter->config.file_format] |= to_file(exporter);
    for (int format = 0; format < 2; format++) {
        out->bodies[format] =
            (sp_buffer)SP_BUFFER_INIT(count > 1 ? REQUEST_BYTES : REQUEST_MAX_BYTES);
        if (wanted[format] && !sp_otlp_encode_traces(&out->bodies[format], (sp_otlp_format)format,
                                                     exporter->resource, spans, count))
            return false;
    }
    return true;
}

static void deinit(encodings *done)
{
    sp_buffer_deinit(&done->bodies[0]);
    sp_buffer_deinit(&done->bodies[1]);
}

/* Queue BODY (taken) with ITEMS spans for the network. */
static void queue_for_http(sp_exporter *exporter, sp_buffer *body, uint64_t items)
{
    sp_sender *sender = &exporter->senders[SP_TRACES];
    sp_request *request = NULL;
    size_t bytes = body->length;
    if (sp_allowance_take(&sender->allowance, bytes)) {
        request = calloc(1, sizeof *request);
        if (!request)
            sp_allowance_give(&sender->allowance, bytes);
    }
    if (!request) {
        sp_count(&exporter->counters.dropped_queue_full, 1);
        sp_buffer_deinit(body);
        return;
    }
    *request = (sp_request){
        .body = *body, .charged_bytes = bytes, .items = items, .sequence = ++exporter->sequence};
    *body = (sp_buffer){0};
    sp_sender_add(sender, request);
}

void sp_batch_to_file(sp_exporter *exporter, sp_telemetry_signal signal, const sp_buffer *body,
                      uint64_t items)
{
    sp_file_write(&exporter->files[signal], body, items, ++exporter->sequence);
}

static void drop_unencoded(sp_exporter *exporter)
{
    sp_log_warn("export",
                "a span could not be encoded, for want of memory or for being larger than %d "
                "bytes: dropped",
                REQUEST_MAX_BYTES);
    sp_count(&exporter->counters.dropped_queue_full,
             (uint64_t)to_http(exporter) + to_file(exporter));
}

static void export_spans(sp_exporter *exporter, sp_span_data *const *spans, size_t count)
{
    encodings done = {0};
    if (encode(exporter, &done, spans, count)) {
        if (to_file(exporter)) /* first, because it only borrows the body */
            sp_batch_to_file(exporter, SP_TRACES, &done.bodies[exporter->config.file_format],
                             count);
        if (to_http(exporter))
            queue_for_http(exporter,
                           &done.bodies[sp_http_target_format(&exporter->config.http[SP_TRACES])],
                           count);
        deinit(&done);
        return;
    }
    deinit(&done);
    if (count == 1) {
        drop_unencoded(exporter);
        return;
    }
    export_spans(exporter, spans, count / 2);
    export_spans(exporter, spans + count / 2, count - count / 2);
}

/* An abandoned exporter takes none, because the next one may take at the same time. */
static size_t take(sp_exporter *exporter)
{
    if (!sp_worker_enter(&exporter->worker))
        return 0;
    size_t count = sp_tracer_take(exporter->batch, exporter->config.batch_spans);
    sp_worker_leave(&exporter->worker);
    return count;
}

static size_t take_and_export(sp_exporter *exporter)
{
    size_t count = take(exporter);
    if (count && (to_http(exporter) || to_file(exporter)))
        export_spans(exporter, exporter->batch, count);
    for (size_t i = 0; i < count; i++)
        sp_span_data_release(exporter->batch[i]);
    return count;
}

/* How many spans make a request. With spans_at_once each span is a request of its own; but while
 * the receiver has not taken one of them, the next ones are collected. */
static size_t worth_a_request(const sp_exporter *exporter)
{
    bool at_once = exporter->config.spans_at_once && !exporter->senders[SP_TRACES].first;
    return at_once ? 1 : exporter->config.batch_spans;
}

bool sp_batch_is_ready(const sp_exporter *exporter)
{
    return sp_tracer_queued() >= worth_a_request(exporter);
}

/* When to check again if nothing wakes the thread. Of spans that end one by one only the first
 * wakes it, so while they are collected it checks again soon. */
static uint64_t next_check_ns(const sp_exporter *exporter, uint64_t now_ns)
{
    if (exporter->config.spans_at_once && sp_tracer_queued() > 0)
        return now_ns + COLLECT_MS * SP_NS_PER_MS;
    return exporter->batch_due_ns;
}

uint64_t sp_batch_step(sp_exporter *exporter, uint64_t now_ns)
{
    bool late = now_ns >= exporter->batch_due_ns;
    if (!late && exporter->flush_spans == 0 && !sp_batch_is_ready(exporter))
        return next_check_ns(exporter, now_ns);
    size_t count = take_and_export(exporter);
    exporter->flush_spans =
        count ? exporter->flush_spans - sp_min_u64(count, exporter->flush_spans) : 0;
    exporter->batch_due_ns = now_ns + exporter->config.batch_delay_ms * SP_NS_PER_MS;
    bool again = exporter->flush_spans || sp_batch_is_ready(exporter);
    return again ? now_ns : next_check_ns(exporter, now_ns);
}

void sp_batch_abandon(sp_exporter *exporter)
{
    uint64_t left = 0;
    for (size_t count; (count = take(exporter)); left += count)
        for (size_t i = 0; i < count; i++)
            sp_span_data_release(exporter->batch[i]);
    if (left)
        sp_count(&exporter->counters.dropped_unreachable,
                 (uint64_t)to_http(exporter) + to_file(exporter));
}
