/* SPDX-License-Identifier: Apache-2.0 */
/* The host's action for the signal of our ticks: our handler calls the host's handler for signals
 * that are not ticks. Threads: any. Signals: safe.
 *
 * A handler may read an action while another thread sets it. So an action is written into a slot
 * that is not the current one, and read again when that slot was taken anew meanwhile. */
#ifndef SP_CPU_HOST_ACTION_SIG_H
#define SP_CPU_HOST_ACTION_SIG_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/compiler.h"

/* As the kernel has it. */
typedef struct sp_host_action {
    uintptr_t handler; /* or SIG_DFL, SIG_IGN */
    uint64_t mask;     /* of signals from 1 on */
    uint64_t flags;    /* SA_… */
} sp_host_action;

SP_SIGSAFE void sp_host_action_set(int signal, const sp_host_action *action);
SP_SIGSAFE sp_host_action sp_host_action_get(int signal);

/* Neither the default action nor none. */
SP_SIGSAFE static inline bool sp_host_action_handles(const sp_host_action *action)
{
    return action->handler != (uintptr_t)SIG_DFL && action->handler != (uintptr_t)SIG_IGN;
}

/* In our handler for SIGNAL: do as the host's handler asked for, with the mask that it would have
 * without ours. Where it has none nothing is done: the default action of SIGPROF would end the
 * process. SA_RESTART and SA_ONSTACK are ours. */
SP_SIGSAFE void sp_host_action_run(int signal, siginfo_t *info, void *ucontext);

#endif
