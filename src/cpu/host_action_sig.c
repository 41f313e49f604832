/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/host_action_sig.h"

#include <stdatomic.h>
#include <string.h>
#include <ucontext.h>

#include "core/atomic.h"
#include "core/signal_mask_sig.h"

/* A reader has to retry only when this many actions are set while it reads one. */
enum { SLOTS = 8 };

typedef struct action_slot {
    _Atomic uintptr_t handler;
    _Atomic uint64_t mask, flags;
} action_slot;

/* Slots are taken in a circle. Invariant: `current` is a number that was taken, and its slot was
 * written whole before. */
typedef struct action_slots {
    _Atomic uint32_t taken, current;
    action_slot slots[SLOTS];
} action_slots;

static action_slots actions[NSIG];

SP_SIGSAFE void sp_host_action_set(int signal, const sp_host_action *action)
{
    action_slots *all = &actions[signal];
    uint32_t number = atomic_fetch_add(&all->taken, 1) + 1;
    action_slot *slot = &all->slots[number % SLOTS];
    sp_store_relaxed(&slot->handler, action->handler);
    sp_store_relaxed(&slot->mask, action->mask);
    sp_store_relaxed(&slot->flags, action->flags);
    sp_store_release(&all->current, number); /* pairs with the load in sp_host_action_get */
}

SP_SIGSAFE sp_host_action sp_host_action_get(int signal)
{
    action_slots *all = &actions[signal];
    for (;;) {
        uint32_t number = sp_load_acquire(&all->current);
        const action_slot *slot = &all->slots[number % SLOTS];
        sp_host_action action = {.handler = sp_load_acquire(&slot->handler),
                                 .mask = sp_load_acquire(&slot->mask),
                                 .flags = sp_load_acquire(&slot->flags)};
        if (sp_load_relaxed(&all->taken) - number < SLOTS)
            return action;
    }
}

/* Signals that are blocked while the host's handler runs, as they would be without the SDK's
 * handler. */
SP_SIGSAFE static uint64_t mask_of(int signal, const sp_host_action *action, const void *ucontext)
{
    uint64_t interrupted; /* the kernel has no more than the first word of a sigset_t */
    memcpy(&interrupted, &((const ucontext_t *)ucontext)->uc_sigmask, sizeof interrupted);
    uint64_t own = action->flags & SA_NODEFER ? 0 : SP_SIGNAL_BIT(signal);
    return interrupted | action->mask | own;
}

SP_SIGSAFE void sp_host_action_run(int signal, siginfo_t *info, void *ucontext)
{
    static const sp_host_action standard;
    sp_host_action action = sp_host_action_get(signal);
    if (!sp_host_action_handles(&action))
        return;
    if (action.flags & SA_RESETHAND)
        sp_host_action_set(signal, &standard);
    sp_signal_mask_set(mask_of(signal, &action, ucontext));
    if (action.flags & SA_SIGINFO)
        ((void (*)(int, siginfo_t *, void *))action.handler)(signal, info, ucontext);
    else
        ((void (*)(int))action.handler)(signal);
}
