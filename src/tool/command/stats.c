/* SPDX-License-Identifier: Apache-2.0 */
/* `spanprof stats`: what the recorder reports about itself in attributes of profiles, added up by
 * type, and what the samples themselves show. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/counted.h"
#include "tool/command/commands.h"
#include "tool/command/stats_explain.h"
#include "tool/command/stats_misuse.h"
#include "tool/command/stats_producers.h"
#include "tool/command/stats_switches.h"
#include "tool/command/stats_wall.h"
#include "tool/model/model.h"
#include "tool/model/sum.h"
#include "tool/read/repeats.h"
#include "tool/text/escape.h"
#include "tool/text/messages.h"
#include "tool/text/output.h"

#define PREFIX         "spanprof."
#define DROPPED_PREFIX "spanprof.dropped."
#define SAMPLES_PREFIX "spanprof.samples."
/* a value that is an array of maps */
#define UNATTRIBUTED_THREADS_KEY "spanprof.unattributed_ns.threads"
#define STACKS_PREFIX            "spanprof.stacks."
/* counted in addition to the ends, so not a part of their sum */
#define BY_POINTER "by_frame_pointer"
/* these samples lost their frames; shown as an end of stacks */
#define FOLDED_KEY SAMPLES_PREFIX "folded"

/* Sums of the attributes of one type's profiles. */
typedef struct type_stats {
    /* some profile has these counts; if false, linked and none are counted from the samples */
    bool told;
    uint64_t linked, none, unknown, boundary, unattributed_ns;
    uint64_t linked_samples, unlinked_samples; /* counted from the samples */
    uint64_t lock_ns;      /* the average waiting time between two samples; 0: unknown */
    json_t *dropped;       /* object: reason to count */
    uint64_t from_outside; /* profiles that `run --attach` took */
    char engine[128];      /* engines of all profiles, each once */
    char engine_reason[256];
    json_t *unattributed_threads; /* object: "NAME/TID" to nanoseconds */
    json_t *stacks;               /* object: end of stacks, or BY_POINTER, to number of samples */
    sp_wall_stats wall;           /* used for types of wall time */
} type_stats;

typedef struct stats {
    const sp_model *model;
    type_stats *types;
    json_t *producers;
    json_t *misuse; /* over all types, because each window reports these counts only once */
    uint64_t linked_samples; /* over all types, counted from the samples */
    uint32_t links, links_with_span;
    sp_stats_explain explain;
} stats;

static const char *key_of(const Sp__Profiles__ProfilesDictionary *dictionary,
                          const Sp__Profiles__KeyValueAndUnit *attribute)
{
    int32_t index = attribute->key_strindex;
    return index >= 0 && (size_t)index < dictionary->n_string_table
               ? dictionary->string_table[index]
               : "";
}

/* Whether KEY counts the samples of a profile, as groups or as ends of stacks. */
static bool counts_samples(const char *key)
{
    return strncmp(key, SAMPLES_PREFIX, strlen(SAMPLES_PREFIX)) == 0 ||
           strncmp(key, STACKS_PREFIX, strlen(STACKS_PREFIX)) == 0;
}

static void add_number(type_stats *type, const char *key, int64_t number)
{
    static const struct {
        const char *key;
        size_t offset;
        bool tells;
    } all[] = {
        {"spanprof.samples.linked", offsetof(type_stats, linked), true},
        {"spanprof.samples.none", offsetof(type_stats, none), true},
        {"spanprof.samples.unknown", offsetof(type_stats, unknown), true},
        {"spanprof.samples.boundary", offsetof(type_stats, boundary), true},
        {"spanprof.unattributed_ns", offsetof(type_stats, unattributed_ns), false},
        {"spanprof.from_outside", offsetof(type_stats, from_outside), false},
    };
    if (strncmp(key, DROPPED_PREFIX, strlen(DROPPED_PREFIX)) == 0)
        sp_stats_add(type->dropped, key + strlen(DROPPED_PREFIX), number);
    if (strncmp(key, STACKS_PREFIX, strlen(STACKS_PREFIX)) == 0)
        sp_stats_add(type->stacks, key + strlen(STACKS_PREFIX), number);
    if (strcmp(key, FOLDED_KEY) == 0)
        sp_stats_add(type->stacks, "folded", number);
    if (strcmp(key, SP_LOCK_NS_KEY) == 0 && number > 0)
        type->lock_ns = (uint64_t)number;
    sp_wall_stats_attribute(&type->wall, key, number);
    for (size_t i = 0; i < SP_ARRAY_LENGTH(all); i++) {
        if (strcmp(all[i].key, key) != 0)
            continue;
        sp_stats_add_to((uint64_t *)((char *)type + all[i].offset), number);
        type->told = type->told || all[i].tells;
    }
}

/* Append SEPARATOR and TEXT to LIST, unless TEXT is there. */
static void add_text(char *list, size_t size, const char *separator, const char *text)
{
    size_t used = strlen(list);
    if (!strstr(list, text))
        snprintf(list + used, size - used, "%s%s", used ? separator : "", text);
}

static void keep_text(type_stats *type, const char *key, const char *text)
{
    if (strcmp(key, "spanprof.engine") == 0)
        add_text(type->engine, sizeof type->engine, ", ", text);
    else if (strcmp(key, "spanprof.engine.reason") == 0)
        add_text(type->engine_reason, sizeof type->engine_reason, "; ", text);
}

/* Add one map of UNATTRIBUTED_THREADS_KEY. The key of a thread is NAME/TID. */
static void add_unattributed(type_stats *type, const Sp__Common__AnyValue *value,
                             const Sp__Profiles__ProfilesDictionary *dictionary)
{
    const char *name = "";
    int64_t tid = 0, unattributed_ns = 0;
    if (value->value_case != SP__COMMON__ANY_VALUE__VALUE_KVLIST_VALUE)
        return;
    for (size_t i = 0; i < value->kvlist_value->n_values; i++) {
        const Sp__Common__KeyValue *entry = value->kvlist_value->values[i];
        const char *key = sp_attribute_key(entry, dictionary);
        bool is_number =
            entry->value && entry->value->value_case == SP__COMMON__ANY_VALUE__VALUE_INT_VALUE;
        if (strcmp(key, "thread.name") == 0)
            name = sp_value_text(entry->value, dictionary);
        else if (is_number && strcmp(key, "thread.id") == 0)
            tid = entry->value->int_value;
        else if (is_number && strcmp(key, "unattributed_ns") == 0)
            unattributed_ns = entry->value->int_value;
    }
    char thread[128];
    snprintf(thread, sizeof thread, "%.64s/%" PRId64, name, tid);
    sp_stats_add(type->unattributed_threads, thread, unattributed_ns);
}

static void add_unattributed_threads(type_stats *type, const Sp__Common__AnyValue *value,
                                     const Sp__Profiles__ProfilesDictionary *dictionary)
{
    for (size_t i = 0; i < value->array_value->n_values; i++)
        add_unattributed(type, value->array_value->values[i], dictionary);
}

static void take_number(stats *stats, type_stats *type, const char *key, int64_t number)
{
    add_number(type, key, number);
    sp_misuse_stats_attribute(stats->misuse, key, number);
}

static void add_profile(stats *stats, const sp_model_profile *profile)
{
    const Sp__Profiles__ProfilesDictionary *dictionary = profile->dictionary;
    type_stats *type = &stats->types[profile->type];
    bool is_old = stats->model->types[profile->type].is_snapshot && !profile->sample_numbers;
    for (size_t i = 0; i < profile->message->n_attribute_indices; i++) {
        int32_t index = profile->message->attribute_indices[i];
        if (index < 0 || (size_t)index >= dictionary->n_attribute_table)
            continue; /* `spanprof check` reports this mistake */
        const Sp__Profiles__KeyValueAndUnit *attribute = dictionary->attribute_table[index];
        const Sp__Common__AnyValue *value = attribute->value;
        const char *key = key_of(dictionary, attribute);
        /* Only the last snapshot counts. */
        if (!value || strncmp(key, PREFIX, strlen(PREFIX)) != 0 || (is_old && counts_samples(key)))
            continue;
        if (value->value_case == SP__COMMON__ANY_VALUE__VALUE_INT_VALUE)
            take_number(stats, type, key, value->int_value);
        else if (value->value_case == SP__COMMON__ANY_VALUE__VALUE_ARRAY_VALUE &&
                 strcmp(key, UNATTRIBUTED_THREADS_KEY) == 0)
            add_unattributed_threads(type, value, dictionary);
        else if (*sp_value_text(value, dictionary))
            keep_text(type, key, sp_value_text(value, dictionary));
    }
}

static void count_samples(stats *stats)
{
    const sp_model *model = stats->model;
    for (uint32_t i = 0; i < model->sample_index.count; i++) {
        const sp_model_sample *sample = &model->samples[i];
        type_stats *type = &stats->types[sample->type];
        if (sample->link)
            sp_sum_add(&stats->linked_samples, sample->count);
        sp_sum_add(sample->link ? &type->linked_samples : &type->unlinked_samples, sample->count);
        if (model->types[sample->type].is_wall)
            sp_wall_stats_sample(&type->wall, model, sample);
        if (!type->told)
            sp_sum_add(sample->link ? &type->linked : &type->none, sample->count);
    }
    sp_model_count_links(model, &stats->links, &stats->links_with_span);
}

/* ---- forms ---- */

/* What the groups and the ends of stacks are counted in. */
static const char *counted_in(const sp_model_type *type, const type_stats *stats)
{
    if (!stats->told || !type->has_draws)
        return "samples";
    return type->is_wait ? "waits" : "objects";
}

static json_t *type_json(const sp_model_type *type, const type_stats *stats)
{
    json_t *json =
        json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:O, s:O, s:O, s:s, s:s}",
                  "type", type->name, "unit", type->unit, "profiles", (json_int_t)type->profiles,
                  "period", (json_int_t)type->period, "samples", (json_int_t)type->samples,
                  "linked", (json_int_t)stats->linked, "none", (json_int_t)stats->none, "unknown",
                  (json_int_t)stats->unknown, "boundary", (json_int_t)stats->boundary,
                  "unattributed_ns", (json_int_t)stats->unattributed_ns, "unattributed_threads",
                  stats->unattributed_threads, "stacks", stats->stacks, "dropped", stats->dropped,
                  "engine", stats->engine, "engine_reason", stats->engine_reason);
    json_object_set_new(json, "linked_samples", json_integer((json_int_t)stats->linked_samples));
    json_object_set_new(json, "counted", json_string(counted_in(type, stats)));
    if (type->is_wall)
        json_object_set_new(json, "wall", sp_wall_stats_json(&stats->wall, type));
    return json;
}

static int write_json(const stats *stats)
{
    json_t *types = json_array();
    for (size_t i = 0; i < stats->model->type_count; i++)
        json_array_append_new(types, type_json(&stats->model->types[i], &stats->types[i]));
    return sp_output_write_json(
        json_pack("{s:I, s:I, s:I, s:I, s:O, s:O, s:o}", "spans",
                  (json_int_t)stats->model->span_index.count, "profiles",
                  (json_int_t)stats->model->profile_count, "links", (json_int_t)stats->links,
                  "links_with_span", (json_int_t)stats->links_with_span, "producers",
                  stats->producers, "misuse", stats->misuse, "types", types),
        NULL);
}

/* Add a line with the number of samples of a group, or "-" when it is not known, and what they
 * stand for. */
static void add_estimated(sp_buffer *out, const char *name, const uint64_t *samples, uint64_t part,
                          uint64_t whole, const char *counted)
{
    char text[24] = "-";
    if (samples)
        snprintf(text, sizeof text, "%" PRIu64, *samples);
    sp_buffer_printf(out, "  %-12s %10s  about %10" PRIu64 " %s", name, text, part, counted);
    if (whole)
        sp_buffer_printf(out, "  %6.2f %%", 100.0 * (double)part / (double)whole);
    sp_buffer_add_char(out, '\n');
}

/* Add a line with a count and its share. EXPLAINED is the name whose explanation the line gets. */
static void add_share(sp_buffer *out, const char *name, const char *explained, uint64_t part,
                      uint64_t whole, sp_stats_explain *explain)
{
    sp_buffer_printf(out, "  %-12s %10" PRIu64, name, part);
    if (whole)
        sp_buffer_printf(out, "  %6.2f %%", 100.0 * (double)part / (double)whole);
    sp_buffer_add_char(out, '\n');
    sp_stats_explain_line(explain, out, "links", explained);
}

/* Print the threads whose CPU time was not sampled. Such a thread is never on a core at the
 * kernel's timer tick, or it blocks the signal. */
static void print_unattributed_threads(sp_buffer *out, json_t *threads, sp_stats_explain *explain)
{
    const char *name;
    json_t *ns;
    json_object_foreach(threads, name, ns)
    {
        char unattributed[SP_DURATION_LENGTH];
        sp_format_duration(unattributed, (uint64_t)json_integer_value(ns));
        sp_buffer_printf(out, "    %10s  thread ", unattributed);
        sp_escape_terminal(out, name);
        sp_buffer_add_char(out, '\n');
        sp_stats_explain_line(explain, out, "unattributed", name);
    }
}

/* Add how many stacks are complete, and why the others are not. */
static void add_stacks(sp_buffer *out, json_t *stacks, const char *counted,
                       sp_stats_explain *explain)
{
    const char *end;
    json_t *count;
    uint64_t whole = 0;
    if (!json_object_size(stacks))
        return;
    json_object_foreach(stacks, end, count)
    {
        if (strcmp(end, BY_POINTER) != 0)
            sp_stats_add_to(&whole, json_integer_value(count));
    }
    bool is_estimated = strcmp(counted, "samples") != 0;
    sp_buffer_printf(out, "  stacks%s%s\n", is_estimated ? ", in estimated " : "",
                     is_estimated ? counted : "");
    sp_stats_explain_line(explain, out, "stacks", "");
    json_object_foreach(stacks, end, count)
    {
        sp_buffer_printf(out, "    %10" JSON_INTEGER_FORMAT "  %6.2f %%  ",
                         json_integer_value(count),
                         whole > 0 ? 100.0 * (double)json_integer_value(count) / (double)whole : 0);
        sp_escape_terminal(out, end);
        sp_buffer_add_char(out, '\n');
        sp_stats_explain_line(explain, out, "stacks", end);
    }
}

/* Add the name of a type, with its unit if another type has the same name. */
static void add_type_name(sp_buffer *out, const sp_model *model, uint32_t type)
{
    const char *name = model->types[type].name;
    sp_escape_terminal(out, *name ? name : "[no type]");
    if (sp_model_other_unit(model, type) == SP_MODEL_NONE)
        return;
    sp_buffer_add_char(out, '/');
    sp_escape_terminal(out, model->types[type].unit);
}

/* Add what a sample stands for: one event of the type, or a period of another measure. A period of
 * one event means that the values are complete sums; then it is unknown how they were sampled. */
static void add_period(sp_buffer *out, const sp_model_type *type, uint64_t lock_ns)
{
    char period[SP_VALUE_LENGTH];
    bool is_event = *type->period_unit == 0;
    bool is_whole = type->period == 1 && (is_event || strcmp(type->period_unit, "count") == 0);
    if (lock_ns) {
        sp_format_duration(period, lock_ns);
        sp_buffer_printf(out, ", one in %s of waiting", period);
    }
    if (type->period <= 0 || is_whole)
        return;
    sp_format_value(period, (uint64_t)type->period, is_event ? type->unit : type->period_unit);
    sp_buffer_add_string(out, is_event ? ", one each " : ", one in ");
    sp_escape_terminal(out, period);
}

static void add_type_head(sp_buffer *out, const sp_model *model, uint32_t number,
                          const type_stats *stats)
{
    const sp_model_type *type = &model->types[number];
    sp_buffer_add_char(out, '\n');
    add_type_name(out, model, number);
    sp_buffer_printf(out, ": %s, %s", SP_COUNTED(type->profiles, "profile"),
                     SP_COUNTED(type->samples, "sample"));
    add_period(out, type, stats->lock_ns);
    if (*stats->engine) {
        sp_buffer_add_string(out, ", engine ");
        sp_escape_terminal(out, stats->engine);
    }
    if (*stats->engine_reason) {
        sp_buffer_add_string(out, " (");
        sp_escape_terminal(out, stats->engine_reason);
        sp_buffer_add_char(out, ')');
    }
    sp_buffer_add_char(out, '\n');
}

/* Add the groups of a type whose attributes count what the samples stand for. The samples without
 * a span are counted together, so their number is known only if one group has all of them. */
static void add_estimated_groups(sp_buffer *out, const type_stats *stats, const char *counted,
                                 uint64_t whole, sp_stats_explain *explain)
{
    static const uint64_t zero;
    const struct {
        const char *name;
        uint64_t part;
    } rows[] = {{"none", stats->none}, {"unknown", stats->unknown}, {"boundary", stats->boundary}};
    add_estimated(out, "linked", &stats->linked_samples, stats->linked, whole, counted);
    sp_stats_explain_line(explain, out, "links", "linked_estimated");
    for (size_t i = 0; i < SP_ARRAY_LENGTH(rows); i++) {
        bool has_all = rows[i].part == whole - stats->linked;
        const uint64_t *samples = rows[i].part == 0 ? &zero
                                  : has_all         ? &stats->unlinked_samples
                                                    : NULL;
        add_estimated(out, rows[i].name, samples, rows[i].part, whole, counted);
        sp_stats_explain_line(explain, out, "links", rows[i].name);
    }
}

static void add_groups(sp_buffer *out, const sp_model_type *type, const type_stats *stats,
                       sp_stats_explain *explain)
{
    const char *counted = counted_in(type, stats);
    uint64_t whole = stats->linked;
    sp_sum_add(&whole, stats->none);
    sp_sum_add(&whole, stats->unknown);
    sp_sum_add(&whole, stats->boundary);
    if (strcmp(counted, "samples") != 0) {
        add_estimated_groups(out, stats, counted, whole, explain);
        return;
    }
    add_share(out, "linked", "linked", stats->linked, whole, explain);
    add_share(out, "none", "none", stats->none, whole, explain);
    add_share(out, "unknown", stats->from_outside ? "unknown_from_outside" : "unknown",
              stats->unknown, whole, explain);
    add_share(out, "boundary", "boundary", stats->boundary, whole, explain);
}

static void add_unattributed_time(sp_buffer *out, const type_stats *stats,
                                  sp_stats_explain *explain)
{
    char unattributed[SP_DURATION_LENGTH];
    sp_format_duration(unattributed, stats->unattributed_ns);
    sp_buffer_printf(out, "  %-12s %10s\n", "unattributed", unattributed);
    sp_stats_explain_line(explain, out, "unattributed", "");
    print_unattributed_threads(out, stats->unattributed_threads, explain);
}

static void add_drops(sp_buffer *out, json_t *dropped, sp_stats_explain *explain)
{
    const char *reason;
    json_t *count;
    json_object_foreach(dropped, reason, count)
    {
        sp_buffer_add_string(out, "  dropped: ");
        sp_escape_terminal(out, reason);
        sp_buffer_printf(out, " %" JSON_INTEGER_FORMAT "\n", json_integer_value(count));
        sp_stats_explain_line(explain, out, "dropped", reason);
    }
}

static void add_type(sp_buffer *out, const sp_model *model, uint32_t number,
                     const type_stats *stats, sp_stats_explain *explain)
{
    const sp_model_type *type = &model->types[number];
    add_type_head(out, model, number, stats);
    sp_stats_explain_line(explain, out, "type", type->name);
    add_groups(out, type, stats, explain);
    if (type->is_wall)
        sp_wall_stats_text(out, &stats->wall, type, explain);
    else if (strcmp(type->unit, "nanoseconds") == 0)
        add_unattributed_time(out, stats, explain);
    add_stacks(out, stats->stacks, counted_in(type, stats), explain);
    add_drops(out, stats->dropped, explain);
}

static int write_text(stats *stats)
{
    sp_buffer out = SP_BUFFER_INIT(SP_OUTPUT_MAX_BYTES);
    sp_stats_explain *explain = &stats->explain;
    sp_buffer_printf(&out, "%s, %s, %s (%u to a span in these files)\n",
                     SP_COUNTED(stats->model->span_index.count, "span"),
                     SP_COUNTED(stats->model->profile_count, "profile"),
                     SP_COUNTED(stats->links, "link"), stats->links_with_span);
    sp_stats_explain_line(explain, &out, "head", "");
    sp_producers_text(&out, stats->producers, explain);
    for (uint32_t i = 0; i < stats->model->type_count; i++)
        add_type(&out, stats->model, i, &stats->types[i], explain);
    sp_misuse_stats_text(&out, stats->misuse, explain);
    return sp_output_write(&out, NULL);
}

static void deinit_type(type_stats *type)
{
    json_decref(type->dropped);
    json_decref(type->unattributed_threads);
    json_decref(type->stacks);
    sp_wall_stats_deinit(&type->wall);
}

typedef struct stats_options {
    bool json;
    bool explain;
} stats_options;

static int answer_from(const sp_model *model, const stats_options *options)
{
    stats stats = {.model = model,
                   .producers = sp_producers_json(model),
                   .misuse = json_object(),
                   .explain = {.is_on = options->explain}};
    stats.types = calloc(model->type_count + 1, sizeof *stats.types);
    if (!stats.types || !stats.producers || !stats.misuse) {
        free(stats.types);
        json_decref(stats.producers);
        json_decref(stats.misuse);
        return sp_tool_no_memory();
    }
    for (size_t i = 0; i < model->type_count; i++) {
        stats.types[i] = (type_stats){.dropped = json_object(),
                                      .unattributed_threads = json_object(),
                                      .stacks = json_object()};
        sp_wall_stats_init(&stats.types[i].wall);
    }
    for (size_t i = 0; i < model->profile_count; i++)
        add_profile(&stats, &model->profiles[i]);
    count_samples(&stats);
    int status = options->json ? write_json(&stats) : write_text(&stats);
    for (size_t i = 0; i < model->type_count; i++)
        deinit_type(&stats.types[i]);
    free(stats.types);
    json_decref(stats.producers);
    json_decref(stats.misuse);
    return status;
}

static int check_options(const stats_options *options)
{
    if (options->json && options->explain)
        return sp_tool_wrong("stats: --explain is for people and --json for programs; leave out "
                             "one of them");
    return SP_OPTIONS_GO_ON;
}

static int run(int argc, char **argv)
{
    stats_options options = {0};
    sp_operands files;
    int status = sp_options_parse(&sp_command_stats, argc, argv, &options, &files);
    if (status == SP_OPTIONS_GO_ON)
        status = check_options(&options);
    if (status == SP_OPTIONS_GO_ON && sp_stats_switches_recognize(&files)) {
        sp_stats_explain explain = {.is_on = options.explain};
        status = sp_stats_switches(&files, options.json, &explain);
    } else if (status == SP_OPTIONS_GO_ON) {
        sp_input input;
        sp_model model = {0};
        status = sp_input_read_once(&input, &files);
        if (status == SP_TOOL_DONE)
            status = sp_model_build(&model, &input);
        if (status == SP_TOOL_DONE)
            status = answer_from(&model, &options);
        if (status == SP_TOOL_DONE)
            status = sp_model_check_runs(&model);
        status = sp_input_status(&input, status);
        sp_model_deinit(&model);
        sp_input_deinit(&input);
    }
    sp_operands_deinit(&files);
    return status;
}

static const sp_option options[] = {
    {"--json", NULL, SP_OPTION_FLAG, offsetof(stats_options, json), "one JSON object"},
    {"--explain", NULL, SP_OPTION_FLAG, offsetof(stats_options, explain),
     "below each line what it means, and what to do when it is high"},
};

const sp_command sp_command_stats = {
    .name = "stats",
    .arguments = "FILE… [--json | --explain]",
    .summary =
        "Samples by linked, none, unknown, boundary; unattributed and drops, by profile type.",
    .details =
        "Of wall time also the wall profiler's visits (unmoved: the thread had not run since the "
        "last one;\ndiscarded: it ran meanwhile), the time by what was waited for, and "
        "by kind of descriptor.",
    .examples = "# how much of the samples is known\n"
                "spanprof stats shop\n"
                "# what each line means\n"
                "spanprof stats shop --explain",
    .options = options,
    .option_count = SP_ARRAY_LENGTH(options),
    .run = run,
};
