/* SPDX-License-Identifier: Apache-2.0 */
/* The html page and its data, one JSON object in a script element. Names cannot become markup: the
 * page adds names to the document only as text, and the JSON has no character that could end the
 * script element. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tool/draw/flame.h"
#include "tool/text/escape.h"
#include "tool/text/messages.h"

/* Frames with a smaller share of the whole are left out, because they would not be visible. The
 * page shows how many are left out. */
#define MIN_SHARE_PERCENT 0.02

typedef struct page_writer {
    sp_buffer json;
    const sp_flame_tree *tree;
    const sp_change *changes; /* by node, or NULL */
    uint64_t minimum;
    uint64_t left_out;
    bool *is_named; /* by string of the tree's model: the page has a frame with this name */
} page_writer;

static int add_json(const char *data, size_t length, void *buffer)
{
    return sp_buffer_add(buffer, data, length) ? 0 : -1;
}

static void write_string(page_writer *writer, const char *text)
{
    json_t *string = json_string(text);
    if (!string || json_dump_callback(string, add_json, &writer->json, JSON_ENCODE_ANY) != 0)
        writer->json.failed = true;
    json_decref(string);
}

/* Write the 95 % interval of NODE, in percent; nothing when there are too few samples. */
static void write_interval(page_writer *writer, const sp_flame_node *node)
{
    double low, high;
    if (sp_flame_interval(writer->tree, node, &low, &high))
        sp_buffer_printf(&writer->json, ",\"l\":%.1f,\"h\":%.1f", low, high);
}

/* Write the class that most of NODE's value belongs to; it gives the frame's colour. */
static void write_where(page_writer *writer, const sp_flame_node *node)
{
    const uint64_t *all = writer->tree->where_ns;
    if (!all)
        return;
    const uint64_t *ns = &all[(size_t)(node - writer->tree->nodes) * SP_WHERE_COUNT];
    int most = 0;
    for (int i = 1; i < SP_WHERE_COUNT; i++)
        most = ns[i] > ns[most] ? i : most;
    sp_buffer_printf(&writer->json, ",\"w\":\"%s\"", sp_where_names[most]);
}

/* Write a percentage; null when it is not known. */
static void write_number(page_writer *writer, double value, const char *separator)
{
    if (isfinite(value))
        sp_buffer_printf(&writer->json, "%s%.2f", separator, value);
    else
        sp_buffer_printf(&writer->json, "%snull", separator);
}

/* Write [A, low, high, B, low, high, change, low, high, strength of the colour]. The interval of
 * the change holds for all frames at once. */
static void write_change(page_writer *writer, const sp_flame_node *node)
{
    if (!writer->changes)
        return;
    const sp_change *change = &writer->changes[node - writer->tree->nodes];
    const double numbers[] = {change->a,         change->a_low,
                              change->a_high,    change->b,
                              change->b_low,     change->b_high,
                              change->change,    change->sure_low,
                              change->sure_high, sp_flame_change_strength(change)};
    sp_buffer_add_string(&writer->json, ",\"d\":");
    for (size_t i = 0; i < SP_ARRAY_LENGTH(numbers); i++)
        write_number(writer, numbers[i], i ? "," : "[");
    sp_buffer_add_char(&writer->json, ']');
}

/* Write {"n": name, "v": value, "s": self, "l": low, "h": high, "w": class, "d": change, "c":
 * [children]}. Recurses at most SP_FLAME_MAX_DEPTH times. */
static void write_node(page_writer *writer, const sp_flame_node *node, const char *name)
{
    const sp_flame_tree *tree = writer->tree;
    const char *separator = "";
    sp_buffer_add_string(&writer->json, "{\"n\":");
    write_string(writer, name);
    sp_buffer_printf(&writer->json, ",\"v\":%llu,\"s\":%llu", (unsigned long long)node->value,
                     (unsigned long long)node->self);
    write_interval(writer, node);
    write_where(writer, node);
    write_change(writer, node);
    if (node->depth && node->name != SP_MODEL_NONE)
        writer->is_named[node->name] = true;
    sp_buffer_add_string(&writer->json, ",\"c\":[");
    for (uint32_t i = node->first_child; i != SP_MODEL_NONE; i = tree->nodes[i].next_sibling) {
        if (tree->nodes[i].value < writer->minimum || tree->nodes[i].value == 0) {
            writer->left_out++;
            continue;
        }
        sp_buffer_add_string(&writer->json, separator);
        write_node(writer, &tree->nodes[i], sp_flame_node_name(tree, &tree->nodes[i]));
        separator = ",";
    }
    sp_buffer_add_string(&writer->json, "]}");
}

static void write_member(page_writer *writer, const char *key, const char *text)
{
    sp_buffer_printf(&writer->json, "\"%s\":", key);
    write_string(writer, text);
    sp_buffer_add_char(&writer->json, ',');
}

/* Write the members of the JSON object that describe one graph. */
static void write_graph(page_writer *writer, const sp_flame_graph *graph,
                        const sp_flame_options *options)
{
    const sp_flame_tree *tree = graph->tree;
    const sp_flame_legend *legend = &graph->legend;
    const sp_model_type *type = &tree->selection->model->types[tree->selection->type];
    double percent =
        options->min_percent > MIN_SHARE_PERCENT ? options->min_percent : MIN_SHARE_PERCENT;
    writer->tree = tree;
    writer->changes = graph->changes;
    writer->left_out = 0;
    writer->minimum = (uint64_t)((double)tree->nodes[0].value * percent / 100);
    write_member(writer, "subject", legend->subject);
    write_member(writer, "details", legend->details);
    write_member(writer, "amount", legend->amount);
    write_member(writer, "where", legend->where);
    write_member(writer, "queued", legend->queued);
    write_member(writer, "confidence", legend->confidence);
    if (graph->label)
        write_member(writer, "label", graph->label);
    write_member(writer, "type", sp_selection_name(tree->selection));
    write_member(writer, "unit", type->unit);
    sp_buffer_printf(&writer->json, "\"count\":%llu,\"reverse\":%s,\"tree\":",
                     (unsigned long long)tree->selection->count,
                     options->reverse ? "true" : "false");
    write_node(writer, &tree->nodes[0], legend->subject);
    sp_buffer_printf(&writer->json, ",\"left_out\":%llu,\"cut_at\":%d",
                     (unsigned long long)writer->left_out,
                     tree->cut_frames ? SP_FLAME_MAX_DEPTH : 0);
}

/* Write [name, file, first line, last line, module] for each function with a known place. */
static void write_places(page_writer *writer)
{
    const sp_model *model = writer->tree->selection->model;
    const char *separator = "";
    sp_buffer_add_string(&writer->json, ",\"places\":[");
    for (uint32_t i = 0; i < model->strings.count; i++) {
        sp_model_place place = sp_model_place_of(model, i);
        if (!writer->is_named[i] || (!place.file && !place.module))
            continue;
        sp_buffer_printf(&writer->json, "%s[", separator);
        write_string(writer, sp_model_text(model, i));
        sp_buffer_add_char(&writer->json, ',');
        write_string(writer, sp_model_text(model, place.file));
        sp_buffer_printf(&writer->json, ",%u,%u,", place.first_line, place.last_line);
        write_string(writer, sp_model_text(model, place.module));
        sp_buffer_add_char(&writer->json, ']');
        separator = ",";
    }
    sp_buffer_add_char(&writer->json, ']');
}

/* Write [name in the graph, short, folded, full] for each function whose name depends on the
 * style. */
static void write_names(page_writer *writer)
{
    const sp_model *model = writer->tree->selection->model;
    static const char *const words[SP_NAMES_STYLES] = {[SP_DEMANGLE_SHORT] = "short",
                                                       [SP_DEMANGLE_FOLDED] = "folded",
                                                       [SP_DEMANGLE_FULL] = "full"};
    const char *separator = "";
    sp_buffer_printf(&writer->json, ",\"style\":\"%s\",\"names\":[", words[model->options.style]);
    for (uint32_t i = 0; i < model->strings.count; i++) {
        sp_model_names names = sp_model_names_of(model, i);
        if (!writer->is_named[i] || (names.as[0] == names.as[1] && names.as[1] == names.as[2]))
            continue;
        sp_buffer_printf(&writer->json, "%s[", separator);
        write_string(writer, sp_model_text(model, i));
        for (int style = 0; style < SP_NAMES_STYLES; style++) {
            sp_buffer_add_char(&writer->json, ',');
            write_string(writer, sp_model_text(model, names.as[style]));
        }
        sp_buffer_add_char(&writer->json, ']');
        separator = ",";
    }
    sp_buffer_add_char(&writer->json, ']');
}

/* Write one graph with its own places and names, because two graphs may have two models. False when
 * memory is short. */
static bool write_whole_graph(page_writer *writer, const sp_flame_graph *graph,
                              const sp_flame_options *options)
{
    writer->is_named =
        calloc(graph->tree->selection->model->strings.count + (size_t)1, sizeof *writer->is_named);
    if (!writer->is_named)
        return false;
    write_graph(writer, graph, options);
    write_places(writer);
    write_names(writer);
    free(writer->is_named);
    return true;
}

static bool write_page_data(page_writer *writer, const sp_flame_graph *graph,
                            const sp_flame_graph *other, const sp_flame_options *options)
{
    sp_buffer_add_char(&writer->json, '{');
    bool done = write_whole_graph(writer, graph, options);
    if (other) {
        sp_buffer_add_string(&writer->json, ",\"other\":{");
        done = done && write_whole_graph(writer, other, options);
        sp_buffer_add_char(&writer->json, '}');
    }
    sp_buffer_add_char(&writer->json, '}');
    return done && !writer->json.failed;
}

static void add_title_part(sp_buffer *out, const char *text)
{
    sp_buffer visible = SP_BUFFER_INIT(1 << 16);
    if (sp_escape_terminal(&visible, text) && visible.data)
        sp_escape_html(out, (const char *)visible.data);
    sp_buffer_add_string(out, " – ");
    sp_buffer_deinit(&visible);
}

/* Write the page up to its data. The title, which the browser's tab and history show, says what the
 * page shows: "GET /report – shop – flamegraph". */
static void write_page_head(sp_buffer *out, const sp_flame_graph *graph)
{
    static const char mark[] = "<title>";
    const char *head = sp_flame_page_head, *title = strstr(head, mark) + strlen(mark);
    const char *service = sp_model_service(graph->tree->selection->model);
    sp_buffer_add(out, head, (size_t)(title - head));
    add_title_part(out, graph->legend.subject);
    if (*service)
        add_title_part(out, service);
    sp_buffer_add_string(out, "flamegraph");
    sp_buffer_add_string(out, strstr(title, "</title>"));
}

bool sp_flame_html(sp_buffer *out, const sp_flame_graph *graph, const sp_flame_graph *other,
                   const sp_flame_options *options)
{
    page_writer writer = {.json = SP_BUFFER_INIT(SP_OUTPUT_MAX_BYTES)};
    bool done = write_page_data(&writer, graph, other, options);
    write_page_head(out, graph);
    if (done)
        sp_escape_script_json(out, (const char *)writer.json.data, writer.json.length);
    sp_buffer_add_string(out, sp_flame_page_tail);
    sp_buffer_deinit(&writer.json);
    return done && !out->failed;
}

int sp_flame_html_check(const char *command)
{
    if (sp_flame_page_head)
        return SP_TOOL_DONE;
    return sp_tool_wrong("%s: --format html: this spanprof was built without the page, for npm was "
                         "missing; build it with npm, or use another format",
                         command);
}
