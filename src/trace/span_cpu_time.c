/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/span_cpu_time.h"

#include "core/word.h"

typedef struct cpu_time_ids {
    uint64_t root, span, parent;
} cpu_time_ids;

static cpu_time_ids ids_of(const sp_span_record *record)
{
    enum { LOCAL_ROOT = offsetof(spanprof_context, local_root_span_id) / 8 };
    return (cpu_time_ids){.root = sp_load_relaxed(&record->head.context[LOCAL_ROOT]),
                          .span = sp_word_load(record->data.span_id, 0),
                          .parent = sp_word_load(record->data.parent_span_id, 0)};
}

static const char key[] = "spanprof.cpu_time_ns";

static void set_attribute(sp_span_record *record, uint64_t cpu_time_ns)
{
    sp_record_set_borrowed_key(record,
                               &(spanprof_attribute){.key = key,
                                                     .type = SPANPROF_ATTRIBUTE_INT,
                                                     .value = {.int_value = (int64_t)cpu_time_ns}});
}

/* False when memory was short at the start of the span. That was counted then. */
static bool has_attribute(const sp_span_data *data)
{
    uint32_t i = 0;
    while (i < data->attribute_count && data->attributes[i].key != key)
        i++;
    return i < data->attribute_count;
}

void sp_span_cpu_time_begin(sp_span_record *record)
{
    cpu_time_ids ids = ids_of(record);
    if (record->session->config.cpu_time == SP_CPU_TIME_ROOT && ids.span != ids.root)
        return;
    if (sp_cpu_time_open(ids.root, ids.span, ids.parent))
        set_attribute(record, 0);
}

void sp_span_cpu_time_end(sp_span_record *record)
{
    cpu_time_ids ids = ids_of(record);
    uint64_t cpu_time_ns;
    if (sp_cpu_time_close(ids.root, ids.span, &cpu_time_ns) && has_attribute(&record->data))
        set_attribute(record, cpu_time_ns);
}
