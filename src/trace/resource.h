/* SPDX-License-Identifier: Apache-2.0 */
/* The resource: attributes of the process that produces the telemetry. Traces, profiles and the
 * process context have the same one. */
#ifndef SP_TRACE_RESOURCE_H
#define SP_TRACE_RESOURCE_H

#include <spanprof/tracer.h>
#include "core/arena.h"
#include "core/intern.h"

/* Keys are unique: attribute n has key n of the table `keys`. Values are in `memory`. */
typedef struct sp_resource {
    sp_arena memory;
    sp_intern keys;
    spanprof_attribute *attributes;
    uint32_t attribute_count;
} sp_resource;

/* Detection stops at this number of attributes; attributes that the user names are not limited.
 * Pyroscope makes a label of each, takes 30 labels, and adds 4. A detected value that is longer
 * than a label may be is left out. */
enum { SP_RESOURCE_ATTRIBUTES = 26, SP_RESOURCE_VALUE_BYTES = 2048 };

/* Find the resource of this process. For each key, the first of these sources that has it wins:
 * SERVICE_NAME (NULL or "": none), ATTRIBUTES (may be NULL), OTEL_SERVICE_NAME,
 * OTEL_RESOURCE_ATTRIBUTES, the attributes that detect.h lists. If no source sets them,
 * service.name is unknown_service:PROGRAM, and service.instance.id is a UUID v4, the same until a
 * fork. telemetry.sdk.{name,language,version} are always set by the SDK. A list of attributes is
 * percent-decoded; one that cannot be is discarded whole, with a warning. Setup only. Returns false
 * when memory is short. */
bool sp_resource_init(sp_resource *resource, const char *service_name, const char *attributes);
void sp_resource_deinit(sp_resource *resource);
/* For detectors: add an attribute, unless the resource has one with KEY (borrowed) or its number of
 * attributes is at the limit. VALUE is copied; NULL, "" and a value that is too long are
 * ignored. */
void sp_resource_offer(sp_resource *resource, const char *key, const char *value);
void sp_resource_offer_int(sp_resource *resource, const char *key, int64_t value);
/* In a forked child: it is another instance of the service. */
void sp_resource_after_fork(void);
/* The string value of KEY, or NULL. */
const char *sp_resource_get(const sp_resource *resource, const char *key);

#endif
