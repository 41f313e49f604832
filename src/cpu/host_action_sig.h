/* SPDX-License-Identifier: Apache-2.0 */
/* The host's action for the signal of ticks: the SDK's handler calls the host's handler for signals
 * that are not ticks. Threads: any. Signals: safe.
 *
 * A handler may read an action while another thread sets it. So an action is written into a slot
 * that is not the current one, and is read again when that slot was reused meanwhile. */
#ifndef SP_CPU_HOST_ACTION_SIG_H
#define SP_CPU_HOST_ACTION_SIG_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/compiler.h"

/* An action in the kernel's form. */
typedef struct sp_host_action {
    uintptr_t handler; /* or SIG_DFL, SIG_IGN */
    uint64_t mask;     /* of signals from 1 on */
    uint64_t flags;    /* SA_… */
} sp_host_action;

SP_SIGSAFE void sp_host_action_set(int signal, const sp_host_action *action);
SP_SIGSAFE sp_host_action sp_host_action_get(int signal);

/* Whether ACTION is a handler: neither the default action nor "ignore". */
SP_SIGSAFE static inline bool sp_host_action_handles(const sp_host_action *action)
{
    return action->handler != (uintptr_t)SIG_DFL && action->handler != (uintptr_t)SIG_IGN;
}

/* Called in the SDK's handler for SIGNAL: run the host's handler, with the mask that it would have
 * without the SDK. If the host has no handler, do nothing, because the default action of SIGPROF
 * would end the process. SA_RESTART and SA_ONSTACK are those of the SDK's handler. */
SP_SIGSAFE void sp_host_action_run(int signal, siginfo_t *info, void *ucontext);

#endif
