/* SPDX-License-Identifier: Apache-2.0 */
/* Makes profiles of a window. For each sample with a value, its stack with names, its link
 * according to the scope, and its attributes become entries of the dictionary; samples that are
 * then equal are added up. */
#include "profile/builder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/build.h"
#include "profile/profile_part.h"

enum { PROFILES_MAX = 2 * (2 + 2 * SP_CALL_VALUES + SP_VALUE_TYPES_MAX) };

/* Make a profile of the projected samples, of type SAMPLE/UNIT over PERIOD/PERIOD_UNIT. */
static sp_profile *write_profile(sp_build *b, const char *sample, const char *unit,
                                 const char *period, const char *period_unit)
{
    sp_profile *profile = &b->data->profiles[b->data->profile_count++];
    profile->sample_type_strindex = sp_dictionary_string(&b->dictionary, sample);
    profile->sample_unit_strindex = sp_dictionary_string(&b->dictionary, unit);
    profile->period_type_strindex = sp_dictionary_string(&b->dictionary, period);
    profile->period_unit_strindex = sp_dictionary_string(&b->dictionary, period_unit);
    profile->time_unix_nano = b->window->start_time_ns;
    profile->duration_nano = b->window->end_time_ns - b->window->start_time_ns;
    sp_profile_id_make(profile->profile_id);
    sp_build_write_samples(b, profile);
    return profile;
}

/* CPU time in the form that backends expect: counts of samples, whose period is in nanoseconds. The
 * second profile, linked to the innermost spans, has a separate type, so that no reader adds the
 * two up. Its values are nanoseconds, because backends multiply counts by the period only for
 * "cpu". */
static void build_cpu_profile(sp_build *b, spanprof_link_scope scope, bool is_second)
{
    const sp_window *w = b->window;
    const sp_window_part all = {.samples = &w->cpu, .unit = is_second ? w->period_ns : 1};
    sp_build_begin_profile(b);
    sp_build_project(b, &all, scope);
    if (!b->samples.count)
        return;
    sp_profile *profile =
        is_second ? write_profile(b, "cpu_innermost", "nanoseconds", "cpu_innermost", "nanoseconds")
                  : write_profile(b, "samples", "count", "cpu", "nanoseconds");
    profile->period = sp_saturating_sum(0, w->period_ns);
    profile->attributes.offset = sp_build_cpu_attributes(b);
    if (sp_build_has_times(w) && !is_second)
        sp_build_write_times(b, profile);
}

/* Wall time: the time that threads waited, and their CPU time. */
static void build_wall_profile(sp_build *b, spanprof_link_scope scope, bool is_second)
{
    const char *type = is_second ? "wall_innermost" : "wall";
    sp_build_begin_profile(b);
    for (int i = 0; i < SP_WINDOW_WALL_PARTS; i++)
        sp_build_project(b, &b->window->wall_parts[i], scope);
    if (!b->samples.count)
        return;
    sp_profile *profile = write_profile(b, type, "nanoseconds", type, "nanoseconds");
    profile->period = sp_saturating_sum(0, b->window->wall_period_ns);
    profile->attributes.offset = sp_build_wall_attributes(b);
}

/* The type of a profile of calls. Its values are counts or weights. */
typedef struct call_profile {
    uint32_t kind;
    bool by_count;
    const char *name, *unit, *period_name, *period_unit;
    uint64_t period;
} call_profile;

static void build_call_profile(sp_build *b, const call_profile *type, spanprof_link_scope scope,
                               bool is_second)
{
    char name[80], period_name[80];
    const char *suffix = is_second ? "_innermost" : "";
    const sp_window_part all = {.samples = &b->window->calls[type->kind], .unit = 1};
    sp_build_begin_profile(b);
    b->by_count = type->by_count;
    sp_build_project(b, &all, scope);
    b->by_count = false;
    if (!b->samples.count)
        return;
    snprintf(name, sizeof name, "%s%s", type->name, suffix);
    snprintf(period_name, sizeof period_name, "%s%s", type->period_name, suffix);
    sp_profile *profile = write_profile(b, name, type->unit, period_name, type->period_unit);
    profile->period = sp_saturating_sum(0, type->period);
    profile->attributes.offset = sp_build_call_attributes(b, type->kind);
}

/* Backends recognize these types by pprof's names. */
static void build_memory_profiles(sp_build *b, spanprof_link_scope scope, bool is_second)
{
    static const call_profile types[] = {
        {SP_CALL_ALLOC, false, "alloc_space", "bytes", "space", "bytes", 0},
        {SP_CALL_ALLOC, true, "alloc_objects", "count", "space", "bytes", 0},
        {SP_CALL_HEAP, false, "inuse_space", "bytes", "space", "bytes", 0},
        {SP_CALL_HEAP, true, "inuse_objects", "count", "space", "bytes", 0},
    };
    for (size_t i = 0; i < SP_ARRAY_LENGTH(types); i++) {
        call_profile type = types[i];
        type.period = b->window->alloc_bytes;
        build_call_profile(b, &type, scope, is_second);
    }
}

/* The names of Go's profile of mutexes, which backends recognize. Waits for conditions and
 * semaphores have types of their own, because waits of idle workers would hide contention. */
static void build_lock_profiles(sp_build *b, spanprof_link_scope scope, bool is_second)
{
    static const call_profile types[] = {
        {SP_CALL_LOCK, true, "contentions", "count", "contentions", "count", 1},
        {SP_CALL_LOCK, false, "delay", "nanoseconds", "contentions", "count", 1},
        {SP_CALL_CONDITION, true, "condition_waits", "count", "waits", "count", 1},
        {SP_CALL_CONDITION, false, "condition_delay", "nanoseconds", "waits", "count", 1},
        {SP_CALL_SEMAPHORE, true, "semaphore_waits", "count", "waits", "count", 1},
        {SP_CALL_SEMAPHORE, false, "semaphore_delay", "nanoseconds", "waits", "count", 1},
    };
    for (size_t i = 0; i < SP_ARRAY_LENGTH(types); i++)
        build_call_profile(b, &types[i], scope, is_second);
}

/* The period is 1, because a backend refuses a profile without a period. */
static void build_value_profiles(sp_build *b, spanprof_link_scope scope, bool is_second)
{
    for (uint32_t n = 0; n < SP_VALUE_TYPES_MAX; n++) {
        if (!b->window->calls[SP_CALL_VALUES + n].keys.count)
            continue;
        const sp_value_type *of = &b->window->value_types[n];
        const call_profile type = {SP_CALL_VALUES + n, false,    of->name, of->unit,
                                   of->name,           of->unit, 1};
        build_call_profile(b, &type, scope, is_second);
    }
}

/* With both scopes there are two profiles of each type: of the roots, and of the innermost spans.
 */
static void build_profiles(sp_build *b)
{
    bool both = b->options->link_scope == SPANPROF_LINK_SCOPE_BOTH;
    spanprof_link_scope first = both ? SPANPROF_LINK_SCOPE_ROOT : b->options->link_scope;
    for (int second = 0; second <= both; second++) {
        spanprof_link_scope scope = second ? SPANPROF_LINK_SCOPE_INNERMOST : first;
        b->scope = scope;
        if (!b->options->without_cpu)
            build_cpu_profile(b, scope, second);
        if (b->window->wall_period_ns)
            build_wall_profile(b, scope, second);
        build_memory_profiles(b, scope, second);
        build_lock_profiles(b, scope, second);
        build_value_profiles(b, scope, second);
    }
}

/* Replace the numbers of attribute lists by their places in data->indices. */
static void place_lists(sp_build *b)
{
    for (uint32_t i = 0; i < b->data->profile_count; i++) {
        sp_profile *profile = &b->data->profiles[i];
        profile->attributes = sp_dictionary_list(&b->dictionary, profile->attributes.offset);
        for (uint32_t j = 0; j < profile->sample_count; j++) {
            sp_index_list *list = &profile->samples[j].attributes;
            *list = sp_dictionary_list(&b->dictionary, list->offset);
        }
    }
}

static uint32_t longest_stack(const sp_window *window)
{
    uint32_t longest = 0;
    for (uint32_t i = 0; i < window->stacks.count; i++) {
        uint32_t length = window->stacks.entries[i].length / sizeof(uint32_t);
        longest = length > longest ? length : longest;
    }
    return longest;
}

/* Each array has one more element than needed, because calloc of no bytes may return NULL. */
static bool allocate(sp_build *b)
{
    const sp_window *w = b->window;
    size_t samples = (size_t)sp_window_sample_total(w) + 1;
    b->locations = calloc(w->locations.count + 1, sizeof *b->locations);
    b->stacks = calloc(w->stacks.count + 1, sizeof *b->stacks);
    b->threads = calloc(w->threads.count + 1, sizeof *b->threads);
    b->stack_scratch = calloc(longest_stack(w) + 1, sizeof *b->stack_scratch);
    b->links = calloc(w->links.count + 1, sizeof *b->links);
    b->samples.list = malloc(samples * sizeof *b->samples.list);
    b->samples.order = malloc(samples * sizeof *b->samples.order);
    b->samples.places = malloc(samples * sizeof *b->samples.places);
    b->data->profiles = sp_arena_array(&b->data->memory, PROFILES_MAX, sizeof *b->data->profiles);
    return b->locations && b->stacks && b->threads && b->stack_scratch && b->links &&
           b->samples.list && b->samples.order && b->samples.places && b->data->profiles;
}

static void build_deinit(sp_build *b)
{
    free(b->locations);
    free(b->stacks);
    free(b->threads);
    free(b->stack_scratch);
    free(b->links);
    free(b->samples.list);
    free(b->samples.order);
    free(b->samples.places);
    sp_dictionary_deinit(&b->dictionary);
}

bool sp_profile_build(sp_profile_data *data, const sp_window *window, sp_symbolizer *symbolizer,
                      const sp_build_options *options)
{
    sp_build b = {
        .data = data,
        .window = window,
        .symbolizer = symbolizer,
        .options = options,
    };
    memset(data, 0, sizeof *data);
    sp_dictionary_init(&b.dictionary);
    bool built = allocate(&b);
    if (built) {
        build_profiles(&b);
        built = sp_dictionary_finish(&b.dictionary, data);
    }
    if (built)
        place_lists(&b);
    build_deinit(&b);
    return built;
}

void sp_profile_data_deinit(sp_profile_data *data)
{
    sp_arena_deinit(&data->memory);
    memset(data, 0, sizeof *data);
}
