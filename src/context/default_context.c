/* SPDX-License-Identifier: Apache-2.0 */
#include "context/default_context.h"

#include "core/at_fork.h"
#include "core/cancel.h"
#include "core/lock.h"

static struct {
    sp_lock lock; /* an innermost lock */
    spanprof_context context;
} fallback = {.lock = SP_LOCK_AT(SP_LOCK_DEFAULT_CONTEXT)};

static void fork_prepare(void)
{
    sp_lock_take(&fallback.lock);
}

static void fork_done(void)
{
    sp_lock_give(&fallback.lock);
}

SP_AT_FORK(SP_LOCK_DEFAULT_CONTEXT, fork_prepare, fork_done, fork_done);

void spanprof_context_set_default(const spanprof_context *context)
{
    SP_UNCANCELLED;
    sp_lock_take(&fallback.lock);
    fallback.context = context ? *context : (spanprof_context){0};
    sp_lock_give(&fallback.lock);
}

spanprof_context sp_default_context_get(void)
{
    sp_lock_take(&fallback.lock);
    spanprof_context context = fallback.context;
    sp_lock_give(&fallback.lock);
    return context;
}
