/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/waits.h"

#include <stddef.h>

sp_lock_preload sp_preload_waits = {.version = SP_LOCK_PRELOAD_VERSION};

static __thread sp_sampling_thread self __attribute__((tls_model("initial-exec")));

PUBLIC sp_lock_preload *spanprof_preload_locks(uint32_t version);

PUBLIC sp_lock_preload *spanprof_preload_locks(uint32_t version)
{
    return version == SP_LOCK_PRELOAD_VERSION ? &sp_preload_waits : NULL;
}

sp_contention sp_wait_begin(sp_contention_kind kind, const void *lock, const int *owner,
                            int is_taken)
{
    sp_contention wait = {.kind = kind, .lock = lock};
    sp_lock_begins *begins = sp_load_acquire(&sp_preload_waits.begins);
    if (is_taken && begins)
        begins(&self, &wait, owner);
    return wait;
}

int sp_wait_end(const sp_contention *wait, int has_waited, int result, const void *return_address)
{
    sp_lock_ends *ends = sp_load_acquire(&sp_preload_waits.ends);
    if (wait->begin_ns && ends)
        ends(&self, wait, has_waited, return_address);
    return result;
}

void sp_wait_give(const void *lock, const int *owner, const void *return_address)
{
    sp_lock_gives *gives = sp_load_acquire(&sp_preload_waits.gives);
    if (gives)
        gives(lock, owner, return_address);
}
