/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/record.h"

#include <inttypes.h>
#include <stdlib.h>

#include "core/clock.h"
#include "core/counted.h"
#include "core/hex.h"
#include "core/log.h"
#include "core/utf8.h"
#include "core/word.h"
#include "trace/carrier.h"

/* Room of the first arrays: most spans with events or links have one, which then fits into the
 * slot. */
enum { FIRST_ATTRIBUTES = 4, FIRST_EVENTS = 1, FIRST_LINKS = 1 };

/* Cleared in pieces, each a few vector stores: for the whole struct gcc emits `rep stos`, whose
 * startup alone costs more than these stores. */
static inline void clear(sp_span_data *data)
{
    enum { PIECE = 64, REST = sizeof *data % PIECE };
    uint8_t *bytes = (uint8_t *)data;
    for (size_t i = 0; i + PIECE <= sizeof *data; i += PIECE)
        memset(bytes + i, 0, PIECE);
    memset(bytes + sizeof *data - REST, 0, REST);
}

void sp_record_begin(sp_span_record *record, sp_session *session, const char *name)
{
    clear(&record->data);
    record->session = session;
    record->start_monotonic_ns = 0;
    record->memory =
        (sp_span_memory){.cursor = record->bytes, .limit = record->bytes + sizeof record->bytes};
    const char *copy = sp_text_replace(&record->memory, NULL, name);
    record->data.name = copy ? copy : sp_text_empty.bytes;
    record->data.trace_state = "";
    record->data.status_message = sp_text_empty.bytes;
}

/* LENGTH bytes of TEXT with a NUL; NULL when memory is short. */
static const char *copy_bytes(sp_span_record *record, const char *text, size_t length)
{
    char *copy = sp_span_memory_take(&record->memory, length + 1, 1);
    if (!copy)
        return NULL;
    memcpy(copy, text, length);
    copy[length] = 0;
    return copy;
}

bool sp_record_set_trace_state(sp_span_record *record, const char *text, size_t length)
{
    const char *copy = copy_bytes(record, text, length);
    if (copy)
        record->data.trace_state = copy;
    return copy != NULL;
}

void sp_record_release_memory(sp_span_record *record)
{
    sp_span_memory_deinit(&record->memory);
}

/* COUNT points to one of the counts of dropped things in record->data. */
static void count_drop(sp_span_record *record, uint32_t *count)
{
    (*count)++;
    record->data.dropped_something = true;
}

/* --- attributes ------------------------------------------------------------------------------- */

/* The attributes, writable: in `data` they are const, for its readers. */
static spanprof_attribute *attributes_of(sp_span_record *record)
{
    return (spanprof_attribute *)(uintptr_t)record->data.attributes;
}

/* Limits apply to attributes of the application only. The key of such an attribute is copied. */
static uint32_t length_limit(const sp_span_record *record, bool copy_key)
{
    return copy_key ? record->session->config.limits.value_length : UINT32_MAX;
}

static bool add_attribute(sp_span_record *record, const spanprof_attribute *attribute,
                          bool copy_key)
{
    sp_span_data *data = &record->data;
    const sp_span_limits *limits = &record->session->config.limits;
    if (copy_key && data->attribute_count >= limits->attributes)
        return false;
    spanprof_attribute *grown = sp_span_array_extend(
        &record->memory, data->attributes, data->attribute_count, sizeof *grown, FIRST_ATTRIBUTES);
    if (!grown)
        return false;
    spanprof_attribute *to = &grown[data->attribute_count];
    to->key = copy_key ? sp_text_copy(&record->memory, attribute->key) : attribute->key;
    if (!to->key ||
        !sp_value_assign(&record->memory, length_limit(record, copy_key), to, true, attribute))
        return false;
    data->attributes = grown;
    data->attribute_count++;
    return true;
}

static void set(sp_span_record *record, const spanprof_attribute *attribute, bool copy_key)
{
    sp_span_memory mark = sp_span_memory_mark(&record->memory);
    spanprof_attribute *old =
        sp_attribute_find(attributes_of(record), record->data.attribute_count, attribute->key);
    bool done = old ? sp_value_assign(&record->memory, length_limit(record, copy_key), old, false,
                                      attribute)
                    : add_attribute(record, attribute, copy_key);
    if (SP_UNLIKELY(!done)) {
        sp_span_memory_return(&record->memory, &mark);
        count_drop(record, &record->data.dropped_attributes_count);
    }
}

/* A key that is not UTF-8 is repaired before the lookup, because it was stored repaired; else
 * setting it twice would add it twice. */
static void set_repaired(sp_span_record *record, const spanprof_attribute *attribute, size_t length)
{
    spanprof_attribute repaired = *attribute;
    char *key = length <= SP_TEXT_MAX ? malloc(3 * length + 1) : NULL;
    if (!key) {
        count_drop(record, &record->data.dropped_attributes_count);
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

/* Make KEY with the digits of ID the first attribute of RECORD. This fast path needs no lookup,
 * measuring or check. */
static bool add_first_id(sp_span_record *record, const char *key, const uint8_t id[8])
{
    enum { DIGITS = 16 };
    if (record->data.attribute_count)
        return false;
    spanprof_attribute *first =
        sp_span_array_extend(&record->memory, NULL, 0, sizeof *first, FIRST_ATTRIBUTES);
    sp_block *block = first ? sp_block_make(&record->memory, DIGITS + 1, 1) : NULL;
    if (!block)
        return false;
    sp_hex_encode16(block->bytes, sp_word_load(id, 0));
    block->bytes[DIGITS] = 0;
    first->key = key;
    first->type = SPANPROF_ATTRIBUTE_STRING;
    first->value.string_value = block->bytes;
    record->data.attributes = first;
    record->data.attribute_count = 1;
    return true;
}

void sp_span_data_set_id(sp_span_data *span, const char *key, const uint8_t id[8])
{
    sp_span_record *record = sp_record_of_data(span);
    if (SP_LIKELY(add_first_id(record, key, id)))
        return;
    char digits[17];
    sp_hex_encode(digits, id, 8);
    sp_record_set_borrowed_key(
        record, &(spanprof_attribute){.key = key, .value = {.string_value = digits}});
}

/* --- status and name -------------------------------------------------------------------------- */

void sp_record_set_status(sp_span_record *record, spanprof_span_status status,
                          const char *description)
{
    sp_span_data *data = &record->data;
    bool known = status == SPANPROF_SPAN_STATUS_OK || status == SPANPROF_SPAN_STATUS_ERROR;
    if (!known || data->status == SPANPROF_SPAN_STATUS_OK)
        return;
    const char *text = status == SPANPROF_SPAN_STATUS_ERROR && description ? description : "";
    const char *message = sp_text_replace(&record->memory, data->status_message, text);
    data->status = (uint8_t)status;
    data->status_message = message ? message : sp_text_empty.bytes;
}

void sp_record_update_name(sp_span_record *record, const char *name)
{
    const char *fresh = sp_text_replace(&record->memory, record->data.name, name);
    if (fresh)
        record->data.name = fresh;
}

/* --- events and links ------------------------------------------------------------------------- */

/* A list for WANTED attributes, of which LIMIT may be kept. */
static sp_attribute_list make_list(sp_span_record *record, uint64_t wanted, uint32_t limit)
{
    return sp_attribute_list_make(&record->memory, (uint32_t)sp_min_u64(wanted, limit));
}

static void add_all(sp_span_record *record, sp_attribute_list *list, const spanprof_attribute *from,
                    uint32_t count)
{
    sp_attribute_list_add(&record->memory, record->session->config.limits.value_length, list, from,
                          count);
    record->data.dropped_something |= list->dropped > 0;
}

static bool add_event(sp_span_record *record, const sp_event_request *request)
{
    sp_span_data *data = &record->data;
    const sp_span_limits *limits = &record->session->config.limits;
    if (data->event_count >= limits->events)
        return false;
    sp_span_event *events = sp_span_array_extend(&record->memory, data->events, data->event_count,
                                                 sizeof *events, FIRST_EVENTS);
    const char *name = events ? sp_text_copy(&record->memory, request->name) : NULL;
    if (!name)
        return false;
    const spanprof_event_options *options = request->options;
    uint64_t wanted = (uint64_t)request->own_count + options->attribute_count;
    sp_attribute_list list = make_list(record, wanted, limits->event_attributes);
    add_all(record, &list, request->own, request->own_count);
    add_all(record, &list, options->attributes, options->attribute_count);
    events[data->event_count] = (sp_span_event){.time_ns = request->time_ns,
                                                .name = name,
                                                .attributes = list.items,
                                                .attribute_count = list.count,
                                                .dropped_attributes_count = list.dropped};
    data->events = events;
    data->event_count++;
    return true;
}

void sp_record_add_event(sp_span_record *record, const sp_event_request *request)
{
    sp_span_memory mark = sp_span_memory_mark(&record->memory);
    if (add_event(record, request))
        return;
    sp_span_memory_return(&record->memory, &mark);
    count_drop(record, &record->data.dropped_events_count);
}

/* Copy the tracestate of CONTEXT, because exporters do not read the table of carriers. Returns ""
 * when there is none or its entry is gone, NULL when memory is short. */
static const char *copy_trace_state(sp_span_record *record, const spanprof_context *context)
{
    bool carries = !sp_carrier_is_zero(context->carrier);
    const sp_carried *carried = carries ? sp_carrier_pin(context->carrier) : NULL;
    if (!carried)
        return "";
    const char *copy = copy_bytes(record, carried->trace_state, carried->trace_state_length);
    sp_carrier_unpin(context->carrier);
    return copy;
}

static bool add_link(sp_span_record *record, const spanprof_context *context,
                     const spanprof_link *link)
{
    sp_span_data *data = &record->data;
    const sp_span_limits *limits = &record->session->config.limits;
    if (data->link_count >= limits->links)
        return false;
    sp_span_link *links = sp_span_array_extend(&record->memory, data->links, data->link_count,
                                               sizeof *links, FIRST_LINKS);
    const char *trace_state = links ? copy_trace_state(record, context) : NULL;
    if (!trace_state)
        return false;
    sp_attribute_list list = make_list(record, link->attribute_count, limits->link_attributes);
    add_all(record, &list, link->attributes, link->attribute_count);
    sp_span_link *to = &links[data->link_count];
    *to = (sp_span_link){.flags = context->trace_flags | 0x100u | (context->remote ? 0x200u : 0),
                         .attributes = list.items,
                         .attribute_count = list.count,
                         .dropped_attributes_count = list.dropped,
                         .trace_state = trace_state};
    memcpy(to->trace_id, context->trace_id, sizeof to->trace_id);
    memcpy(to->span_id, context->span_id, sizeof to->span_id);
    data->links = links;
    data->link_count++;
    return true;
}

void sp_record_add_link(sp_span_record *record, const spanprof_link *link)
{
    static const spanprof_context none;
    const spanprof_context *context = link->context ? link->context : &none;
    if (!sp_context_is_valid(context) && !(link->attributes && link->attribute_count))
        return;
    sp_span_memory mark = sp_span_memory_mark(&record->memory);
    if (add_link(record, context, link))
        return;
    sp_span_memory_return(&record->memory, &mark);
    count_drop(record, &record->data.dropped_links_count);
}

/* --- what was dropped ------------------------------------------------------------------------- */

void sp_record_warn_of_drops(const sp_span_record *record)
{
    static _Atomic uint64_t next_ns, unreported;
    const sp_span_data *data = &record->data;
    uint64_t now = sp_clock_monotonic_ns(), next = sp_load_relaxed(&next_ns);
    if (now < next ||
        !atomic_compare_exchange_strong_explicit(&next_ns, &next, now + 60 * SP_NS_PER_S,
                                                 memory_order_relaxed, memory_order_relaxed)) {
        sp_count(&unreported, 1);
        return;
    }
    char name[100];
    sp_utf8_show(name, sizeof name, data->name, strlen(data->name));
    sp_log_warn("tracer",
                "span \"%s\" had more than it may keep (limits OTEL_SPAN_…, OTEL_EVENT_…, "
                "OTEL_LINK_…; 16 MiB a value; memory): dropped %s, %s, %s, or "
                "attributes of these; as did %s since this was last said",
                name, SP_COUNTED(data->dropped_attributes_count, "attribute"),
                SP_COUNTED(data->dropped_events_count, "event"),
                SP_COUNTED(data->dropped_links_count, "link"),
                SP_COUNTED(atomic_exchange_explicit(&unreported, 0, memory_order_relaxed), "span"));
}
