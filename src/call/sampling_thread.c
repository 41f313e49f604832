/* SPDX-License-Identifier: Apache-2.0 */
#include "call/sampling_thread.h"

#include "call/call_sampling.h"
#include "core/atomic.h"

/* Each run begins with a new seed, because a forked child must not continue its parent's random
 * sequence. */
bool sp_sampling_enter(sp_sampling_thread *thread, uint32_t run, uint64_t period)
{
    if (thread->inside)
        return false;
    thread->inside = 1;
    sp_fence_signal();
    if (thread->run == run)
        return true;
    thread->random = sp_random_seed();
    thread->left = sp_sampling_draw(&thread->random, period);
    thread->run = run;
    return true;
}

void sp_sampling_leave(sp_sampling_thread *thread)
{
    sp_fence_signal();
    thread->inside = 0;
}
