/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "core/counted.h"
#include "core/hex.h"
#include "tool/draw/flame.h"
#include "tool/model/advice.h"
#include "tool/model/waited.h"

static const char *status_text(const Sp__Trace__Span *span)
{
    if (!span->status)
        return "";
    switch (span->status->code) {
    case SP__TRACE__STATUS__STATUS_CODE__STATUS_CODE_OK:
        return ", ok";
    case SP__TRACE__STATUS__STATUS_CODE__STATUS_CODE_ERROR:
        return ", error";
    default:
        return "";
    }
}

static void fill_span(sp_flame_legend *legend, const sp_selection *selection, bool self)
{
    const sp_model_span *span = &selection->model->spans[sp_selection_only_span(selection)];
    char span_id[17], trace_id[33], duration[SP_DURATION_LENGTH];
    sp_hex_encode(span_id, span->id.span_id, 8);
    sp_hex_encode(trace_id, span->id.trace_id, 16);
    sp_format_duration(duration, span->end_ns - span->start_ns);
    snprintf(legend->subject, sizeof legend->subject, "%.300s%s", span->name,
             self ? " (own samples only)" : "");
    int used = snprintf(legend->details, sizeof legend->details, "span %s, trace %s, %.100s%s%s%s",
                        span_id, trace_id, span->service, *span->service ? ", " : "", duration,
                        status_text(span->message));
    if (selection->span_count > 1 && used > 0 && (size_t)used < sizeof legend->details)
        snprintf(legend->details + used, sizeof legend->details - (size_t)used, ", with %s",
                 SP_COUNTED(selection->span_count - 1, "descendant"));
}

static void fill_several(sp_flame_legend *legend, const sp_selection *selection)
{
    uint32_t count = selection->match_count, below = selection->span_count - count;
    char name[320] = "", least[SP_DURATION_LENGTH];
    if (selection->name)
        snprintf(name, sizeof name, "%.300s: ", selection->name);
    sp_format_duration(least, selection->slow.least_ns);
    if (selection->slow.all)
        snprintf(legend->subject, sizeof legend->subject, "%sthe slowest %u of %s, from %s", name,
                 count, SP_COUNTED(selection->slow.all, "span"), least);
    else if (selection->by_where)
        snprintf(legend->subject, sizeof legend->subject, "%s%s%s", name, SP_COUNTED(count, "span"),
                 selection->name ? ""
                 : count == 1    ? " that matches"
                                 : " that match");
    else
        snprintf(legend->subject, sizeof legend->subject, "%s",
                 SP_COUNTED(selection->asked.span_count, "span"));
    if (below)
        snprintf(legend->details, sizeof legend->details, "with %s",
                 SP_COUNTED(below, "descendant"));
}

static void fill_trace(sp_flame_legend *legend, const sp_selection *selection)
{
    char id[33];
    sp_hex_encode(id, selection->asked.traces[0], 16);
    if (selection->asked.trace_count == 1)
        snprintf(legend->subject, sizeof legend->subject, "trace %s", id);
    else
        snprintf(legend->subject, sizeof legend->subject, "%s",
                 SP_COUNTED(selection->asked.trace_count, "trace"));
}

static void fill_subject(sp_flame_legend *legend, const sp_selection *selection, bool self)
{
    char id[33];
    if (sp_selection_only_span(selection) != SP_MODEL_NONE) {
        fill_span(legend, selection, self);
    } else if (selection->asked.span_count == 1) {
        sp_hex_encode(id, selection->asked.spans[0].id, 8);
        snprintf(legend->subject, sizeof legend->subject, "span %s", id);
        snprintf(legend->details, sizeof legend->details, "the files do not have the span itself");
    } else if (selection->by_where || selection->asked.span_count) {
        fill_several(legend, selection);
    } else if (selection->asked.trace_count) {
        fill_trace(legend, selection);
    } else {
        snprintf(legend->subject, sizeof legend->subject, "all samples");
    }
}

static void fill_confidence(sp_flame_legend *legend, const sp_selection *selection, bool has_button)
{
    char advice[SP_ADVICE_LENGTH];
    if (selection->count >= SP_SHARES_EVENTS_LEAST)
        return;
    sp_advice_more(advice, selection, has_button);
    snprintf(legend->confidence, sizeof legend->confidence,
             "only %s: too few samples to trust shares; %s", SP_COUNTED(selection->count, "sample"),
             advice);
}

sp_queued sp_flame_queued(const sp_selection *selection)
{
    const sp_model *model = selection->model;
    uint32_t span = sp_selection_only_span(selection);
    bool is_time = model->types[selection->type].is_wall ||
                   selection->type == sp_model_cpu_type(model, true) ||
                   selection->type == sp_model_cpu_type(model, false);
    if (is_time && selection->by_where)
        return selection->queued;
    return is_time && span != SP_MODEL_NONE ? sp_queued_of(&model->spans[span]) : (sp_queued){0};
}

static void write_label(char *out, size_t size, const sp_selection *selection)
{
    const sp_model_type *type = &selection->model->types[selection->type];
    char since[SP_SINCE_LENGTH];
    if (selection->grown) {
        sp_since_format(since, selection->model);
        snprintf(out, size, "more than %s before the last snapshot", since);
    } else {
        snprintf(out, size, "%.60s",
                 selection->outlived  ? "held past its request"
                 : selection->off_cpu ? "off-CPU time"
                 : type->is_wall      ? "wall time"
                                      : type->name);
    }
}

void sp_flame_legend_fill(sp_flame_legend *legend, const sp_selection *selection,
                          const sp_flame_options *options)
{
    const sp_model_type *type = &selection->model->types[selection->type];
    char value[SP_VALUE_LENGTH], error[SP_VALUE_LENGTH], label[128];
    uint64_t sum_error = sp_selection_error(selection);
    sp_queued queued = sp_flame_queued(selection);
    memset(legend, 0, sizeof *legend);
    fill_subject(legend, selection, options->select.self);
    write_label(label, sizeof label, selection);
    sp_format_value(value, selection->value, type->unit);
    sp_format_value(error, sum_error, type->unit);
    snprintf(legend->amount, sizeof legend->amount, "%s: %s%s%s in %s", label, value,
             sum_error ? " ± " : "", sum_error ? error : "",
             SP_COUNTED(selection->count, "sample"));
    if (type->has_waiting_samples)
        sp_where_format(legend->where, selection->where_ns);
    else if (type->is_wait)
        sp_waited_format(legend->where, selection);
    else if (selection->count < SP_SHARES_EVENTS_LEAST ||
             !sp_advice_waited(legend->where, selection, options->has_button))
        *legend->where = 0; /* of few samples the confidence says it */
    if (queued.queued_ns)
        sp_queued_format(legend->queued, &queued);
    fill_confidence(legend, selection, options->has_button);
}

sp_flame_graph sp_flame_graph_of(const sp_flame_tree *tree, const sp_flame_options *options)
{
    sp_flame_graph graph = {.tree = tree};
    sp_flame_legend_fill(&graph.legend, tree->selection, options);
    return graph;
}
