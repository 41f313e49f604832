/* SPDX-License-Identifier: Apache-2.0 */
#include "tracer/record.h"

#include <stdlib.h>
#include <string.h>

#include "core/utf8.h"

struct sp_record_chunk {
    sp_record_chunk *next;
    _Alignas(8) uint8_t bytes[];
};

enum { CHUNK_BYTES = 1024 - sizeof(sp_record_chunk) };

static uint8_t *add_chunk(sp_span_record *record, size_t bytes)
{
    size_t room = bytes > CHUNK_BYTES ? bytes : CHUNK_BYTES;
    sp_record_chunk *chunk = malloc(sizeof *chunk + room);
    if (!chunk)
        return NULL;
    chunk->next = record->chunks;
    record->chunks = chunk;
    record->cursor = chunk->bytes + bytes;
    record->limit = chunk->bytes + room;
    return chunk->bytes;
}

/* BYTES of memory that goes with the record, ALIGNMENT a power of two up to 8. */
static inline void *take_bytes(sp_span_record *record, size_t bytes, size_t alignment)
{
    uint8_t *start =
        (uint8_t *)(((uintptr_t)record->cursor + alignment - 1) & ~(uintptr_t)(alignment - 1));
    if (SP_UNLIKELY(start > record->limit || bytes > (size_t)(record->limit - start)))
        return add_chunk(record, bytes);
    record->cursor = start + bytes;
    return start;
}

void sp_record_release_memory(sp_span_record *record)
{
    while (record->chunks) {
        sp_record_chunk *chunk = record->chunks;
        record->chunks = chunk->next;
        free(chunk);
    }
}

/* Texts that may be replaced: the bytes behind a capacity, so that a new value that fits goes where the old one was. */
typedef struct text {
    uint32_t capacity; /* of bytes, with the NUL */
    char bytes[];
} text;

static text *text_of(const char *bytes)
{
    return (text *)(void *)(uintptr_t)(bytes - offsetof(text, bytes));
}

static size_t repaired_length(const char *from, size_t length)
{
    size_t result = 0;
    for (size_t i = 0; i < length;) {
        size_t step = sp_utf8_sequence(from + i, length - i);
        result += step ? step : 3;
        i += step ? step : 1;
    }
    return result;
}

/* A source text as it will be stored. */
typedef struct measured {
    const char *from;
    size_t length; /* of from */
    size_t stored; /* of the valid UTF-8 that it becomes */
} measured;

static inline measured measure(const char *from)
{
    measured m = {.from = from ? from : ""};
    m.length = m.stored = strlen(m.from);
    if (SP_UNLIKELY(!sp_utf8_valid(m.from, m.length)))
        m.stored = repaired_length(m.from, m.length);
    return m;
}

static inline void store(char *out, const measured *m)
{
    if (SP_LIKELY(m->stored == m->length)) {
        memcpy(out, m->from, m->length);
        out[m->length] = 0;
    } else {
        sp_utf8_repair(out, m->from, m->length);
    }
}

/* A copy that will not be replaced, or NULL. */
static inline const char *copy_text(sp_span_record *record, const char *from)
{
    measured m = measure(from);
    if (SP_UNLIKELY(m.stored > SP_TEXT_MAX))
        return NULL;
    char *out = take_bytes(record, m.stored + 1, 1);
    if (SP_LIKELY(out != NULL))
        store(out, &m);
    return out;
}

/* FROM in the place of OLD (NULL: there is none, or none with a capacity) when it fits, else in a new one, twice as large as the
 * old. NULL when memory is short; OLD is untouched then. */
static const char *replace_text(sp_span_record *record, const char *old, const char *from)
{
    measured m = measure(from);
    if (SP_UNLIKELY(m.stored > SP_TEXT_MAX))
        return NULL;
    text *t = old ? text_of(old) : NULL;
    if (!t || t->capacity <= m.stored) {
        size_t capacity = t ? sp_max_u64(m.stored + 1, 2 * (uint64_t)t->capacity) : m.stored + 1;
        t = take_bytes(record, sizeof *t + capacity, sizeof(uint32_t));
        if (!t)
            return NULL;
        t->capacity = (uint32_t)capacity;
    }
    store(t->bytes, &m);
    return t->bytes;
}

void sp_record_begin(sp_span_record *record, sp_session *session, const char *name)
{
    memset(&record->data, 0, sizeof record->data);
    record->session = session;
    record->start_monotonic_ns = 0;
    record->chunks = NULL;
    record->cursor = record->bytes;
    record->limit = record->bytes + sizeof record->bytes;
    record->attribute_capacity = 0;
    record->link_capacity = 0;
    const char *copy = copy_text(record, name);
    record->data.name = copy ? copy : "";
    record->data.trace_state = "";
    record->data.status_message = "";
}

bool sp_record_set_trace_state(sp_span_record *record, const char *text, size_t length)
{
    char *copy = take_bytes(record, length + 1, 1);
    if (!copy)
        return false;
    memcpy(copy, text, length);
    copy[length] = 0;
    record->data.trace_state = copy;
    return true;
}

/* The attributes are const for those who read them only. */
static spanprof_attribute *attributes_of(sp_span_record *record)
{
    return (spanprof_attribute *)(uintptr_t)record->data.attributes;
}

static spanprof_attribute *find_attribute(spanprof_attribute *attributes, uint32_t count,
                                          const char *key)
{
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(attributes[i].key, key) == 0)
            return &attributes[i];
    return NULL;
}

/* Room for one attribute more, at the end; it counts only once it is filled. */
static spanprof_attribute *next_attribute(sp_span_record *record)
{
    uint32_t count = record->data.attribute_count;
    if (count == record->session->config.attribute_count_limit)
        return NULL;
    if (count == record->attribute_capacity) {
        uint32_t capacity = count ? 2 * count : SP_RECORD_FIRST_ATTRIBUTES;
        spanprof_attribute *grown =
            take_bytes(record, capacity * sizeof *grown, _Alignof(spanprof_attribute));
        if (!grown)
            return NULL;
        if (count)
            memcpy(grown, record->data.attributes, count * sizeof *grown);
        record->data.attributes = grown;
        record->attribute_capacity = capacity;
    }
    return attributes_of(record) + count;
}

/* Give TO the value of FROM. False when it is of no type that there is, or memory is short; TO keeps what it had. */
static bool assign_value(sp_span_record *record, spanprof_attribute *to, bool is_new,
                         const spanprof_attribute *from)
{
    if (from->type == SPANPROF_ATTRIBUTE_STRING) {
        const char *old =
            !is_new && to->type == SPANPROF_ATTRIBUTE_STRING ? to->value.string_value : NULL;
        const char *fresh = replace_text(record, old, from->value.string_value);
        if (!fresh)
            return false;
        to->value.string_value = fresh;
    } else if ((uint32_t)from->type <= SPANPROF_ATTRIBUTE_BOOL) {
        to->value = from->value;
    } else {
        return false;
    }
    to->type = from->type;
    return true;
}

static void set(sp_span_record *record, const spanprof_attribute *attribute, bool copy_key)
{
    spanprof_attribute *old =
        find_attribute(attributes_of(record), record->data.attribute_count, attribute->key);
    spanprof_attribute *to = old ? old : next_attribute(record);
    if (to && !old) {
        to->key = copy_key ? copy_text(record, attribute->key) : attribute->key;
        if (!to->key)
            to = NULL;
    }
    if (!to || !assign_value(record, to, !old, attribute))
        record->data.dropped_attributes_count++;
    else if (!old)
        record->data.attribute_count++;
}

/* A key that is not UTF-8 is looked for as it is stored, else the same key twice would not be found again. */
static void set_repaired(sp_span_record *record, const spanprof_attribute *attribute, size_t length)
{
    spanprof_attribute repaired = *attribute;
    char *key = length <= SP_TEXT_MAX ? malloc(3 * length + 1) : NULL;
    if (!key) {
        record->data.dropped_attributes_count++;
        return;
    }
    sp_utf8_repair(key, attribute->key, length);
    repaired.key = key;
    set(record, &repaired, true);
    free(key);
}

void sp_record_set(sp_span_record *record, const spanprof_attribute *attribute)
{
    if (!attribute->key || !attribute->key[0])
        return;
    size_t length = strlen(attribute->key);
    if (SP_LIKELY(sp_utf8_valid(attribute->key, length)))
        set(record, attribute, true);
    else
        set_repaired(record, attribute, length);
}

void sp_record_set_borrowed_key(sp_span_record *record, const spanprof_attribute *attribute)
{
    set(record, attribute, false);
}

void sp_span_data_set(sp_span_data *span, const spanprof_attribute *attribute)
{
    sp_record_set_borrowed_key(sp_record_of_data(span), attribute);
}

void sp_record_set_status(sp_span_record *record, spanprof_span_status status,
                          const char *description)
{
    sp_span_data *data = &record->data;
    bool known = status == SPANPROF_SPAN_STATUS_OK || status == SPANPROF_SPAN_STATUS_ERROR;
    if (!known || data->status == SPANPROF_SPAN_STATUS_OK)
        return;
    const char *message = "";
    if (status == SPANPROF_SPAN_STATUS_ERROR && description && description[0]) {
        const char *old =
            data->status_message[0] ? data->status_message : NULL; /* "" has no capacity */
        message = replace_text(record, old, description);
    }
    data->status = status;
    data->status_message = message ? message : "";
}

static void copy_link_attribute(sp_span_record *record, sp_span_link *link, spanprof_attribute *all,
                                const spanprof_attribute *from)
{
    spanprof_attribute *next = &all[link->attribute_count];
    if (!from->key || !from->key[0])
        return;
    next->key = copy_text(record, from->key);
    spanprof_attribute *old =
        next->key ? find_attribute(all, link->attribute_count, next->key) : NULL;
    if (!next->key || !assign_value(record, old ? old : next, !old, from))
        link->dropped_attributes_count++;
    else if (!old)
        link->attribute_count++;
}

static void copy_link_attributes(sp_span_record *record, sp_span_link *to,
                                 const spanprof_link *from)
{
    uint32_t count = from->attributes ? from->attribute_count : 0;
    uint32_t kept = count < SP_LINK_ATTRIBUTES_MAX ? count : SP_LINK_ATTRIBUTES_MAX;
    spanprof_attribute *all =
        kept ? take_bytes(record, kept * sizeof *all, _Alignof(spanprof_attribute)) : NULL;
    if (!all)
        kept = 0;
    to->attributes = all;
    to->dropped_attributes_count = count - kept;
    for (uint32_t i = 0; i < kept; i++)
        copy_link_attribute(record, to, all, &from->attributes[i]);
}

static void copy_link(sp_span_record *record, sp_span_link *to, const spanprof_link *from)
{
    memset(to, 0, sizeof *to);
    memcpy(to->trace_id, from->context->trace_id, sizeof to->trace_id);
    memcpy(to->span_id, from->context->span_id, sizeof to->span_id);
    to->flags = from->context->trace_flags | 0x100u | (from->context->remote ? 0x200u : 0);
    copy_link_attributes(record, to, from);
}

void sp_record_add_links(sp_span_record *record, const spanprof_link *links, uint32_t count)
{
    uint32_t kept = count < SP_LINKS_MAX ? count : SP_LINKS_MAX;
    sp_span_link *out = take_bytes(record, kept * sizeof *out, _Alignof(sp_span_link));
    record->data.links = out;
    record->data.dropped_links_count = count - (out ? kept : 0);
    for (uint32_t i = 0; out && i < kept; i++) {
        if (links[i].context)
            copy_link(record, &out[record->data.link_count++], &links[i]);
        else
            record->data.dropped_links_count++;
    }
}
