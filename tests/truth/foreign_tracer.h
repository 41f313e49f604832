/* SPDX-License-Identifier: Apache-2.0 */
/* A tracer that is not ours and knows nothing of us: it publishes each thread's context as OTEP
 * 4947 says, in either of the two styles. Its ids say which work a span is for, and carry a
 * checksum. */
#ifndef FOREIGN_TRACER_H
#define FOREIGN_TRACER_H

#include <stdint.h>
#include <string.h>

typedef enum foreign_style {
    FOREIGN_SWAPS, /* a record for each span; detach stores the one before, and frees */
    FOREIGN_FLAGS, /* one record a thread; valid is 0 while it changes, and when there is no span */
} foreign_style;

/* The span id that goes with a trace. */
static inline uint64_t foreign_checksum(const uint8_t trace_id[16])
{
    uint64_t words[2];
    memcpy(words, trace_id, sizeof words);
    uint64_t x = words[0] * UINT64_C(0x9e3779b97f4a7c15) ^ words[1];
    x = (x ^ x >> 32) * UINT64_C(0xd6e8feb86659fd93);
    return (x ^ x >> 32) | 1;
}

/* Begin a span for WORK on this thread, inside the one that there is; end it. */
void foreign_begin(foreign_style style, unsigned work);
void foreign_end(foreign_style style);
/* At a thread's end, as a careless tracer does it: the pointer stays, and what it points to cannot
 * be read any more; then call SEEN, and take the pointer away. */
void foreign_leave_rudely(void (*seen)(void));

#endif
