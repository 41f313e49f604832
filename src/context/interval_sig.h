/* SPDX-License-Identifier: Apache-2.0 */
/* A copy of a thread's active context. */
#ifndef SP_CONTEXT_INTERVAL_SIG_H
#define SP_CONTEXT_INTERVAL_SIG_H

#include "context/thread.h"

/* The context of THREAD at switch NUMBER, which was read before and is even. The copy is consistent
 * when THREAD is the calling one, because a handler runs between two of its instructions, or when
 * NUMBER is still the thread's switch number afterwards (pairs with publish() in context/context.c,
 * which stores in order). WITH_ATTRIBUTES: copy the attributes, too; then INTERVAL has room for
 * SP_INTERVAL_BYTES_MAX bytes. */
SP_SIGSAFE static inline void sp_interval_fill(sp_interval_record *interval, sp_thread *thread,
                                               uint64_t number, bool with_attributes)
{
    uint32_t tail = sp_load_relaxed(&thread->published.record.tail);
    uint32_t bytes = with_attributes ? tail >> 16 : 0;
    bytes = bytes <= SP_ATTRIBUTE_BYTES_MAX ? bytes : 0; /* a torn copy is discarded later */
    uint32_t words = (bytes + 7) / 8 * 2;
    for (uint32_t i = 0; i < words; i++)
        interval->attributes[i] =
            4 * i < bytes ? sp_load_relaxed(&thread->published.record.attributes[i]) : 0;
    interval->attribute_bytes = bytes;
    interval->reserved = 0;
    interval->header.size = (uint32_t)(sizeof *interval + words * sizeof interval->attributes[0]);
    interval->header.kind = SP_RECORD_INTERVAL;
    interval->number = number;
    interval->trace_id[0] = sp_load_relaxed(&thread->published.record.trace_id[0]);
    interval->trace_id[1] = sp_load_relaxed(&thread->published.record.trace_id[1]);
    interval->span_id = sp_load_relaxed(&thread->published.record.span_id);
    interval->local_root_span_id = sp_load_relaxed(&thread->published.local_root_span_id);
    interval->trace_flags = tail >> 8 & 0xff;
    interval->remote = (uint32_t)sp_load_relaxed(&thread->published.remote);
}

/* The same for another tracer's context, whose record does not say which span is the local root. */
SP_SIGSAFE static inline void sp_interval_fill_foreign(sp_interval_record *interval,
                                                       const sp_foreign_context *context,
                                                       uint64_t number)
{
    interval->attribute_bytes = 0; /* the numbers of its keys are the other tracer's */
    interval->reserved = 0;
    interval->header.size = sizeof *interval;
    interval->header.kind = SP_RECORD_INTERVAL;
    interval->number = number;
    interval->trace_id[0] = context->trace_id[0];
    interval->trace_id[1] = context->trace_id[1];
    interval->span_id = context->span_id;
    interval->local_root_span_id = 0;
    interval->trace_flags = context->tail >> 8 & 0xff;
    interval->remote = 0;
}

#endif
