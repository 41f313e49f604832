/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/live_spans.h"

#include <string.h>

#include "trace/trace_internal.h"
#include "trace/starts.h"

/* It has no padding, because it is hashed and compared as bytes. */
typedef struct span_ids {
    uint8_t trace_id[16], span_id[8];
} span_ids;

static void gather_slot(sp_live_spans *live, sp_slot *slot)
{
    spanprof_context context;
    span_ids ids;
    uint64_t generation = sp_load_acquire(&slot->word) & ~(uint64_t)SP_SLOT_LOCKED;
    if (!(generation & SP_SLOT_LIVE) || !sp_slot_read_context(slot, generation, &context))
        return;
    memcpy(ids.trace_id, context.trace_id, sizeof ids.trace_id);
    memcpy(ids.span_id, context.span_id, sizeof ids.span_id);
    if (sp_intern_put(&live->ids, &ids, sizeof ids, NULL) == SP_INTERN_FAILED)
        live->is_incomplete = true;
}

static uint32_t slots_made(void)
{
    sp_lock_take(&sp_record_pool.lock);
    uint32_t carved = sp_record_pool.carved;
    sp_lock_give(&sp_record_pool.lock);
    return carved;
}

void sp_live_spans_gather(sp_live_spans *live)
{
    uint32_t last = slots_made();
    sp_intern_clear(&live->ids);
    live->is_incomplete = false;
    for (uint32_t index = 1; index <= last; index++) {
        sp_slot *slot = sp_pool_at(&sp_record_pool, index);
        if (slot)
            gather_slot(live, slot);
    }
}

bool sp_live_spans_has(const sp_live_spans *live, const uint8_t trace_id[16],
                       const uint8_t span_id[8])
{
    span_ids ids;
    spanprof_context context = {0};
    memcpy(ids.trace_id, trace_id, sizeof ids.trace_id);
    memcpy(ids.span_id, span_id, sizeof ids.span_id);
    if (live->is_incomplete || sp_intern_find(&live->ids, &ids, sizeof ids) != SP_INTERN_FAILED)
        return true;
    memcpy(context.trace_id, trace_id, sizeof context.trace_id);
    memcpy(context.span_id, span_id, sizeof context.span_id);
    return sp_starts_is_alive(&context);
}

void sp_live_spans_deinit(sp_live_spans *live)
{
    sp_intern_deinit(&live->ids);
}
