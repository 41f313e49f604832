/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/model/select.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/counted.h"
#include "core/hex.h"
#include "tool/model/advice.h"
#include "tool/model/hidden.h"
#include "tool/model/query.h"
#include "tool/model/sum.h"
#include "tool/text/messages.h"
#include "tool/text/output.h"

/* ---- type ---- */

/* Whether WORD is a type that files can have. Any other word must be the name of a type in the
 * given files. */
static bool is_type_word(const char *word)
{
    static const char *const words[] = {
        "cpu",   "wall", "offcpu", "cpu_innermost", "wall_innermost", "alloc",
        "inuse", "lock", "delay",  "contentions",   "condition",      "semaphore"};
    for (size_t i = 0; i < SP_ARRAY_LENGTH(words); i++)
        if (strcmp(word, words[i]) == 0)
            return true;
    return false;
}

const char *sp_types_list(char out[SP_TYPES_LENGTH], const sp_model *model)
{
    size_t used = 0;
    out[0] = 0;
    for (size_t i = 0; i < model->type_count && used + 2 < SP_TYPES_LENGTH; i++) {
        const sp_model_type *type = &model->types[i];
        bool usual = strcmp(type->unit, "nanoseconds") == 0;
        used += (size_t)snprintf(out + used, SP_TYPES_LENGTH - used, "%s%s%s%s%s", i ? ", " : "",
                                 type->name, usual ? "" : " (", usual ? "" : type->unit,
                                 usual ? "" : ")");
    }
    return out;
}

static bool has_inuse(const sp_model *model)
{
    return sp_type_of_word(model, "inuse", true) != SP_MODEL_NONE;
}

static int unknown_type(const sp_model *model, const char *word)
{
    char list[SP_TYPES_LENGTH];
    sp_types_list(list, model);
    char advice[SP_ADVICE_LENGTH];
    sp_advice_record(advice, word);
    if (is_type_word(word))
        return sp_tool_no("no profile of type %s; the files have: %s%s", word, list, advice);
    if (strcmp(word, "heap") == 0) /* the word of SPANPROF_PROFILES */
        return sp_tool_wrong("--type heap is unknown: what is still allocated is --type inuse "
                             "(inuse_space, inuse_objects); the files have: %s%s",
                             list, has_inuse(model) ? "" : advice);
    return sp_tool_wrong(
        "--type %s is unknown; there are cpu, wall, offcpu, alloc, inuse, lock, condition, "
        "semaphore, and what the files have: %s",
        word, list);
}

uint32_t sp_type_of_word(const sp_model *model, const char *word, bool innermost)
{
    if (strcmp(word, "cpu") == 0)
        return sp_model_cpu_type(model, innermost);
    if (strcmp(word, "wall") == 0 || strcmp(word, "offcpu") == 0)
        return sp_model_wall_type(model, innermost);
    if (strcmp(word, "alloc") == 0)
        return sp_model_alloc_type(model, innermost);
    if (strcmp(word, "inuse") == 0)
        return sp_model_type_of_scope(model, "inuse_space", "inuse_space_innermost", innermost);
    if (strcmp(word, "lock") == 0 || strcmp(word, "delay") == 0)
        return sp_model_type_of_scope(model, "delay", "delay_innermost", innermost);
    if (strcmp(word, "contentions") == 0)
        return sp_model_type_of_scope(model, "contentions", "contentions_innermost", innermost);
    if (strcmp(word, "condition") == 0)
        return sp_model_type_of_scope(model, "condition_delay", "condition_delay_innermost",
                                      innermost);
    if (strcmp(word, "semaphore") == 0)
        return sp_model_type_of_scope(model, "semaphore_delay", "semaphore_delay_innermost",
                                      innermost);
    return sp_model_type_of_name(model, word);
}

/* When two types have the name WORD, say which one is used, and how to ask for the other. */
static void note_other_unit(const sp_selection *selection, const char *word)
{
    const sp_model_type *type = &selection->model->types[selection->type];
    uint32_t other = sp_model_other_unit(selection->model, selection->type);
    if (other == SP_MODEL_NONE || (word && strcmp(word, type->name) != 0))
        return;
    sp_tool_note("the files have %s in several units; this is %s/%s, and --type %s/%s asks for "
                 "another",
                 type->name, type->name, type->unit, type->name,
                 selection->model->types[other].unit);
}

/* --outlived needs a type of live blocks whose samples have an age. */
static int select_outlived(sp_selection *selection)
{
    const sp_model_type *type = &selection->model->types[selection->type];
    selection->outlived = true;
    if (!type->is_snapshot)
        return sp_tool_wrong("--outlived is for what is still allocated: ask for --type inuse, not "
                             "for %s",
                             type->name);
    if (!type->has_ages)
        return sp_tool_no("the profile does not tell what has outlived its request: none of its "
                          "samples has the attribute " SP_LIVE_AGE_KEY
                          ", which files have and the network has not; record with "
                          "SPANPROF_EXPORTER=file");
    return SP_TOOL_DONE;
}

/* --since needs a type of snapshots. */
static int select_grown(sp_selection *selection, const sp_select_options *options)
{
    const sp_model_type *type = &selection->model->types[selection->type];
    selection->grown = true;
    if (options->outlived)
        return sp_tool_wrong("--since and --outlived are two questions: ask one of them");
    if (!type->is_snapshot)
        return sp_tool_wrong("--since compares what is allocated at two times: ask for --type "
                             "inuse, not for %s",
                             type->name);
    return SP_TOOL_DONE;
}

static int select_type(sp_selection *selection, const sp_select_options *options)
{
    const sp_model *model = selection->model;
    bool is_live = options->outlived || options->since;
    const char *word = options->type || !is_live ? options->type : "inuse";
    bool inner = options->span.count || options->where || options->name.count;
    if (model->type_count == 0)
        return sp_tool_wrong(
            "the files hold no profiles; give the .profiles file too; if it is empty, the program "
            "used too little CPU time for a sample (record wall time to see where it waited, with "
            "SPANPROF_PROFILES=cpu,wall), or it still runs and its first window (10 s) is not "
            "written yet, or SPANPROF_PROFILES is none");
    if (word)
        selection->type = sp_type_of_word(model, word, inner);
    else
        selection->type = inner ? sp_model_time_type(model) : sp_model_main_type(model);
    if (selection->type == SP_MODEL_NONE)
        return unknown_type(model, word);
    if (options->since)
        return select_grown(selection, options);
    if (options->outlived)
        return select_outlived(selection);
    note_other_unit(selection, options->type);
    selection->off_cpu = options->type && strcmp(options->type, "offcpu") == 0;
    if (selection->off_cpu && !model->types[selection->type].has_waiting_samples)
        return sp_tool_no(
            "the wall profile does not tell what was off CPU: none of its samples has "
            "the attribute " SP_WHERE_KEY
            ", which files have and the network has not; ask for --type wall, or "
            "record with SPANPROF_EXPORTER=file");
    return SP_TOOL_DONE;
}

const char *sp_selection_name(const sp_selection *selection)
{
    return selection->off_cpu ? "offcpu" : selection->model->types[selection->type].name;
}

/* ---- spans ---- */

static const char *where_option(const sp_select_options *options)
{
    return options->where_option ? options->where_option : "--where";
}

int sp_select_spans(const sp_model *model, const char *option, const char *text, bool **marks)
{
    sp_query query;
    sp_query_error error;
    int status = SP_TOOL_DONE;
    *marks = NULL;
    if (!sp_query_parse(&query, text, &error))
        status = sp_tool_wrong("%s: at character %zu: %s", option, error.position, error.text);
    else if (!(*marks = sp_query_run(&query, model)))
        status = sp_tool_no_memory();
    sp_query_deinit(&query);
    return status;
}

/* Mark the spans that match the query, the names and the percentile of OPTIONS. *MARKS is as for
 * sp_select_spans. */
static int match_spans(sp_selection *selection, const sp_select_options *options, bool **marks)
{
    const sp_model *model = selection->model;
    int status = SP_TOOL_DONE;
    if (options->where)
        status = sp_select_spans(model, where_option(options), options->where, marks);
    else if (!(*marks = malloc(model->span_index.count + (size_t)1)))
        status = sp_tool_no_memory();
    for (uint32_t i = 0; status == SP_TOOL_DONE && i < model->span_index.count; i++)
        (*marks)[i] = (!options->where || (*marks)[i]) &&
                      sp_text_list_takes(&options->name, model->spans[i].name) &&
                      sp_selection_takes_trace(selection, model->spans[i].id.trace_id);
    if (status == SP_TOOL_DONE && options->percentile &&
        !sp_slow_keep(model, &selection->slow, options->rest, *marks))
        status = sp_tool_no_memory();
    if (status == SP_TOOL_DONE && options->percentile)
        status = sp_slow_check(&selection->slow);
    return status;
}

/* Add SPAN to the sums of durations, if samples can show its CPU time. */
static void add_duration(sp_selection *selection, const sp_model_span *span)
{
    if (sp_hides_total(&selection->model->types[selection->type], span))
        return;
    sp_sum_add(&selection->duration_ns, span->end_ns - span->start_ns);
    sp_sum_add(&selection->accounted_ns, span->total_value);
    sp_sum_add(&selection->accounted_ns, span->queued_ns);
}

/* Keep a copy of MARKED. Returns false when memory is short. */
static bool keep_matches(sp_selection *selection, const bool *marked)
{
    size_t bytes = (selection->model->span_index.count + (size_t)1) * sizeof *marked;
    free(selection->matches);
    selection->matches = malloc(bytes);
    if (selection->matches)
        memcpy(selection->matches, marked, bytes);
    return selection->matches;
}

/* Mark also the spans that were asked for by id, remove spans of other traces, and (unless SELF)
 * mark the descendants of all marked spans. MARKED has one member for each span, and some may be
 * set before the call. Returns false when memory is short. */
static bool mark_spans(sp_selection *selection, bool *marked, bool self)
{
    const sp_model *model = selection->model;
    sp_asked_mark(&selection->asked, marked);
    selection->span_count = 0;
    selection->duration_ns = selection->accounted_ns = 0;
    for (uint32_t i = 0; i < model->span_index.count; i++) {
        marked[i] = marked[i] && sp_selection_takes_trace(selection, model->spans[i].id.trace_id);
        selection->span_count += marked[i];
        if (marked[i])
            add_duration(selection, &model->spans[i]);
    }
    selection->match_count = selection->span_count;
    bool kept = keep_matches(selection, marked);
    if (!self)
        selection->span_count += sp_asked_mark_descendants(model, marked);
    return kept;
}

/* Whether LINK leads to a span that was asked for by id, but that the files do not have. They may
 * still have its samples. */
static bool is_asked_without_span(const sp_selection *selection, const sp_model_link *link)
{
    const sp_asked *asked = &selection->asked;
    for (uint32_t i = 0; i < asked->span_count; i++)
        if (asked->spans[i].span == SP_MODEL_NONE &&
            memcmp(link->span_id, asked->spans[i].id, 8) == 0)
            return true;
    return false;
}

static bool link_matches(const sp_selection *selection, const bool *marked, uint32_t number)
{
    const sp_model *model = selection->model;
    const sp_model_link *link = sp_intern_key(&model->links, number);
    uint32_t span = sp_model_link_span(model, number);
    if (!selection->by_where && !selection->asked.span_count)
        return sp_selection_takes_trace(selection, link->trace_id);
    if (span != SP_MODEL_NONE)
        return marked[span];
    return sp_selection_takes_trace(selection, link->trace_id) &&
           is_asked_without_span(selection, link);
}

/* Set selection->links from the selected spans. MARKED may be NULL: no span is marked yet. This
 * function frees MARKED. Returns false when memory is short. */
static bool mark_links(sp_selection *selection, bool *marked, bool self)
{
    const sp_model *model = selection->model;
    bool done = false;
    if (!marked)
        marked = calloc(model->span_index.count + 1, sizeof *marked);
    selection->links = calloc(model->links.count, sizeof *selection->links);
    if (marked && selection->links) {
        done = mark_spans(selection, marked, self);
        for (uint32_t i = 1; i < model->links.count; i++)
            selection->links[i] = link_matches(selection, marked, i);
    }
    free(marked);
    return done;
}

static void add_up(sp_selection *selection)
{
    const sp_model *model = selection->model;
    for (uint32_t i = 0; i < model->sample_index.count; i++) {
        const sp_model_sample *sample = &model->samples[i];
        if (!sp_selection_has(selection, sample))
            continue;
        sp_sum_add(&selection->value, sample->value);
        sp_sum_add(&selection->count, sample->count);
        if (model->types[selection->type].is_wall)
            sp_sum_add(&selection->where_ns[sample->where], sample->value);
    }
}

/* ---- why nothing matched ---- */

/* The number of samples of the selected type that are linked to SPAN and its descendants. */
static uint64_t count_below(const sp_selection *selection, uint32_t span)
{
    sp_selection other = *selection;
    other.asked.spans[0].span = span;
    other.asked.span_count = 1;
    other.asked.trace_count = 0;
    other.links = other.matches = NULL;
    other.count = 0;
    if (mark_links(&other, NULL, false))
        add_up(&other);
    sp_selection_deinit(&other);
    return other.count;
}

static int span_without_samples(const sp_selection *selection, const sp_select_options *options,
                                const sp_model_span *span)
{
    char duration[SP_DURATION_LENGTH], advice[SP_ADVICE_LENGTH];
    sp_format_duration(duration, span->end_ns - span->start_ns);
    if (sp_hides_total(&selection->model->types[selection->type], span) && span->is_unsampled)
        return sp_tool_no("span %s (%s, %s) lies outside the time in which `run --attach` sampled "
                          "its process, so what it took is not known",
                          options->span.items[0], span->name, duration);
    sp_advice_none(advice, selection, sp_selection_only_span(selection));
    return sp_tool_no("span %s (%s, %s) has no samples %s", options->span.items[0], span->name,
                      duration, advice);
}

static int no_samples_of_span(const sp_selection *selection, const sp_select_options *options)
{
    const sp_model *model = selection->model;
    uint32_t number = sp_selection_only_span(selection);
    const sp_model_span *span = &model->spans[number];
    uint32_t root = sp_model_local_root(model, number);
    char root_id[17];
    sp_hex_encode(root_id, model->spans[root].id.span_id, 8);
    if (root != number && model->types[selection->type].hides_inner && count_below(selection, root))
        return sp_tool_no("span %s: the file's link scope cannot answer: its samples are linked to "
                          "local roots only; ask for the root, --span %s, or record with "
                          "SPANPROF_LINK_SCOPE=innermost",
                          options->span.items[0], root_id);
    uint64_t below = options->self ? count_below(selection, number) : 0;
    if (below)
        return sp_tool_no(
            "span %s (%s) has no samples of its own; its descendants have %llu: leave "
            "out --self",
            options->span.items[0], span->name, (unsigned long long)below);
    return span_without_samples(selection, options, span);
}

/* The number of samples of the matching spans and their descendants. */
static uint64_t count_below_matches(const sp_selection *selection, const sp_select_options *options)
{
    sp_selection other = *selection;
    bool *marked = NULL;
    other.links = other.matches = NULL;
    other.count = 0;
    if (match_spans(&other, options, &marked) != SP_TOOL_DONE)
        free(marked);
    else if (mark_links(&other, marked, false))
        add_up(&other);
    sp_selection_deinit(&other);
    return other.count;
}

/* Return marks of the local roots of the spans in MARKED, without roots that are in MARKED
 * themselves. Frees MARKED. Returns NULL when memory is short. */
static bool *roots_of(const sp_model *model, bool *marked)
{
    bool *roots = calloc(model->span_index.count + (size_t)1, sizeof *roots);
    for (uint32_t i = 0; roots && i < model->span_index.count; i++) {
        uint32_t root = marked[i] ? sp_model_local_root(model, i) : i;
        if (marked[i] && !marked[root])
            roots[root] = true;
    }
    free(marked);
    return roots;
}

/* Whether the profiles are linked to local roots only, and have samples of the roots of the
 * matching spans. Some of these samples may belong to the matching spans. */
static bool scope_hides_matches(const sp_selection *selection, const sp_select_options *options)
{
    sp_selection other = *selection;
    bool *marked = NULL;
    other.links = other.matches = NULL;
    other.count = 0;
    if (!selection->model->types[selection->type].hides_inner)
        return false;
    if (match_spans(&other, options, &marked) != SP_TOOL_DONE)
        free(marked);
    else if ((marked = roots_of(selection->model, marked)) && mark_links(&other, marked, true))
        add_up(&other);
    sp_selection_deinit(&other);
    return other.count > 0;
}

/* "1 span matches" or "2 spans match". */
static const char *count_matches(char out[2 * SP_COUNTED_LENGTH], uint32_t count)
{
    snprintf(out, (size_t)2 * SP_COUNTED_LENGTH, "%s %s", SP_COUNTED(count, "span"),
             count == 1 ? "matches" : "match");
    return out;
}

static int no_match_of_where(const sp_selection *selection, const sp_select_options *options)
{
    const char *option = !options->where       ? "--name"
                         : options->name.count ? "--where and --name"
                                               : where_option(options);
    char matches[2 * SP_COUNTED_LENGTH];
    uint32_t count = selection->match_count;
    if (selection->model->span_index.count == 0)
        return sp_tool_no("the files hold no spans, which %s asks for; give the .traces file too; "
                          "if it is empty, no span has ended yet: " SP_ADVICE_NO_SPANS,
                          option);
    if (count == 0 && options->rest)
        return sp_tool_no("%s, and %s slow: there is no rest to compare with",
                          count_matches(matches, selection->slow.all),
                          selection->slow.all == 1 ? "it is" : "all are");
    char hint[SP_QUERY_HINT_LENGTH];
    if (count == 0 && sp_query_hint(hint, selection->model, options->where))
        return sp_tool_no("no span matches %s: %s", where_option(options), hint);
    if (count == 0 && sp_name_hint(hint, selection->model, &options->name))
        return sp_tool_no("no span matches --name: %s", hint);
    if (count == 0)
        return sp_tool_no("no span matches %s%s; `spanprof spans` lists the spans", option,
                          selection->asked.trace_count ? " in this trace" : "");
    if (scope_hides_matches(selection, options))
        return sp_tool_no("%s %s, and the file's link scope cannot answer: its "
                          "samples are linked to local roots only; record with "
                          "SPANPROF_LINK_SCOPE=innermost, or select root spans",
                          count_matches(matches, count), option);
    bool is_one = count == 1;
    uint64_t below = options->self ? count_below_matches(selection, options) : 0;
    if (below)
        return sp_tool_no(
            "%s %s, and %s no samples of %s own; descendants have %llu: leave out --self",
            count_matches(matches, count), option, is_one ? "has" : "have",
            is_one ? "its" : "their", (unsigned long long)below);
    char advice[SP_ADVICE_LENGTH];
    sp_advice_none_of_several(advice, selection);
    return sp_tool_no("%s %s, and no sample fell under %s: %s", count_matches(matches, count),
                      option, is_one ? "it" : "them", advice);
}

/* Report that the traces that were asked for have no samples. The files may have their spans. */
static int no_samples_of_traces(const sp_selection *selection)
{
    const sp_model *model = selection->model;
    uint32_t count = 0;
    char id[33];
    for (uint32_t i = 0; i < model->span_index.count; i++)
        count += sp_selection_takes_trace(selection, model->spans[i].id.trace_id);
    if (!count)
        return sp_asked_absent(&selection->asked, model);
    sp_hex_encode(id, selection->asked.traces[0], 16);
    return sp_tool_no("no samples of trace %s%s: the files have %s of it, and no sample fell under "
                      "%s; `spanprof spans --trace ID` shows when they ran",
                      id, selection->asked.trace_count == 1 ? "" : " and the others",
                      SP_COUNTED(count, "span"), count == 1 ? "it" : "them");
}

static int no_match(const sp_selection *selection, const sp_select_options *options)
{
    bool has_spans = selection->by_where || sp_selection_only_span(selection) != SP_MODEL_NONE;
    int runs = has_spans ? sp_model_check_runs(selection->model) : SP_TOOL_DONE;
    if (runs != SP_TOOL_DONE)
        return runs;
    if (selection->grown) {
        char since[SP_SINCE_LENGTH];
        sp_since_format(since, selection->model);
        return sp_tool_no("nothing of that kind grew in the %s before the last snapshot", since);
    }
    if (selection->by_where)
        return no_match_of_where(selection, options);
    if (sp_selection_only_span(selection) != SP_MODEL_NONE)
        return no_samples_of_span(selection, options);
    if (selection->asked.span_count)
        return sp_asked_absent(&selection->asked, selection->model);
    if (selection->asked.trace_count)
        return no_samples_of_traces(selection);
    if (selection->outlived)
        return sp_tool_no("no block that was sampled is held past its request");
    const char *name = sp_selection_name(selection);
    return sp_tool_no("the files have no samples%s%s", *name ? " of type " : "", name);
}

static int parse_ids(sp_selection *selection, const sp_select_options *options)
{
    int status = SP_TOOL_DONE;
    bool by_where = options->where || options->name.count;
    selection->by_where = by_where;
    selection->name = !options->where && options->name.count == 1 ? options->name.items[0] : NULL;
    if (options->self && !options->span.count && !by_where)
        return sp_tool_wrong("--self needs --span, --name or --where: whose own samples?");
    if (options->percentile && !by_where)
        return sp_tool_wrong("--percentile needs --name or --where: the slow ones of which spans?");
    if (options->percentile)
        status = sp_slow_parse(options->percentile, &selection->slow);
    if (options->span.count && by_where)
        return sp_tool_wrong("--span and --%s both say which spans; give one of them",
                             options->where ? "where" : "name");
    return status == SP_TOOL_DONE ? sp_asked_parse(&selection->asked, selection->model,
                                                   &options->span, &options->trace)
                                  : status;
}

int sp_select(sp_selection *selection, const sp_model *model, const sp_select_options *options)
{
    *selection = (sp_selection){.model = model, .type = SP_MODEL_NONE};
    int status = parse_ids(selection, options);
    if (status == SP_TOOL_DONE)
        status = select_type(selection, options);
    if (status == SP_TOOL_DONE)
        status = sp_asked_find(&selection->asked, model);
    bool *marked = NULL;
    if (status == SP_TOOL_DONE && selection->by_where)
        status = match_spans(selection, options, &marked);
    if (status == SP_TOOL_DONE && marked && model->queues.is_known &&
        !sp_queued_sum_marked(&selection->queued, model, marked))
        status = sp_tool_no_memory();
    if (status != SP_TOOL_DONE) {
        free(marked);
        return status;
    }
    if ((selection->asked.span_count || selection->asked.trace_count || selection->by_where) &&
        !mark_links(selection, marked, options->self))
        return sp_tool_no_memory();
    add_up(selection);
    return selection->count || selection->value ? SP_TOOL_DONE : no_match(selection, options);
}

bool sp_selection_sum(sp_selection *selection)
{
    selection->value = selection->count = 0;
    memset(selection->where_ns, 0, sizeof selection->where_ns);
    add_up(selection);
    return selection->count || selection->value;
}

bool sp_selection_subtract(sp_selection *selection, const sp_selection *other)
{
    for (uint32_t i = 0; i < selection->model->links.count; i++)
        selection->links[i] = selection->links[i] && !other->links[i];
    return sp_selection_sum(selection);
}

void sp_selection_deinit(sp_selection *selection)
{
    free(selection->links);
    free(selection->matches);
    selection->links = selection->matches = NULL;
}
