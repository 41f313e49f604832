/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/command/stats_wall.h"

#include <inttypes.h>
#include <string.h>

#include "tool/model/sum.h"
#include "tool/text/escape.h"
#include "tool/text/output.h"

#define VISITS_PREFIX "spanprof.wall."
#define VISITS        "visits" /* the other counts are parts of this one */
#define STEAL         "spanprof.steal_ns"

void sp_wall_stats_init(sp_wall_stats *stats)
{
    *stats = (sp_wall_stats){.visits = json_object(), .descriptors = json_object()};
}

void sp_wall_stats_deinit(sp_wall_stats *stats)
{
    json_decref(stats->visits);
    json_decref(stats->descriptors);
}

void sp_stats_add_to(uint64_t *sum, int64_t number)
{
    sp_sum_add(sum, number > 0 ? (uint64_t)number : 0);
}

void sp_stats_add(json_t *object, const char *key, int64_t number)
{
    uint64_t sum = (uint64_t)json_integer_value(json_object_get(object, key));
    sp_stats_add_to(&sum, number);
    json_object_set_new(object, key, json_integer((json_int_t)sum));
}

void sp_wall_stats_attribute(sp_wall_stats *stats, const char *key, int64_t number)
{
    if (strncmp(key, VISITS_PREFIX, strlen(VISITS_PREFIX)) == 0)
        sp_stats_add(stats->visits, key + strlen(VISITS_PREFIX), number);
    else if (strcmp(key, STEAL) == 0)
        sp_stats_add_to(&stats->steal_ns, number);
}

void sp_wall_stats_sample(sp_wall_stats *stats, const sp_model *model,
                          const sp_model_sample *sample)
{
    sp_sum_add(&stats->where_ns[sample->where], sample->value);
    if (sample->descriptor != SP_MODEL_NONE)
        sp_stats_add(stats->descriptors, sp_model_text(model, sample->descriptor),
                     (int64_t)sample->value);
}

json_t *sp_wall_stats_json(const sp_wall_stats *stats, const sp_model_type *type)
{
    json_t *time = type->has_waiting_samples ? sp_where_json(stats->where_ns) : json_object();
    return json_pack("{s:O, s:o, s:I, s:O}", "visits", stats->visits, "time", time, "steal_ns",
                     (json_int_t)stats->steal_ns, "descriptors", stats->descriptors);
}

static void add_line(sp_buffer *out, const char *amount, uint64_t part, uint64_t whole,
                     const char *name)
{
    sp_buffer_printf(out, "    %10s  %6.2f %%  ", amount,
                     whole ? 100.0 * (double)part / (double)whole : 0);
    sp_escape_terminal(out, name);
    sp_buffer_add_char(out, '\n');
}

static void add_time(sp_buffer *out, uint64_t part, uint64_t whole, const char *name)
{
    char time[SP_DURATION_LENGTH];
    sp_format_duration(time, part);
    add_line(out, time, part, whole, name);
}

static void add_visits(sp_buffer *out, json_t *visits, sp_stats_explain *explain)
{
    uint64_t whole = (uint64_t)json_integer_value(json_object_get(visits, VISITS));
    const char *name;
    json_t *count;
    if (!json_object_size(visits))
        return;
    sp_buffer_printf(out, "  %-12s %10" PRIu64 "\n", VISITS, whole);
    sp_stats_explain_line(explain, out, "visits", VISITS);
    json_object_foreach(visits, name, count)
    {
        char number[32];
        if (strcmp(name, VISITS) == 0)
            continue;
        snprintf(number, sizeof number, "%" JSON_INTEGER_FORMAT, json_integer_value(count));
        add_line(out, number, (uint64_t)json_integer_value(count), whole, name);
        sp_stats_explain_line(explain, out, "visits", name);
    }
}

static void add_classes(sp_buffer *out, const sp_wall_stats *stats, uint64_t whole,
                        sp_stats_explain *explain)
{
    sp_buffer_add_string(out, "  time\n");
    sp_stats_explain_line(explain, out, "time", "");
    for (int i = 0; i < SP_WHERE_COUNT; i++) {
        add_time(out, stats->where_ns[i], whole, sp_where_names[i]);
        sp_stats_explain_line(explain, out, "time", sp_where_names[i]);
    }
}

static void add_descriptors(sp_buffer *out, json_t *descriptors, uint64_t whole,
                            sp_stats_explain *explain)
{
    const char *kind;
    json_t *ns;
    if (!json_object_size(descriptors))
        return;
    sp_buffer_add_string(out, "  waited on\n");
    sp_stats_explain_line(explain, out, "descriptors", "");
    json_object_foreach(descriptors, kind, ns)
    {
        add_time(out, (uint64_t)json_integer_value(ns), whole, kind);
        sp_stats_explain_line(explain, out, "descriptors", kind);
    }
}

void sp_wall_stats_text(sp_buffer *out, const sp_wall_stats *stats, const sp_model_type *type,
                        sp_stats_explain *explain)
{
    uint64_t whole = sp_where_sum(stats->where_ns);
    add_visits(out, stats->visits, explain);
    if (type->has_waiting_samples)
        add_classes(out, stats, whole, explain);
    if (stats->steal_ns) {
        add_time(out, stats->steal_ns, whole, "of it taken by the host (steal)");
        sp_stats_explain_line(explain, out, "time", "steal");
    }
    add_descriptors(out, stats->descriptors, whole, explain);
}
