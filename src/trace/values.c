/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/values.h"

const struct sp_empty_block sp_text_empty;

/* --- texts ------------------------------------------------------------------------------------ */

/* Cut M after LIMIT characters; a byte that is not UTF-8 counts as one character. */
static __attribute__((noinline)) void shorten(sp_measured_text *m, uint32_t limit)
{
    size_t length = 0, stored = 0;
    for (uint32_t i = 0; i < limit && length < m->length; i++) {
        size_t step = sp_utf8_sequence(m->from + length, m->length - length);
        length += step ? step : 1;
        stored += step ? step : 3;
    }
    m->length = length;
    m->stored = stored;
}

static inline sp_measured_text limited(sp_measured_text m, uint32_t limit)
{
    if (SP_UNLIKELY(m.length > limit)) /* bytes: there may be fewer characters */
        shorten(&m, limit);
    return m;
}

static inline sp_measured_text measure(const char *from, uint32_t limit)
{
    return limited(sp_text_measure(from), limit);
}

/* --- arrays ----------------------------------------------------------------------------------- */

/* The bytes that the strings of FROM need with their NULs. The count stops above SP_TEXT_MAX. */
static size_t strings_bytes(const spanprof_attribute *from, uint32_t limit)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < from->count && bytes <= SP_TEXT_MAX; i++)
        bytes += measure(from->value.string_array[i], limit).stored + 1;
    return bytes;
}

/* OUT: first the pointers, then what they point at. */
static void store_strings(char *out, const spanprof_attribute *from, uint32_t limit)
{
    const char **pointers = (const char **)(void *)out;
    char *text = out + from->count * sizeof *pointers;
    for (uint32_t i = 0; i < from->count; i++) {
        sp_measured_text m = measure(from->value.string_array[i], limit);
        sp_text_store(text, &m);
        pointers[i] = text;
        text += m.stored + 1;
    }
}

static const void *replace_array(sp_span_memory *memory, uint32_t limit, const void *old,
                                 const spanprof_attribute *from)
{
    static const size_t sizes[] = {
        [SPANPROF_ATTRIBUTE_STRING_ARRAY] = sizeof(const char *),
        [SPANPROF_ATTRIBUTE_INT_ARRAY] = sizeof(int64_t),
        [SPANPROF_ATTRIBUTE_DOUBLE_ARRAY] = sizeof(double),
        [SPANPROF_ATTRIBUTE_BOOL_ARRAY] = sizeof(bool),
    };
    bool strings = from->type == SPANPROF_ATTRIBUTE_STRING_ARRAY;
    size_t bytes = from->count * sizes[from->type];
    if (strings && bytes <= SP_TEXT_MAX)
        bytes += strings_bytes(from, limit);
    char *out = bytes <= SP_TEXT_MAX ? sp_block_replace(memory, old, bytes, 8) : NULL;
    if (out && strings)
        store_strings(out, from, limit);
    else if (out && bytes)
        memcpy(out, from->value.int_array, bytes);
    return out;
}

/* --- values ----------------------------------------------------------------------------------- */

static bool is_array(spanprof_attribute_type type)
{
    return type >= SPANPROF_ATTRIBUTE_STRING_ARRAY && type <= SPANPROF_ATTRIBUTE_BOOL_ARRAY;
}

/* The block that ATTRIBUTE's value is in, or NULL. */
static const void *block_bytes(const spanprof_attribute *attribute)
{
    if (attribute->type == SPANPROF_ATTRIBUTE_STRING)
        return attribute->value.string_value;
    return is_array(attribute->type) ? attribute->value.int_array : NULL;
}

static __attribute__((noinline)) bool assign_array(sp_span_memory *memory, uint32_t limit,
                                                   spanprof_attribute *to, const void *old,
                                                   const spanprof_attribute *from)
{
    spanprof_attribute given = *from;
    if (!given.value.int_array)
        given.count = 0;
    const void *fresh = replace_array(memory, limit, old, &given);
    if (!fresh)
        return false;
    to->value.int_array = fresh; /* all pointers of the union have the same representation */
    to->count = given.count;
    return true;
}

static inline bool assign_text(sp_span_memory *memory, spanprof_attribute *to, const void *old,
                               const sp_measured_text *m)
{
    const char *fresh = sp_block_replace_text(memory, old, m);
    if (SP_UNLIKELY(!fresh))
        return false;
    to->value.string_value = fresh;
    to->type = SPANPROF_ATTRIBUTE_STRING;
    return true;
}

static __attribute__((noinline)) bool assign_sized(sp_span_memory *memory, uint32_t limit,
                                                   spanprof_attribute *to, const void *old,
                                                   const spanprof_attribute *from)
{
    const char *text = from->value.string_value;
    size_t length = text ? strnlen(text, from->count) : 0;
    sp_measured_text m = limited(sp_text_measure_sized(text ? text : "", length), limit);
    return assign_text(memory, to, old, &m);
}

bool sp_value_assign(sp_span_memory *memory, uint32_t length_limit, spanprof_attribute *to,
                     bool is_new, const spanprof_attribute *from)
{
    const void *old = is_new ? NULL : block_bytes(to);
    if (from->type == SPANPROF_ATTRIBUTE_STRING) {
        sp_measured_text m = measure(from->value.string_value, length_limit);
        return assign_text(memory, to, old, &m);
    }
    if (from->type == SPANPROF_ATTRIBUTE_SIZED_STRING)
        return assign_sized(memory, length_limit, to, old, from);
    if ((uint32_t)from->type <= SPANPROF_ATTRIBUTE_BOOL)
        to->value = from->value;
    else if (!is_array(from->type) || !assign_array(memory, length_limit, to, old, from))
        return false;
    to->type = from->type;
    return true;
}

/* --- lists ------------------------------------------------------------------------------------ */

sp_attribute_list sp_attribute_list_make(sp_span_memory *memory, uint32_t room)
{
    sp_attribute_list list = {.room = room};
    if (room)
        list.items =
            sp_span_memory_take(memory, room * sizeof *list.items, _Alignof(spanprof_attribute));
    if (!list.items)
        list.room = 0;
    return list;
}

static bool add(sp_span_memory *memory, uint32_t length_limit, sp_attribute_list *list,
                const spanprof_attribute *from)
{
    spanprof_attribute fresh = {.key = sp_text_copy(memory, from->key)};
    if (!fresh.key)
        return false;
    spanprof_attribute *old = sp_attribute_find(list->items, list->count, fresh.key);
    if (old)
        return sp_value_assign(memory, length_limit, old, false, from);
    if (list->count == list->room || !sp_value_assign(memory, length_limit, &fresh, true, from))
        return false;
    list->items[list->count++] = fresh;
    return true;
}

void sp_attribute_list_add(sp_span_memory *memory, uint32_t length_limit, sp_attribute_list *list,
                           const spanprof_attribute *from, uint32_t count)
{
    for (uint32_t i = 0; from && i < count; i++) {
        sp_span_memory mark = sp_span_memory_mark(memory);
        if (!from[i].key || !from[i].key[0])
            continue;
        if (!add(memory, length_limit, list, &from[i])) {
            sp_span_memory_return(memory, &mark);
            list->dropped++;
        }
    }
}
