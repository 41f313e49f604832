/* SPDX-License-Identifier: Apache-2.0 */
/* Makes pprof's labels of links and attributes, and its comments of the attributes of resources and
 * profiles. */
#include <inttypes.h>
#include <string.h>

#include "core/hex.h"
#include "wire/json.h"
#include "wire/pprof_tables.h"

enum { MAX_TEXT_BYTES = 1 << 16, ID_TEXT = 33 };

/* ---- values as texts ---- */

/* VALUE as a text. NULL when memory is short. */
static const char *value_text(sp_pprof_tables *tables, const Sp__Common__AnyValue *value)
{
    switch (value->value_case) {
    case SP__COMMON__ANY_VALUE__VALUE_STRING_VALUE:
        return value->string_value;
    case SP__COMMON__ANY_VALUE__VALUE_INT_VALUE:
        return sp_arena_printf(&tables->memory, "%" PRId64, value->int_value);
    case SP__COMMON__ANY_VALUE__VALUE_DOUBLE_VALUE:
        return sp_arena_printf(&tables->memory, "%.17g", value->double_value);
    case SP__COMMON__ANY_VALUE__VALUE_BOOL_VALUE:
        return value->bool_value ? "true" : "false";
    default:
        break;
    }
    sp_buffer json = SP_BUFFER_INIT(MAX_TEXT_BYTES);
    const char *text = "";
    if (sp_otlp_json_write(&json, &value->base))
        text = sp_arena_strndup(&tables->memory, (char *)json.data, json.length);
    sp_buffer_deinit(&json);
    return text;
}

/* ---- labels ---- */

/* Whether the numbers of KEY are names. Readers show a number as an amount with a unit; a thread's
 * id is no amount, so it becomes a text. */
static bool is_name(const char *key)
{
    return strcmp(key, "thread.id") == 0;
}

static sp_pprof_label attribute_label(sp_pprof_tables *tables,
                                      const Sp__Profiles__KeyValueAndUnit *from)
{
    const char *key = tables->from->dictionary->string_table[from->key_strindex];
    const Sp__Common__AnyValue *value = from->value;
    sp_pprof_label label = {.key = (uint32_t)from->key_strindex};
    if (!value || value->value_case == SP__COMMON__ANY_VALUE__VALUE__NOT_SET)
        return (sp_pprof_label){0};
    if (value->value_case == SP__COMMON__ANY_VALUE__VALUE_INT_VALUE && !is_name(key)) {
        label.number = value->int_value;
        label.unit = (uint32_t)from->unit_strindex;
        return label;
    }
    const char *text = value_text(tables, value);
    label.text = text ? sp_pprof_string(tables, text) : 0;
    return label.text ? label : (sp_pprof_label){0}; /* an empty text is no label in pprof */
}

static sp_pprof_label id_label(sp_pprof_tables *tables, const char *key,
                               const ProtobufCBinaryData *id)
{
    char text[ID_TEXT];
    if (id->len == 0 || id->len > ID_TEXT / 2)
        return (sp_pprof_label){0};
    sp_hex_encode(text, id->data, id->len);
    return (sp_pprof_label){.key = sp_pprof_string(tables, key),
                            .text = sp_pprof_string(tables, text)};
}

/* The label is Datadog's, whose readers accept decimal digits or hex. With 0x no reader takes it
 * for a decimal number; Go's pprof fails at one of more than 63 bits. */
static sp_pprof_label root_label(sp_pprof_tables *tables, const uint8_t id[8])
{
    static const uint8_t none[8];
    char text[ID_TEXT] = "0x";
    if (memcmp(id, none, sizeof none) == 0)
        return (sp_pprof_label){0};
    sp_hex_encode(text + strlen(text), id, 8);
    return (sp_pprof_label){.key = sp_pprof_string(tables, SP_PPROF_ROOT_LABEL),
                            .text = sp_pprof_string(tables, text)};
}

static void fill_link_labels(sp_pprof_tables *tables)
{
    const Sp__Profiles__ProfilesDictionary *d = tables->from->dictionary;
    tables->link_labels =
        sp_arena_array(&tables->memory, d->n_link_table + 1, sizeof *tables->link_labels);
    for (size_t i = 1; tables->link_labels && i < d->n_link_table; i++) {
        sp_pprof_label *labels = tables->link_labels[i];
        labels[0] = id_label(tables, SP_PPROF_TRACE_LABEL, &d->link_table[i]->trace_id);
        labels[1] = id_label(tables, SP_PPROF_SPAN_LABEL, &d->link_table[i]->span_id);
        if (tables->from->root_span_ids)
            labels[2] = root_label(tables, tables->from->root_span_ids[i]);
    }
}

void sp_pprof_labels_fill(sp_pprof_tables *tables)
{
    const Sp__Profiles__ProfilesDictionary *d = tables->from->dictionary;
    tables->attribute_labels =
        sp_arena_array(&tables->memory, d->n_attribute_table + 1, sizeof *tables->attribute_labels);
    for (size_t i = 1; tables->attribute_labels && i < d->n_attribute_table; i++)
        tables->attribute_labels[i] = attribute_label(tables, d->attribute_table[i]);
    fill_link_labels(tables);
}

/* ---- comments ---- */

static void put_comment(sp_pprof_tables *tables, const char *key, const char *text)
{
    const char *comment = text ? sp_arena_printf(&tables->memory, "%s=%s", key, text) : NULL;
    if (!comment || sp_intern_put_string(&tables->comments, comment) == SP_INTERN_FAILED)
        tables->failed = true;
}

static void put_resource(sp_pprof_tables *tables, const Sp__Resource__Resource *resource)
{
    for (size_t i = 0; resource && i < resource->n_attributes; i++)
        if (resource->attributes[i]->value && resource->attributes[i]->key)
            put_comment(tables, resource->attributes[i]->key,
                        value_text(tables, resource->attributes[i]->value));
}

static void add_up(int64_t *sum, int64_t number)
{
    if (__builtin_add_overflow(*sum, number, sum))
        *sum = INT64_MAX;
}

/* Whether VALUE becomes a comment as it is. Lists, such as the threads with unattributed time, are
 * of one window only, so they do not. */
static bool is_one_word(const Sp__Common__AnyValue *value)
{
    return value->value_case == SP__COMMON__ANY_VALUE__VALUE_STRING_VALUE ||
           value->value_case == SP__COMMON__ANY_VALUE__VALUE_DOUBLE_VALUE ||
           value->value_case == SP__COMMON__ANY_VALUE__VALUE_BOOL_VALUE;
}

/* Texts are the same for all windows, and become comments. Numbers are of one window, so they are
 * added up in SUMS. */
static void put_attributes(sp_pprof_tables *tables, const Sp__Profiles__Profile *profile,
                           int64_t *sums)
{
    const Sp__Profiles__ProfilesDictionary *d = tables->from->dictionary;
    for (size_t i = 0; i < profile->n_attribute_indices; i++) {
        const Sp__Profiles__KeyValueAndUnit *from =
            d->attribute_table[profile->attribute_indices[i]];
        const Sp__Common__AnyValue *value = from->value;
        if (value && value->value_case == SP__COMMON__ANY_VALUE__VALUE_INT_VALUE)
            add_up(&sums[from->key_strindex], value->int_value);
        else if (value && is_one_word(value))
            put_comment(tables, d->string_table[from->key_strindex], value_text(tables, value));
    }
}

void sp_pprof_comments_fill(sp_pprof_tables *tables)
{
    const Sp__Profiles__ProfilesDictionary *d = tables->from->dictionary;
    const sp_pprof_sequence *sequence = tables->from->sequence;
    if (sequence && sequence->start_ns)
        return; /* an earlier source has the same comments */
    int64_t *sums = sp_arena_array(&tables->memory, d->n_string_table + 1, sizeof *sums);
    for (size_t i = 0; sums && i < tables->from->part_count; i++) {
        put_resource(tables, tables->from->parts[i].resource);
        put_attributes(tables, tables->from->parts[i].profile, sums);
    }
    for (size_t i = 0; sums && !sequence && i < d->n_string_table; i++)
        if (sums[i])
            put_comment(tables, d->string_table[i],
                        sp_arena_printf(&tables->memory, "%" PRId64, sums[i]));
}
