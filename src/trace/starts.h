/* SPDX-License-Identifier: Apache-2.0 */
/* The table of starts: the spans of another tracer, and the local root of each. It is filled by
 * spanprof_processor_on_start and read to find the local root of a context that names none: by the
 * collector, for the links of samples; when a span of this tracer starts under such a context; at
 * the next start of the other tracer.
 *
 * It has 64 shards of 1,024 spans, each with a lock of its own; the ids choose the shard. When a
 * shard is full, the span that ended first is evicted, or, if all live, the one that started first.
 * To use little memory, a span that ended so long ago that no sample needs it is replaced even
 * before the shard is full.
 *
 * | operation           | threads                                 | lock           |
 * | add, end, find      | any thread                              | one shard's    |
 * | forget              | setup                                   | one at a time  |
 * | after_fork          | the only thread of a forked child       | none, reset    |
 */
#ifndef SP_TRACE_STARTS_H
#define SP_TRACE_STARTS_H

#include <stdbool.h>
#include <stdint.h>

#include <spanprof/context.h>

enum { SP_STARTS_SHARDS = 64, SP_STARTS_SHARD_SPANS = 1024 };

typedef enum sp_start_added {
    SP_START_ADDED,
    SP_START_EVICTED,   /* added, and a live span was evicted for it */
    SP_START_NO_MEMORY, /* not added */
} sp_start_added;

/* Add the span of CONTEXT, which is valid. LOCAL_ROOT_SPAN_ID is in memory order, and not 0. A span
 * that is in the table already is replaced. */
sp_start_added sp_starts_add(const spanprof_context *context, uint64_t local_root_span_id);
/* Record that the span of CONTEXT has ended. Returns whether it was in the table, and alive. */
bool sp_starts_end(const spanprof_context *context);
/* Whether the span of CONTEXT is in the table, and has not ended. */
bool sp_starts_is_alive(const spanprof_context *context);
/* The local root of CONTEXT, which names none itself; 0 for a remote context and for a span that is
 * not in the table. */
uint64_t sp_starts_local_root(const spanprof_context *context);

/* Forget all spans: while the SDK did not run, their ends were not reported. */
void sp_starts_forget(void);
void sp_starts_after_fork(void);

#endif
