/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/pprof_tables.h"

#include <stdlib.h>
#include <string.h>

#include "core/buffer.h"
#include "core/compiler.h"
#include "core/reach.h"

enum { MAX_KEY_BYTES = 1 << 20 };

/* The types that the values of a profile have in pprof. When its values are numbers of samples of a
 * period, as those of CPU time are, Go's readers expect two: the number, and the number times the
 * period. */
typedef struct value_rule {
    size_t type;       /* of the value as it is */
    size_t multiplied; /* of the value times the period; SIZE_MAX: there is none */
} value_rule;

uint32_t sp_pprof_string(sp_pprof_tables *tables, const char *text)
{
    uint32_t number = *text ? sp_intern_put_string(&tables->strings, text) : 0;
    tables->failed |= number == SP_INTERN_FAILED;
    return *text ? (uint32_t)tables->from->dictionary->n_string_table + number : 0;
}

static const char *text_at(const sp_pprof_tables *tables, int32_t string)
{
    return tables->from->dictionary->string_table[string];
}

/* ---- types ---- */

static sp_pprof_type type_of(const sp_pprof_tables *tables, const Sp__Profiles__ValueType *from)
{
    if (!from)
        return (sp_pprof_type){.name = {"", ""}};
    return (sp_pprof_type){
        .type = (uint32_t)from->type_strindex,
        .unit = (uint32_t)from->unit_strindex,
        .name = {text_at(tables, from->type_strindex), text_at(tables, from->unit_strindex)}};
}

static size_t put_type(sp_pprof_tables *tables, sp_pprof_type type)
{
    for (size_t i = 0; i < tables->type_count; i++)
        if (strcmp(tables->types[i].name.type, type.name.type) == 0 &&
            strcmp(tables->types[i].name.unit, type.name.unit) == 0)
            return i;
    if (!SP_REACH(tables->types, tables->type_count, tables->type_capacity, 8)) {
        tables->failed = true;
        return 0;
    }
    tables->types[tables->type_count] = type;
    return tables->type_count++;
}

static bool is_samples_of_period(const sp_pprof_tables *tables, const Sp__Profiles__Profile *from)
{
    const Sp__Profiles__ValueType *type = from->sample_type, *period = from->period_type;
    return type && period && from->period > 0 && *text_at(tables, period->type_strindex) &&
           strcmp(text_at(tables, type->type_strindex), "samples") == 0 &&
           strcmp(text_at(tables, type->unit_strindex), "count") == 0;
}

static value_rule find_rule(sp_pprof_tables *tables, const Sp__Profiles__Profile *from)
{
    value_rule rule = {.type = put_type(tables, type_of(tables, from->sample_type)),
                       .multiplied = SIZE_MAX};
    if (is_samples_of_period(tables, from))
        rule.multiplied = put_type(tables, type_of(tables, from->period_type));
    return rule;
}

/* Collect all types. The default type, which readers show first, is the last one that is not a
 * count. */
static void fill_types(sp_pprof_tables *tables)
{
    for (size_t i = 0; i < tables->from->type_count; i++) {
        sp_pprof_type_name name = tables->from->types[i];
        put_type(tables, (sp_pprof_type){.type = sp_pprof_string(tables, name.type),
                                         .unit = sp_pprof_string(tables, name.unit),
                                         .name = name});
    }
    for (size_t i = 0; i < tables->from->part_count; i++)
        find_rule(tables, tables->from->parts[i].profile);
    for (size_t i = 0; !tables->failed && i < tables->type_count; i++)
        if (strcmp(tables->types[i].name.unit, "count") != 0)
            tables->default_type = tables->types[i].type;
}

/* ---- samples ---- */

static int64_t value_of(const Sp__Profiles__Sample *from)
{
    int64_t sum = from->n_values ? 0 : (int64_t)from->n_timestamps_unix_nano;
    for (size_t i = 0; i < from->n_values; i++)
        if (__builtin_add_overflow(sum, from->values[i], &sum))
            return INT64_MAX;
    return sum;
}

static void add_value(int64_t *to, int64_t value)
{
    if (__builtin_add_overflow(*to, value, to))
        *to = INT64_MAX;
}

/* The values of the sample with FROM's stack, link and attributes, or NULL. KEY is scratch memory.
 */
static int64_t *find_values(sp_pprof_tables *tables, sp_buffer *key,
                            const Sp__Profiles__Sample *from)
{
    sp_pprof_key head = {.stack = from->stack_index, .link = from->link_index};
    size_t count = tables->type_count;
    bool is_new = false;
    sp_buffer_clear(key);
    sp_buffer_add(key, &head, sizeof head);
    if (from->n_attribute_indices)
        sp_buffer_add(key, from->attribute_indices,
                      from->n_attribute_indices * sizeof *from->attribute_indices);
    uint32_t number = key->failed
                          ? SP_INTERN_FAILED
                          : sp_intern_put(&tables->samples, key->data, key->length, &is_new);
    if (number == SP_INTERN_FAILED ||
        !SP_REACH(tables->values, (number + (size_t)1) * count - 1, tables->value_capacity, 1024)) {
        tables->failed = true;
        return NULL;
    }
    int64_t *values = tables->values + number * count;
    if (is_new)
        memset(values, 0, count * sizeof *values);
    return values;
}

static void add_sample(sp_pprof_tables *tables, sp_buffer *key, const Sp__Profiles__Profile *of,
                       const value_rule *rule, const Sp__Profiles__Sample *from)
{
    int64_t *values = find_values(tables, key, from);
    int64_t value = value_of(from), multiplied;
    if (!values)
        return;
    add_value(&values[rule->type], value);
    if (rule->multiplied == SIZE_MAX)
        return;
    if (__builtin_mul_overflow(value, of->period, &multiplied))
        multiplied = INT64_MAX;
    add_value(&values[rule->multiplied], multiplied);
}

static void fill_samples(sp_pprof_tables *tables)
{
    sp_buffer key = SP_BUFFER_INIT(MAX_KEY_BYTES);
    for (size_t i = 0; i < tables->from->part_count; i++) {
        const Sp__Profiles__Profile *profile = tables->from->parts[i].profile;
        value_rule rule = find_rule(tables, profile);
        for (size_t k = 0; !tables->failed && k < profile->n_samples; k++)
            add_sample(tables, &key, profile, &rule, profile->samples[k]);
    }
    sp_buffer_deinit(&key);
}

/* ---- the rest ---- */

static void fill_times(sp_pprof_tables *tables)
{
    uint64_t end_ns = 0;
    tables->time_ns = UINT64_MAX;
    for (size_t i = 0; i < tables->from->part_count; i++) {
        const Sp__Profiles__Profile *profile = tables->from->parts[i].profile;
        tables->time_ns = sp_min_u64(tables->time_ns, profile->time_unix_nano);
        end_ns = sp_max_u64(end_ns, profile->time_unix_nano + profile->duration_nano);
    }
    tables->time_ns = sp_min_u64(tables->time_ns, end_ns);
    tables->duration_ns = end_ns - tables->time_ns;
}

/* pprof has one period: that of the first profile with a period type. */
static void fill_period(sp_pprof_tables *tables)
{
    for (size_t i = 0; i < tables->from->part_count; i++) {
        const Sp__Profiles__Profile *profile = tables->from->parts[i].profile;
        const Sp__Profiles__ValueType *type = profile->period_type;
        if (!type || tables->period_type.type)
            continue;
        tables->period_type = type_of(tables, type);
        tables->period = profile->period;
    }
}

static void note_names(const sp_pprof_tables *tables, const Sp__Profiles__Location *location)
{
    const Sp__Profiles__ProfilesDictionary *d = tables->from->dictionary;
    sp_pprof_names *names = &tables->mapping_names[location->mapping_index];
    names->inlined |= location->n_lines > 1;
    for (size_t i = 0; i < location->n_lines; i++) {
        const Sp__Profiles__Line *line = location->lines[i];
        names->functions |= line->function_index != 0;
        names->lines |= line->line != 0;
        names->files |=
            line->function_index && d->function_table[line->function_index]->filename_strindex != 0;
    }
}

static void fill_names(sp_pprof_tables *tables)
{
    const Sp__Profiles__ProfilesDictionary *d = tables->from->dictionary;
    tables->mapping_names =
        sp_arena_array(&tables->memory, d->n_mapping_table + 1, sizeof *tables->mapping_names);
    for (size_t i = 0; tables->mapping_names && i < d->n_location_table; i++)
        note_names(tables, d->location_table[i]);
    for (size_t i = 0; i < d->n_stack_table; i++)
        for (size_t k = 0; k < d->stack_table[i]->n_location_indices; k++)
            tables->has_location_0 |= d->stack_table[i]->location_indices[k] == 0;
}

bool sp_pprof_tables_fill(sp_pprof_tables *tables, const sp_pprof_source *source)
{
    tables->from = source;
    fill_types(tables);
    fill_samples(tables);
    fill_times(tables);
    fill_period(tables);
    fill_names(tables);
    sp_pprof_labels_fill(tables);
    sp_pprof_comments_fill(tables);
    tables->failed |= tables->memory.failed;
    return !tables->failed;
}

void sp_pprof_tables_deinit(sp_pprof_tables *tables)
{
    sp_intern_deinit(&tables->strings);
    sp_intern_deinit(&tables->samples);
    sp_intern_deinit(&tables->comments);
    free(tables->types);
    free(tables->values);
    sp_arena_deinit(&tables->memory);
}
