/* SPDX-License-Identifier: Apache-2.0 */
/* Makes profile data of a given size and shape, for tests of requests. No two samples of a profile
 * have the same stack, link and thread. */
#ifndef SP_TEST_MADE_PROFILES_H
#define SP_TEST_MADE_PROFILES_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/dictionary.h"
#include "profile/profile_part.h"

typedef struct made_shape {
    uint32_t samples, wall_samples;
    uint32_t stacks, frames, functions, links;
    uint32_t name_bytes; /* the least length of a function's name */
    bool timestamps;     /* CPU samples have timestamps, which are encoded instead of values */
} made_shape;

enum { MADE_PERIOD_NS = 10000000 };

#define MADE_TIME_NS     UINT64_C(1700000000000000000)
#define MADE_DURATION_NS UINT64_C(10000000000)

static inline int64_t made_value(uint32_t sample)
{
    return 1 + sample % 7;
}

static inline uint32_t made_location(sp_dictionary *d, const made_shape *shape, uint32_t function)
{
    char *name = malloc(shape->name_bytes + 32);
    int length = snprintf(name, 32, "function_%u", function);
    for (uint32_t i = (uint32_t)length; i < shape->name_bytes; i++)
        name[i] = (char)('a' + (i + function) % 26);
    name[shape->name_bytes > (uint32_t)length ? shape->name_bytes : (uint32_t)length] = 0;
    const sp_frame frame = {
        .name = name, .system_name = "", .file = "made.c", .line = function + 1};
    uint32_t location = sp_dictionary_location(d, NULL, 4096 + 16 * function, &frame, 1);
    free(name);
    return location;
}

/* Stack NUMBER. Each of the first functions^2 stacks has another pair of leaf and root; the frames
 * between them are scattered. */
static inline uint32_t made_stack(sp_dictionary *d, const made_shape *shape,
                                  const uint32_t *locations, uint32_t number)
{
    uint32_t frames[128];
    uint64_t seed = number;
    for (uint32_t i = 0; i < shape->frames; i++) {
        frames[i] = locations[seed % shape->functions];
        seed = seed / shape->functions * 31 + seed % shape->functions + i + 1;
    }
    frames[shape->frames - 1] = locations[number / shape->functions % shape->functions];
    return sp_dictionary_stack(d, frames, shape->frames);
}

static inline uint32_t made_link(sp_dictionary *d, uint32_t number)
{
    uint8_t trace[16] = "trace", span[8] = "span";
    memcpy(trace + 12, &number, sizeof number);
    memcpy(span + 4, &number, sizeof number);
    return number ? sp_dictionary_link(d, trace, span) : 0;
}

static inline uint32_t made_attributes(sp_dictionary *d, const sp_profile *profile)
{
    sp_profile_unattributed unattributed = {.unattributed_ns = 7, .tid = 42, .name = "worker"};
    uint32_t list[5], count = 0;
    int64_t linked = 0, none = 0;
    for (uint32_t i = 0; i < profile->sample_count; i++)
        *(profile->samples[i].link_index ? &linked : &none) += profile->samples[i].value;
    list[count++] = sp_dictionary_string_attribute(d, "spanprof.engine", "timer");
    list[count++] = sp_dictionary_int_attribute(d, "spanprof.samples.linked", "", linked);
    list[count++] = sp_dictionary_int_attribute(d, "spanprof.samples.none", "", none);
    list[count++] = sp_dictionary_int_attribute(d, "spanprof.unattributed_ns", "ns", 123456789);
    list[count++] = sp_dictionary_unattributed_threads_attribute(
        d, "spanprof.unattributed_ns.threads", &unattributed, 1);
    return sp_dictionary_attributes(d, list, count);
}

static inline void made_timestamps(sp_profile_data *data, sp_profile_sample *sample, uint32_t *at)
{
    sample->timestamps = (sp_index_list){*at, (uint32_t)sample->value};
    for (uint32_t i = 0; i < sample->timestamps.count; i++, (*at)++)
        data->timestamps[*at] = MADE_TIME_NS + *at;
}

static inline void made_profile(sp_profile_data *data, sp_dictionary *d, const made_shape *shape,
                                const uint32_t *stacks, bool is_wall)
{
    sp_profile *profile = &data->profiles[data->profile_count++];
    uint32_t count = is_wall ? shape->wall_samples : shape->samples, at = 0;
    uint64_t unit = is_wall ? MADE_PERIOD_NS : 1;
    *profile = (sp_profile){
        .sample_type_strindex = sp_dictionary_string(d, is_wall ? "wall" : "samples"),
        .sample_unit_strindex = sp_dictionary_string(d, is_wall ? "nanoseconds" : "count"),
        .period_type_strindex = sp_dictionary_string(d, is_wall ? "wall" : "cpu"),
        .period_unit_strindex = sp_dictionary_string(d, "nanoseconds"),
        .period = MADE_PERIOD_NS,
        .time_unix_nano = MADE_TIME_NS,
        .duration_nano = MADE_DURATION_NS,
        .samples = sp_arena_array(&data->memory, count, sizeof *profile->samples),
        .sample_count = count,
    };
    sp_profile_id_make(profile->profile_id);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t rest = i / shape->stacks;
        uint32_t thread =
            sp_dictionary_int_attribute(d, "thread.id", "", 1000 + rest / (shape->links + 1));
        profile->samples[i] = (sp_profile_sample){
            .stack_index = stacks[i % shape->stacks],
            .link_index = made_link(d, rest % (shape->links + 1)),
            .attributes = {.offset = sp_dictionary_attributes(d, &thread, 1)},
            .value = made_value(i) * (int64_t)unit,
        };
        if (shape->timestamps && !is_wall)
            made_timestamps(data, &profile->samples[i], &at);
    }
    profile->attributes.offset = made_attributes(d, profile);
}

static inline void made_place_lists(sp_profile_data *data, const sp_dictionary *d)
{
    for (uint32_t i = 0; i < data->profile_count; i++) {
        sp_profile *profile = &data->profiles[i];
        profile->attributes = sp_dictionary_list(d, profile->attributes.offset);
        for (uint32_t j = 0; j < profile->sample_count; j++)
            profile->samples[j].attributes =
                sp_dictionary_list(d, profile->samples[j].attributes.offset);
    }
}

/* False when memory is short. The caller frees the arena of DATA. */
static inline bool make_profiles(sp_profile_data *data, const made_shape *shape)
{
    sp_dictionary d = {0};
    uint32_t *locations = calloc(shape->functions, sizeof *locations);
    uint32_t *stacks = calloc(shape->stacks, sizeof *stacks);
    *data = (sp_profile_data){0};
    data->profiles = sp_arena_array(&data->memory, 2, sizeof *data->profiles);
    data->timestamps =
        sp_arena_array(&data->memory, (size_t)shape->samples * 7, sizeof *data->timestamps);
    sp_dictionary_init(&d);
    for (uint32_t i = 0; i < shape->functions; i++)
        locations[i] = made_location(&d, shape, i);
    for (uint32_t i = 0; i < shape->stacks; i++)
        stacks[i] = made_stack(&d, shape, locations, i);
    made_profile(data, &d, shape, stacks, false);
    if (shape->wall_samples)
        made_profile(data, &d, shape, stacks, true);
    bool done = sp_dictionary_finish(&d, data);
    if (done)
        made_place_lists(data, &d);
    sp_dictionary_deinit(&d);
    free(locations);
    free(stacks);
    return done;
}

#endif
