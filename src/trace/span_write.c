/* SPDX-License-Identifier: Apache-2.0 */
/* The calls that write to a live span (include/spanprof/tracer.h): each locks the span's record,
 * writes, and unlocks it. */
#include "core/clock.h"
#include "trace/handle.h"
#include "trace/struct_read.h"

/* --- attributes ------------------------------------------------------------------------------- */

static void set_attribute(spanprof_span span, const spanprof_attribute *attribute)
{
    sp_span_record *record = sp_handle_lock(span);
    if (!record)
        return;
    sp_record_set(record, attribute);
    sp_handle_unlock(&record->head, span.generation);
}

void spanprof_span_set_attribute(spanprof_span span, const spanprof_attribute *attribute)
{
    static const spanprof_attribute nothing;
    set_attribute(span, attribute ? attribute : &nothing);
}

void spanprof_span_set_string(spanprof_span span, const char *key, const char *value)
{
    set_attribute(span, &(spanprof_attribute){.key = key,
                                              .type = SPANPROF_ATTRIBUTE_STRING,
                                              .value = {.string_value = value}});
}

void spanprof_span_set_int(spanprof_span span, const char *key, int64_t value)
{
    set_attribute(span, &(spanprof_attribute){.key = key,
                                              .type = SPANPROF_ATTRIBUTE_INT,
                                              .value = {.int_value = value}});
}

void spanprof_span_set_double(spanprof_span span, const char *key, double value)
{
    set_attribute(span, &(spanprof_attribute){.key = key,
                                              .type = SPANPROF_ATTRIBUTE_DOUBLE,
                                              .value = {.double_value = value}});
}

void spanprof_span_set_bool(spanprof_span span, const char *key, bool value)
{
    set_attribute(span, &(spanprof_attribute){.key = key,
                                              .type = SPANPROF_ATTRIBUTE_BOOL,
                                              .value = {.bool_value = value}});
}

/* A COUNT above UINT32_MAX becomes UINT32_MAX; both are refused, because such an array has more
 * than 16 MiB. */
static uint32_t array_count(size_t count)
{
    return (uint32_t)sp_min_u64(count, UINT32_MAX);
}

void spanprof_span_set_string_array(spanprof_span span, const char *key, const char *const *values,
                                    size_t count)
{
    set_attribute(span, &(spanprof_attribute){.key = key,
                                              .type = SPANPROF_ATTRIBUTE_STRING_ARRAY,
                                              .count = array_count(count),
                                              .value = {.string_array = values}});
}

void spanprof_span_set_int_array(spanprof_span span, const char *key, const int64_t *values,
                                 size_t count)
{
    set_attribute(span, &(spanprof_attribute){.key = key,
                                              .type = SPANPROF_ATTRIBUTE_INT_ARRAY,
                                              .count = array_count(count),
                                              .value = {.int_array = values}});
}

void spanprof_span_set_double_array(spanprof_span span, const char *key, const double *values,
                                    size_t count)
{
    set_attribute(span, &(spanprof_attribute){.key = key,
                                              .type = SPANPROF_ATTRIBUTE_DOUBLE_ARRAY,
                                              .count = array_count(count),
                                              .value = {.double_array = values}});
}

void spanprof_span_set_bool_array(spanprof_span span, const char *key, const bool *values,
                                  size_t count)
{
    set_attribute(span, &(spanprof_attribute){.key = key,
                                              .type = SPANPROF_ATTRIBUTE_BOOL_ARRAY,
                                              .count = array_count(count),
                                              .value = {.bool_array = values}});
}

/* --- events and links ------------------------------------------------------------------------- */

/* Add the event REQUEST, whose time and options are set here from OPTIONS. */
static void add_event(spanprof_span span, sp_event_request request,
                      const spanprof_event_options *options)
{
    spanprof_event_options known = {0};
    if (options)
        (void)SP_STRUCT_READ(&known, options, "spanprof_event_options"); /* false: all zero */
    request.options = &known;
    uint64_t now = sp_clock_monotonic_ns();
    sp_span_record *record = sp_handle_lock(span);
    if (!record)
        return;
    request.time_ns = known.time_ns ? known.time_ns : sp_record_time(record, now);
    sp_record_add_event(record, &request);
    sp_handle_unlock(&record->head, span.generation);
}

void spanprof_span_add_event(spanprof_span span, const char *name,
                             const spanprof_event_options *options)
{
    add_event(span, (sp_event_request){.name = name}, options);
}

void spanprof_span_record_error(spanprof_span span, const char *type, const char *message,
                                const char *stacktrace, const spanprof_event_options *options)
{
    const char *const keys[] = {"exception.type", "exception.message", "exception.stacktrace"};
    const char *const values[] = {type, message, stacktrace};
    spanprof_attribute own[SP_ARRAY_LENGTH(keys)];
    uint32_t count = 0;
    for (size_t i = 0; i < SP_ARRAY_LENGTH(keys); i++)
        if (values[i] && values[i][0])
            own[count++] =
                (spanprof_attribute){.key = keys[i], .value = {.string_value = values[i]}};
    add_event(span, (sp_event_request){.name = "exception", .own = own, .own_count = count},
              options);
}

void spanprof_span_add_link(spanprof_span span, const spanprof_link *link)
{
    sp_span_record *record = sp_handle_lock(span);
    if (!record)
        return;
    if (link)
        sp_record_add_link(record, link);
    sp_handle_unlock(&record->head, span.generation);
}

/* --- name and status -------------------------------------------------------------------------- */

void spanprof_span_update_name(spanprof_span span, const char *name)
{
    sp_span_record *record = sp_handle_lock(span);
    if (!record)
        return;
    sp_record_update_name(record, name);
    sp_handle_unlock(&record->head, span.generation);
}

void spanprof_span_set_status(spanprof_span span, spanprof_span_status status,
                              const char *description)
{
    sp_span_record *record = sp_handle_lock(span);
    if (!record)
        return;
    sp_record_set_status(record, status, description);
    sp_handle_unlock(&record->head, span.generation);
}

bool spanprof_span_is_recording(spanprof_span span)
{
    if (span.slot & SP_HANDLE_LIGHT)
        return false;
    sp_slot *slot = sp_handle_slot(span);
    return slot && (sp_load_acquire(&slot->word) & ~(uint64_t)SP_SLOT_LOCKED) == span.generation;
}
