/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tool/check/check.h"
#include "tool/check/check.h"
#include "tool/model/model.h"

/* What a sample has. All samples of a profile must have the same shape. */
typedef enum sample_shape {
    SHAPE_NOTHING = 0,
    SHAPE_VALUES = 1,
    SHAPE_TIMESTAMPS = 2,
    SHAPE_BOTH = 3,
} sample_shape;

static const char *const shape_names[] = {"nothing", "values", "timestamps",
                                          "values and timestamps"};

/* ---- samples ---- */

static sample_shape check_shape(sp_checker *checker, const Sp__Profiles__Sample *sample,
                                const sp_place *place)
{
    size_t values = sample->n_values, timestamps = sample->n_timestamps_unix_nano;
    sample_shape shape =
        (sample_shape)((values ? SHAPE_VALUES : 0) | (timestamps ? SHAPE_TIMESTAMPS : 0));
    if (shape == SHAPE_NOTHING)
        sp_check_violation(checker, "sample-empty", place, "has neither values nor timestamps");
    if (shape == SHAPE_VALUES && values != 1)
        sp_check_violation(checker, "sample-values", place,
                           "has %zu values without timestamps; exactly one is needed", values);
    if (shape == SHAPE_BOTH && values != timestamps)
        sp_check_violation(checker, "sample-lengths", place, "has %zu values but %zu timestamps",
                           values, timestamps);
    return shape;
}

static void check_timestamps(sp_checker *checker, const Sp__Profiles__Profile *profile,
                             const Sp__Profiles__Sample *sample, const sp_place *place)
{
    for (size_t i = 0; i < sample->n_timestamps_unix_nano; i++) {
        uint64_t timestamp = sample->timestamps_unix_nano[i];
        if (timestamp >= profile->time_unix_nano &&
            timestamp - profile->time_unix_nano < profile->duration_nano)
            continue;
        sp_check_violation(checker, "timestamp-range", place,
                           "timestamp %zu, %" PRIu64 ", lies outside the profile's time", i,
                           timestamp);
        return;
    }
}

static int compare_indices(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return x < y ? -1 : x > y;
}

/* Check that no earlier sample, in SEEN, has the same stack, link and set of attributes. */
static void check_identity(sp_checker *checker, sp_intern *seen, const Sp__Profiles__Sample *sample,
                           const sp_place *place)
{
    size_t count = sample->n_attribute_indices + 2;
    int32_t *key = malloc(count * sizeof *key);
    bool is_new = true;
    uint32_t first = SP_INTERN_FAILED;
    if (key) {
        key[0] = sample->stack_index;
        key[1] = sample->link_index;
        for (size_t i = 2; i < count; i++)
            key[i] = sample->attribute_indices[i - 2];
        qsort(key + 2, count - 2, sizeof *key, compare_indices);
        first = sp_intern_put(seen, key, count * sizeof *key, &is_new);
    }
    if (first == SP_INTERN_FAILED)
        checker->failed = true;
    else if (!is_new)
        sp_check_violation(checker, "sample-merged", place,
                           "has the stack, link and attributes of an earlier sample; the two have "
                           "to be one");
    free(key);
}

static void check_link_time(sp_checker *checker, const Sp__Profiles__Profile *profile,
                            const Sp__Profiles__Link *link, const sp_place *place)
{
    uint32_t number = sp_checker_find_span(checker, &link->trace_id, &link->span_id);
    if (number == SP_INTERN_FAILED)
        return;
    const Sp__Trace__Span *span = checker->spans[number].message;
    uint64_t end = profile->time_unix_nano + profile->duration_nano;
    if (span->end_time_unix_nano < profile->time_unix_nano || span->start_time_unix_nano >= end)
        sp_check_warning(checker, "link-span-time", place,
                         "is linked to a span that does not overlap the profile's time");
}

/* Whether PROFILE is a snapshot of live blocks, which may belong to spans that ended long ago. */
static bool is_snapshot(const sp_tables *tables, const Sp__Profiles__Profile *profile)
{
    const Sp__Profiles__ProfilesDictionary *d = tables->dictionary;
    int32_t name = profile->sample_type ? profile->sample_type->type_strindex : 0;
    return name > 0 && (size_t)name < d->n_string_table &&
           sp_is_snapshot_name(d->string_table[name]);
}

static void check_samples(sp_tables *tables, const Sp__Profiles__Profile *profile,
                          const sp_place *place)
{
    sp_checker *checker = tables->checker;
    sample_shape first_shape = SHAPE_NOTHING;
    sp_intern seen = {0};
    for (size_t i = 0; i < profile->n_samples; i++) {
        const Sp__Profiles__Sample *sample = profile->samples[i];
        sp_place own = sp_place_of("%s.samples[%zu]", place->text, i);
        sp_tables_use(tables, SP_TABLE_STACK, sample->stack_index, &own);
        sp_tables_use_attributes(tables, sample->attribute_indices, sample->n_attribute_indices,
                                 &own);
        if (sp_tables_use(tables, SP_TABLE_LINK, sample->link_index, &own) && sample->link_index &&
            !is_snapshot(tables, profile))
            check_link_time(checker, profile, tables->dictionary->link_table[sample->link_index],
                            &own);
        sample_shape shape = check_shape(checker, sample, &own);
        if (first_shape == SHAPE_NOTHING)
            first_shape = shape;
        if (shape != SHAPE_NOTHING && shape != first_shape)
            sp_check_violation(checker, "sample-shape", &own, "has %s; earlier samples have %s",
                               shape_names[shape], shape_names[first_shape]);
        check_timestamps(checker, profile, sample, &own);
        check_identity(checker, &seen, sample, &own);
    }
    sp_intern_deinit(&seen);
}

/* ---- profiles ---- */

static void use_value_type(sp_tables *tables, const Sp__Profiles__ValueType *type,
                           const sp_place *place)
{
    if (!type)
        return;
    sp_tables_use(tables, SP_TABLE_STRING, type->type_strindex, place);
    sp_tables_use(tables, SP_TABLE_STRING, type->unit_strindex, place);
}

static void check_profile(sp_tables *tables, const Sp__Profiles__Profile *profile,
                          const sp_place *place)
{
    sp_checker *checker = tables->checker;
    use_value_type(tables, profile->sample_type, place);
    use_value_type(tables, profile->period_type, place);
    if (!profile->sample_type || profile->sample_type->type_strindex == 0)
        sp_check_violation(checker, "sample-type", place, "has no sample type");
    sp_check_wall_profile(tables, profile, place);
    if (profile->profile_id.len && !sp_id_is_good(&profile->profile_id, 16))
        sp_check_violation(checker, "profile-id", place,
                           "has %zu bytes; 16 that are not all zero are needed, or none",
                           profile->profile_id.len);
    bool has_format = profile->original_payload_format && *profile->original_payload_format;
    if (has_format != (profile->original_payload.len > 0))
        sp_check_violation(checker, "original-payload", place,
                           "original_payload and its format are set together or not at all");
    sp_tables_use_attributes(tables, profile->attribute_indices, profile->n_attribute_indices,
                             place);
    check_samples(tables, profile, place);
}

static void check_resource(sp_tables *tables, const Sp__Profiles__ResourceProfiles *resource,
                           size_t number)
{
    sp_place place = sp_place_of("resource_profiles[%zu].resource", number);
    if (resource->resource)
        sp_check_attributes(tables->checker, tables, resource->resource->attributes,
                            resource->resource->n_attributes, &place);
    for (size_t s = 0; s < resource->n_scope_profiles; s++) {
        const Sp__Profiles__ScopeProfiles *scope = resource->scope_profiles[s];
        place = sp_place_of("resource_profiles[%zu].scope_profiles[%zu].scope", number, s);
        if (scope->scope)
            sp_check_attributes(tables->checker, tables, scope->scope->attributes,
                                scope->scope->n_attributes, &place);
        for (size_t i = 0; i < scope->n_profiles; i++) {
            place = sp_place_of("resource_profiles[%zu].scope_profiles[%zu].profiles[%zu]", number,
                                s, i);
            check_profile(tables, scope->profiles[i], &place);
        }
    }
}

/* A link to a span that is not in the files is only a warning, because a span that still runs when
 * the program ends is not written. */
static void check_links(sp_tables *tables)
{
    if (tables->checker->span_ids.count == 0)
        return;
    for (size_t i = 1; i < tables->counts[SP_TABLE_LINK]; i++) {
        const Sp__Profiles__Link *link = tables->dictionary->link_table[i];
        sp_place place = sp_place_of("link_table[%zu]", i);
        if (sp_checker_find_span(tables->checker, &link->trace_id, &link->span_id) ==
            SP_INTERN_FAILED)
            sp_check_warning(tables->checker, "link-span", &place,
                             "no span with these ids is in the files");
    }
}

static bool open_tables(sp_tables *tables, sp_checker *checker,
                        const Sp__Profiles__ProfilesDictionary *d)
{
    *tables = (sp_tables){
        .checker = checker,
        .dictionary = d,
        .counts = {d->n_string_table, d->n_mapping_table, d->n_location_table, d->n_function_table,
                   d->n_link_table, d->n_attribute_table, d->n_stack_table},
        .entries = {(void *const *)d->string_table, (void *const *)d->mapping_table,
                    (void *const *)d->location_table, (void *const *)d->function_table,
                    (void *const *)d->link_table, (void *const *)d->attribute_table,
                    (void *const *)d->stack_table},
    };
    bool done = true;
    for (int i = 0; i < SP_TABLE_COUNT; i++) {
        tables->used[i] = calloc(tables->counts[i] + 1, sizeof **tables->used);
        done = done && tables->used[i];
    }
    checker->failed = checker->failed || !done;
    return done;
}

void sp_check_profiles(sp_checker *checker)
{
    static const Sp__Profiles__ProfilesDictionary empty = SP__PROFILES__PROFILES_DICTIONARY__INIT;
    const Sp__Profiles__ProfilesData *data =
        (const Sp__Profiles__ProfilesData *)checker->document->message;
    sp_tables tables;
    if (open_tables(&tables, checker, data->dictionary ? data->dictionary : &empty)) {
        sp_place place = sp_place_of("dictionary");
        if (data->dictionary)
            sp_check_dictionary(&tables);
        else
            sp_check_violation(checker, "dictionary", &place, "is missing");
        for (size_t i = 0; i < data->n_resource_profiles; i++)
            check_resource(&tables, data->resource_profiles[i], i);
        sp_check_orphans(&tables);
        check_links(&tables);
    }
    for (int i = 0; i < SP_TABLE_COUNT; i++)
        free(tables.used[i]);
}
