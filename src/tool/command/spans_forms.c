/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/compiler.h"
#include "core/counted.h"
#include "core/hex.h"
#include "tool/command/spans.h"
#include "tool/model/time_without_samples.h"
#include "tool/text/escape.h"

/* A name always has at least MIN_NAME_COLUMNS. Columns that may be left out are left out if the
 * name would have less than NAME_COLUMNS. */
enum { MIN_NAME_COLUMNS = 12, NAME_COLUMNS = 20 };

const char *sp_span_status_text(const sp_model_span *span)
{
    const Sp__Trace__Status *status = span->message->status;
    switch (status ? (int)status->code : 0) {
    case SP__TRACE__STATUS__STATUS_CODE__STATUS_CODE_OK:
        return "ok";
    case SP__TRACE__STATUS__STATUS_CODE__STATUS_CODE_ERROR:
        return "error";
    default:
        return "unset";
    }
}

static const char *kind_text(const sp_model_span *span)
{
    static const char *const kinds[] = {"unspecified", "internal", "server",
                                        "client",      "producer", "consumer"};
    size_t kind = (size_t)span->message->kind;
    return kind < SP_ARRAY_LENGTH(kinds) ? kinds[kind] : "unspecified";
}

const sp_model_type *sp_measured_type(const sp_model *model)
{
    static const sp_model_type none = {.name = "cpu", .unit = "nanoseconds", .period_unit = ""};
    uint32_t type = sp_model_time_type(model);
    return type == SP_MODEL_NONE ? &none : &model->types[type];
}

/* What one sample of TYPE stands for, in the unit of the type: time or bytes. 0: unknown. */
static uint64_t bound_of(const sp_model_type *type)
{
    bool is_bytes = strcmp(type->unit, "bytes") == 0 && strcmp(type->period_unit, "bytes") == 0;
    return is_bytes && type->period > 1 ? (uint64_t)type->period : sp_model_period_ns(type);
}

void sp_spans_format_value(char out[SP_VALUE_LENGTH], const sp_model_type *type, uint64_t value,
                           uint64_t count)
{
    uint64_t bound = bound_of(type);
    if (type->samples == 0 || (count == 0 && type->is_unlinked)) {
        strcpy(out, "-");
    } else if (count == 0 && bound) {
        char text[SP_VALUE_LENGTH];
        sp_format_value(text, bound, type->unit);
        snprintf(out, SP_VALUE_LENGTH, "<%.*s", SP_VALUE_LENGTH - 2, text);
    } else {
        sp_format_value(out, value, type->unit);
    }
}

static void format(char out[SP_VALUE_LENGTH], const sp_model_type *type, uint64_t value,
                   uint64_t count, bool is_hidden)
{
    if (is_hidden)
        strcpy(out, "-");
    else
        sp_spans_format_value(out, type, value, count);
}

void sp_spans_format_total(char out[SP_VALUE_LENGTH], const sp_model *model,
                           const sp_model_span *span)
{
    const sp_model_type *type = sp_measured_type(model);
    format(out, type, span->total_value, span->total_count, sp_hides_total(type, span));
}

void sp_spans_format_own(char out[SP_VALUE_LENGTH], const sp_model *model,
                         const sp_model_span *span)
{
    const sp_model_type *type = sp_measured_type(model);
    format(out, type, span->own_value, span->own_count, sp_hides_own(type, span));
}

const char *sp_spans_format_count(char out[SP_SPANS_COUNT_LENGTH], uint64_t count, bool is_hidden)
{
    snprintf(out, SP_SPANS_COUNT_LENGTH, "%llu", (unsigned long long)count);
    return is_hidden ? "-" : out;
}

static bool scope_hides_any(const sp_model *model, const sp_model_type *type, const uint32_t *list,
                            size_t count)
{
    for (size_t i = 0; type && i < count; i++)
        if (sp_scope_hides_own(type, &model->spans[list[i]]))
            return true;
    return false;
}

static bool has_unsampled(const sp_model *model, const uint32_t *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (model->spans[list[i]].is_own_unsampled)
            return true;
    return false;
}

void sp_spans_add_scope_key(sp_buffer *out)
{
    sp_buffer_add_string(out, "-: the files' link scope cannot answer: samples are linked to local "
                              "roots only, so the times of the spans below them are not known; "
                              "record with SPANPROF_LINK_SCOPE=innermost\n");
}

static void add_unsampled_key(sp_buffer *out)
{
    sp_buffer_add_string(out, "-: not known: the span lies outside the time in which `run "
                              "--attach` sampled its process\n");
}

void sp_spans_hidden_key(sp_buffer *out, const sp_model *model, const uint32_t *list, size_t count)
{
    const sp_model_type *type = sp_measured_type(model);
    const sp_model_type *wall = sp_wall_columns_find(model).type;
    const sp_model_type *alloc = sp_spans_alloc_column(model).type;
    if (scope_hides_any(model, type, list, count) || scope_hides_any(model, wall, list, count) ||
        scope_hides_any(model, alloc, list, count))
        sp_spans_add_scope_key(out);
    if (has_unsampled(model, list, count))
        add_unsampled_key(out);
}

static void add_unseen_key(sp_buffer *out, const sp_model_type *type)
{
    char bound[SP_VALUE_LENGTH];
    sp_spans_format_value(bound, type, 0, 0);
    if (*bound != '<' || !out->data || !memmem(out->data, out->length, bound, strlen(bound)))
        return;
    sp_buffer_printf(out, "%s: no sample, so probably less than the %s that one stands for\n",
                     bound, strcmp(type->unit, "bytes") == 0 ? "bytes" : "time");
}

/* Add a line if much CPU time is in no sample: then a span without samples may have used more. */
static void add_unattributed_key(sp_buffer *out, const sp_model *model)
{
    uint32_t cpu = sp_model_cpu_type(model, true);
    char unattributed[SP_DURATION_LENGTH];
    if (cpu == SP_MODEL_NONE || sp_measured_type(model) != &model->types[cpu])
        return;
    uint64_t ns = sp_model_unattributed_ns(model, cpu, NULL);
    sp_format_duration(unattributed, ns);
    if (ns)
        sp_buffer_printf(out,
                         "%s of CPU time is in no sample (unattributed), so spans may have used "
                         "more: `spanprof stats` lists the threads\n",
                         unattributed);
}

void sp_spans_unseen_key(sp_buffer *out, const sp_model *model)
{
    const sp_model_type *alloc = sp_spans_alloc_column(model).type;
    add_unseen_key(out, sp_measured_type(model));
    add_unattributed_key(out, model);
    if (alloc && alloc != sp_measured_type(model))
        add_unseen_key(out, alloc);
}

static const char *ellipsis(const sp_terminal *terminal)
{
    return terminal->utf8 ? "…" : "~";
}

void sp_spans_add_cell(sp_buffer *out, const char *text, unsigned columns, bool fill,
                       const sp_terminal *terminal)
{
    sp_buffer escaped = SP_BUFFER_INIT(1 << 20);
    size_t start = out->length;
    sp_escape_terminal(&escaped, text);
    sp_text_fit(out, escaped.data ? (const char *)escaped.data : "", columns, ellipsis(terminal));
    unsigned used = out->data ? sp_text_columns((const char *)out->data + start) : columns;
    for (; fill && used < columns; used++)
        sp_buffer_add_char(out, ' ');
    sp_buffer_deinit(&escaped);
}

unsigned sp_spans_cell_columns(const char *text)
{
    sp_buffer escaped = SP_BUFFER_INIT(1 << 20);
    sp_escape_terminal(&escaped, text);
    unsigned columns = sp_text_columns(escaped.data ? (const char *)escaped.data : "");
    sp_buffer_deinit(&escaped);
    return columns;
}

void sp_spans_overrun_key(sp_buffer *out, const sp_model *model, const uint32_t *list, size_t count)
{
    size_t i = 0;
    while (i < count && !model->spans[list[i]].overruns)
        i++;
    if (i < count)
        sp_buffer_add_string(out, "[!] more CPU time than the span lasted, on all its threads: "
                                  "work went on below it after its end; was it ended too early, "
                                  "or its scope not detached?\n");
}

void sp_spans_more(sp_buffer *out, size_t shown, size_t count, const char *what,
                   const sp_terminal *terminal)
{
    if (shown < count)
        sp_buffer_printf(out, "%s %zu more %s%s (--limit 0 shows all)\n",
                         terminal->utf8 ? "…" : "...", count - shown, what,
                         sp_plural(count - shown, what));
}

bool sp_spans_take_room(unsigned *used, unsigned width, const sp_terminal *terminal)
{
    if (*used + width + NAME_COLUMNS > terminal->columns)
        return false;
    *used += width;
    return true;
}

unsigned sp_spans_rest_of_line(const sp_terminal *terminal, unsigned used)
{
    return terminal->columns > used + MIN_NAME_COLUMNS ? terminal->columns - used
                                                       : MIN_NAME_COLUMNS;
}

int sp_spans_type_length(const char *type)
{
    const char *innermost = strstr(type, "_innermost");
    return innermost ? (int)(innermost - type) : (int)strlen(type);
}

int sp_spans_type_columns(const char *type)
{
    int length = sp_spans_type_length(type);
    return length < 8 ? length : 8;
}

typedef struct tree_writer {
    sp_buffer *out;
    const sp_model *model;
    const sp_terminal *terminal;
    const sp_model_type *type;
    sp_wall_columns wall;
    sp_alloc_column alloc;
    sp_waterfall waterfall;
    bool own;      /* show values of the span without its descendants */
    bool counts;   /* show numbers of samples after the times, unless there is wall time */
    unsigned used; /* columns before the name */
    uint32_t top;  /* the top of the tree that is being written */
} tree_writer;

enum { TREE_MAX_DEPTH = 60, TREE_OTHERS = 38, TREE_OWN = 10, TREE_COUNT = 7 };

static tree_writer open_tree(sp_buffer *out, const sp_model *model, const sp_terminal *terminal)
{
    tree_writer writer = {.out = out,
                          .model = model,
                          .terminal = terminal,
                          .type = sp_measured_type(model),
                          .wall = sp_wall_columns_find(model)};
    writer.used = TREE_OTHERS + sp_wall_columns_width(writer.wall);
    writer.counts = sp_wall_columns_width(writer.wall) == 0;
    writer.own = true;
    if (writer.counts)
        writer.used += TREE_OWN + 2 * TREE_COUNT;
    else
        writer.own = sp_spans_take_room(&writer.used, TREE_OWN, terminal);
    writer.alloc = sp_spans_alloc_column(model);
    if (!terminal->has_width)
        writer.used += sp_spans_alloc_width(writer.alloc);
    else
        sp_spans_fit_alloc(&writer.alloc, &writer.used, terminal);
    return writer;
}

static void add_tree_head(tree_writer *writer)
{
    sp_buffer *out = writer->out;
    const char *counts = writer->counts ? " smpls" : "";
    int count_columns = writer->counts ? TREE_COUNT : 0;
    sp_buffer_printf(out, "\n\n%s%8s  %8.*s%*s  ", writer->terminal->color ? "\033[2m" : "",
                     "duration", sp_spans_type_columns(writer->type->name), writer->type->name,
                     count_columns, counts);
    sp_wall_columns_head(out, writer->wall);
    if (writer->own)
        sp_buffer_printf(out, "%8s%*s  ", "own", count_columns, counts);
    sp_spans_alloc_head(out, writer->alloc);
    sp_buffer_printf(out, "%-16s  ", "span id");
    sp_waterfall_head(out, &writer->waterfall);
    sp_buffer_printf(out, "name%s\n", writer->terminal->color ? "\033[0m" : "");
}

static void add_amount(tree_writer *writer, const char *value, uint64_t count, bool is_hidden)
{
    char text[SP_SPANS_COUNT_LENGTH];
    sp_buffer_printf(writer->out, "%8s", value);
    if (writer->counts)
        sp_buffer_printf(writer->out, " %6s", sp_spans_format_count(text, count, is_hidden));
    sp_buffer_add_string(writer->out, "  ");
}

/* Add the numbers before the name of a span. */
static void add_tree_cells(tree_writer *writer, const sp_model_span *span)
{
    sp_buffer *out = writer->out;
    char duration[SP_DURATION_LENGTH], own[SP_VALUE_LENGTH], total[SP_VALUE_LENGTH], span_id[17];
    sp_format_duration(duration, span->end_ns - span->start_ns);
    sp_spans_format_own(own, writer->model, span);
    sp_spans_format_total(total, writer->model, span);
    sp_hex_encode(span_id, span->id.span_id, 8);
    sp_buffer_printf(out, "%8s  ", duration);
    add_amount(writer, total, span->total_count, sp_hides_total(writer->type, span));
    sp_wall_columns_cells(out, writer->wall, span, writer->terminal);
    if (writer->own)
        add_amount(writer, own, span->own_count, sp_hides_own(writer->type, span));
    sp_spans_alloc_cell(out, writer->alloc, span, writer->terminal);
    sp_buffer_printf(out, "%s  ", span_id);
    sp_waterfall_cell(out, &writer->waterfall, span, writer->terminal);
}

/* Add the branches before the name of SPAN, which lead to it from its ancestors. Below
 * TREE_MAX_DEPTH only the branches of the nearest ancestors are drawn. */
static void add_branches(tree_writer *writer, uint32_t span)
{
    const sp_model_span *spans = writer->model->spans;
    bool utf8 = writer->terminal->utf8;
    const char *parts[TREE_MAX_DEPTH];
    size_t count = 0;
    for (uint32_t at = span; at != writer->top && count < TREE_MAX_DEPTH; at = spans[at].parent) {
        bool last = spans[at].next_sibling == SP_MODEL_NONE;
        if (at == span)
            parts[count++] = last ? (utf8 ? "└─ " : "`- ") : (utf8 ? "├─ " : "|- ");
        else
            parts[count++] = last ? "   " : (utf8 ? "│  " : "|  ");
    }
    while (count)
        sp_buffer_add_string(writer->out, parts[--count]);
}

static void add_tree_line(tree_writer *writer, uint32_t number)
{
    const sp_model_span *span = &writer->model->spans[number];
    add_tree_cells(writer, span);
    size_t start = writer->out->length;
    add_branches(writer, number);
    unsigned used = writer->out->data ? sp_text_columns((char *)writer->out->data + start) : 0;
    sp_spans_add_cell(writer->out, span->name,
                      sp_spans_rest_of_line(writer->terminal, writer->used + used), false,
                      writer->terminal);
    if (strcmp(sp_span_status_text(span), "error") == 0)
        sp_buffer_add_string(writer->out,
                             writer->terminal->color ? "  \033[31m[error]\033[0m" : "  [error]");
    sp_buffer_add_string(writer->out, span->overruns ? SP_SPANS_OVERRUN_MARK "\n" : "\n");
}

/* Add all spans of a tree, depth first and without recursion: go down, or else to the next sibling
 * of the nearest ancestor below TOP that has one. */
static void add_tree(tree_writer *writer, uint32_t top)
{
    const sp_model_span *spans = writer->model->spans;
    uint32_t at = top;
    writer->top = top;
    for (;;) {
        add_tree_line(writer, at);
        if (spans[at].first_child != SP_MODEL_NONE) {
            at = spans[at].first_child;
            continue;
        }
        while (at != top && spans[at].next_sibling == SP_MODEL_NONE)
            at = spans[at].parent;
        if (at == top)
            return;
        at = spans[at].next_sibling;
    }
}

void sp_spans_tree(sp_buffer *out, const sp_model *model, const uint32_t *list, size_t count,
                   const sp_terminal *terminal)
{
    tree_writer writer = open_tree(out, model, terminal);
    unsigned taken = writer.used + NAME_COLUMNS;
    writer.waterfall = sp_waterfall_find(model, list, count,
                                         terminal->columns > taken ? terminal->columns - taken : 0);
    writer.used += sp_waterfall_width(&writer.waterfall);
    char trace_id[33];
    sp_hex_encode(trace_id, model->spans[list[0]].id.trace_id, 16);
    sp_buffer_printf(out, "trace %s, %s", trace_id, SP_COUNTED(count, "span"));
    if (*model->spans[list[0]].service) {
        sp_buffer_add_string(out, ", ");
        sp_spans_add_cell(out, model->spans[list[0]].service, 40, false, terminal);
    }
    add_tree_head(&writer);
    for (size_t i = 0; i < count; i++)
        if (i == 0 || model->spans[list[i]].parent == SP_MODEL_NONE)
            add_tree(&writer, list[i]);
    sp_spans_hidden_key(out, model, list, count);
    sp_spans_unseen_key(out, model);
    sp_spans_overrun_key(out, model, list, count);
    sp_waterfall_key(out, &writer.waterfall, terminal);
    sp_wall_columns_key(out, writer.wall, model, list, count, terminal);
}

/* ---- json ---- */

/* NUMBER, or null if it is unknown. */
static json_t *number_json(uint64_t number, bool is_hidden)
{
    return is_hidden ? json_null() : json_integer((json_int_t)number);
}

static void set_alloc(json_t *json, const sp_model_type *alloc, const sp_model_span *span)
{
    bool is_known = sp_spans_alloc_is_known(alloc, span);
    json_object_set_new(json, "alloc_bytes", number_json(span->alloc_value, !is_known));
    json_object_set_new(
        json, "alloc_error",
        sp_spans_alloc_error_json(alloc, span->alloc_value, span->alloc_variance, is_known));
}

static json_t *span_json(const sp_model *model, const sp_model_span *span)
{
    const sp_model_type *type = sp_measured_type(model);
    const sp_wall_columns wall = sp_wall_columns_find(model);
    const sp_model_type *alloc = sp_spans_alloc_type(model);
    bool hides_own = sp_hides_own(type, span) || (type->is_unlinked && !span->own_count);
    bool hides_total = sp_hides_total(type, span) || (type->is_unlinked && !span->total_count);
    char trace_id[33], span_id[17], parent_id[17] = "";
    sp_hex_encode(trace_id, span->id.trace_id, 16);
    sp_hex_encode(span_id, span->id.span_id, 8);
    if (span->message->parent_span_id.len == 8)
        sp_hex_encode(parent_id, span->parent_span_id, 8);
    json_t *json =
        json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:o, s:o, s:o, s:o, s:I, s:b}",
                  "trace_id", trace_id, "span_id", span_id, "parent_span_id", parent_id, "name",
                  span->name, "service", span->service, "kind", kind_text(span), "status",
                  sp_span_status_text(span), "start_time_ns", (json_int_t)span->start_ns,
                  "duration_ns", (json_int_t)(span->end_ns - span->start_ns), "own_value",
                  number_json(span->own_value, hides_own), "own_count",
                  number_json(span->own_count, hides_own), "total_value",
                  number_json(span->total_value, hides_total), "total_count",
                  number_json(span->total_count, hides_total), "threads", (json_int_t)span->threads,
                  "overruns", span->overruns);
    if (wall.bar)
        json_object_set_new(json, "wall",
                            sp_wall_columns_hide(wall, span) ? json_null()
                                                             : sp_where_json(span->wall_ns));
    if (alloc)
        set_alloc(json, alloc, span);
    if (wall.type)
        json_object_set_new(json, "queued_ns",
                            number_json(span->queued_ns, sp_wall_columns_hide(wall, span)));
    return json;
}

json_t *sp_spans_json(const sp_model *model, const uint32_t *list, size_t count)
{
    const sp_model_type *type = sp_measured_type(model);
    json_t *spans = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(spans, span_json(model, &model->spans[list[i]]));
    return json_pack("{s:s, s:s, s:I, s:I, s:o}", "type", type->name, "unit", type->unit, "period",
                     (json_int_t)type->period, "count", (json_int_t)count, "spans", spans);
}
