/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/pull_window.h"

#include <string.h>

#include "core/compiler.h"
#include "profile/profile_part.h"

enum { MOST_TYPES = 4 };

/* The types of a kind, in the order of the pprof. Readers show the last one first. */
static const struct {
    sp_pprof_type_name types[MOST_TYPES];
} kinds[SP_PULL_KINDS] = {
    [SP_PULL_CPU] = {{{"samples", "count"}, {"cpu", "nanoseconds"}}},
    [SP_PULL_HEAP] = {{{"inuse_objects", "count"}, {"inuse_space", "bytes"}}},
    [SP_PULL_ALLOCATIONS] = {{{"alloc_objects", "count"}, {"alloc_space", "bytes"}}},
    [SP_PULL_CONTENTIONS] = {{{"contentions", "count"}, {"delay", "nanoseconds"}}},
    [SP_PULL_WAITS] = {{{"condition_waits", "count"},
                        {"semaphore_waits", "count"},
                        {"semaphore_delay", "nanoseconds"},
                        {"condition_delay", "nanoseconds"}}},
};

static size_t type_count(sp_pull_kind kind)
{
    size_t count = 0;
    while (count < MOST_TYPES && kinds[kind].types[count].type)
        count++;
    return count;
}

static bool is_wanted(const sp_profile_data *data, const sp_profile *profile, sp_pull_kind kind)
{
    const char *type = data->strings[profile->sample_type_strindex];
    const char *unit = data->strings[profile->sample_unit_strindex];
    for (size_t i = 0; i < type_count(kind); i++)
        if (strcmp(kinds[kind].types[i].type, type) == 0 &&
            strcmp(kinds[kind].types[i].unit, unit) == 0)
            return true;
    return false;
}

/* Keep only the profiles of KIND in DATA. */
static void keep_wanted(sp_profile_data *data, sp_pull_kind kind)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < data->profile_count; i++)
        if (is_wanted(data, &data->profiles[i], kind))
            data->profiles[kept++] = data->profiles[i];
    data->profile_count = kept;
}

/* Encode DATA with only those entries of the dictionary that its profiles use. */
static bool encode(sp_buffer *out, sp_pull_windows *windows, sp_pull_kind kind,
                   const sp_profile_data *data, const sp_resource *resource)
{
    sp_profile_data part = {0};
    sp_sample_range all = {0, sp_profile_sample_total(data)};
    bool done = (all.count == 0 || sp_profile_part(&part, data, all)) &&
                sp_pprof_encode_part(out, resource, &part, kinds[kind].types, type_count(kind),
                                     &windows->sequence);
    sp_profile_data_deinit(&part);
    return done;
}

void sp_pull_window_make(sp_pull_windows *windows, const sp_pull_order *order,
                         const sp_window *window, const sp_build_options *options,
                         sp_symbolizer *symbolizer, const sp_resource *resource)
{
    sp_buffer part = SP_BUFFER_INIT(SP_PULL_MAX_BYTES);
    sp_profile_data data = {0};
    if (windows->number != order->number)
        *windows = (sp_pull_windows){.number = order->number};
    part.failed = !sp_profile_build(&data, window, symbolizer, options);
    if (!part.failed) {
        keep_wanted(&data, order->kind);
        part.failed = !encode(&part, windows, order->kind, &data, resource);
    }
    sp_pull_window_done(order, &part);
    sp_profile_data_deinit(&data);
    sp_buffer_deinit(&part);
}
