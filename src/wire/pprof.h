/* SPDX-License-Identifier: Apache-2.0 */
/* pprof from OTLP profiles (proto/pprof.proto has the fields, docs/design/encoding.md what becomes
 * what). The input is the tree of protobuf-c messages, which both sides have: the command reads
 * one, and the SDK makes one of a window (wire/profiles.h).  Threads: any, each with its own OUT.
 */
#ifndef SP_WIRE_PPROF_H
#define SP_WIRE_PPROF_H

#include "core/buffer.h"
#include "profile/profile_data.h"
#include "trace/resource.h"
#include "wire/pprof_source.h"

/* Append SOURCE as pprof, not gzipped, to OUT, wholly or not at all; OUT is `failed` then. */
bool sp_pprof_write(sp_buffer *out, const sp_pprof_source *source);
/* The same of all profiles of DATA, a window of the SDK. */
bool sp_pprof_encode(sp_buffer *out, const sp_resource *resource, const sp_profile_data *data);
/* The same as a part of SEQUENCE, with TYPE_COUNT TYPES as the first ones. DATA may have no
 * profile. */
bool sp_pprof_encode_part(sp_buffer *out, const sp_resource *resource, const sp_profile_data *data,
                          const sp_pprof_type_name *types, size_t type_count,
                          sp_pprof_sequence *sequence);

#endif
