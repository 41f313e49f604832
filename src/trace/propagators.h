/* SPDX-License-Identifier: Apache-2.0 */
/* The headers by which a context travels between processes: traceparent, tracestate, baggage. Each
 * reader takes the value of one header with its length, and checks it; several headers with the
 * same name are read one after the other. */
#ifndef SP_TRACE_PROPAGATORS_H
#define SP_TRACE_PROPAGATORS_H

#include <spanprof/context.h>
#include "core/buffer.h"
#include "trace/carrier.h"

/* --- traceparent.c ---------------------------------------------------------------------------- */

/* spanprof_context_extract of LENGTH bytes, which need no NUL, without a tracestate. */
bool sp_traceparent_read(spanprof_context *out, const char *text, size_t length);

/* --- trace_state.c ---------------------------------------------------------------------------- */

enum {
    SP_TRACE_STATE_MEMBERS = 32,
    SP_TRACE_STATE_MEMBER_BYTES = 256 + 1 + 256,
    /* Of a list that is longer, whole members are left out. The specification wants 512 at least.
     */
    SP_TRACE_STATE_BYTES = 1024
};

/* Zero is no tracestate. `text` is its members, joined by commas, with nothing around them. */
typedef struct sp_trace_state {
    sp_buffer text;
    uint32_t members;
    bool invalid; /* the whole list counts for nothing */
} sp_trace_state;

/* Add what one header says. */
void sp_trace_state_read(sp_trace_state *state, const char *text, size_t length);
/* After the last header: `text` holds what is to be kept, which is nothing when the list is not
 * valid. */
void sp_trace_state_finish(sp_trace_state *state);

/* --- baggage.c -------------------------------------------------------------------------------- */

enum { SP_BAGGAGE_MEMBERS = 180, SP_BAGGAGE_BYTES = 8192 };

/* Zero is no baggage. `text` is its members as a header has them, joined by commas, without blanks
 * that mean nothing. */
typedef struct sp_baggage {
    sp_buffer text;
    uint32_t members;
} sp_baggage;

/* Add what one header says. Members that are not valid, and those behind the limits, are left out.
 */
void sp_baggage_read(sp_baggage *baggage, const char *text, size_t length);

/* --- propagators.c ---------------------------------------------------------------------------- */

enum { SP_PROPAGATE_TRACE_CONTEXT = 1, SP_PROPAGATE_BAGGAGE = 2 };

/* Which headers spanprof_propagation_extract and _inject use: a set of the above; the default is
 * both. Setup. */
void sp_propagation_configure(uint32_t headers);

/* OUT becomes CONTEXT with other texts to carry. ERROR_NO_MEMORY when they found no place: OUT is
 * CONTEXT then. */
spanprof_status sp_propagation_carry(spanprof_context *out, const spanprof_context *context,
                                     const sp_carried *carried);
/* What CARRIER names without the tracestate, which belongs to a trace that is not continued. */
spanprof_carrier sp_propagation_without_trace_state(spanprof_carrier carrier);

/* Add LENGTH bytes of TEXT to LIST, with a comma before them unless they are the first. */
bool sp_propagation_add_member(sp_buffer *list, const char *text, size_t length);

#endif
