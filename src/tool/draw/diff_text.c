/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/counted.h"
#include "tool/draw/diff.h"
#include "tool/text/escape.h"

enum { NUMBERS_COLUMNS = 51, UNSURE_ROWS = 5 };

/* A request that takes more than this many times as much, or as little, is worth a remark. */
#define MUCH_LARGER 1.25

const char *const sp_compare_by_names[] = {"samples", "spans", "time", NULL};

/* What the percentages of the table refer to. */
const char *const sp_compare_wholes[] = {
    "in % of all samples of its side",
    "of a request, in % of what one takes in A",
    "of a second, in % of what one has in A",
};

typedef struct writer {
    sp_buffer *out;
    const sp_diff_answer *answer;
    const sp_terminal *terminal;
    size_t rows; /* how many more are allowed */
} writer;

static void write_fitting(writer *to, const char *text, unsigned columns)
{
    sp_buffer escaped = SP_BUFFER_INIT(1 << 20);
    if (*text && sp_escape_terminal(&escaped, text))
        sp_text_fit(to->out, (const char *)escaped.data,
                    sp_terminal_name_columns(to->terminal, columns > 24 ? columns : 24),
                    to->terminal->utf8 ? "…" : "~");
    sp_buffer_deinit(&escaped);
    sp_buffer_add_char(to->out, '\n');
}

void sp_diff_side_line(char out[SP_DIFF_LINE_LENGTH], char letter, const sp_diff_side *side,
                       const sp_functions *functions)
{
    const sp_model_type *type = &side->selection->model->types[side->selection->type];
    char value[SP_VALUE_LENGTH];
    sp_format_value(value, side->selection->value, type->unit);
    snprintf(out, SP_DIFF_LINE_LENGTH, "%c: %.200s: %s %s in %s, %s", letter, side->name,
             sp_selection_name(side->selection), value,
             SP_COUNTED(side->selection->count, "sample"),
             SP_COUNTED(functions->requests, "request"));
}

void sp_diff_whole_line(char out[SP_DIFF_LINE_LENGTH], const sp_comparison *comparison)
{
    const sp_change *whole = &comparison->whole;
    *out = 0;
    const char *what = comparison->by == SP_BY_SPANS ? "a request of B" : "a second of B";
    if (comparison->by == SP_BY_SAMPLES || !whole->is_asked)
        return;
    int used = snprintf(out, SP_DIFF_LINE_LENGTH, "%s takes %.1f %% of what it takes in A ", what,
                        whole->b);
    if (isfinite(whole->low))
        snprintf(out + used, SP_DIFF_LINE_LENGTH - (size_t)used, "(%.1f to %.1f %%)",
                 100 + whole->low, 100 + whole->high);
    else
        snprintf(out + used, SP_DIFF_LINE_LENGTH - (size_t)used,
                 "(? %%: too few samples; record for longer)");
}

void sp_diff_durations_line(char out[SP_DIFF_LINE_LENGTH], const sp_diff_answer *answer)
{
    const sp_durations *a = &answer->a.durations, *b = &answer->b.durations;
    char last_a[SP_DURATION_LENGTH], last_b[SP_DURATION_LENGTH];
    *out = 0;
    if (!a->count || !b->count || a->median <= 0)
        return;
    sp_format_duration(last_a, (uint64_t)a->median);
    sp_format_duration(last_b, (uint64_t)b->median);
    sp_durations_change change = sp_durations_compare(a, b);
    int used =
        snprintf(out, SP_DIFF_LINE_LENGTH, "requests last %s in A and %s in B (medians): %+.1f %% ",
                 last_a, last_b, change.change);
    if (isfinite(change.low) && isfinite(change.high))
        snprintf(out + used, SP_DIFF_LINE_LENGTH - (size_t)used, "(%+.1f to %+.1f %%)", change.low,
                 change.high);
    else
        snprintf(out + used, SP_DIFF_LINE_LENGTH - (size_t)used,
                 "(? %%: fewer than 10 requests on a side)");
}

static void write_side(writer *to, char letter, const sp_diff_side *side,
                       const sp_functions *functions)
{
    char line[SP_DIFF_LINE_LENGTH];
    sp_diff_side_line(line, letter, side, functions);
    sp_buffer escaped = SP_BUFFER_INIT(1 << 16);
    if (sp_escape_terminal(&escaped, line))
        sp_text_wrap(to->out, (const char *)escaped.data, to->terminal->columns);
    sp_buffer_deinit(&escaped);
    sp_buffer_add_char(to->out, '\n');
}

/* Write VALUE in FORM, eight columns wide; "?" when it is not finite, because there are too few
 * samples. */
static void write_number(writer *to, double value, const char *form)
{
    char text[32] = "?";
    if (isfinite(value))
        snprintf(text, sizeof text, form, value);
    sp_buffer_printf(to->out, "%8s", text);
}

/* Write a change; COLORED: in the colour of its direction. */
static void write_change(writer *to, double change, bool colored)
{
    colored = colored && to->terminal->color;
    if (colored)
        sp_buffer_add_string(to->out, change > 0 ? "\033[31m" : "\033[34m");
    write_number(to, change, "%+.1f");
    if (colored)
        sp_buffer_add_string(to->out, "\033[0m");
}

/* Of a row that moved, the change that moved is coloured. */
static void write_row(writer *to, const sp_function_change *item)
{
    bool by_total = sp_change_is_move(&item->total);
    write_change(to, item->total.change, by_total);
    write_number(to, item->total.low, "%+.1f");
    write_number(to, item->total.high, "%+.1f");
    write_number(to, item->total.a, "%.1f");
    write_number(to, item->total.b, "%.1f");
    write_change(to, item->self.change, !by_total && sp_change_is_move(&item->self));
    sp_buffer_add_string(to->out, "   ");
    unsigned columns = to->terminal->columns;
    write_fitting(to, item->name, columns > NUMBERS_COLUMNS ? columns - NUMBERS_COLUMNS : 0);
}

/* Whether ITEM only repeats the change of the whole, as main does: it is in every sample of both
 * sides, and its own time did not move. Never with SP_BY_SAMPLES. */
static bool is_in_all(const sp_comparison *comparison, const sp_function_change *item)
{
    const double rounding = 1e-6;
    return comparison->by != SP_BY_SAMPLES && !sp_change_is_move(&item->self) &&
           item->total.a >= comparison->whole.a - rounding &&
           item->total.b >= comparison->whole.b - rounding;
}

static size_t count_in_all(const sp_comparison *comparison)
{
    size_t count = 0;
    for (size_t i = 0; i < comparison->moves; i++)
        count += is_in_all(comparison, &comparison->items[i]);
    return count;
}

/* Write the functions that moved in one direction. */
static void write_moves(writer *to, bool grew, const char *title)
{
    const sp_comparison *comparison = to->answer->comparison;
    bool titled = false;
    for (size_t i = 0; i < comparison->moves && to->rows > 0; i++) {
        const sp_function_change *item = &comparison->items[i];
        bool by_total = sp_change_is_move(&item->total);
        if ((by_total ? item->total.change > 0 : item->self.change > 0) != grew ||
            is_in_all(comparison, item))
            continue;
        if (!titled)
            sp_buffer_printf(to->out, "%s\n", title);
        titled = true;
        write_row(to, item);
        to->rows--;
    }
}

/* Write the first functions that did not move: more samples could show that they did. */
static void write_unsure(writer *to)
{
    const sp_comparison *comparison = to->answer->comparison;
    size_t shown = 0;
    for (size_t i = comparison->moves; i < comparison->count && shown < UNSURE_ROWS; i++) {
        if (!comparison->items[i].total.is_asked)
            continue;
        if (shown++ == 0)
            sp_buffer_add_string(to->out, "within chance\n");
        write_row(to, &comparison->items[i]);
    }
}

/* Whether 0 is outside the interval of CHANGE. */
static bool excludes_zero(const sp_change *change)
{
    return change->is_asked && (change->low > 0 || change->high < 0);
}

static void write_line(writer *to, const char *text)
{
    sp_text_wrap(to->out, text, to->terminal->columns);
    sp_buffer_add_char(to->out, '\n');
}

/* What a request of B takes, divided by what one of A takes; 1: not known. */
static double ratio_of_requests(const sp_comparison *comparison)
{
    double a = comparison->a.all.value * (double)comparison->b.requests;
    double b = comparison->b.all.value * (double)comparison->a.requests;
    return a > 0 && b > 0 ? b / a : 1;
}

/* Advise the user to compare requests, if a request changed by more than MUCH_LARGER, or if no
 * share moved. */
static void write_advice_on_requests(writer *to)
{
    const sp_comparison *comparison = to->answer->comparison;
    double ratio = ratio_of_requests(comparison);
    char line[SP_DIFF_LINE_LENGTH];
    if (comparison->by != SP_BY_SAMPLES || !comparison->a.requests || !comparison->b.requests)
        return;
    snprintf(line, sizeof line,
             "for each request B has %.0f %% of what A has, which shares do not show: --by spans "
             "compares what a request takes",
             100 * ratio);
    if (ratio > MUCH_LARGER || ratio < 1 / MUCH_LARGER)
        write_line(to, line);
    else if (comparison->moves == 0)
        write_line(to, "--by spans compares what a request takes; of a function that grew, that is "
                       "often surer than its share");
}

/* Explain intervals without 0 that are not moves. Called when nothing moved. */
static void write_advice(writer *to)
{
    const sp_comparison *comparison = to->answer->comparison;
    bool some_exclude_zero = false;
    for (size_t i = 0; i < comparison->count; i++)
        some_exclude_zero = some_exclude_zero || excludes_zero(&comparison->items[i].total);
    if (some_exclude_zero)
        write_line(to, "an interval without 0 is not yet a move: one in 20 questions has such an "
                       "interval by chance; more samples would tell");
}

static void write_whole(writer *to)
{
    char line[SP_DIFF_LINE_LENGTH];
    sp_diff_whole_line(line, to->answer->comparison);
    if (*line)
        sp_buffer_printf(to->out, "%s\n", line);
    sp_diff_durations_line(line, to->answer);
    if (*line)
        sp_buffer_printf(to->out, "%s\n", line);
}

bool sp_diff_text(sp_buffer *out, const sp_diff_answer *answer, const sp_terminal *terminal)
{
    const sp_comparison *comparison = answer->comparison;
    writer to = {.out = out,
                 .answer = answer,
                 .terminal = terminal,
                 .rows = answer->limit ? answer->limit : SIZE_MAX};
    write_side(&to, 'A', &answer->a, &comparison->a);
    write_side(&to, 'B', &answer->b, &comparison->b);
    write_whole(&to);
    sp_buffer_printf(out, "\n%s; the interval holds 95 of 100 times\n\n",
                     sp_compare_wholes[comparison->by]);
    sp_buffer_printf(out, "%8s%16s%8s%8s%8s   %s\n", "change", "interval", "A", "B", "self",
                     "function");
    write_moves(&to, true, "grew");
    write_moves(&to, false, "shrank");
    size_t in_all = count_in_all(comparison);
    if (comparison->moves == in_all)
        write_unsure(&to);
    if (in_all)
        sp_buffer_printf(out, "in every sample, so they changed as the whole did: %s\n",
                         SP_COUNTED(in_all, "function"));
    sp_buffer_printf(
        out, "\n%s moved, of %s asked at once%s\n", SP_COUNTED(comparison->moves, "function"),
        SP_COUNTED(comparison->asked, "question"),
        answer->limit && comparison->moves - in_all > answer->limit ? "; --limit shows more" : "");
    if (comparison->moves == 0)
        write_advice(&to);
    write_advice_on_requests(&to);
    return !out->failed;
}
