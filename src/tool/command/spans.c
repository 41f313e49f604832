/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/command/spans.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool/command/commands.h"
#include "tool/model/advice.h"
#include "tool/model/dropped_calls.h"
#include "tool/model/query.h"
#include "tool/model/queued.h"
#include "tool/model/select.h"
#include "tool/read/repeats.h"
#include "tool/read/run_folders.h"
#include "tool/text/messages.h"

typedef int (*comparison)(const void *, const void *);

/* a global, because the comparison function of qsort gets no context */
static const sp_model_span *sorted_spans;

static int by_number(uint64_t x, uint64_t y, const void *a, const void *b)
{
    uint32_t first = *(const uint32_t *)a, second = *(const uint32_t *)b;
    if (x != y)
        return x > y ? -1 : 1;
    return first < second ? -1 : first > second;
}

static const sp_model_span *span_at(const void *number)
{
    return &sorted_spans[*(const uint32_t *)number];
}

static int by_duration(const void *a, const void *b)
{
    const sp_model_span *x = span_at(a), *y = span_at(b);
    return by_number(x->end_ns - x->start_ns, y->end_ns - y->start_ns, a, b);
}

static int by_start(const void *a, const void *b)
{
    return by_number(~span_at(a)->start_ns, ~span_at(b)->start_ns, a, b);
}

static int by_cpu(const void *a, const void *b)
{
    return by_number(span_at(a)->total_value, span_at(b)->total_value, a, b);
}

static int by_samples(const void *a, const void *b)
{
    return by_number(span_at(a)->total_count, span_at(b)->total_count, a, b);
}

static int by_wall(const void *a, const void *b)
{
    return by_number(sp_where_sum(span_at(a)->wall_ns), sp_where_sum(span_at(b)->wall_ns), a, b);
}

static int by_queue(const void *a, const void *b)
{
    return by_number(span_at(a)->queued_ns, span_at(b)->queued_ns, a, b);
}

static int by_alloc(const void *a, const void *b)
{
    return by_number(span_at(a)->alloc_value, span_at(b)->alloc_value, a, b);
}

/* For files without a CPU profile: compare by the CPU class of wall time. */
static int by_cpu_of_wall(const void *a, const void *b)
{
    return by_number(span_at(a)->wall_ns[SP_WHERE_CPU], span_at(b)->wall_ns[SP_WHERE_CPU], a, b);
}

static int no_allocations(void)
{
    char advice[SP_ADVICE_LENGTH];
    sp_advice_record(advice, "alloc");
    return sp_tool_no("spans: --sort alloc: the files have no samples of allocations%s", advice);
}

static int no_cpu_time(void)
{
    return sp_tool_no("spans: --sort cpu: the files have no samples of CPU time; record them with "
                      "SPANPROF_PROFILES=cpu, or longer: a short run has none");
}

static bool has_cpu_samples(const sp_model *model)
{
    uint32_t cpu = sp_model_cpu_type(model, true);
    return cpu != SP_MODEL_NONE && model->types[cpu].samples > 0;
}

/* Check that the files have what KEY of --sort needs. Returns SP_TOOL_DONE, or SP_TOOL_NO after a
 * message. GROUPS: names are sorted, which have no classes of wall time. */
static int check_sort(const sp_model *model, const char *key, bool groups)
{
    uint32_t wall = sp_model_wall_type(model, true);
    bool tells_cpu = !groups && wall != SP_MODEL_NONE && model->types[wall].has_waiting_samples;
    if ((strcmp(key, "wall") == 0 || strcmp(key, "queue") == 0) && wall == SP_MODEL_NONE)
        return sp_tool_no("spans: --sort %s: the files have no wall profile; record one with "
                          "SPANPROF_WALL_HZ",
                          key);
    if (strcmp(key, "alloc") == 0 && !sp_spans_alloc_type(model))
        return no_allocations();
    if (strcmp(key, "cpu") == 0 && !has_cpu_samples(model) && !tells_cpu)
        return no_cpu_time();
    return SP_TOOL_DONE;
}

static int find_comparison(const sp_model *model, const char *name, comparison *out)
{
    static const struct {
        const char *name;
        comparison comparison;
    } all[] = {{"duration", by_duration}, {"start", by_start}, {"cpu", by_cpu},
               {"wall", by_wall},         {"queue", by_queue}, {"alloc", by_alloc},
               {"samples", by_samples}};
    size_t i = 0;
    while (i < SP_ARRAY_LENGTH(all) && strcmp(all[i].name, name) != 0)
        i++;
    if (i == SP_ARRAY_LENGTH(all))
        return sp_tool_wrong("spans: --sort %s is unknown; there are duration, start, cpu, wall, "
                             "queue, alloc, samples",
                             name);
    *out = all[i].comparison;
    if (*out == by_cpu && !has_cpu_samples(model))
        *out = by_cpu_of_wall;
    return check_sort(model, name, false);
}

/* As find_comparison, for a table of names. */
static int find_order(const sp_model *model, const char *name, sp_groups_order *out)
{
    static const char *const names[] = {
        [SP_GROUPS_BY_DURATION] = "duration", [SP_GROUPS_BY_VALUE] = "cpu",
        [SP_GROUPS_BY_ALLOC] = "alloc",       [SP_GROUPS_BY_WALL] = "wall",
        [SP_GROUPS_BY_QUEUE] = "queue",
    };
    size_t i = 0;
    while (i < SP_ARRAY_LENGTH(names) && strcmp(names[i], name) != 0)
        i++;
    if (i == SP_ARRAY_LENGTH(names))
        return sp_tool_wrong(
            "spans: --sort %s orders no names; with --group-by and --by-name "
            "there are duration, cpu, alloc, wall, queue, each a sum over the spans "
            "of a name",
            name);
    *out = (sp_groups_order)i;
    return check_sort(model, name, true);
}

/* The spans that the user selects by --where and by ids. */
typedef struct chosen_spans {
    sp_asked asked;
    bool *by_where; /* by number of span; NULL: --where was not given */
    bool *by_id;    /* spans of --span, with their descendants; NULL: --span was not given */
} chosen_spans;

static int mark_asked(chosen_spans *chosen, const sp_model *model)
{
    int status = sp_asked_find(&chosen->asked, model);
    if (status != SP_TOOL_DONE)
        return status;
    chosen->by_id = calloc(model->span_index.count + (size_t)1, sizeof *chosen->by_id);
    if (!chosen->by_id)
        return sp_tool_no_memory();
    sp_asked_mark(&chosen->asked, chosen->by_id);
    sp_asked_mark_descendants(model, chosen->by_id);
    return SP_TOOL_DONE;
}

/* Fill CHOSEN. Free it by chosen_deinit in any case. */
static int choose(chosen_spans *chosen, const sp_model *model, const sp_spans_options *options)
{
    *chosen = (chosen_spans){.by_id = NULL};
    int status = sp_asked_parse(&chosen->asked, model, &options->span, &options->trace);
    if (status == SP_TOOL_DONE && options->where)
        status = sp_select_spans(model, "--where", options->where, &chosen->by_where);
    if (status == SP_TOOL_DONE && options->span.count)
        status = mark_asked(chosen, model);
    return status;
}

static void chosen_deinit(chosen_spans *chosen)
{
    free(chosen->by_where);
    free(chosen->by_id);
}

static bool matches(const sp_model *model, uint32_t number, const sp_spans_options *options,
                    const chosen_spans *chosen)
{
    const sp_model_span *span = &model->spans[number];
    if (!sp_asked_takes_trace(&chosen->asked, span->id.trace_id) ||
        (chosen->by_where && !chosen->by_where[number]) ||
        (chosen->by_id && !chosen->by_id[number]))
        return false;
    if (!sp_text_list_takes(&options->name, span->name))
        return false;
    return !options->roots || sp_model_is_local_root(model, number);
}

/* Whether there are conditions besides ids. With them, it is possible that no span matches although
 * the files have the ids. */
static bool has_conditions(const sp_spans_options *options)
{
    return options->name.count || options->where || options->roots;
}

static int no_match(const sp_model *model, const sp_spans_options *options,
                    const chosen_spans *chosen)
{
    if ((chosen->asked.span_count || chosen->asked.trace_count) && !has_conditions(options))
        return sp_asked_absent(&chosen->asked, model);
    char hint[SP_QUERY_HINT_LENGTH];
    if (sp_query_hint(hint, model, options->where))
        return sp_tool_no("no span matches --where: %s", hint);
    if (sp_name_hint(hint, model, &options->name))
        return sp_tool_no("no span matches --name: %s", hint);
    return sp_tool_no(
        "no span matches; leave out conditions, or `spanprof spans` without them lists "
        "all");
}

static int write_groups(const sp_model *model, const uint32_t *list, size_t count,
                        const sp_spans_options *options, sp_groups_order order)
{
    sp_groups groups;
    sp_buffer out = SP_BUFFER_INIT(SP_OUTPUT_MAX_BYTES);
    sp_terminal terminal = sp_terminal_get(false);
    int status = SP_TOOL_WRONG;
    if (!sp_groups_make(&groups, model, list, count, order)) {
        sp_groups_deinit(&groups);
        return sp_tool_no_memory();
    }
    size_t shown = sp_spans_shown(options, groups.count);
    if (options->json) {
        status = sp_output_write_json(sp_spans_groups_json(model, &groups, shown), NULL);
    } else {
        sp_spans_groups(&out, model, &groups, shown, &terminal);
        sp_spans_more(&out, shown, groups.count, "name", &terminal);
        status = sp_output_write(&out, NULL);
    }
    sp_groups_deinit(&groups);
    return status;
}

static int check_group(const sp_spans_options *options)
{
    if (options->group_by && strcmp(options->group_by, "name") != 0)
        return sp_tool_wrong("spans: --group-by %s is unknown; there is name", options->group_by);
    return SP_TOOL_DONE;
}

/* Reverse the order. On a terminal the most important line is then next to the prompt, and the user
 * need not scroll. */
static void reverse(uint32_t *list, size_t count)
{
    for (size_t i = 0; i < count / 2; i++) {
        uint32_t first = list[i];
        list[i] = list[count - 1 - i];
        list[count - 1 - i] = first;
    }
}

static int write_list(const sp_model *model, uint32_t *list, size_t count,
                      const sp_spans_options *options, comparison compare)
{
    bool is_one = options->span.count == 1 || (!options->span.count && options->trace.count == 1);
    bool tree = is_one && !options->json && !has_conditions(options) && !options->sort &&
                options->limit == SP_SPANS_NO_LIMIT;
    if (!tree) {
        sorted_spans = model->spans;
        qsort(list, count, sizeof *list, compare);
    }
    size_t shown = tree ? count : sp_spans_shown(options, count);
    if (options->json)
        return sp_output_write_json(sp_spans_json(model, list, shown), NULL);
    sp_buffer out = SP_BUFFER_INIT(SP_OUTPUT_MAX_BYTES);
    sp_terminal terminal = sp_terminal_get(false);
    if (!tree && terminal.is_terminal && compare != by_start)
        reverse(list, shown);
    if (tree)
        sp_spans_tree(&out, model, list, shown, &terminal);
    else
        sp_spans_table(&out, model, list, shown, compare == by_alloc, &terminal);
    sp_spans_more(&out, shown, count, "span", &terminal);
    return sp_output_write(&out, NULL);
}

/* List the selected spans. COMPARE is the order of a table of spans, ORDER that of a table of
 * names. */
static int list_spans(const sp_model *model, const sp_spans_options *options,
                      const chosen_spans *chosen, comparison compare, sp_groups_order order)
{
    uint32_t *list = malloc((model->span_index.count + (size_t)1) * sizeof *list);
    size_t count = 0;
    int status;
    if (!list)
        return sp_tool_no_memory();
    for (uint32_t i = 0; i < model->span_index.count; i++)
        if (matches(model, model->span_order[i], options, chosen))
            list[count++] = model->span_order[i];
    if (!count)
        status = no_match(model, options, chosen);
    else if (options->group_by)
        status = write_groups(model, list, count, options, order);
    else
        status = write_list(model, list, count, options, compare);
    free(list);
    return status;
}

static int answer_from(const sp_model *model, const sp_spans_options *options)
{
    chosen_spans chosen = {.by_id = NULL};
    comparison compare = by_duration;
    sp_groups_order order = SP_GROUPS_BY_DURATION;
    int status = check_group(options);
    if (status == SP_TOOL_DONE && options->sort)
        status = options->group_by ? find_order(model, options->sort, &order)
                                   : find_comparison(model, options->sort, &compare);
    if (status == SP_TOOL_DONE)
        status = choose(&chosen, model, options);
    if (status == SP_TOOL_DONE)
        status = list_spans(model, options, &chosen, compare, order);
    chosen_deinit(&chosen);
    return status;
}

/* A wait is selected when the span that waited matches, or the local root of that span. */
static bool chooses(const sp_model *model, uint32_t number, const sp_spans_options *options,
                    const chosen_spans *chosen)
{
    return matches(model, number, options, chosen) ||
           matches(model, sp_model_local_root(model, number), options, chosen);
}

static int check_holders(const sp_spans_options *options)
{
    if (options->sort)
        return sp_tool_wrong("spans: --holders has the longest waits first; leave out --sort");
    if (options->group_by)
        return sp_tool_wrong("spans: --holders has a line for each span that waited; leave out "
                             "--group-by, or --by-name");
    return SP_TOOL_DONE;
}

static int answer_chosen_holders(const sp_model *model, const sp_spans_options *options,
                                 const chosen_spans *chosen)
{
    bool *marks = calloc(model->span_index.count + (size_t)1, sizeof *marks);
    char hint[SP_QUERY_HINT_LENGTH];
    if (!marks)
        return sp_tool_no_memory();
    if (sp_query_hint(hint, model, options->where)) {
        free(marks);
        return sp_tool_no("no span matches --where: %s", hint);
    }
    for (uint32_t i = 0; i < model->span_index.count; i++)
        marks[i] = chooses(model, i, options, chosen);
    int status = sp_spans_holders(model, marks, options);
    free(marks);
    return status;
}

static int answer_holders(const sp_model *model, const sp_spans_options *options)
{
    chosen_spans chosen = {.by_id = NULL};
    int status = check_holders(options);
    if (status == SP_TOOL_DONE && !options->span.count && !options->trace.count &&
        !has_conditions(options))
        return sp_spans_holders(model, NULL, options);
    if (status == SP_TOOL_DONE)
        status = choose(&chosen, model, options);
    if (status == SP_TOOL_DONE)
        status = answer_chosen_holders(model, options, &chosen);
    chosen_deinit(&chosen);
    return status;
}

/* Report why there are no spans. If the user gave a prefix, no file is missing, because a prefix
 * stands for both files of a run. */
static int no_spans(const sp_operands *files)
{
    const char *first = files->items[0];
    if (strcmp(first, "-") == 0 || access(first, F_OK) == 0)
        return sp_tool_wrong("the files hold no spans; give the .traces file too; if it is empty, "
                             "no span has ended yet: " SP_ADVICE_NO_SPANS);
    return sp_tool_wrong("%s: its files hold no span that has ended: " SP_ADVICE_NO_SPANS
                         "; `spanprof flame %s` shows the samples",
                         first, first);
}

/* Without samples, values are shown as unknown. This is needed for samples of another run, because
 * they do not show what these spans took. */
static void ignore_other_run(sp_model *model)
{
    bool is_other = sp_model_is_of_two_runs(model);
    for (size_t i = 0; i < model->type_count && is_other; i++)
        model->types[i].samples = 0;
}

/* The type of the sampled calls that the answer shows: waits for locks, or allocations. */
static uint32_t type_of_calls(const sp_model *model, const sp_spans_options *options)
{
    return options->holders ? sp_type_of_word(model, "lock", true)
                            : sp_model_alloc_type(model, true);
}

/* Only --holders shows functions. */
static int find_names(const sp_spans_options *options, sp_model_options *out)
{
    if (options->names && !options->holders)
        return sp_tool_wrong("spans: --names says what functions are called, and only --holders "
                             "shows functions: give both");
    out->renames = options->holders;
    return sp_names_parse(options->names ? options->names : "folded", &out->style);
}

static int answer(const sp_operands *files, const sp_spans_options *options)
{
    static const sp_since never;
    sp_input input;
    sp_model model = {0};
    sp_model_options model_options = {0};
    int status = find_names(options, &model_options);
    if (status != SP_TOOL_DONE)
        return status;
    status = sp_input_read_once(&input, files);
    if (status == SP_TOOL_DONE && sp_input_count(&input, SP_SIGNAL_TRACES) == 0)
        status = no_spans(files);
    if (status == SP_TOOL_DONE)
        status = sp_model_build_as(&model, &input, &never, &model_options);
    if (status == SP_TOOL_DONE)
        status = sp_model_find_overruns(&model);
    if (status == SP_TOOL_DONE)
        status = sp_model_find_queued(&model);
    if (status == SP_TOOL_DONE)
        ignore_other_run(&model);
    if (status == SP_TOOL_DONE)
        status = options->holders ? answer_holders(&model, options) : answer_from(&model, options);
    if (status == SP_TOOL_DONE)
        status = sp_model_check_runs(&model);
    if (status == SP_TOOL_DONE) {
        sp_model_note_unended(&model);
        if (!sp_model_note_unknown(&model))
            sp_model_note_unlinked(&model);
        sp_model_note_misuse(&model);
        sp_model_note_dropped_calls(&model, type_of_calls(&model, options), "");
        sp_run_folders_note(files, sp_input_begin_ns(&input, 0));
    }
    status = sp_input_status(&input, status);
    sp_model_deinit(&model);
    sp_input_deinit(&input);
    return status;
}

static int run(int argc, char **argv)
{
    sp_spans_options options = {.limit = SP_SPANS_NO_LIMIT};
    sp_operands files;
    int status = sp_options_parse(&sp_command_spans, argc, argv, &options, &files);
    if (options.by_name && !options.group_by)
        options.group_by = "name";
    if (status == SP_OPTIONS_GO_ON)
        status = answer(&files, &options);
    sp_operands_deinit(&files);
    return status;
}

#define AT(member) offsetof(sp_spans_options, member)
static const sp_option options[] = {
    {"--sort", "KEY", SP_OPTION_TEXT, AT(sort),
     "duration, start, cpu, wall, queue, alloc or samples; of names duration, cpu, wall, queue or "
     "alloc (duration)"},
    {"--limit", "N", SP_OPTION_NUMBER, AT(limit), "at most N lines (20; --json all); 0: all"},
    {"--span", "ID", SP_OPTION_LIST, AT(span),
     "this span and its descendants, as a tree; or those of several; the first 4 digits of an id "
     "will do where they are enough"},
    {"--trace", "ID", SP_OPTION_LIST, AT(trace),
     "one trace, as a tree with bars that show when each span ran; or the spans of several"},
    {"--name", "NAME", SP_OPTION_LIST, AT(name),
     "spans of exactly this name; may be given several times"},
    {"--group-by", "name", SP_OPTION_TEXT, AT(group_by),
     "a line for each name: spans, errors, p50, p95, p99, max of duration and CPU time, and the "
     "sums of CPU time (total), of wall time and of time in a queue"},
    {"--by-name", NULL, SP_OPTION_FLAG, AT(by_name), "short for --group-by name"},
    {"--roots", NULL, SP_OPTION_FLAG, AT(roots), "local roots only: one for each request"},
    {"--holders", NULL, SP_OPTION_FLAG, AT(holders),
     "waits for locks instead: which span waited, where, and which span held the lock"},
    {"--names", "STYLE", SP_OPTION_TEXT, AT(names),
     "with --holders, of C++ and Rust: short, folded (template arguments as …), full (with "
     "parameters) (folded)"},
    {"--json", NULL, SP_OPTION_FLAG, AT(json), "one JSON object"},
    {"--where", "Q", SP_OPTION_TEXT, AT(where),
     "spans that match: duration > 100ms && status = error"},
};

const sp_command sp_command_spans = {
    .name = "spans",
    .arguments = "FILE… [options]",
    .summary =
        "A table of spans, or the tree of a trace, with CPU time, wall time and allocations.",
    .details =
        "The slowest span, or what else --sort says is most, is the first line in a pipe or a "
        "file, and the last one\non a terminal, next to the prompt; --sort start is in the order "
        "of time in both. What is the same in\nall lines is told once below them.\n"
        "Times and samples of a span include its descendants'; own is what it took itself, without "
        "them.\n"
        "With a wall profile, \"went to\" shows where the time went, a letter for each tenth; "
        "--json has the\nnanoseconds by class. What a narrow terminal has no room for is left out. "
        "Wall "
        "time is that of threads: where\nseveral work for a span at once, it may sum to more than "
        "the "
        "span's duration. q in \"went to\" is time in which no thread carried\nthe span: it was in "
        "a queue, its work ran without the context, or it was ended long after its work. --by-name "
        "has this time for all\nspans of a name together, in the column queue. It is - where it "
        "may be chance.\n"
        "alloc has its standard error after ±, where the files show it: blocks are sampled.\n"
        "--holders: a line says that the first span waited so long, so often, in that function, "
        "for that lock, which the\nlast span held, and gave back in the last function; - where "
        "the holder is not certain, or was\nleft out on the way, as `send` does. A wait "
        "with several holders names one, drawn by its share of\nthe wait, so a single wait may "
        "name one that had the lock for a short while. A lock without a name has\nits address.",
    .examples = "# the requests that took longest\n"
                "spanprof spans shop --roots\n"
                "# each kind of request\n"
                "spanprof spans shop --roots --by-name\n"
                "# slow ones of one kind\n"
                "spanprof spans shop --where 'name = \"GET /report\" && duration > 100ms'",
    .options = options,
    .option_count = SP_ARRAY_LENGTH(options),
    .run = run,
};
