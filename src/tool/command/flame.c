/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/draw/flame.h"

#include <string.h>

#include "tool/command/against.h"
#include "tool/command/commands.h"
#include "tool/command/diff_answer.h"
#include "tool/model/dropped_calls.h"
#include "tool/model/interpreted.h"
#include "tool/model/nameless.h"
#include "tool/model/selected.h"
#include "tool/read/repeats.h"
#include "tool/text/messages.h"

enum {
    FORMAT_TEXT = 0,
    FORMAT_FOLDED,
    FORMAT_HTML,
    FORMAT_JSON,
    FORMAT_TABLE,
    FORMAT_PPROF,
    FORMAT_SVG,
    FORMAT_PERFETTO,
    FORMAT_COUNT
};

static const char *const format_names[FORMAT_COUNT] = {"text",  "folded", "html", "json",
                                                       "table", "pprof",  "svg",  "perfetto"};

static int find_format(const char *name, int *format)
{
    for (*format = 0; *format < FORMAT_COUNT; ++*format)
        if (strcmp(name, format_names[*format]) == 0)
            break;
    if (*format == FORMAT_COUNT)
        return sp_tool_wrong("flame: --format %s is unknown; there are text, folded, svg, html, "
                             "json, table, pprof, perfetto",
                             name);
    return *format == FORMAT_HTML ? sp_flame_html_check("flame") : SP_TOOL_DONE;
}

/* The type that the page can switch to: wall time for CPU time, and CPU time for wall time.
 * SP_MODEL_NONE: the files have only one of them, or the question is about another type. */
static uint32_t find_other_type(const sp_selection *selection, const sp_flame_options *options)
{
    const sp_model *model = selection->model;
    const char *word = options->select.type;
    uint32_t cpu = sp_model_cpu_type(model, true), wall = sp_model_wall_type(model, true);
    bool is_time = !word || strcmp(word, "cpu") == 0 || strcmp(word, "wall") == 0;
    if (!is_time || options->select.outlived || options->select.since)
        return SP_MODEL_NONE;
    return model->types[selection->type].is_wall ? cpu
           : selection->type == sp_model_type_of_name(model, "cpu") || selection->type == cpu
               ? wall
               : SP_MODEL_NONE;
}

static int write_page(sp_buffer *out, const sp_selection *selection, const sp_flame_tree *tree,
                      const sp_flame_options *options)
{
    sp_selection switched = *selection; /* with the same links */
    sp_flame_tree other = {0};
    switched.type = find_other_type(selection, options);
    bool has_other = switched.type != SP_MODEL_NONE;
    if (has_other)
        has_other = sp_selection_sum(&switched);
    bool done = !has_other || sp_flame_tree_build(&other, &switched, options);
    if (done) {
        sp_flame_options on_page = *options;
        on_page.has_button = has_other && selection->model->types[switched.type].is_wall;
        const sp_flame_graph graph = sp_flame_graph_of(tree, &on_page);
        const sp_flame_graph second = has_other ? sp_flame_graph_of(&other, options) : graph;
        done = sp_flame_html(out, &graph, has_other ? &second : NULL, options);
    }
    sp_flame_tree_deinit(&other);
    return done ? SP_TOOL_DONE : sp_tool_no_memory();
}

static bool write_svg(sp_buffer *out, const sp_flame_tree *tree, const sp_flame_options *options)
{
    const sp_flame_graph graph = sp_flame_graph_of(tree, options);
    return sp_flame_svg(out, &graph, NULL, options->min_percent);
}

static int write_tree(sp_buffer *out, const sp_selection *selection,
                      const sp_flame_options *options, const sp_terminal *terminal, int format)
{
    sp_flame_tree tree;
    int status = SP_TOOL_DONE;
    if (!sp_flame_tree_build(&tree, selection, options))
        status = sp_tool_no_memory();
    else if (format == FORMAT_HTML)
        status = write_page(out, selection, &tree, options);
    else if (!(format == FORMAT_SVG ? write_svg(out, &tree, options)
                                    : sp_flame_text(out, &tree, options, terminal)))
        status = sp_tool_no_memory();
    sp_flame_tree_deinit(&tree);
    return status;
}

static int write_answer(const sp_selection *selection, const sp_flame_options *options, int format)
{
    if (options->against)
        return sp_flame_against(selection, options, format_names[format]);
    if (format == FORMAT_JSON)
        return sp_output_write_json(sp_flame_json(selection), options->out);
    sp_buffer out = SP_BUFFER_INIT(SP_OUTPUT_MAX_BYTES);
    sp_terminal terminal = sp_terminal_get(options->out && strcmp(options->out, "-") != 0);
    int status = SP_TOOL_DONE;
    if (format == FORMAT_TABLE)
        status = sp_flame_table(&out, selection, options, &terminal) ? SP_TOOL_DONE
                                                                     : sp_tool_no_memory();
    else if (format == FORMAT_PPROF)
        status = sp_selected_pprof(&out, selection, 1);
    else if (format == FORMAT_PERFETTO)
        status = sp_flame_perfetto(&out, selection) ? SP_TOOL_DONE : sp_tool_no_memory();
    else if (format != FORMAT_FOLDED)
        status = write_tree(&out, selection, options, &terminal, format);
    else if (!sp_flame_folded(&out, selection, options->reverse))
        status = sp_tool_no_memory();
    if (status == SP_TOOL_DONE)
        return sp_output_write(&out, options->out);
    sp_buffer_deinit(&out);
    return status;
}

/* Report an option that has no effect with FORMAT as a mistake of the user. */
static int check_format(const sp_flame_options *options, int format)
{
    bool is_pprof = format == FORMAT_PPROF;
    bool has_limit = format == FORMAT_TEXT || (format == FORMAT_JSON && options->against);
    bool has_stacks = is_pprof || format == FORMAT_JSON || format == FORMAT_PERFETTO;
    bool is_list = has_stacks || format == FORMAT_FOLDED;
    if (is_pprof && options->names)
        return sp_tool_wrong("flame: --names says what functions are called on the screen; a pprof "
                             "keeps the names and symbols of the profile");
    if (is_pprof && (options->model.by_thread || options->group_by))
        return sp_tool_wrong("flame: --by-thread and --group-by add frames, and a pprof keeps the "
                             "stacks of the profile, with threads and spans as labels");
    if (options->reverse && (has_stacks || format == FORMAT_TABLE || options->against))
        return sp_tool_wrong("flame: --reverse turns graphs and folded stacks; %s is the same "
                             "without it",
                             options->against ? "--against" : format_names[format]);
    if (options->limit != SP_FLAME_NO_LIMIT && !has_limit)
        return sp_tool_wrong("flame: --limit is for the tree in text, and the functions of "
                             "--against in text and json; leave it out of %s",
                             format_names[format]);
    if (options->min_percent > 0 && is_list)
        return sp_tool_wrong("flame: --min-percent leaves frames out of pictures; %s has all "
                             "stacks",
                             format_names[format]);
    return SP_TOOL_DONE;
}

static int take_model_options(sp_flame_options *options, int format)
{
    options->model.all_styles = format == FORMAT_HTML;
    options->model.by_span = options->group_by != NULL;
    if (options->group_by && strcmp(options->group_by, "span") != 0)
        return sp_tool_wrong("flame: --group-by %s is unknown; there is span", options->group_by);
    options->model.renames = true;
    return sp_names_parse(options->names ? options->names : "folded", &options->model.style);
}

static bool selects_spans(const sp_select_options *select)
{
    return select->span.count || select->name.count || select->where;
}

/* Whether the answer depends on which span each sample has. */
static bool shows_spans(const sp_flame_options *options)
{
    const sp_select_options *select = &options->select;
    return selects_spans(select) || select->trace.count || select->outlived || options->group_by;
}

/* Whether the answer is a table: --self without a selection of spans asks for the own values of
 * functions. In this case the option is cleared, because it does not select samples. */
static bool takes_table(sp_flame_options *options, int format)
{
    sp_select_options *select = &options->select;
    if (!select->self || selects_spans(select) || format != FORMAT_TEXT)
        return false;
    select->self = false;
    return true;
}

static int check_against(const sp_flame_options *options, int format)
{
    if (!options->select.percentile)
        return sp_tool_wrong("flame: --against needs --percentile: which spans are slow?");
    return sp_diff_format_find("flame --against", format_names[format]);
}

static int answer(const sp_operands *files, sp_flame_options *options)
{
    int format = FORMAT_TEXT;
    sp_since since = {0};
    const char *name = NULL;
    int status =
        sp_output_format_find("flame", options->format, options->out,
                              ".html, .svg, .json, .folded, .pb.gz, .pftrace or .txt", &name);
    if (status == SP_TOOL_DONE)
        status = find_format(name, &format);
    if (status == SP_TOOL_DONE)
        status = take_model_options(options, format);
    if (status == SP_TOOL_DONE && takes_table(options, format))
        format = FORMAT_TABLE;
    options->folds_recursion = format == FORMAT_TEXT;
    if (status == SP_TOOL_DONE)
        status = check_format(options, format);
    if (status == SP_TOOL_DONE && options->against)
        status = check_against(options, format);
    if (status == SP_TOOL_DONE && options->select.since)
        status = sp_since_parse(options->select.since, &since);
    if (status != SP_TOOL_DONE)
        return status;
    sp_input input;
    sp_model model = {0};
    sp_selection selection = {0};
    if (options->min_percent < 0)
        options->min_percent = format == FORMAT_TEXT || format == FORMAT_TABLE ? 1 : 0;
    status = sp_input_read_once(&input, files);
    if (status == SP_TOOL_DONE)
        status = sp_model_build_as(&model, &input, &since, &options->model);
    if (status == SP_TOOL_DONE && selects_spans(&options->select))
        status = sp_model_find_queued(&model);
    if (status == SP_TOOL_DONE)
        status = sp_select(&selection, &model, &options->select);
    /* also when nothing was found: the samples may be among the dropped ones */
    if (selection.model && status != SP_TOOL_WRONG)
        sp_model_note_dropped_calls(&model, selection.type, "");
    if (status == SP_TOOL_DONE && selection.by_where)
        sp_model_note_unended(&model);
    if (status == SP_TOOL_DONE && shows_spans(options))
        sp_model_note_misuse(&model);
    if (status == SP_TOOL_DONE)
        sp_model_note_interpreted(&model, selection.type);
    if (status == SP_TOOL_DONE)
        status = write_answer(&selection, options, format);
    if (status == SP_TOOL_DONE)
        sp_selection_note_nameless(&selection, "");
    status = sp_input_status(&input, status);
    sp_selection_deinit(&selection);
    sp_model_deinit(&model);
    sp_input_deinit(&input);
    return status;
}

static int run(int argc, char **argv)
{
    sp_flame_options options = {.min_percent = -1, .limit = SP_FLAME_NO_LIMIT};
    sp_operands files;
    int status = sp_options_parse(&sp_command_flame, argc, argv, &options, &files);
    if (status == SP_OPTIONS_GO_ON)
        status = answer(&files, &options);
    sp_operands_deinit(&files);
    return status;
}

#define AT(member) offsetof(sp_flame_options, member)
static const sp_option options[] = {
    {"--span", "ID", SP_OPTION_LIST, AT(select.span),
     "samples of this span and its descendants; may be given several times"},
    {"--trace", "ID", SP_OPTION_LIST, AT(select.trace),
     "samples of this trace; may be given several times"},
    {"--name", "NAME", SP_OPTION_LIST, AT(select.name),
     "samples of the spans of exactly this name, and of their descendants; may be given several "
     "times"},
    {"--self", NULL, SP_OPTION_FLAG, AT(select.self),
     "with --span, --name or --where: without descendants; else the functions by self time, as "
     "--format table"},
    {"--type", "TYPE", SP_OPTION_TEXT, AT(select.type),
     "cpu, wall, offcpu, alloc, inuse, lock, or another that the files have, also as NAME/UNIT "
     "(cpu, "
     "else wall)"},
    {"--outlived", NULL, SP_OPTION_FLAG, AT(select.outlived),
     "of what is still allocated only what requests that have ended hold"},
    {"--since", "TIME", SP_OPTION_TEXT, AT(select.since),
     "of what is still allocated only what grew: since the first snapshot (first), or since the "
     "last one that is at least so old at the end (30s, 5m, 2h)"},
    {"--format", "FORMAT", SP_OPTION_TEXT, AT(format),
     "text, folded, svg, html, json, table, pprof, perfetto (by the end of OUT, else text)"},
    {"-o", "OUT", SP_OPTION_TEXT, AT(out),
     "write to this file (standard output); .html, .svg, .json, .folded, .pb.gz, .pftrace, .txt "
     "choose the format"},
    {"--min-percent", "P", SP_OPTION_PERCENT, AT(min_percent),
     "leave out frames below this share (text 1, html 0)"},
    {"--limit", "N", SP_OPTION_NUMBER, AT(limit),
     "text: at most the N largest frames (100); with --against, in text and json, at most N "
     "functions (20); 0: all"},
    {"--names", "STYLE", SP_OPTION_TEXT, AT(names),
     "of C++ and Rust: short, folded (template arguments as …), full (with parameters) (folded); "
     "pprof keeps the profile's"},
    {"--reverse", NULL, SP_OPTION_FLAG, AT(reverse), "leaves first: who calls what takes the time"},
    {"--where", "Q", SP_OPTION_TEXT, AT(select.where),
     "samples of the spans that match, and of their descendants: duration > 100ms && .http.route = "
     "\"/cart\""},
    {"--percentile", "pNN", SP_OPTION_TEXT, AT(select.percentile),
     "of the spans that match only the slow ones: p99 is the slowest hundredth, of 100 spans at "
     "least"},
    {"--against", NULL, SP_OPTION_FLAG, AT(against),
     "with --percentile: what takes longer in the slow ones than in the rest (text, json, svg, "
     "html)"},
    {"--by-thread", NULL, SP_OPTION_FLAG, AT(model.by_thread),
     "a frame for each thread, by its name, below the root"},
    {"--group-by", "span", SP_OPTION_TEXT, AT(group_by),
     "a frame for each span, by its name, below the root"},
    {"--tempo", "URL", SP_OPTION_LATER, 0, "ask a fleet instead of files"},
    {"--pyroscope", "URL", SP_OPTION_LATER, 0, "ask a fleet instead of files"},
    {"--range", "TIME", SP_OPTION_LATER, 0, "how far back to ask"},
};

const sp_command sp_command_flame = {
    .name = "flame",
    .arguments = "FILE… [--span ID | --trace ID | --name NAME | --where Q] [options]",
    .summary = "The flamegraph of a span, a trace, or everything.",
    .details =
        "FILEs hold traces and profiles; PREFIX stands for PREFIX.traces.jsonl and "
        "PREFIX.profiles.jsonl.\nfolded prints root;…;leaf VALUE in the profile's unit (CPU and "
        "wall time: nanoseconds).\n"
        "wall is CPU time and waiting time in one graph, and offcpu the waiting alone; each "
        "waiting "
        "stack ends in\nthe system call, or in [runnable] where the thread waited for a core.\n"
        "alloc is what was allocated (alloc_space, alloc_objects), inuse what still is at the end "
        "of the file\n(inuse_space, inuse_objects; SPANPROF_PROFILES=heap records it). lock is the "
        "time that threads waited for\nlocks (delay; how often: contentions), condition and "
        "semaphore the time for those (condition_delay,\nsemaphore_delay; how often: "
        "condition_waits, semaphore_waits).",
    .examples = "# the slowest requests of one name, as a page\n"
                "spanprof flame shop --name 'GET /report' --percentile p99 -o slow.html\n"
                "# where one request waited\n"
                "spanprof flame shop --span 00f067aa0ba902b7 --type offcpu",
    .options = options,
    .option_count = SP_ARRAY_LENGTH(options),
    .run = run,
};
