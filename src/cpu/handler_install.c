/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/handler_install.h"

#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/log.h"
#include "cpu/cpu_engine.h"

/* By signal number: ours is still installed, perhaps below another that passes on to it. Where it
 * is not, no signal may be sent to ask for it, because the host's handler would get it. */
static bool in_chain[NSIG];

static bool is_ours(const struct sigaction *action)
{
    return (action->sa_flags & SA_SIGINFO) && action->sa_sigaction == sp_handle_tick;
}

static bool is_handler(const struct sigaction *action)
{
    return (action->sa_flags & SA_SIGINFO) ||
           (action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN);
}

bool sp_handler_is_on_top(int signal)
{
    struct sigaction current;
    return sigaction(signal, NULL, &current) == 0 && is_ours(&current);
}

bool sp_handler_is_reached(int signal)
{
    siginfo_t info;
    memset(&info, 0, sizeof info);
    info.si_code = SI_QUEUE;
    info.si_pid = getpid();
    info.si_uid = getuid();
    info.si_value.sival_ptr = &sp_handler.probe;
    sigset_t one, before;
    sigemptyset(&one);
    sigaddset(&one, signal);
    sp_store_relaxed(&sp_handler.probe, 0);
    pthread_sigmask(SIG_UNBLOCK, &one, &before);
    long failed = syscall(SYS_rt_tgsigqueueinfo, getpid(), syscall(SYS_gettid), signal, &info);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed == 0 && sp_load_relaxed(&sp_handler.probe) != 0;
}

/* Another handler may have been put over ours since the last stop, and pass on to it what it does
 * not know (a second copy of the SDK does). Then ours is reached already, and putting it on top
 * once more would close a circle. */
bool sp_handler_install(int signal)
{
    struct sigaction action, current;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = sp_handle_tick;
    /* RESTART: system calls go on after a tick. ONSTACK: a Go program's threads have small stacks
     * and demand it. */
    action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
    sigfillset(
        &action.sa_mask); /* no other handler runs on top of a tick: its own stack may be small */
    if (sigaction(signal, NULL, &current) != 0)
        return false;
    if (is_ours(&current) ||
        (in_chain[signal] && is_handler(&current) && sp_handler_is_reached(signal)))
        return true;
    sp_handler.previous[signal] = current;
    if (is_handler(&current))
        sp_log_info(
            "engine",
            "signal %d has a handler already: what our ticks did not send is passed on to it",
            signal);
    in_chain[signal] = true;
    return sigaction(signal, &action, NULL) == 0;
}

void sp_handler_restore(int signal)
{
    struct sigaction current;
    const struct sigaction *previous = &sp_handler.previous[signal];
    if (!is_handler(previous) || sigaction(signal, NULL, &current) != 0 || !is_ours(&current))
        return;
    sigaction(signal, previous, NULL);
    in_chain[signal] = false;
}
