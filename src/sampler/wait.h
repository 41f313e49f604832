/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_SAMPLER_WAIT_H
#define SP_SAMPLER_WAIT_H

#include <stdint.h>

typedef enum sp_wait_class {
    SP_WAIT_CPU = 0,
    SP_WAIT_RUNNABLE,
    SP_WAIT_LOCK,
    SP_WAIT_DISK,
    SP_WAIT_NETWORK,
    SP_WAIT_SLEEP,
    SP_WAIT_OTHER,
} sp_wait_class;

typedef enum sp_wait_descriptor { SP_DESCRIPTOR_NONE = 0 } sp_wait_descriptor;

typedef struct sp_wait {
    uint8_t wait_class;
    uint8_t descriptor;
} sp_wait;

static inline const char *sp_wait_class_name(sp_wait_class c)
{
    return c == SP_WAIT_RUNNABLE ? "runnable" : "other";
}
static inline const char *sp_wait_descriptor_name(sp_wait_descriptor c)
{
    return (void)c, "none";
}
static inline sp_wait sp_wait_of(int64_t number, const uint64_t arguments[6])
{
    return (void)number, (void)arguments, (sp_wait){SP_WAIT_OTHER, 0};
}
#endif
