/* SPDX-License-Identifier: Apache-2.0 */
/* The flamegraph as text: a tree, with the largest frames first. The only child of a frame is not
 * indented, so that only branches need width. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/counted.h"
#include "tool/draw/flame.h"
#include "tool/model/sum.h"
#include "tool/text/escape.h"

enum { BAR_COLUMNS = 10, NUMBER_COLUMNS = 16, MIN_NAME_COLUMNS = 24 };
/* Intervals are shown only in terminals of at least COLUMNS_FOR_INTERVALS columns. */
enum { INTERVAL_COLUMNS = 9, COLUMNS_FOR_INTERVALS = 72 };

typedef struct text_style {
    const char *tee, *corner, *pipe, *ellipsis, *deeper;
    const char *full, *half;
    const char *dim, *hot, *warm, *bold, *reset;
} text_style;

typedef struct text_writer {
    sp_buffer *out;
    const sp_flame_tree *tree;
    const sp_terminal *terminal;
    text_style style;
    uint64_t minimum; /* frames with smaller values are not shown one by one */
    bool *is_shown;   /* by node */
    uint32_t cut;     /* frames that are large enough, but not shown because of the limit */
    bool folded;      /* recursive calls were folded into a shown frame */
    char indent[3 * 4 * SP_FLAME_MAX_DEPTH + 1];
} text_writer;

static text_style choose_style(const sp_terminal *terminal)
{
    text_style style = {.tee = "|- ",
                        .corner = "`- ",
                        .pipe = "|  ",
                        .ellipsis = "~",
                        .deeper = ">> ",
                        .full = "#",
                        .half = "-",
                        .dim = "",
                        .hot = "",
                        .warm = "",
                        .bold = "",
                        .reset = ""};
    if (terminal->utf8) {
        style.tee = "├─ ";
        style.corner = "└─ ";
        style.pipe = "│  ";
        style.ellipsis = "…";
        style.deeper = "» ";
        style.full = "█";
        style.half = "▌";
    }
    if (terminal->color) {
        style.dim = "\033[2m";
        style.hot = "\033[31m";
        style.warm = "\033[33m";
        style.bold = "\033[1m";
        style.reset = "\033[0m";
    }
    return style;
}

static bool has_intervals(const text_writer *writer)
{
    return writer->terminal->columns >= COLUMNS_FOR_INTERVALS;
}

static double percent(const text_writer *writer, uint64_t value)
{
    uint64_t total = writer->tree->nodes[0].value;
    return total ? 100.0 * (double)value / (double)total : 0;
}

static void write_bar(text_writer *writer, double share)
{
    unsigned halves = (unsigned)(share / 100 * 2 * BAR_COLUMNS + 0.5);
    unsigned columns = 0;
    for (; columns < halves / 2; columns++)
        sp_buffer_add_string(writer->out, writer->style.full);
    if (halves % 2 && columns < BAR_COLUMNS) {
        sp_buffer_add_string(writer->out, writer->style.half);
        columns++;
    }
    for (; columns < BAR_COLUMNS + 1; columns++)
        sp_buffer_add_char(writer->out, ' ');
}

/* Write the total share of NODE and its interval, or "?" when there are too few samples. */
static void write_total(text_writer *writer, const sp_flame_node *node)
{
    double low, high;
    char interval[16] = "";
    bool is_told = sp_flame_interval(writer->tree, node, &low, &high);
    if (is_told)
        snprintf(interval, sizeof interval, "%.0f-%.0f", low, high);
    if (is_told)
        sp_buffer_printf(writer->out, "%5.1f%%  ", percent(writer, node->value));
    else
        sp_buffer_printf(writer->out, "%6s  ", "?");
    if (has_intervals(writer))
        sp_buffer_printf(writer->out, "%s%7s%s  ", writer->style.dim, interval,
                         writer->style.reset);
}

static void write_self(text_writer *writer, const sp_flame_node *node)
{
    const text_style *style = &writer->style;
    double self_share = percent(writer, node->self);
    const char *color = self_share >= 10 ? style->hot : self_share >= 2 ? style->warm : style->dim;
    double events =
        node->value ? (double)node->self / (double)node->value * (double)node->count : 0;
    if (node->self && events < SP_SHARE_EVENTS_LEAST - 1e-6)
        sp_buffer_printf(writer->out, "%6s  ", "?");
    else if (node->self)
        sp_buffer_printf(writer->out, "%s%5.1f%%%s  ", color, self_share, style->reset);
    else
        sp_buffer_printf(writer->out, "%8s", "");
}

/* The end of INDENT that fits into ROOM columns, so that names have enough room. */
static const char *fit_indent(const char *indent, unsigned room)
{
    while (*indent && sp_text_columns(indent) > room) {
        indent++;
        while ((*indent & 0xc0) == 0x80)
            indent++;
    }
    return indent;
}

static void write_name(text_writer *writer, const char *branch, const char *name, const char *color)
{
    const text_style *style = &writer->style;
    unsigned width = writer->terminal->columns - NUMBER_COLUMNS - BAR_COLUMNS - 1 -
                     (has_intervals(writer) ? INTERVAL_COLUMNS : 0);
    unsigned room = width > MIN_NAME_COLUMNS + 8 ? width - MIN_NAME_COLUMNS : 8;
    unsigned branch_columns = sp_text_columns(branch);
    const char *indent = fit_indent(writer->indent, room - branch_columns - 3);
    const char *deeper = indent == writer->indent ? "" : style->deeper;
    unsigned used = sp_text_columns(deeper) + sp_text_columns(indent) + branch_columns;
    sp_buffer escaped = SP_BUFFER_INIT(1 << 20);
    sp_escape_terminal(&escaped, name);
    sp_buffer_printf(writer->out, "%s%s%s%s%s%s", style->dim, deeper, indent, branch, style->reset,
                     color);
    sp_text_fit(writer->out, escaped.data ? (const char *)escaped.data : "",
                sp_terminal_name_columns(writer->terminal, width - used), style->ellipsis);
    sp_buffer_printf(writer->out, "%s\n", *color ? style->reset : "");
    sp_buffer_deinit(&escaped);
}

static void write_node(text_writer *writer, const sp_flame_node *node, const char *branch)
{
    bool hot = percent(writer, node->self) >= 10;
    write_total(writer, node);
    write_self(writer, node);
    write_bar(writer, percent(writer, node->value));
    sp_buffer name = SP_BUFFER_INIT(1 << 20);
    sp_buffer_add_string(&name, sp_flame_node_name(writer->tree, node));
    if (node->folded)
        sp_buffer_printf(&name, " (recursion, %u deep)", node->folded + 1);
    sp_buffer_add_char(&name, 0);
    write_name(writer, branch, name.data ? (const char *)name.data : "",
               hot ? writer->style.bold : "");
    sp_buffer_deinit(&name);
}

static void write_rest(text_writer *writer, uint64_t value, unsigned count, const char *branch)
{
    char text[64];
    snprintf(text, sizeof text, "(%u %s)", count, writer->cut ? "more" : "smaller");
    unsigned gap = has_intervals(writer) ? 8 + INTERVAL_COLUMNS : 8;
    sp_buffer_printf(writer->out, "%5.1f%%  %*s", percent(writer, value), (int)gap, "");
    write_bar(writer, percent(writer, value));
    write_name(writer, branch, text, writer->style.dim);
}

static void write_children(text_writer *writer, const sp_flame_node *node);

/* Write NODE and what is below it. As long as a frame has one child, which is shown, the child is
 * not indented. */
static void write_chain(text_writer *writer, const sp_flame_node *node, const char *branch,
                        const char *continuation)
{
    size_t length = strlen(writer->indent);
    write_node(writer, node, branch);
    strcat(writer->indent, continuation);
    const sp_flame_node *nodes = writer->tree->nodes;
    while (node->first_child != SP_MODEL_NONE && writer->is_shown[node->first_child] &&
           nodes[node->first_child].next_sibling == SP_MODEL_NONE) {
        node = &nodes[node->first_child];
        write_node(writer, node, "");
    }
    write_children(writer, node);
    writer->indent[length] = 0;
}

/* Write the children of NODE that are shown, then one line for the others. */
static void write_children(text_writer *writer, const sp_flame_node *node)
{
    const sp_flame_node *nodes = writer->tree->nodes;
    const text_style *style = &writer->style;
    uint64_t rest = 0;
    unsigned rest_count = 0, shown = 0;
    for (uint32_t i = node->first_child; i != SP_MODEL_NONE; i = nodes[i].next_sibling) {
        if (!writer->is_shown[i]) {
            sp_sum_add(&rest, nodes[i].value);
            rest_count++;
        } else {
            shown++;
        }
    }
    uint32_t child = node->first_child;
    for (unsigned i = 0; i < shown; child = nodes[child].next_sibling) {
        if (!writer->is_shown[child])
            continue;
        bool last = ++i == shown && rest_count == 0;
        write_chain(writer, &nodes[child], last ? style->corner : style->tee,
                    last ? "   " : style->pipe);
    }
    if (rest_count && (shown || rest >= writer->minimum))
        write_rest(writer, rest, rest_count, style->corner);
}

/* Write TEXT, wrapped between words. Only frames are cut. */
static void write_line(sp_buffer *out, const text_style *style, unsigned columns, const char *color,
                       const char *text)
{
    sp_buffer escaped = SP_BUFFER_INIT(1 << 16);
    if (*text && sp_escape_terminal(&escaped, text)) {
        sp_buffer_add_string(out, color);
        sp_text_wrap(out, (const char *)escaped.data, columns);
        sp_buffer_printf(out, "%s\n", *color ? style->reset : "");
    }
    sp_buffer_deinit(&escaped);
}

void sp_flame_text_legend(sp_buffer *out, const sp_selection *selection,
                          const sp_flame_options *options, const sp_terminal *terminal)
{
    text_style style = choose_style(terminal);
    unsigned columns = terminal->columns;
    sp_flame_legend legend;
    sp_flame_legend_fill(&legend, selection, options);
    char *sign = strstr(legend.amount, "±");
    if (sign && !terminal->utf8)
        memcpy(sign, "+-", 2); /* "±" has two bytes in UTF-8 */
    write_line(out, &style, columns, style.bold, legend.subject);
    write_line(out, &style, columns, "", legend.details);
    write_line(out, &style, columns, "", legend.amount);
    write_line(out, &style, columns, "", legend.where);
    write_line(out, &style, columns, "", legend.queued);
    write_line(out, &style, columns, style.warm, legend.confidence);
}

/* ---- which frames ---- */

/* For compare_importance, because qsort passes no argument to it. */
static const sp_flame_node *sorted_nodes;

/* By value, then by depth, so that a node comes after its parent. */
static int compare_importance(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    const sp_flame_node *left = &sorted_nodes[x], *right = &sorted_nodes[y];
    if (left->value != right->value)
        return left->value > right->value ? -1 : 1;
    if (left->depth != right->depth)
        return left->depth < right->depth ? -1 : 1;
    return x < y ? -1 : x > y;
}

/* Choose the LIMIT largest frames of those that are large enough; 0: all. Of equal ones, those
 * nearest to the root are chosen. */
static bool choose_frames(text_writer *writer, uint64_t limit)
{
    const sp_flame_tree *tree = writer->tree;
    uint32_t *order = malloc(tree->count * sizeof *order), count = 0;
    writer->is_shown = calloc(tree->count, sizeof *writer->is_shown);
    for (uint32_t i = 1; order && i < tree->count; i++)
        if (tree->nodes[i].value >= writer->minimum && tree->nodes[i].value)
            order[count++] = i;
    sorted_nodes = tree->nodes;
    if (order)
        qsort(order, count, sizeof *order, compare_importance);
    uint32_t shown = limit && limit < count ? (uint32_t)limit : count;
    for (uint32_t i = 0; order && writer->is_shown && i < shown; i++) {
        const sp_flame_node *node = &tree->nodes[order[i]];
        writer->is_shown[order[i]] = true;
        writer->folded |= node->folded > 0;
    }
    writer->cut = count - shown;
    free(order);
    return order && writer->is_shown;
}

static void write_head(text_writer *writer, const sp_flame_options *options)
{
    sp_buffer_printf(writer->out, "\n%s total  %sself              %s%s\n", writer->style.dim,
                     has_intervals(writer) ? "   95 %    " : "  ",
                     options->reverse ? "leaf, and who called it" : "function",
                     writer->style.reset);
}

static void write_frames(text_writer *writer)
{
    const sp_flame_node *root = &writer->tree->nodes[0];
    if (root->first_child != SP_MODEL_NONE && writer->is_shown[root->first_child] &&
        writer->tree->nodes[root->first_child].next_sibling == SP_MODEL_NONE)
        write_chain(writer, &writer->tree->nodes[root->first_child], "", "");
    else
        write_children(writer, root);
}

/* Say what is not drawn, and how the user can see it. */
static void write_left_out(text_writer *writer)
{
    const char *ellipsis = writer->style.ellipsis;
    if (writer->cut)
        sp_buffer_printf(writer->out,
                         "%s %s: flame --limit 0 shows all, and -o OUT.html draws them\n", ellipsis,
                         SP_COUNTED(writer->cut, "more frame"));
    if (writer->folded)
        sp_buffer_add_string(writer->out, "recursion: calls of a function by itself are one line; "
                                          "-o OUT.html draws each\n");
    if (writer->tree->cut_frames)
        sp_buffer_printf(writer->out, "\nstacks deeper than %d frames are cut\n",
                         SP_FLAME_MAX_DEPTH);
}

bool sp_flame_text(sp_buffer *out, const sp_flame_tree *tree, const sp_flame_options *options,
                   const sp_terminal *terminal)
{
    static text_writer writer; /* static because it is large; only one thread calls this */
    writer = (text_writer){.out = out, .tree = tree, .terminal = terminal};
    writer.style = choose_style(terminal);
    writer.minimum = (uint64_t)((double)tree->nodes[0].value * options->min_percent / 100);
    bool done = choose_frames(&writer, options->limit == SP_FLAME_NO_LIMIT ? SP_FLAME_DEFAULT_LIMIT
                                                                           : options->limit);
    if (done) {
        sp_flame_text_legend(out, tree->selection, options, terminal);
        write_head(&writer, options);
        write_frames(&writer);
        write_left_out(&writer);
    }
    free(writer.is_shown);
    return done && !out->failed;
}
