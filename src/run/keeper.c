/* SPDX-License-Identifier: Apache-2.0 */
#include "run/keeper.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <spanprof/sdk.h>
#include "core/atomic.h"
#include "core/signal_mask_sig.h"
#include "run/process_span.h"
#include "run/run_signals.h"

/*
 *         the time is over, or hurry          end                    done
 *   WAITING ──────────────────► RUNNING ──────────────► ENDING ──────────────► ENDED
 *      │                                                                         │ ▲
 *      └──────────────────────────── end ────────────────────────────────────────┼─┘
 *      ▲                                                                         │
 *      ├───────────────────────── the exec has failed ───────────────────────────┤
 *      └──────── return, a new thread ──────── LEFT ◄──── leave, no thread ──────┘
 */
enum { WAITING, RUNNING, ENDING, ENDED, LEFT };

/* The bits of an exit code that reach the parent process. */
enum { EXIT_CODE_BITS = 0xff };

/* A forked child that lives this long is profiled. Most children call exec earlier. */
static const struct timespec child_waits = {.tv_nsec = 20 * 1000 * 1000};
static const struct timespec keeper_takes = {.tv_sec = 5};

static struct {
    _Atomic uint32_t state;
    _Atomic uint32_t has_span; /* 1: the keeper has begun the span, and not ended it. With
                                  for_signals the recording of the program is in its place. */
    _Atomic pid_t process;     /* the process that has the keeper's thread; 0: none */
    _Atomic int signal;        /* the signal that ends the process after the span; 0: none */
    _Atomic int code;          /* the exit code plus 1; 0: none, or not known */
    bool for_signals;          /* the program uses spanprof itself; constant since the start */
    pthread_t thread;
} keeper;

/* Wait until the state is not VALUE, for TIME at most; NULL: without a limit. May return early. */
static void wait_while(uint32_t value, const struct timespec *time)
{
    syscall(SYS_futex, &keeper.state, FUTEX_WAIT_PRIVATE, value, time, NULL, 0);
}

static bool change(uint32_t from, uint32_t to)
{
    bool changed = atomic_compare_exchange_strong(&keeper.state, &from, to);
    if (changed)
        syscall(SYS_futex, &keeper.state, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
    return changed;
}

/* Wait until the span of a forked child shall begin, or that of a process whose exec failed, or
 * that after sp_keeper_leave. */
static void wait_until_time_is_over(void)
{
    wait_while(WAITING, &child_waits);
    change(WAITING, RUNNING);
}

static void begin(void)
{
    sp_process_span_begin_late();
    atomic_store(&keeper.has_span, 1);
    syscall(SYS_futex, &keeper.has_span, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

static void end(void)
{
    bool has_span = atomic_exchange(&keeper.has_span, 0);
    if (has_span && keeper.for_signals)
        sp_process_stop();
    else if (has_span)
        sp_process_span_end(atomic_load(&keeper.code) - 1);
    change(ENDING, ENDED);
    int number = atomic_exchange(&keeper.signal, 0);
    if (number)
        sp_run_end_by(number);
}

static void *keep(void *unused)
{
    (void)unused;
    spanprof_thread_exclude();
    for (;;) {
        uint32_t state = atomic_load(&keeper.state);
        if (state == WAITING)
            wait_until_time_is_over();
        else if (state == RUNNING && !atomic_load(&keeper.has_span))
            begin();
        else if (state == ENDING)
            end();
        else if (state == LEFT)
            return NULL;
        else
            wait_while(state, NULL);
    }
}

/* Start the keeper with all signals blocked, because signals are for the program's threads. */
static void start_thread(void)
{
    uint64_t before = sp_signal_mask_set(SP_SIGNALS_ALL);
    if (pthread_create(&keeper.thread, NULL, keep, NULL) == 0)
        atomic_store(&keeper.process, getpid());
    sp_signal_mask_set(before);
}

/* With for_signals there is no span to wait for. */
static void reset_state(void)
{
    atomic_store(&keeper.has_span, keeper.for_signals);
    atomic_store(&keeper.state, keeper.for_signals ? RUNNING : WAITING);
}

static void start_in_child(void)
{
    atomic_store(&keeper.process, 0);
    reset_state();
    atomic_store(&keeper.signal, 0);
    atomic_store(&keeper.code, 0);
    start_thread();
}

static void exit_with(int code, void *unused)
{
    (void)unused;
    sp_keeper_exit(code);
}

void sp_keeper_take_exit_code(void)
{
    if (atomic_load(&keeper.process) == getpid())
        on_exit(exit_with, NULL);
}

void sp_keeper_start(void)
{
    if (!sp_process_span_begin())
        return;
    atomic_store(&keeper.has_span, 1);
    atomic_store(&keeper.state, RUNNING);
    start_thread();
    pthread_atfork(NULL, NULL, start_in_child);
    atexit(sp_keeper_end);
    at_quick_exit(sp_keeper_end);
}

void sp_keeper_start_for_signals(void)
{
    keeper.for_signals = true;
    reset_state();
    start_thread();
    pthread_atfork(NULL, NULL, start_in_child);
}

/* Wait while WORD is VALUE, 5 seconds at most. */
static void wait_for_change(_Atomic uint32_t *word, uint32_t value)
{
    struct timespec now, until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += keeper_takes.tv_sec;
    while (atomic_load(word) == value) {
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (now.tv_sec > until.tv_sec ||
            (now.tv_sec == until.tv_sec && now.tv_nsec >= until.tv_nsec))
            return;
        syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, &keeper_takes, NULL, 0);
    }
}

void sp_keeper_hurry(void)
{
    int error = errno;
    if (atomic_load(&keeper.process) == getpid()) {
        change(WAITING, RUNNING);
        if (atomic_load(&keeper.state) == RUNNING)
            wait_for_change(&keeper.has_span, 0);
    }
    errno = error;
}

/* In a process without a keeper errno is not read, because a child of clone(CLONE_VM) may have no
 * thread-local storage. */
void sp_keeper_end_for_signal(void)
{
    if (atomic_load(&keeper.process) != getpid())
        return;
    int error = errno;
    if (!change(WAITING, ENDED)) {
        change(RUNNING, ENDING);
        wait_for_change(&keeper.state, ENDING);
    }
    errno = error;
}

void sp_keeper_end(void)
{
    if (!keeper.for_signals)
        sp_keeper_end_for_signal();
}

void sp_keeper_exit(int code)
{
    if (atomic_load(&keeper.process) == getpid())
        atomic_store(&keeper.code, (code & EXIT_CODE_BITS) + 1);
    sp_keeper_end();
}

bool sp_keeper_end_by(int number)
{
    if (atomic_load(&keeper.process) != getpid() || change(WAITING, ENDED) ||
        atomic_exchange(&keeper.signal, number) != 0)
        return false;
    change(RUNNING, ENDING);
    /* The keeper may have ended the span before it could see the signal. Then take the signal
     * back, and let the caller end the process. */
    return atomic_load(&keeper.state) != ENDED || atomic_exchange(&keeper.signal, 0) == 0;
}

void sp_keeper_resume(void)
{
    int error = errno;
    if (atomic_load(&keeper.process) == getpid())
        change(ENDED, WAITING);
    errno = error;
}

bool sp_keeper_leave(void)
{
    if (atomic_load(&keeper.process) != getpid())
        return false;
    sp_keeper_end();
    /* The threads of the program's own SDK stay: the program has to end them. */
    if (!change(keeper.for_signals ? RUNNING : ENDED, LEFT))
        return false;
    pthread_join(keeper.thread, NULL);
    atomic_store(&keeper.process, 0);
    return true;
}

void sp_keeper_return(void)
{
    int error = errno;
    reset_state();
    start_thread();
    errno = error;
}
