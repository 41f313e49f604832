/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "core/counted.h"
#include "core/log.h"
#include "export/export_internal.h"

void sp_request_free(sp_request *request)
{
    if (!request)
        return;
    sp_buffer_deinit(&request->body);
    free(request);
}

bool sp_allowance_take(sp_allowance *allowance, size_t bytes)
{
    size_t before = atomic_fetch_add_explicit(&allowance->used_bytes, bytes, memory_order_relaxed);
    if (bytes <= allowance->maximum_bytes && before <= allowance->maximum_bytes - bytes)
        return true;
    sp_allowance_give(allowance, bytes);
    return false;
}

void sp_allowance_give(sp_allowance *allowance, size_t bytes)
{
    atomic_fetch_sub_explicit(&allowance->used_bytes, bytes, memory_order_relaxed);
}

void sp_requests_say_abandoned(uint64_t count, const char *destination, const char *why)
{
    sp_log_warn("export", "stopping with %s for %s not delivered%s; dropped and counted",
                SP_COUNTED(count, "request"), destination, why);
}
