/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/handler_install.h"

#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/log.h"
#include "core/word.h"
#include "cpu/cpu_engine.h"
#include "cpu/host_action_sig.h"
#include "cpu/host_sigaction.h"

/* By signal number: the SDK's handler is still installed, perhaps below another one that calls it.
 * If it is not, no signal may be sent to test whether it is reached, because the host's handler
 * would get it. */
static bool in_chain[NSIG];

/* The real sigaction, not the wrapper for the program's calls. */
static sp_sigaction *system_sigaction = sigaction;

/* The process that the stored actions of the host belong to. A child of vfork shares the memory,
 * but has handlers of its own. */
static _Atomic pid_t process;

static _Atomic int tick_signal; /* 0: none */

static bool is_ours(const struct sigaction *action)
{
    return (action->sa_flags & SA_SIGINFO) && action->sa_sigaction == sp_handle_tick;
}

static bool is_handler(const struct sigaction *action)
{
    return (action->sa_flags & SA_SIGINFO) ||
           (action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN);
}

/* ---- the host's action ---- */

static void keep_host_action(int signal, const struct sigaction *action)
{
    sp_host_action kept = {.handler = (uintptr_t)action->sa_handler,
                           .mask = sp_word_load(&action->sa_mask, 0),
                           .flags = (uint32_t)action->sa_flags};
    sp_host_action_set(signal, &kept);
}

static struct sigaction host_action(int signal)
{
    sp_host_action kept = sp_host_action_get(signal);
    struct sigaction action = {.sa_flags = (int)kept.flags};
    action.sa_handler = (void (*)(int))kept.handler;
    sp_word_store(&action.sa_mask, 0, kept.mask);
    return action;
}

static bool host_handles(int signal)
{
    sp_host_action action = sp_host_action_get(signal);
    return sp_host_action_handles(&action);
}

void sp_host_sigaction_begin(sp_sigaction *system)
{
    system_sigaction = system;
}

/* ACTION and BEFORE may be the same object. */
static void exchange(int signal, const struct sigaction *action, struct sigaction *before)
{
    struct sigaction old = host_action(signal);
    if (action)
        keep_host_action(signal, action);
    if (before)
        *before = old;
}

int sp_host_sigaction(int signal, const struct sigaction *action, struct sigaction *before)
{
    struct sigaction current;
    if (system_sigaction(signal, NULL, &current) != 0 || !is_ours(&current))
        return system_sigaction(signal, action, before);
    bool is_child = sp_load_relaxed(&process) != getpid();
    if (is_child && action && system_sigaction(signal, action, NULL) != 0)
        return -1;
    exchange(signal, is_child ? NULL : action, before);
    return 0;
}

int sp_host_tick_signal(void)
{
    int signal = sp_load_relaxed(&tick_signal);
    return signal && !host_handles(signal) ? signal : 0;
}

/* ---- the SDK's handler ---- */

bool sp_handler_is_on_top(int signal)
{
    struct sigaction current;
    return system_sigaction(signal, NULL, &current) == 0 && is_ours(&current);
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

/* Since the last stop, another handler may have been installed over the SDK's, and pass unknown
 * signals on to it (as a second copy of the SDK does). Then the SDK's handler is reached already.
 * Installing it on top again would make the two call each other without end. */
bool sp_handler_install(int signal)
{
    struct sigaction action, current;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = sp_handle_tick;
    /* RESTART: system calls continue after a tick. ONSTACK: a Go program's threads have small
     * stacks and demand it. */
    action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
    sigfillset(
        &action.sa_mask); /* no other handler runs on top of a tick: its own stack may be small */
    if (system_sigaction(signal, NULL, &current) != 0)
        return false;
    sp_store_relaxed(&process, getpid());
    sp_store_relaxed(&tick_signal, signal);
    if (is_ours(&current) ||
        (in_chain[signal] && is_handler(&current) && sp_handler_is_reached(signal)))
        return true;
    keep_host_action(signal, &current);
    if (is_handler(&current))
        sp_log_info(
            "engine",
            "signal %d has a handler already: what our ticks did not send is passed on to it",
            signal);
    in_chain[signal] = true;
    return system_sigaction(signal, &action, NULL) == 0;
}

void sp_handler_restore(int signal)
{
    struct sigaction host = host_action(signal);
    sp_store_relaxed(&tick_signal, 0);
    if (!host_handles(signal) || !sp_handler_is_on_top(signal))
        return;
    system_sigaction(signal, &host, NULL);
    in_chain[signal] = false;
}
