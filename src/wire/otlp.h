/* SPDX-License-Identifier: Apache-2.0 */
/* Encodes spans and profiles to OTLP's export requests. An ExportTraceServiceRequest has the same
 * bytes as TracesData, and an ExportProfilesServiceRequest as ProfilesData, so these functions
 * serve network and files. Threads: any, each with its own OUT. */
#ifndef SP_WIRE_OTLP_H
#define SP_WIRE_OTLP_H

#include "core/buffer.h"
#include "profile/profile_data.h"
#include "trace/resource.h"
#include "trace/span_data.h"

typedef enum sp_otlp_format {
    SP_OTLP_PROTOBUF = 0,
    SP_OTLP_JSON = 1, /* OTLP/JSON, one line without newline (wire/json.h says how values look) */
} sp_otlp_format;

/* Append the request for COUNT finished spans to OUT. Without spans it is the empty request (no
 * bytes, or {}), which the caller should not send. False, and nothing appended, when memory is
 * short or OUT's maximum is reached; OUT is `failed` then. */
bool sp_otlp_encode_traces(sp_buffer *out, sp_otlp_format format, const sp_resource *resource,
                           sp_span_data *const *spans, size_t count);
/* The same for profiles, all in one ResourceProfiles and one ScopeProfiles. */
bool sp_otlp_encode_profiles(sp_buffer *out, sp_otlp_format format, const sp_resource *resource,
                             const sp_profile_data *data);

#endif
