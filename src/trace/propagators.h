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

/* The same as spanprof_context_extract, without a tracestate. TEXT has LENGTH bytes and needs no
 * NUL. */
bool sp_traceparent_read(spanprof_context *out, const char *text, size_t length);

/* --- trace_state.c ---------------------------------------------------------------------------- */

enum {
    SP_TRACE_STATE_MEMBERS = 32,
    SP_TRACE_STATE_MEMBER_BYTES = 256 + 1 + 256,
    /* From a longer list, whole members are left out. The specification demands at least 512. */
    SP_TRACE_STATE_BYTES = 1024
};

/* All zero: no tracestate. `text` has the members joined by commas, without blanks. */
typedef struct sp_trace_state {
    sp_buffer text;
    uint32_t members;
    bool invalid; /* the whole list is discarded */
} sp_trace_state;

/* Append the members of one header. */
void sp_trace_state_read(sp_trace_state *state, const char *text, size_t length);
/* Call it after the last header. It empties `text` when the list is not valid, and shortens a list
 * of more than SP_TRACE_STATE_BYTES. */
void sp_trace_state_finish(sp_trace_state *state);

/* --- baggage.c -------------------------------------------------------------------------------- */

enum { SP_BAGGAGE_MEMBERS = 180, SP_BAGGAGE_BYTES = 8192 };

/* All zero: no baggage. `text` has the members in the form of the header, joined by commas, without
 * optional blanks. */
typedef struct sp_baggage {
    sp_buffer text;
    uint32_t members;
} sp_baggage;

/* Add the members of one header. Members that are not valid, and those beyond the limits, are left
 * out. */
void sp_baggage_read(sp_baggage *baggage, const char *text, size_t length);

/* --- propagators.c ---------------------------------------------------------------------------- */

enum { SP_PROPAGATE_TRACE_CONTEXT = 1, SP_PROPAGATE_BAGGAGE = 2 };

/* Which headers spanprof_propagation_extract and _inject use: a set of the above; the default is
 * both. Setup. */
void sp_propagation_configure(uint32_t headers);

/* Set OUT to CONTEXT with a carrier for CARRIED. ERROR_NO_MEMORY when the table has no room for it:
 * then OUT is CONTEXT. */
spanprof_status sp_propagation_carry(spanprof_context *out, const spanprof_context *context,
                                     const sp_carried *carried);
/* A carrier with the content of CARRIER without the tracestate, which belongs to a trace that is
 * not continued. */
spanprof_carrier sp_propagation_without_trace_state(spanprof_carrier carrier);

/* Add LENGTH bytes of TEXT to LIST, with a comma before them unless they are the first. */
bool sp_propagation_add_member(sp_buffer *list, const char *text, size_t length);

#endif
