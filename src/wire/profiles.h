/* SPDX-License-Identifier: Apache-2.0 */
/* The two forms of profiles: trees of protobuf-c, from which JSON is written, and protobuf's bytes,
 * which are written without a tree. Tests check that protobuf-c makes the same bytes of a tree. */
#ifndef SP_WIRE_PROFILES_H
#define SP_WIRE_PROFILES_H

#include "wire/message_tree.h"
#include "proto/profiles_service.pb-c.h"

/* profiles.c */

extern const sp_instrumentation_scope sp_otlp_profiles_scope;
/* Make OUT, which is initialised, the tree of the request. It borrows from RESOURCE and DATA. False
 * when memory is short. */
bool sp_otlp_profiles_tree(sp_arena *arena, Sp__Collector__ExportProfilesServiceRequest *out,
                           const sp_resource *resource, const sp_profile_data *data);
/* Set VALUE to the value of FROM. False when memory is short. */
bool sp_otlp_profile_value(sp_arena *arena, Sp__Common__AnyValue *value,
                           const sp_profile_attribute *from);

/* profiles_wire.c */

/* Append the request in protobuf to OUT, wholly or not at all; OUT is `failed` then. */
bool sp_otlp_write_profiles(sp_buffer *out, const sp_resource *resource,
                            const sp_profile_data *data);

#endif
