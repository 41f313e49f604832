/* SPDX-License-Identifier: Apache-2.0 */
/* The resource of a process that is sampled from outside. Threads: one at a time.
 * Signals: not safe. */
#ifndef SP_ATTACH_TARGET_RESOURCE_H
#define SP_ATTACH_TARGET_RESOURCE_H

#include "attach/target.h"
#include "outside/outside.h"
#include "trace/resource.h"

/* Fill RESOURCE with what PROCESS publishes of itself, else with data of the kernel. SERVICE (NULL:
 * none) is its service.name. False when memory is short. */
bool sp_attach_resource_init(sp_resource *resource, const sp_attach_target *target,
                             const sp_outside_process *process, const char *service);

#endif
