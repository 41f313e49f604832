/* SPDX-License-Identifier: Apache-2.0 */
#include "attach/target_resource.h"

#include <string.h>
#include <sys/utsname.h>

#include <spanprof/spanprof.h>

#include "core/compiler.h"

/* The attributes by which backends find the process's own telemetry. */
static const char *const published[] = {
    "service.name",        "service.namespace",      "service.version",
    "service.instance.id", "deployment.environment", "deployment.environment.name",
    "container.id",        "k8s.pod.name",           "k8s.namespace.name"};

bool sp_attach_resource_init(sp_resource *resource, const sp_attach_target *target,
                             const sp_outside_process *process, const char *service)
{
    struct utsname host;
    memset(resource, 0, sizeof *resource);
    resource->attributes =
        sp_arena_array(&resource->memory, SP_RESOURCE_ATTRIBUTES, sizeof *resource->attributes);
    if (!resource->attributes)
        return false;
    sp_resource_offer(resource, "service.name", service);
    for (size_t i = 0; i < SP_ARRAY_LENGTH(published); i++)
        sp_resource_offer(resource, published[i], sp_outside_resource(process, published[i]));
    sp_resource_offer(resource, "service.name", target->name);
    sp_resource_offer_int(resource, "process.pid", target->pid);
    sp_resource_offer(resource, "process.executable.name", target->name);
    sp_resource_offer(resource, "process.executable.path", target->executable);
    if (uname(&host) == 0)
        sp_resource_offer(resource, "host.name", host.nodename);
    sp_resource_offer(resource, "telemetry.sdk.name", "spanprof");
    sp_resource_offer(resource, "telemetry.sdk.language", "c");
    sp_resource_offer(resource, "telemetry.sdk.version", SPANPROF_VERSION);
    return !resource->memory.failed;
}
