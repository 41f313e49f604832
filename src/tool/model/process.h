/* SPDX-License-Identifier: Apache-2.0 */
/* The process that a profile or a span is of, as its resource describes it. Threads: any. */
#ifndef SP_TOOL_MODEL_PROCESS_H
#define SP_TOOL_MODEL_PROCESS_H

#include <string.h>

#include "tool/model/model.h"

/* "" and 0 mean unknown. */
typedef struct sp_process {
    const char *service, *instance;
    int64_t pid;
} sp_process;

static inline sp_process sp_process_of(const Sp__Resource__Resource *resource,
                                       const Sp__Profiles__ProfilesDictionary *dictionary)
{
    const Sp__Common__AnyValue *pid = sp_resource_value(resource, dictionary, "process.pid");
    bool has_pid = pid && pid->value_case == SP__COMMON__ANY_VALUE__VALUE_INT_VALUE;
    return (sp_process){sp_resource_text(resource, dictionary, "service.name"),
                        sp_resource_text(resource, dictionary, "service.instance.id"),
                        has_pid ? pid->int_value : 0};
}

static inline bool sp_process_is_same(const sp_process *a, const sp_process *b)
{
    return strcmp(a->service, b->service) == 0 && strcmp(a->instance, b->instance) == 0 &&
           a->pid == b->pid;
}

/* Whether A and B may be the same process. Other tracers may not record the instance or the PID. */
static inline bool sp_process_may_be_same(const sp_process *a, const sp_process *b)
{
    return strcmp(a->service, b->service) == 0 &&
           (!*a->instance || !*b->instance || strcmp(a->instance, b->instance) == 0) &&
           (!a->pid || !b->pid || a->pid == b->pid);
}

#endif
