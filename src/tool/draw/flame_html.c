/* SPDX-License-Identifier: Apache-2.0 */
/* The data of the html page: one JSON object in a script element, and the page around it. The page
 * puts names into the document as text only, and the JSON holds no character that could end the
 * element. */
#include <stdlib.h>

#include "tool/draw/flame.h"
#include "tool/text/escape.h"

/* Frames narrower than this share of the whole are not drawn by any screen; the page says that they
 * were left out. */
#define MIN_SHARE_PERCENT 0.02

typedef struct page_writer {
    sp_buffer json;
    const sp_flame_tree *tree;
    uint64_t minimum;
    uint64_t left_out;
    bool *is_named; /* by string: the page has a frame of this name */
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

/* Of 95 %, in hundredths; nothing where there are too few samples. */
static void write_interval(page_writer *writer, const sp_flame_node *node)
{
    double low, high;
    if (sp_flame_interval(writer->tree, node, &low, &high))
        sp_buffer_printf(&writer->json, ",\"l\":%.1f,\"h\":%.1f", low, high);
}

/* The class that most of the node is, for its colour. */
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

/* {"n": name, "v": value, "s": self, "l": low, "h": high, "w": class, "c": [children]}; at most
 * SP_FLAME_MAX_DEPTH deep. */
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

/* The members that one graph has: of CPU time, or of wall time. */
static void write_graph(page_writer *writer, const sp_flame_tree *tree,
                        const sp_flame_options *options)
{
    const sp_model_type *type = &tree->selection->model->types[tree->selection->type];
    double percent =
        options->min_percent > MIN_SHARE_PERCENT ? options->min_percent : MIN_SHARE_PERCENT;
    sp_flame_legend legend;
    writer->tree = tree;
    writer->left_out = 0;
    writer->minimum = (uint64_t)((double)tree->nodes[0].value * percent / 100);
    sp_flame_legend_fill(&legend, tree->selection, options->select.self);
    write_member(writer, "subject", legend.subject);
    write_member(writer, "details", legend.details);
    write_member(writer, "amount", legend.amount);
    write_member(writer, "where", legend.where);
    write_member(writer, "confidence", legend.confidence);
    write_member(writer, "type", sp_selection_name(tree->selection));
    write_member(writer, "unit", type->unit);
    sp_buffer_printf(&writer->json, "\"count\":%llu,\"reverse\":%s,\"tree\":",
                     (unsigned long long)tree->selection->count,
                     options->reverse ? "true" : "false");
    write_node(writer, &tree->nodes[0], legend.subject);
    sp_buffer_printf(&writer->json, ",\"left_out\":%llu,\"cut_at\":%d",
                     (unsigned long long)writer->left_out,
                     tree->cut_frames ? SP_FLAME_MAX_DEPTH : 0);
}

/* [name, file, first line, last line, module] of each function whose place is known. */
static void write_places(page_writer *writer, const sp_model *model)
{
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

/* [name in the graph, short, folded, full] of each function that styles call differently. */
static void write_names(page_writer *writer, const sp_model *model)
{
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

static void write_page_data(page_writer *writer, const sp_flame_tree *tree,
                            const sp_flame_tree *other, const sp_flame_options *options)
{
    sp_buffer_add_char(&writer->json, '{');
    write_graph(writer, tree, options);
    if (other) {
        sp_buffer_add_string(&writer->json, ",\"other\":{");
        write_graph(writer, other, options);
        sp_buffer_add_char(&writer->json, '}');
    }
    write_places(writer, tree->selection->model);
    write_names(writer, tree->selection->model);
    sp_buffer_add_char(&writer->json, '}');
}

bool sp_flame_html(sp_buffer *out, const sp_flame_tree *tree, const sp_flame_tree *other,
                   const sp_flame_options *options)
{
    const sp_model *model = tree->selection->model;
    page_writer writer = {.json = SP_BUFFER_INIT(SP_OUTPUT_MAX_BYTES)};
    writer.is_named = calloc(model->strings.count + (size_t)1, sizeof *writer.is_named);
    if (!writer.is_named)
        return false;
    write_page_data(&writer, tree, other, options);
    sp_buffer_add_string(out, sp_flame_page_head);
    if (!writer.json.failed)
        sp_escape_script_json(out, (const char *)writer.json.data, writer.json.length);
    sp_buffer_add_string(out, sp_flame_page_tail);
    bool done = !writer.json.failed && !out->failed;
    sp_buffer_deinit(&writer.json);
    free(writer.is_named);
    return done;
}
