/* SPDX-License-Identifier: Apache-2.0 */
/* The two forms of profiles: trees of protobuf-c, of which JSON is written, and protobuf's bytes.
 * Tests hold them together: what protobuf-c makes of a tree is, byte for byte, what is written
 * without it. */
#ifndef SP_WIRE_PROFILES_H
#define SP_WIRE_PROFILES_H

#include "wire/message_tree.h"
#include "proto/profiles_service.pb-c.h"

/* profiles.c */

extern const sp_instrumentation_scope sp_otlp_profiles_scope;
/* The request as a tree in OUT, which is initialised; it borrows from RESOURCE and DATA. False when
 * memory is short. */
bool sp_otlp_profiles_tree(sp_arena *arena, Sp__Collector__ExportProfilesServiceRequest *out,
                           const sp_resource *resource, const sp_profile_data *data);
/* VALUE becomes that of FROM. False when memory is short. */
bool sp_otlp_profile_value(sp_arena *arena, Sp__Common__AnyValue *value,
                           const sp_profile_attribute *from);

/* profiles_wire.c */

/* Append the request in protobuf to OUT, wholly or not at all; OUT is `failed` then. */
bool sp_otlp_write_profiles(sp_buffer *out, const sp_resource *resource,
                            const sp_profile_data *data);

#endif
