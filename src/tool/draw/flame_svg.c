/* SPDX-License-Identifier: Apache-2.0 */
/* The flamegraph as a picture for documents: without scripts and external files. The root is at the
 * top. */
#include <math.h>
#include <stdio.h>

#include "core/compiler.h"
#include "tool/draw/flame.h"
#include "tool/text/escape.h"

enum { WIDTH = 1200, MARGIN = 10, ROW = 17, TEXT_ROW = 16, TITLE_COLUMNS = 150 };

/* The width of each character of the monospace font. */
static const double character_width = 6.7;
/* Narrower frames are not drawn, because they would not be visible. */
static const double least_width = 0.3;

typedef struct svg_writer {
    sp_buffer *out;
    const sp_flame_tree *tree;
    const sp_change *changes; /* by node, or NULL */
    const char *unit;
    double scale; /* the width of a value of 1 */
    double least; /* the smallest width that is drawn */
    double top;   /* of the root's frame */
} svg_writer;

/* Replace U+FFFE and U+FFFF, which XML does not allow. */
static void replace_no_characters(sp_buffer *text)
{
    for (size_t i = 0; i + 2 < text->length; i++)
        if (text->data[i] == 0xef && text->data[i + 1] == 0xbf && text->data[i + 2] >= 0xbe)
            text->data[i + 2] = 0xbd; /* U+FFFD */
}

/* Write TEXT as the content of an element, in at most COLUMNS columns. */
static void write_text(sp_buffer *out, const char *text, unsigned columns)
{
    sp_buffer shown = SP_BUFFER_INIT(1 << 20), fitting = SP_BUFFER_INIT(1 << 20);
    if (sp_escape_terminal(&shown, text)) {
        replace_no_characters(&shown);
        if (sp_text_fit(&fitting, (const char *)shown.data, columns, "…"))
            sp_escape_html(out, (const char *)fitting.data);
    }
    sp_buffer_deinit(&shown);
    sp_buffer_deinit(&fitting);
}

/* A function has the same colour in every picture. */
static void write_color(sp_buffer *out, const char *name, uint32_t depth)
{
    uint32_t hash = 2166136261u;
    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * 16777619u;
    if (depth == 0)
        sp_buffer_add_string(out, "#c9d3de");
    else
        sp_buffer_printf(out, "hsl(%u,%u%%,%u%%)", 22 + hash % 30, 78 + (hash >> 8) % 15,
                         62 + (hash >> 16) % 12);
}

/* ---- changes ---- */

/* The square root lets small changes be visible, and 5 % and 20 % look different. A change that is
 * sure has at least 0.15; one that may be chance is white. */
double sp_flame_change_strength(const sp_change *change)
{
    double strength = fmin(1, sqrt(fabs(change->change) / 20));
    return sp_change_is_sure(change) ? fmax(strength, 0.15) : 0;
}

/* Red for more, blue for less. */
static void write_change_color(sp_buffer *out, bool is_more, double strength)
{
    static const double more[] = {238, 82, 74}, less[] = {84, 140, 236};
    const double *full = is_more ? more : less;
    sp_buffer_add_string(out, "rgb(");
    for (int i = 0; i < 3; i++)
        sp_buffer_printf(out, "%.0f%s", 255 + (full[i] - 255) * strength, i < 2 ? "," : ")");
}

/* "A 5.0 % (3.1–7.9)", "A ?", or "A nothing". */
static void write_side(sp_buffer *out, char side, double value, double low, double high)
{
    sp_buffer_printf(out, "%c ", side);
    if (isfinite(low))
        sp_buffer_printf(out, "%.1f %% (%.1f–%.1f)", value, low, high);
    else
        sp_buffer_printf(out, value > 0 ? "?" : "nothing");
}

static void write_change(sp_buffer *out, const sp_change *change)
{
    write_side(out, 'A', change->a, change->a_low, change->a_high);
    sp_buffer_add_string(out, ", ");
    write_side(out, 'B', change->b, change->b_low, change->b_high);
    if (change->is_asked)
        sp_buffer_printf(out, ", change %+.1f (%+.1f to %+.1f)", change->change, change->sure_low,
                         change->sure_high);
}

/* ---- frames ---- */

static void write_share(svg_writer *writer, const sp_flame_node *node)
{
    double low, high, whole = (double)writer->tree->nodes[0].value;
    if (writer->changes)
        write_change(writer->out, &writer->changes[node - writer->tree->nodes]);
    else if (sp_flame_interval(writer->tree, node, &low, &high))
        sp_buffer_printf(writer->out, "%.1f %%, 95 %%: %.0f–%.0f %%",
                         100 * (double)node->value / whole, low, high);
    else
        sp_buffer_add_char(writer->out, '?');
}

static void write_title(svg_writer *writer, const sp_flame_node *node, const char *name)
{
    char value[SP_VALUE_LENGTH];
    sp_format_value(value, node->value, writer->unit);
    sp_buffer_add_string(writer->out, "<title>");
    write_text(writer->out, name, 10000);
    sp_buffer_printf(writer->out, ": %s (", value);
    write_share(writer, node);
    sp_buffer_add_string(writer->out, ")</title>");
}

/* With changes a frame may be white, so frames get an edge. */
static void write_fill(svg_writer *writer, const sp_flame_node *node, const char *name)
{
    if (!writer->changes) {
        write_color(writer->out, name, node->depth);
        return;
    }
    const sp_change *change = &writer->changes[node - writer->tree->nodes];
    write_change_color(writer->out, change->change > 0, sp_flame_change_strength(change));
    sp_buffer_add_string(writer->out, "\" stroke=\"#c3cbd4");
}

static void write_frame(svg_writer *writer, const sp_flame_node *node, const char *name, double x)
{
    sp_buffer *out = writer->out;
    double width = (double)node->value * writer->scale, y = writer->top + ROW * node->depth;
    unsigned columns = width > 4 ? (unsigned)((width - 4) / character_width) : 0;
    sp_buffer_add_string(out, "<g>");
    write_title(writer, node, name);
    sp_buffer_printf(out, "<rect x=\"%.1f\" y=\"%.0f\" width=\"%.1f\" height=\"%d\" fill=\"", x, y,
                     width, ROW - 1);
    write_fill(writer, node, name);
    sp_buffer_add_string(out, "\"/>");
    if (columns >= 3) {
        sp_buffer_printf(out, "<text x=\"%.1f\" y=\"%.0f\">", x + 2, y + ROW - 5);
        write_text(out, name, columns);
        sp_buffer_add_string(out, "</text>");
    }
    sp_buffer_add_string(out, "</g>\n");
}

/* Write NODE and its children. Recurses at most SP_FLAME_MAX_DEPTH times. */
static void write_frames(svg_writer *writer, const sp_flame_node *node, const char *name, double x)
{
    const sp_flame_tree *tree = writer->tree;
    write_frame(writer, node, name, x);
    for (uint32_t i = node->first_child; i != SP_MODEL_NONE; i = tree->nodes[i].next_sibling) {
        const sp_flame_node *child = &tree->nodes[i];
        if ((double)child->value * writer->scale < writer->least)
            break; /* the others are smaller */
        write_frames(writer, child, sp_flame_node_name(tree, child), x);
        x += (double)child->value * writer->scale;
    }
}

static uint32_t deepest_of(const sp_flame_tree *tree)
{
    uint32_t deepest = 0;
    for (uint32_t i = 0; i < tree->count; i++)
        deepest = tree->nodes[i].depth > deepest ? tree->nodes[i].depth : deepest;
    return deepest;
}

/* Write one line of text at Y. Returns Y of the next line. */
static double write_line(sp_buffer *out, const char *text, const char *weight, double y)
{
    if (!*text)
        return y;
    sp_buffer_printf(out, "<text x=\"%d\" y=\"%.0f\"%s>", MARGIN, y, weight);
    write_text(out, text, TITLE_COLUMNS);
    sp_buffer_add_string(out, "</text>\n");
    return y + TEXT_ROW;
}

static double write_legend(sp_buffer *out, const sp_flame_legend *legend)
{
    double y = write_line(out, legend->subject, " font-weight=\"bold\"", 20);
    y = write_line(out, legend->details, "", y);
    y = write_line(out, legend->amount, "", y);
    y = write_line(out, legend->where, "", y);
    y = write_line(out, legend->queued, "", y);
    return write_line(out, legend->confidence, " fill=\"#8a4b00\"", y);
}

/* Explain the colours of changes: seven squares, each with its meaning. */
static double write_key(sp_buffer *out, double y)
{
    static const double steps[] = {-20, -5, -1, 0, 1, 5, 20};
    double x = MARGIN;
    for (size_t i = 0; i < SP_ARRAY_LENGTH(steps); i++) {
        const sp_change step = {
            .change = steps[i], .sure_low = steps[i], .sure_high = steps[i], .is_asked = true};
        sp_buffer_printf(out, "<rect x=\"%.0f\" y=\"%.0f\" width=\"11\" height=\"11\" fill=\"", x,
                         y - 9);
        write_change_color(out, steps[i] > 0, sp_flame_change_strength(&step));
        sp_buffer_printf(out, "\" stroke=\"#c3cbd4\"/><text x=\"%.0f\" y=\"%.0f\">", x + 16, y);
        if (steps[i] != 0)
            sp_buffer_printf(out, "%+.0f</text>\n", steps[i]);
        else
            sp_buffer_add_string(out, "within chance</text>\n");
        x += steps[i] != 0 ? 60 : 130;
    }
    return y + TEXT_ROW;
}

/* Write GRAPH from TOP on. Returns where the next graph begins. */
static double write_graph(sp_buffer *out, const sp_flame_graph *graph, double top,
                          double min_percent)
{
    const sp_selection *selection = graph->tree->selection;
    const sp_flame_node *root = &graph->tree->nodes[0];
    double inner = WIDTH - 2 * MARGIN;
    svg_writer writer = {.out = out, .tree = graph->tree, .changes = graph->changes, .top = top};
    writer.unit = selection->model->types[selection->type].unit;
    writer.scale = root->value ? inner / (double)root->value : 0;
    writer.least = inner * min_percent / 100;
    writer.least = writer.least > least_width ? writer.least : least_width;
    write_frames(&writer, root, graph->legend.subject, MARGIN);
    return top + ROW * (deepest_of(graph->tree) + 1.0) + MARGIN;
}

static double write_graphs(sp_buffer *out, const sp_flame_graph *graph, const sp_flame_graph *other,
                           double min_percent)
{
    double y = write_legend(out, &graph->legend);
    if (graph->changes)
        y = write_key(out, y);
    if (other)
        y = write_line(out, graph->label, " font-weight=\"bold\"", y) - TEXT_ROW / 2;
    y = write_graph(out, graph, y, min_percent);
    if (!other)
        return y;
    y = write_line(out, other->label, " font-weight=\"bold\"", y + TEXT_ROW);
    return write_graph(out, other, y - TEXT_ROW / 2, min_percent);
}

bool sp_flame_svg(sp_buffer *out, const sp_flame_graph *graph, const sp_flame_graph *other,
                  double min_percent)
{
    sp_buffer frames = SP_BUFFER_INIT(SP_OUTPUT_MAX_BYTES);
    double height = write_graphs(&frames, graph, other, min_percent);
    sp_buffer_printf(out,
                     "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg "
                     "xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%.0f\" "
                     "viewBox=\"0 0 %d %.0f\" font-family=\"DejaVu Sans Mono, monospace\" "
                     "font-size=\"11\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
                     WIDTH, height, WIDTH, height);
    bool done = !frames.failed && sp_buffer_add(out, frames.data, frames.length);
    sp_buffer_add_string(out, "</svg>\n");
    sp_buffer_deinit(&frames);
    return done && !out->failed;
}
