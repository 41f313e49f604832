/* SPDX-License-Identifier: Apache-2.0 */
/* The hooks for another tracer (include/spanprof/processor.h): it reports its spans, so that the
 * SDK finds the local root of samples under its contexts. */
#include <string.h>

#include "context/switch_recorder.h"
#include "core/hex.h"
#include "core/word.h"
#include "trace/starts.h"
#include "trace/trace_internal.h"

_Static_assert(sizeof(uint64_t) == sizeof((spanprof_context){0}.span_id), "a span id is a word");

/* A parent that is not in the table is treated as one in another process: then the span itself is
 * the local root, and samples are linked to a span that is known. */
static uint64_t local_root(const spanprof_context *context, const spanprof_context *parent)
{
    uint64_t root = sp_word_load(context->local_root_span_id, 0);
    if (!root && parent && sp_context_is_valid(parent) && !parent->remote) {
        root = sp_word_load(parent->local_root_span_id, 0);
        if (!root)
            root = sp_starts_local_root(parent);
    }
    return root ? root : sp_word_load(context->span_id, 0);
}

static void mark(spanprof_start_attributes *out, const spanprof_context *context)
{
    sp_hex_encode(out->text, context->span_id, sizeof context->span_id);
    out->items[out->count++] =
        (spanprof_attribute){.key = SP_PROFILE_ID_KEY, .value = {.string_value = out->text}};
}

static void count(sp_start_added added)
{
    sp_span_cache *cache = sp_cache_get();
    if (added != SP_START_NO_MEMORY)
        sp_cache_count(cache, SP_COUNT_FOREIGN_STARTED);
    if (added != SP_START_ADDED)
        sp_cache_count(cache, SP_COUNT_FOREIGN_EVICTED);
}

/* The running session if samples link to the span of CONTEXT: it is valid, local and sampled. Else
 * NULL. */
static const sp_session *session_for(const spanprof_context *context)
{
    const sp_session *session =
        sp_load_acquire(&sp_session_current); /* pairs with the release in sp_tracer_start */
    bool linked = context && context->trace_flags & SPANPROF_TRACE_FLAG_SAMPLED &&
                  !context->remote && sp_context_is_valid(context);
    return linked ? session : NULL;
}

void spanprof_processor_on_start(const spanprof_context *context, const spanprof_context *parent,
                                 const char *name, uint64_t time_ns, spanprof_start_attributes *out)
{
    (void)name;
    (void)time_ns;
    if (out && out->struct_size >= offsetof(spanprof_start_attributes, items))
        out->count = 0;
    const sp_session *session = session_for(context);
    if (!session)
        return;
    uint64_t root = local_root(context, parent);
    count(sp_starts_add(context, root));
    sp_switch_recorder_span_start(context, parent, root);
    bool is_root = root == sp_word_load(context->span_id, 0);
    if (out && out->struct_size >= sizeof *out &&
        (session->config.mark_all || (session->config.mark_roots && is_root)))
        mark(out, context);
}

void spanprof_processor_on_end(const spanprof_context *context, uint64_t time_ns)
{
    (void)time_ns;
    if (!session_for(context))
        return;
    sp_switch_recorder_span_end(context);
    if (sp_starts_end(context))
        sp_cache_count(sp_cache_get(), SP_COUNT_FOREIGN_ENDED);
}
