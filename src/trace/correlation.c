/* SPDX-License-Identifier: Apache-2.0 */
/* The first of the span processors: it gives spans the attribute by which a trace view finds their
 * profile. The attribute's value is the span's own id, because samples link to that id
 * (docs/design/span-context.md says which spans are marked). */
#include <string.h>

#include "trace/trace_internal.h"

static void mark(sp_span_data *span, const spanprof_context *context)
{
    sp_span_data_set_id(span, SP_PROFILE_ID_KEY, context->span_id);
}

static bool is_local_root(const spanprof_context *context)
{
    return memcmp(context->span_id, context->local_root_span_id, sizeof context->span_id) == 0;
}

static void mark_root(sp_span_processor *self, sp_span_data *span, const spanprof_context *context)
{
    (void)self;
    if (is_local_root(context))
        mark(span, context);
}

static void mark_any(sp_span_processor *self, sp_span_data *span, const spanprof_context *context)
{
    (void)self;
    mark(span, context);
}

sp_span_processor sp_correlation_roots = {.on_start = mark_root};
sp_span_processor sp_correlation_all = {.on_start = mark_any};
