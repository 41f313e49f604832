/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/struct_read.h"

#include <stdatomic.h>

#include "core/log.h"

static void warn_of_missing_size(const char *name)
{
    static _Atomic bool warned;
    if (!atomic_exchange_explicit(&warned, true, memory_order_relaxed))
        sp_log_warn("tracer",
                    "%s with struct_size 0 are ignored: begin with the _INIT macro of the type",
                    name);
}

static void warn_of_unknown_fields(const char *name)
{
    static _Atomic bool warned;
    if (!atomic_exchange_explicit(&warned, true, memory_order_relaxed))
        sp_log_warn("tracer",
                    "%s has fields set that this version of the library does not know: ignored",
                    name);
}

bool sp_struct_read_other(void *out, size_t bytes, const void *given, const char *name)
{
    const uint8_t *from = given;
    uint32_t given_bytes;
    memcpy(&given_bytes, given, sizeof given_bytes);
    if (given_bytes == 0) {
        warn_of_missing_size(name);
        return false;
    }
    memset(out, 0, bytes);
    memcpy(out, given, sp_min_u64(given_bytes, bytes));
    bool unknown = false;
    for (size_t i = bytes; i < given_bytes && !unknown; i++)
        unknown = from[i] != 0;
    if (unknown)
        warn_of_unknown_fields(name);
    return true;
}
