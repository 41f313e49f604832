/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "tool/command/commands.h"
#include "tool/command/diff_answer.h"
#include "tool/model/dropped_calls.h"
#include "tool/model/nameless.h"
#include "tool/read/repeats.h"
#include "tool/text/messages.h"

typedef struct diff_options {
    const char *by, *type, *format, *out, *fail_above, *where_a, *where_b;
    uint64_t limit;
} diff_options;

/* One side of the comparison, read from its file. */
typedef struct side {
    sp_input input;
    sp_model model;
    sp_selection selection;
} side;

static int read_side(side *to, const char *file, const char *type, const char *option,
                     const char *where)
{
    const sp_operands files = {.items = (const char *[]){file}, .count = 1};
    const sp_select_options select = {.type = type, .where = where, .where_option = option};
    int status = sp_input_read_once(&to->input, &files);
    if (status == SP_TOOL_DONE)
        status = sp_model_build(&to->model, &to->input);
    return status == SP_TOOL_DONE ? sp_select(&to->selection, &to->model, &select) : status;
}

static void forget_side(side *of)
{
    sp_selection_deinit(&of->selection);
    sp_model_deinit(&of->model);
    sp_input_deinit(&of->input);
}

/* Parse TEXT, such as "5" or "5%". */
static int parse_limit(const char *text, double *out)
{
    char *end;
    *out = strtod(text, &end);
    end += *end == '%';
    if (end == text || *end != 0 || !(*out >= 0))
        return sp_tool_wrong("diff: --fail-above %s: a number of percent is needed, such as 5%%",
                             text);
    return SP_TOOL_DONE;
}

static int check_sides(const side *a, const side *b)
{
    const sp_model_type *type = &a->model.types[a->selection.type];
    const sp_model_type *other = &b->model.types[b->selection.type];
    if (strcmp(type->name, other->name) == 0 && strcmp(type->unit, other->unit) == 0)
        return SP_TOOL_DONE;
    return sp_tool_wrong("diff: A has %s in %s and B has %s in %s: say with --type what both have",
                         type->name, type->unit, other->name, other->unit);
}

/* ---- --fail-above ---- */

/* The function to name when the limit is exceeded; NULL: it is not exceeded. Of the functions that
 * surely grew by more than LIMIT, it is the one whose own value grew most, because callers grow
 * with the functions that they call. */
static const sp_function_change *find_culprit(const sp_comparison *comparison, double limit)
{
    const sp_function_change *found = NULL;
    for (size_t i = 0; i < comparison->count; i++) {
        const sp_function_change *item = &comparison->items[i];
        bool above = item->total.sure_low > limit || item->self.sure_low > limit;
        if (above && (!found || item->self.change > found->self.change))
            found = item;
    }
    return found;
}

/* HOW ends the message: how the comparison was made, if the answer shows another one. */
static int judge(const sp_comparison *comparison, double limit, const char *how)
{
    const sp_function_change *item = find_culprit(comparison, limit);
    const sp_change *whole = &comparison->whole;
    if (item) {
        const sp_change *change = item->total.sure_low > limit ? &item->total : &item->self;
        return sp_tool_no("%s grew by %.1f %% of the whole, for sure by more than %.1f %%: above "
                          "--fail-above %g%%%s",
                          item->name, change->change, change->sure_low, limit, how);
    }
    if (comparison->by != SP_BY_SAMPLES && whole->is_asked && whole->sure_low > limit)
        return sp_tool_no("the whole grew by %.1f %%, for sure by more than %.1f %%: above "
                          "--fail-above %g%%%s",
                          whole->change, whole->sure_low, limit, how);
    return SP_TOOL_DONE;
}

static bool has_requests(const sp_functions *side)
{
    return side->requests > 0 && side->clusters > 0;
}

/* Shares stay the same when everything takes longer. So without --by, requests are judged, too,
 * and a message says when they cannot be. */
static int judge_requests(const sp_comparison *shares, const sp_diff_answer *sides, double limit)
{
    if (!has_requests(&shares->a) || !has_requests(&shares->b)) {
        sp_tool_note("--fail-above compared shares of the whole only, and these stay the same when "
                     "everything takes longer: %s has no spans with samples, so what a request "
                     "takes is not known; --by time compares what a second has",
                     has_requests(&shares->a) ? sides->b.name : sides->a.name);
        return SP_TOOL_DONE;
    }
    sp_comparison requests = {0};
    int status = sp_compare(&requests, sides->a.selection, sides->b.selection, SP_BY_SPANS);
    if (status == SP_TOOL_DONE)
        status = judge(&requests, limit, ", per request: --by spans shows it");
    sp_comparison_deinit(&requests);
    return status;
}

/* ---- the answer ---- */

/* The name of a side: its file, and the query that selected its spans. The name lives as long as
 * OF. */
static const char *side_name(side *of, const char *file, const char *where)
{
    const char *both =
        where ? sp_arena_printf(&of->input.memory, "%s where %s", file, where) : NULL;
    return both ? both : file;
}

/* IS_ONE: both sides are of one recording. */
static void note_dropped(const side *a, const side *b, bool is_one)
{
    sp_model_note_dropped_calls(&a->model, a->selection.type, is_one ? "" : "A: ");
    if (!is_one)
        sp_model_note_dropped_calls(&b->model, b->selection.type, "B: ");
}

/* The service of all profiles of MODEL; NULL: it is unknown, or there are several. */
static const char *only_service(const sp_model *model)
{
    const char *service = model->profile_count ? model->profiles[0].service : "";
    for (size_t i = 1; i < model->profile_count; i++)
        if (strcmp(model->profiles[i].service, service) != 0)
            return NULL;
    return *service ? service : NULL;
}

/* Whether ITEM moved because only one side has it: B, or, if not OF_B, A. */
static bool is_only_of(const sp_function_change *item, bool of_b)
{
    const sp_change *total = &item->total;
    return sp_change_is_move(total) && (of_b ? total->a == 0 : total->b == 0);
}

/* Write a note when most samples of a side have no name, or when functions without a name moved
 * because only this side has them. */
static void note_nameless(const side *of, const sp_comparison *comparison, bool is_b)
{
    const char *side = is_b ? "B: " : "A: ", *first = NULL;
    size_t count = 0;
    if (sp_selection_note_nameless(&of->selection, side))
        return;
    for (size_t i = 0; i < comparison->count; i++) {
        const sp_function_change *item = &comparison->items[i];
        if (!is_only_of(item, is_b) || !sp_is_nameless(item->name))
            continue;
        first = first ? first : item->name;
        count++;
    }
    if (count)
        sp_tool_note("%s%zu of the functions that moved %s no name, such as %s, and the other "
                     "side may have %s by name: install the debug symbols " SP_NAMELESS_REMEDY,
                     side, count, count == 1 ? "has" : "have", first, count == 1 ? "it" : "them");
}

/* Say what may be the cause when names of functions are different on the two sides. */
static void note_names(const side *a, const side *b, const sp_comparison *comparison)
{
    const char *service = only_service(&a->model), *other = only_service(&b->model);
    if (service && other && strcmp(service, other) != 0)
        sp_tool_note("A is of the service %s and B of %s: functions that only one of them has are "
                     "listed as moved",
                     service, other);
    note_nameless(a, comparison, false);
    note_nameless(b, comparison, true);
}

/* The parsed options. */
typedef struct wanted {
    int by; /* sp_compare_by */
    const char *format;
    double limit; /* the number of --fail-above */
} wanted;

/* Parse OPTIONS. This happens before the files are read, because reading may take long. */
static int read_options(wanted *out, const diff_options *options)
{
    *out = (wanted){.format = "text"};
    int status = sp_option_word("diff", "--by", options->by ? options->by : "samples",
                                sp_compare_by_names, &out->by);
    if (status == SP_TOOL_DONE)
        status = sp_output_format_find("diff", options->format, options->out,
                                       ".html, .svg, .json or .txt", &out->format);
    if (status == SP_TOOL_DONE)
        status = sp_diff_format_find("diff", out->format);
    if (status == SP_TOOL_DONE && options->fail_above)
        status = parse_limit(options->fail_above, &out->limit);
    return status;
}

/* With wall time, how long requests last is part of the question: no sample shows the time in which
 * they waited in a queue. CPU time is asked for where durations depend on the machine's load. */
static int judge_durations(const sp_diff_answer *sides, double limit)
{
    const sp_selection *selection = sides->a.selection;
    const sp_durations *a = &sides->a.durations, *b = &sides->b.durations;
    if (!selection->model->types[selection->type].is_wall || !a->count || !b->count)
        return SP_TOOL_DONE;
    sp_durations_change change = sp_durations_compare(a, b);
    if (!(change.low > limit))
        return SP_TOOL_DONE;
    return sp_tool_no("requests last %.1f %% longer (the median), for sure more than %.1f %%: "
                      "above --fail-above %g%%",
                      change.change, change.low, limit);
}

static int answer(side *a, side *b, const sp_operands *files, const diff_options *options,
                  const wanted *wanted)
{
    sp_comparison comparison = {0};
    int status = check_sides(a, b);
    if (status == SP_TOOL_DONE)
        status = sp_compare(&comparison, &a->selection, &b->selection, (sp_compare_by)wanted->by);
    sp_diff_answer made = {
        .a = {.name = side_name(a, files->items[0], options->where_a), .selection = &a->selection},
        .b = {.name = side_name(b, files->items[1], options->where_b), .selection = &b->selection},
        .comparison = &comparison,
        .limit = options->limit};
    if (status == SP_TOOL_DONE && !(sp_durations_find(&made.a.durations, &a->selection) &&
                                    sp_durations_find(&made.b.durations, &b->selection)))
        status = sp_tool_no_memory();
    if (status == SP_TOOL_DONE) {
        note_dropped(a, b, strcmp(files->items[0], files->items[1]) == 0);
        note_names(a, b, &comparison);
        status = sp_diff_answer_write(&made, wanted->format, options->out);
    }
    if (status == SP_TOOL_DONE && options->fail_above)
        status = judge(&comparison, wanted->limit, "");
    if (status == SP_TOOL_DONE && options->fail_above && !options->by)
        status = judge_requests(&comparison, &made, wanted->limit);
    if (status == SP_TOOL_DONE && options->fail_above &&
        (!options->by || wanted->by == SP_BY_SPANS))
        status = judge_durations(&made, wanted->limit);
    sp_comparison_deinit(&comparison);
    return status;
}

static int diff(sp_operands *files, const diff_options *options)
{
    side a = {0}, b = {0};
    wanted wanted;
    /* With one file, two kinds of requests of one recording are compared. */
    if (files->count == 1 && (options->where_a || options->where_b))
        files->items[files->count++] = files->items[0];
    if (files->count != 2)
        return sp_tool_wrong("diff: two files, or prefixes of files, are needed: A and B; one is "
                             "enough with --where-a or --where-b");
    int status = read_options(&wanted, options);
    if (status == SP_TOOL_DONE)
        status = read_side(&a, files->items[0], options->type, "--where-a", options->where_a);
    if (status == SP_TOOL_DONE)
        status = read_side(&b, files->items[1], options->type, "--where-b", options->where_b);
    if (status == SP_TOOL_DONE)
        status = answer(&a, &b, files, options, &wanted);
    status = sp_input_status(&a.input, sp_input_status(&b.input, status));
    forget_side(&a);
    forget_side(&b);
    return status;
}

static int run(int argc, char **argv)
{
    diff_options options = {.limit = 20};
    sp_operands files;
    int status = sp_options_parse(&sp_command_diff, argc, argv, &options, &files);
    if (status == SP_OPTIONS_GO_ON)
        status = diff(&files, &options);
    sp_operands_deinit(&files);
    return status;
}

#define AT(member) offsetof(diff_options, member)
static const sp_option options[] = {
    {"--by", "WHAT", SP_OPTION_TEXT, AT(by),
     "samples (shares of the whole), spans (what a request takes), time (what a second has) "
     "(samples)"},
    {"--type", "TYPE", SP_OPTION_TEXT, AT(type), "as for flame (cpu, else wall)"},
    {"--fail-above", "PCT", SP_OPTION_TEXT, AT(fail_above),
     "exit 1 when a function surely grew by more than PCT of the whole; without --by: its share, "
     "or in one request; with wall time also when requests surely last so much longer"},
    {"--limit", "N", SP_OPTION_NUMBER, AT(limit),
     "at most N functions in text and json (20); 0: all"},
    {"--format", "FORMAT", SP_OPTION_TEXT, AT(format),
     "text, json, svg, html (by the end of OUT, else text)"},
    {"-o", "OUT", SP_OPTION_TEXT, AT(out),
     "write to this file (standard output); .json, .svg, .html and .txt choose the format"},
    {"--where-a", "Q", SP_OPTION_TEXT, AT(where_a), "of A only spans that match, as for flame"},
    {"--where-b", "Q", SP_OPTION_TEXT, AT(where_b), "of B only spans that match"},
};

const sp_command sp_command_diff = {
    .name = "diff",
    .arguments = "A B [options]",
    .summary = "Which functions take more in B than in A, beyond chance.",
    .details =
        "A function is listed as moved when chance alone would make so large a change in any "
        "function at\nmost once in 20 comparisons of equal programs. Samples of one request "
        "count together: they are no\nindependent witnesses.",
    .examples = "# two recordings; exit code 1 when a function takes 5 % of a request more\n"
                "spanprof diff before after --by spans --fail-above 5%\n"
                "# the flamegraph of after: red grew, blue shrank\n"
                "spanprof diff before after -o diff.html\n"
                "# slow requests against quick ones of one recording\n"
                "spanprof diff shop --where-a 'duration < 20ms' --where-b 'duration > 50ms'",
    .options = options,
    .option_count = SP_ARRAY_LENGTH(options),
    .run = run,
};
