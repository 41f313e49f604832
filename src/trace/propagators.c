/* SPDX-License-Identifier: Apache-2.0 */
/* Extract and inject: from headers to a context and back. The grammars are in traceparent.c,
 * trace_state.c and baggage.c; carrier.c stores the texts that do not fit into a context. */
#include "trace/propagators.h"

#include <string.h>

#include <spanprof/propagation.h>
#include "context/thread.h"
#include "core/atomic.h"
#include "core/compiler.h"
#include "trace/carrier.h"

static _Atomic uint32_t propagated = SP_PROPAGATE_TRACE_CONTEXT | SP_PROPAGATE_BAGGAGE;

void sp_propagation_configure(uint32_t headers)
{
    sp_store_relaxed(&propagated, headers);
}

bool sp_propagation_add_member(sp_buffer *list, const char *text, size_t length)
{
    return (list->length == 0 || sp_buffer_add_char(list, ',')) &&
           sp_buffer_add(list, text, length);
}

spanprof_status sp_propagation_carry(spanprof_context *out, const spanprof_context *context,
                                     const sp_carried *carried)
{
    spanprof_carrier carrier = sp_carrier_put(carried);
    *out = *context;
    if (sp_carrier_is_zero(carrier) && !sp_carried_is_nothing(carried))
        return SPANPROF_ERROR_NO_MEMORY;
    out->carrier = carrier;
    return SPANPROF_OK;
}

spanprof_carrier sp_propagation_without_trace_state(spanprof_carrier carrier)
{
    const sp_carried *old = sp_carrier_pin(carrier);
    if (!old)
        return (spanprof_carrier){0};
    spanprof_carrier result = carrier;
    if (old->trace_state_length) {
        sp_carried rest = *old;
        rest.trace_state = "";
        rest.trace_state_length = 0;
        result = sp_carrier_put(&rest);
    }
    sp_carrier_unpin(carrier);
    return result;
}

/* Make OUT carry the texts that were read, and free them. If the table has no room, OUT carries
 * nothing, which is counted. */
static void carry(spanprof_context *out, sp_trace_state *state, sp_baggage *baggage)
{
    if (state->text.failed || baggage->text.failed)
        sp_carrier_count_dropped();
    sp_trace_state_finish(state);
    if (baggage->text.failed)
        sp_buffer_clear(&baggage->text);
    sp_carried carried = sp_carried_nothing;
    if (state->text.length) {
        carried.trace_state = (const char *)state->text.data;
        carried.trace_state_length = (uint32_t)state->text.length;
    }
    if (baggage->text.length) {
        carried.baggage = (const char *)baggage->text.data;
        carried.baggage_length = (uint32_t)baggage->text.length;
    }
    out->carrier = sp_carrier_put(&carried);
    sp_buffer_deinit(&state->text);
    sp_buffer_deinit(&baggage->text);
}

static __attribute__((noinline)) void carry_trace_state(spanprof_context *out, const char *text)
{
    sp_trace_state state = {0};
    sp_baggage none = {0};
    sp_trace_state_read(&state, text, strlen(text));
    carry(out, &state, &none);
}

bool spanprof_context_extract(spanprof_context *out, const char *traceparent,
                              const char *tracestate)
{
    if (!out)
        return false;
    if (!traceparent) {
        *out = (spanprof_context){0};
        return false;
    }
    bool valid = sp_traceparent_read(out, traceparent, strlen(traceparent));
    if (SP_UNLIKELY(valid && tracestate && *tracestate))
        carry_trace_state(out, tracestate);
    return valid;
}

/* --- any map of headers ----------------------------------------------------------------------- */

typedef struct header_source {
    spanprof_header_getter get;
    void *user;
} header_source;

static bool get(const header_source *source, const char *name, uint32_t index,
                spanprof_header_value *value)
{
    *value = (spanprof_header_value){"", 0};
    return source->get(source->user, name, index, value) && value->data;
}

/* Two traceparent headers count as none, because either may be the right one. */
static bool read_traceparent(spanprof_context *out, const header_source *source)
{
    spanprof_header_value value;
    if (!get(source, "traceparent", 0, &value) ||
        !sp_traceparent_read(out, value.data, value.length))
        return false;
    if (!get(source, "traceparent", 1, &value))
        return true;
    *out = (spanprof_context){0};
    return false;
}

bool spanprof_propagation_extract(spanprof_context *out, spanprof_header_getter getter, void *user)
{
    if (!out)
        return false;
    *out = (spanprof_context){0};
    if (!getter)
        return false;
    const header_source source = {getter, user};
    uint32_t headers = sp_load_relaxed(&propagated);
    spanprof_header_value value;
    sp_trace_state state = {0};
    sp_baggage baggage = {0};
    bool valid = headers & SP_PROPAGATE_TRACE_CONTEXT && read_traceparent(out, &source);
    for (uint32_t i = 0; valid && get(&source, "tracestate", i, &value); i++)
        sp_trace_state_read(&state, value.data, value.length);
    for (uint32_t i = 0; headers & SP_PROPAGATE_BAGGAGE && get(&source, "baggage", i, &value); i++)
        sp_baggage_read(&baggage, value.data, value.length);
    carry(out, &state, &baggage);
    return valid;
}

uint32_t spanprof_propagation_inject(const spanprof_context *context, spanprof_header_setter set,
                                     void *user)
{
    if (!set)
        return 0;
    spanprof_context from = context ? *context : *sp_context_current_borrow(); /* SET may attach */
    uint32_t headers = sp_load_relaxed(&propagated), count = 0;
    char traceparent[56];
    bool has_trace =
        headers & SP_PROPAGATE_TRACE_CONTEXT && spanprof_context_inject(&from, traceparent) > 0;
    if (has_trace) {
        set(user, "traceparent", traceparent);
        count++;
    }
    const sp_carried *carried = sp_carrier_pin(from.carrier);
    if (!carried)
        return count;
    if (has_trace && carried->trace_state_length) {
        set(user, "tracestate", carried->trace_state);
        count++;
    }
    if (headers & SP_PROPAGATE_BAGGAGE && carried->baggage_length) {
        set(user, "baggage", carried->baggage);
        count++;
    }
    sp_carrier_unpin(from.carrier);
    return count;
}
