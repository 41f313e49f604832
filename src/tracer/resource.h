/* SPDX-License-Identifier: Apache-2.0 */
/* The resource: who produced the telemetry. Traces, profiles and the process context carry the same one. */
#ifndef SP_TRACER_RESOURCE_H
#define SP_TRACER_RESOURCE_H

#include <spanprof/tracer.h>
#include "core/arena.h"

/* Keys are unique. Everything lives in `memory`. */
typedef struct sp_resource {
    sp_arena memory;
    spanprof_attribute *attributes;
    uint32_t attribute_count;
} sp_resource;

/* Find the resource of this process: service.name (SERVICE_NAME, else OTEL_SERVICE_NAME, else from the attributes, else
 * unknown_service:PROGRAM), service.instance.id (a fresh UUID v4), telemetry.sdk.{name,language,version}, process.pid,
 * process.executable.name, host.name, host.arch, os.type, and ATTRIBUTES (NULL: OTEL_RESOURCE_ATTRIBUTES), percent-decoded;
 * a value that cannot be decoded is discarded whole, with a warning.  Setup only.
 * Returns false when memory is short. */
bool sp_resource_init(sp_resource *resource, const char *service_name, const char *attributes);
void sp_resource_deinit(sp_resource *resource);
/* The string value of KEY, or NULL. */
const char *sp_resource_get(const sp_resource *resource, const char *key);

#endif
