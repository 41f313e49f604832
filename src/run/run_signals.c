/* SPDX-License-Identifier: Apache-2.0 */
/* Handles the signals by which people and supervisors end a program, and hides our handlers from
 * the program: sigaction, signal and the functions that change masks return what they would return
 * without us. All are safe in signal handlers, and in children of fork and vfork. */
#include "run/run_signals.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <unistd.h>

#include "cpu/host_sigaction.h"
#include "run/keeper.h"

#define EXPORTED __attribute__((visibility("default")))

static struct {
    int (*sigaction)(int, const struct sigaction *, struct sigaction *);
    int (*pthread_sigmask)(int, const sigset_t *, sigset_t *);
} next;

/* Set before main. */
static bool handles_signals, hides_ticks;

/* Called before main, or by a constructor of another library that uses these functions earlier. */
static void prepare(void)
{
    if (next.pthread_sigmask)
        return;
    *(void **)&next.sigaction = dlsym(RTLD_NEXT, "sigaction");
    *(void **)&next.pthread_sigmask = dlsym(RTLD_NEXT, "pthread_sigmask"); /* tested above */
}

void sp_run_prepare_signals(void)
{
    prepare();
    sp_host_sigaction_begin(next.sigaction);
}

/* The program must not see our handlers, because interpreters install their handlers only where
 * they find SIG_DFL, and later restore what they found. So sigaction and signal return SIG_DFL
 * instead of the handler of this file, and install this handler again when the program sets
 * SIG_DFL. The SDK does the same for the signal of the ticks (cpu/host_sigaction.h). */

static bool is_ours(int number)
{
    return number == SIGHUP || number == SIGINT || number == SIGPIPE || number == SIGTERM;
}

static void set_default(int number)
{
    struct sigaction standard = {.sa_handler = SIG_DFL};
    next.sigaction(number, &standard, NULL);
}

void sp_run_end_by(int number)
{
    set_default(number);
    kill(getpid(), number);
}

/* The interrupted thread may hold a lock that the SDK needs to end the recording. So the thread
 * goes on, and the keeper ends the span and then the process. A second signal ends the process at
 * once. SIGPIPE is different: the handler waits for the end of the span and then ends the process,
 * because the program must not go on after a failed write. This wait is safe: the thread is inside
 * its own system call, so it holds no lock of the SDK. */
static void end_and_raise(int number)
{
    int error = errno;
    if (number == SIGPIPE)
        sp_keeper_end_for_signal();
    if (number == SIGPIPE || !sp_keeper_end_by(number)) {
        set_default(number);
        raise(number); /* is delivered when this handler returns */
    }
    errno = error;
}

static const struct sigaction our_action = {.sa_handler = end_and_raise,
                                            .sa_flags = SA_ONSTACK | SA_RESTART};

static bool asks_for_default(const struct sigaction *action)
{
    return !(action->sa_flags & SA_SIGINFO) && action->sa_handler == SIG_DFL;
}

EXPORTED int sigaction(int number, const struct sigaction *action, struct sigaction *before)
{
    prepare();
    if (hides_ticks && !is_ours(number))
        return sp_host_sigaction(number, action, before);
    bool is_default = handles_signals && action && asks_for_default(action);
    int result = next.sigaction(number, is_default ? &our_action : action, before);
    if (result == 0 && before && before->sa_handler == end_and_raise)
        *before = (struct sigaction){.sa_handler = SIG_DFL};
    return result;
}

static sighandler_t set_handler(int number, sighandler_t handler, struct sigaction action)
{
    struct sigaction before;
    action.sa_handler = handler;
    if (handler == SIG_ERR) {
        errno = EINVAL;
        return SIG_ERR;
    }
    return sigaction(number, &action, &before) == 0 ? before.sa_handler : SIG_ERR;
}

/* As in BSD and in the C library: system calls that the signal interrupts are restarted. */
EXPORTED sighandler_t signal(int number, sighandler_t handler)
{
    struct sigaction action = {.sa_flags = SA_RESTART};
    sigaddset(&action.sa_mask, number);
    return set_handler(number, handler, action);
}

EXPORTED sighandler_t bsd_signal(int number, sighandler_t handler)
{
    return signal(number, handler);
}

EXPORTED sighandler_t ssignal(int number, sighandler_t handler)
{
    return signal(number, handler);
}

/* The C library's `signal` for a program that is compiled for strict POSIX or ISO C. */
EXPORTED sighandler_t __sysv_signal(int number, sighandler_t handler)
{
    static const struct sigaction once = {.sa_flags = (int)(SA_RESETHAND | SA_NODEFER)};
    return set_handler(number, handler, once);
}

EXPORTED sighandler_t sysv_signal(int number, sighandler_t handler)
{
    return __sysv_signal(number, handler);
}

void sp_run_hide_ticks(void)
{
    hides_ticks = true;
}

void sp_run_handle_signals(void)
{
    static const int numbers[] = {SIGHUP, SIGINT, SIGPIPE, SIGTERM};
    handles_signals = true;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        struct sigaction before;
        if (next.sigaction(numbers[i], NULL, &before) == 0 && before.sa_handler == SIG_DFL)
            next.sigaction(numbers[i], &our_action, NULL);
    }
}

/* ---- masks ---- */

/* Whether SET has most of the standard signals. Servers block all signals in their worker threads,
 * so that one thread gets them. But a tick is a signal to the thread that used the CPU time, so a
 * thread that blocks this signal would have no samples. */
static bool has_most_signals(const sigset_t *set)
{
    enum { STANDARD = 31 }; /* the first ones; the others are real-time signals */
    int count = 0;
    for (int number = 1; number <= STANDARD; number++)
        count += sigismember(set, number) == 1;
    return count > STANDARD / 2;
}

/* A call that blocks most signals does not block the signal of the ticks. A call that blocks only
 * few signals blocks exactly these. */
EXPORTED int pthread_sigmask(int how, const sigset_t *set, sigset_t *before)
{
    sigset_t without_ticks;
    prepare();
    int number = hides_ticks && set && how != SIG_UNBLOCK ? sp_host_tick_signal() : 0;
    if (number && has_most_signals(set)) {
        without_ticks = *set;
        sigdelset(&without_ticks, number);
        set = &without_ticks;
    }
    return next.pthread_sigmask(how, set, before);
}

EXPORTED int sigprocmask(int how, const sigset_t *set, sigset_t *before)
{
    int error = pthread_sigmask(how, set, before);
    if (error)
        errno = error;
    return error ? -1 : 0;
}
