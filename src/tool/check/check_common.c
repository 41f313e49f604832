/* SPDX-License-Identifier: Apache-2.0 */
/* Rules for what both signals have: text and attributes. */
#include <string.h>

#include "core/utf8.h"
#include "tool/check/check.h"

/* ---- UTF-8: the descriptors of the messages list all strings ---- */

static const void *member_at(const ProtobufCMessage *message, unsigned offset)
{
    return (const char *)message + offset;
}

static sp_place below(const sp_place *place, const char *name)
{
    return sp_place_of("%s%s%s", place->text, *place->text ? "." : "", name);
}

static void check_text(sp_checker *checker, const char *text, const sp_place *place)
{
    if (text && !sp_utf8_valid(text, strlen(text)))
        sp_check_violation(checker, "utf8", place, "is not valid UTF-8");
}

static void check_repeated(sp_checker *checker, const ProtobufCMessage *message,
                           const ProtobufCFieldDescriptor *field, const sp_place *place)
{
    size_t count = *(const size_t *)member_at(message, field->quantifier_offset);
    void *const *items = *(void *const *const *)member_at(message, field->offset);
    for (size_t i = 0; i < count; i++) {
        if (field->type == PROTOBUF_C_TYPE_STRING && sp_utf8_valid(items[i], strlen(items[i])))
            continue; /* fast: in most cases no text for the place is needed */
        sp_place item =
            sp_place_of("%s%s%s[%zu]", place->text, *place->text ? "." : "", field->name, i);
        if (field->type == PROTOBUF_C_TYPE_STRING)
            check_text(checker, items[i], &item);
        else
            sp_check_utf8(checker, items[i], &item);
    }
}

static bool is_set(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    if (!(field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF))
        return true;
    return *(const uint32_t *)member_at(message, field->quantifier_offset) == field->id;
}

void sp_check_utf8(sp_checker *checker, const ProtobufCMessage *message, const sp_place *place)
{
    for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &message->descriptor->fields[i];
        bool has_text =
            field->type == PROTOBUF_C_TYPE_STRING || field->type == PROTOBUF_C_TYPE_MESSAGE;
        if (!has_text || !is_set(message, field))
            continue;
        if (field->label == PROTOBUF_C_LABEL_REPEATED) {
            check_repeated(checker, message, field, place);
            continue;
        }
        const void *value = *(void *const *)member_at(message, field->offset);
        sp_place own = below(place, field->name);
        if (field->type == PROTOBUF_C_TYPE_STRING)
            check_text(checker, value, &own);
        else if (value)
            sp_check_utf8(checker, value, &own);
    }
}

/* ---- attributes ---- */

static void check_value(sp_checker *checker, sp_tables *tables, const Sp__Common__AnyValue *value,
                        const sp_place *place)
{
    if (!value)
        return;
    switch (value->value_case) {
    case SP__COMMON__ANY_VALUE__VALUE_STRING_VALUE_STRINDEX:
        if (tables)
            sp_tables_use(tables, SP_TABLE_STRING, value->string_value_strindex, place);
        else
            sp_check_violation(checker, "strindex-in-traces", place,
                               "refers to a string table, which only profiles have");
        break;
    case SP__COMMON__ANY_VALUE__VALUE_ARRAY_VALUE:
        for (size_t i = 0; i < value->array_value->n_values; i++)
            check_value(checker, tables, value->array_value->values[i], place);
        break;
    case SP__COMMON__ANY_VALUE__VALUE_KVLIST_VALUE: {
        sp_place list = below(place, "kvlist");
        sp_check_attributes(checker, tables, value->kvlist_value->values,
                            value->kvlist_value->n_values, &list);
        break;
    }
    default:
        break;
    }
}

/* The key's text, "" when there is none, or NULL when the reference is wrong, which is reported. */
static const char *check_key(sp_checker *checker, sp_tables *tables,
                             const Sp__Common__KeyValue *attribute, const sp_place *place)
{
    bool has_text = attribute->key && *attribute->key;
    if (attribute->key_strindex == 0)
        return has_text ? attribute->key : "";
    if (!tables) {
        sp_check_violation(checker, "strindex-in-traces", place,
                           "refers to a string table, which only profiles have");
        return NULL;
    }
    if (has_text)
        sp_check_violation(checker, "attribute-key", place,
                           "has both key and key_strindex, of which one excludes the other");
    if (!sp_tables_use(tables, SP_TABLE_STRING, attribute->key_strindex, place))
        return NULL;
    return has_text ? attribute->key : sp_tables_string(tables, attribute->key_strindex);
}

void sp_check_attributes(sp_checker *checker, sp_tables *tables, Sp__Common__KeyValue *const *list,
                         size_t count, const sp_place *place)
{
    sp_intern_clear(&checker->keys);
    for (size_t i = 0; i < count; i++) {
        sp_place own = sp_place_of("%s.attributes[%zu]", place->text, i);
        const char *key = check_key(checker, tables, list[i], &own);
        bool is_new = true;
        if (key && sp_intern_put(&checker->keys, key, strlen(key), &is_new) == SP_INTERN_FAILED)
            checker->failed = true;
        if (key && !*key)
            sp_check_violation(checker, "attribute-key", &own, "has no key");
        else if (!is_new)
            sp_check_violation(checker, "attribute-unique", &own,
                               "has the key %.100s, which stands in the list already", key);
    }
    /* After all keys, because the check of a nested list clears checker->keys. */
    for (size_t i = 0; i < count; i++) {
        sp_place own = sp_place_of("%s.attributes[%zu]", place->text, i);
        check_value(checker, tables, list[i]->value, &own);
    }
}
