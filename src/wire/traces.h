/* SPDX-License-Identifier: Apache-2.0 */
/* The two forms of finished spans: trees of protobuf-c, from which JSON is written, and protobuf's
 * bytes, which are written without a tree. Tests check that protobuf-c makes the same bytes of a
 * tree. Both have one ResourceSpans, with a ScopeSpans for each instrumentation scope in the order
 * of first appearance. */
#ifndef SP_WIRE_TRACES_H
#define SP_WIRE_TRACES_H

#include "wire/message_tree.h"
#include "proto/trace_service.pb-c.h"

/* Spans of one scope. Scopes are few (one for each instrumented library), so they are searched one
 * by one, the last one first. */
typedef struct sp_span_group {
    const sp_instrumentation_scope *scope;
    uint32_t count;
} sp_span_group;

/* groups[0 .. group_count) are in use; number_of[i] is the group of span i. */
typedef struct sp_span_grouping {
    sp_span_group *groups;
    uint32_t group_count;
    uint32_t *number_of;
} sp_span_grouping;

/* span_groups.c: group COUNT spans by scope, in ARENA. False when memory is short. */
bool sp_otlp_group_spans(sp_arena *arena, sp_span_grouping *grouping, sp_span_data *const *spans,
                         size_t count);

/* traces.c: make OUT, which is initialised, the tree of the request. It borrows from RESOURCE and
 * SPANS. False when memory is short. */
bool sp_otlp_traces_tree(sp_arena *arena, Sp__Collector__ExportTraceServiceRequest *out,
                         const sp_resource *resource, sp_span_data *const *spans, size_t count);

/* traces_wire.c: append the request in protobuf to OUT, wholly or not at all; OUT is `failed`
 * then. */
bool sp_otlp_write_traces(sp_buffer *out, const sp_resource *resource, sp_span_data *const *spans,
                          size_t count);

#endif
