/* SPDX-License-Identifier: Apache-2.0 */
/* A host with signals of its own: SIGPROF before and after us, timers that send it, handlers that
 * ticks interrupt, signals in a storm. */
#include "hazard.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>

/* What the host's handler of SIGPROF saw. */
static struct {
    atomic_ulong from_itimer;   /* SI_KERNEL */
    atomic_ulong from_timer;    /* expirations of the host's POSIX timer */
    atomic_ulong from_threads;  /* tgkill */
    atomic_ulong foreign;       /* none of the host's own */
    atomic_ulong handler_burns; /* of the other handler */
} seen;

static int cookie;

static void handle_host_signal(int signal, siginfo_t *info, void *context)
{
    (void)signal;
    (void)context;
    if (info->si_code == SI_TIMER && info->si_value.sival_ptr == &cookie)
        atomic_fetch_add(&seen.from_timer, 1 + (unsigned long)info->si_overrun);
    else if (info->si_code == SI_KERNEL)
        atomic_fetch_add(&seen.from_itimer, 1);
    else if (info->si_code == SI_TKILL && info->si_pid == getpid())
        atomic_fetch_add(&seen.from_threads, 1);
    else
        atomic_fetch_add(&seen.foreign, 1);
}

static void install(int signal, void (*handler)(int, siginfo_t *, void *), int flags)
{
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | flags};
    CHECK_EQUAL(sigaction(signal, &action, NULL), 0);
}

static void check_installed(void (*handler)(int, siginfo_t *, void *))
{
    struct sigaction now;
    CHECK_EQUAL(sigaction(SIGPROF, NULL, &now), 0);
    CHECK(now.sa_sigaction == handler);
}

/* --- the host's timers ------------------------------------------------------------------------ */

typedef struct host_timer {
    timer_t timer;
    double before_start, after_start;
} host_timer;

/* 1,000 signals a second to the process. */
static host_timer start_host_timer(void)
{
    host_timer host = {.before_start = hazard_now()};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGPROF};
    event.sigev_value.sival_ptr = &cookie;
    CHECK_EQUAL(timer_create(CLOCK_MONOTONIC, &event, &host.timer), 0);
    struct itimerspec each = {{0, 1000000}, {0, 1000000}};
    CHECK_EQUAL(timer_settime(host.timer, 0, &each, NULL), 0);
    host.after_start = hazard_now();
    return host;
}

/* Whether all expirations so far have come, but for the last, which may be on its way. */
static bool is_complete(const host_timer *host)
{
    double shortest = hazard_now() - host->after_start;
    return (double)atomic_load(&seen.from_timer) >= shortest * 1000 - 2;
}

/* Every expiration is in a signal or in its overrun, so they can be counted. On a busy machine some
 * are late, but what has been lost never comes: the count is complete at some moment, or something
 * was lost. */
static void end_host_timer(const host_timer *host)
{
    HAZARD_WORK_UNTIL(is_complete(host));
    unsigned long came = atomic_load(&seen.from_timer);
    timer_delete(host->timer);
    double longest = hazard_now() - host->before_start;
    (void)fprintf(stderr, "   %lu expirations in %.3f s\n", came, longest);
    CHECK((double)came <= longest * 1000 + 1);
}

static int hosts_posix_timer_keeps_its_signals(void)
{
    install(SIGPROF, handle_host_signal, SA_RESTART);
    hazard_start(1000);
    host_timer host = start_host_timer();
    SPANPROF_SPAN("between the host's signals")
        hazard_burn_to_ticks(hazard_sized(0.1, 0.5), 50);
    end_host_timer(&host);
    hazard_stop();
    CHECK_EQUAL(atomic_load(&seen.foreign), 0);
    check_installed(handle_host_signal);
    return 0;
}

/* The kernel merges signals that setitimer sends while one is pending, with or without us: half of
 * them is plenty, and a busy machine may merge more. */
static int hosts_itimer_keeps_its_signals(void)
{
    struct itimerval each = {{0, 20000}, {0, 20000}}, none = {{0, 0}, {0, 0}};
    install(SIGPROF, handle_host_signal, SA_RESTART);
    CHECK_EQUAL(setitimer(ITIMER_PROF, &each, NULL), 0);
    hazard_start(1000);
    double seconds = hazard_sized(0.3, 1);
    SPANPROF_SPAN("between the host's signals") {
        hazard_burn(seconds);
        hazard_enough("signals of the host's timer", (double)atomic_load(&seen.from_itimer),
                      seconds * 25);
        (void)fprintf(stderr, "   %lu signals in %.1f s\n", atomic_load(&seen.from_itimer),
                      seconds);
        HAZARD_WORK_UNTIL(atomic_load(&seen.from_itimer) >= 5);
        hazard_burn_to_ticks(0, hazard_many(20, 100, 100));
    }
    struct itimerval still;
    CHECK_EQUAL(getitimer(ITIMER_PROF, &still), 0);
    CHECK_EQUAL(still.it_interval.tv_usec, 20000);
    hazard_stop();
    CHECK_EQUAL(setitimer(ITIMER_PROF, &none, NULL), 0);
    CHECK_EQUAL(atomic_load(&seen.foreign), 0);
    check_installed(handle_host_signal);
    return 0;
}

/* --- a handler installed after ours ----------------------------------------------------------- */

static struct sigaction ours;

static void chain_to_ours(int signal, siginfo_t *info, void *context)
{
    if (info->si_code == SI_TIMER && info->si_value.sival_ptr == &cookie)
        atomic_fetch_add(&seen.from_timer, 1 + (unsigned long)info->si_overrun);
    else
        ours.sa_sigaction(signal, info, context);
}

static int handler_over_ours_that_passes_on(void)
{
    struct sigaction action = {.sa_sigaction = chain_to_ours,
                               .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
    hazard_start(1000);
    CHECK_EQUAL(sigaction(SIGPROF, NULL, &ours),
                0); /* a tick may come before the next call returns */
    CHECK_EQUAL(sigaction(SIGPROF, &action, NULL), 0);
    host_timer host = start_host_timer();
    SPANPROF_SPAN("below another handler")
        hazard_burn_to_ticks(hazard_sized(0.1, 0.5), 50);
    end_host_timer(&host);
    hazard_stop();
    check_installed(chain_to_ours); /* it is not ours to take away */
    hazard_burn(0.05);              /* and what it passes on is harmless after a stop */
    raise(SIGPROF);
    return 0;
}

/* It takes our ticks from us. That cannot be prevented; it is told, what is missing is
 * unattributed, and the host's work goes on. */
static int handler_over_ours_that_keeps_all(void)
{
    double seconds = hazard_sized(0.4, 1);
    hazard_start(1000);
    double cpu_before = hazard_process_cpu();
    SPANPROF_SPAN("ours")
        hazard_burn_to_ticks(seconds * 0.3, 1);
    install(SIGPROF, handle_host_signal, SA_RESTART);
    CHECK_EQUAL(spanprof_flush(60 * SECOND), SPANPROF_OK); /* a window without any tick begins */
    host_timer host = start_host_timer();
    SPANPROF_SPAN("theirs")
        hazard_burn(seconds * 0.7);
    end_host_timer(&host);
    double used = hazard_process_cpu() - cpu_before;
    CHECK_EQUAL(spanprof_flush(60 * SECOND), SPANPROF_OK);
    CHECK_EQUAL(hazard_awaited_warnings("has been replaced", 1), 1);
    spanprof_stats stats = hazard_stop();
    check_installed(handle_host_signal);
    double told = (double)stats.weights / 1000 + (double)stats.unattributed_ns / 1e9;
    (void)fprintf(stderr, "   %.3f s told of %.3f\n", told, used);
    /* Besides, the work of start and stop. One of the two parts would be missing by more than the
     * margin. */
    hazard_within("CPU time told", told, used - seconds * 0.05, used + seconds * 0.3,
                  seconds * 0.15 + hazard_steal());
    atomic_store(&seen.foreign, 0);
    hazard_burn(0.1);
    CHECK_EQUAL(atomic_load(&seen.foreign), 0);
    return 0;
}

/* --- storms ----------------------------------------------------------------------------------- */

static atomic_bool stopping;
static atomic_int target_tid;

static void forge(int code, void *value)
{
    siginfo_t info;
    memset(&info, 0, sizeof info);
    info.si_code = code;
    info.si_pid = getpid();
    info.si_value.sival_ptr = value;
    if (syscall(SYS_rt_tgsigqueueinfo, getpid(), atomic_load(&target_tid), SIGPROF, &info) != 0)
        CHECK(errno == EAGAIN || errno == EPERM);
}

/* The sampling signal, by every other way in which it may be sent, also while a tick runs: those
 * wait, for all signals are blocked in a tick. None of them may be taken for a tick. */
static void *raise_a_storm(void *unused)
{
    for (uintptr_t i = 0; !atomic_load(&stopping); i++) {
        if (i % 4 == 0)
            syscall(SYS_tgkill, getpid(), atomic_load(&target_tid), SIGPROF);
        else if (i % 4 == 1)
            forge(SI_QUEUE, (void *)i);
        else if (i % 4 == 2)
            forge(SI_TIMER, (void *)(i % 8 == 2 ? i : (uintptr_t)&i)); /* as if from a timer */
        else
            forge(SI_ASYNCIO, NULL);
        usleep(50); /* one that comes while another waits is merged with it */
    }
    return unused;
}

static int storm_of_the_sampling_signal(void)
{
    install(SIGPROF, handle_host_signal, SA_RESTART);
    hazard_start(10000);
    atomic_store(&target_tid, (int)syscall(SYS_gettid));
    pthread_t storm = hazard_thread(raise_a_storm, NULL);
    double before = hazard_process_cpu();
    SPANPROF_SPAN("stormy") {
        hazard_burn(hazard_sized(0.1, 0.5));
        /* How many arrive by then is a matter of how often the other thread gets a core. */
        HAZARD_WORK_UNTIL(atomic_load(&seen.from_threads) > 100 &&
                          atomic_load(&seen.foreign) > 100);
        hazard_burn_to_ticks(0, 21);
    }
    double cpu = hazard_process_cpu() - before;
    atomic_store(&stopping, true);
    pthread_join(storm, NULL);
    spanprof_stats stats = hazard_stop();
    (void)fprintf(stderr, "   %llu ticks, %lu by tgkill, %lu forged\n",
                  (unsigned long long)stats.ticks, atomic_load(&seen.from_threads),
                  atomic_load(&seen.foreign));
    /* No forged one weighs anything. */
    hazard_within("CPU time in weights", (double)stats.weights / 10000, 0, cpu * 1.2,
                  cpu * 0.3 + hazard_steal());
    return 0;
}

/* One in the other: a machine that is too slow for all of them would run out of stack. */
static _Atomic int handlers_running;

static void burn_in_other_handler(int signal, siginfo_t *info, void *context)
{
    (void)signal;
    (void)info;
    (void)context;
    atomic_fetch_add(&seen.handler_burns, 1);
    atomic_fetch_add(&handlers_running, 1);
    spin(0.0002); /* no call of ours: a handler may interrupt one, which may hold a lock */
    atomic_fetch_sub(&handlers_running, 1);
}

static void *interrupt_often(void *unused)
{
    while (!atomic_load(&stopping)) {
        if (atomic_load(&handlers_running) < 3)
            syscall(SYS_tgkill, getpid(), atomic_load(&target_tid), SIGUSR1);
        usleep(300);
    }
    return unused;
}

/* After some work with and without a span, each with handlers in between. */
static bool is_sampled_in_both(void)
{
    SPANPROF_SPAN("between handlers")
        spin(0.01);
    spin(0.01);
    spanprof_stats stats = hazard_flushed_stats();
    return stats.samples_linked > 10 && stats.samples_none > 0;
}

/* A host's handler is interrupted by ticks, and returns into code that is, too; it may interrupt
 * itself (SA_NODEFER). */
static int ticks_in_other_handlers(void)
{
    install(SIGUSR1, burn_in_other_handler, SA_NODEFER);
    hazard_start(10000);
    atomic_store(&target_tid, (int)syscall(SYS_gettid));
    pthread_t other = hazard_thread(interrupt_often, NULL);
    hazard_burn(hazard_sized(0.1, 0.6));
    HAZARD_WORK_UNTIL(atomic_load(&seen.handler_burns) > 10 && is_sampled_in_both());
    atomic_store(&stopping, true);
    pthread_join(other, NULL);
    hazard_stop();
    return 0;
}

/* --- another signal --------------------------------------------------------------------------- */

static int another_signal_by_option(void)
{
    spanprof_options options = SPANPROF_OPTIONS_INIT;
    options.exporter = "none";
    options.cpu_hz = 1000;
    options.signal = "SIGVTALRM";
    install(SIGPROF, handle_host_signal, SA_RESTART);
    hazard_start_with(&options);
    check_installed(handle_host_signal);
    host_timer host = start_host_timer();
    SPANPROF_SPAN("sampled by another signal")
        hazard_burn_to_ticks(hazard_sized(0.1, 0.3), 30);
    end_host_timer(&host);
    hazard_stop();
    CHECK_EQUAL(atomic_load(&seen.foreign), 0);
    hazard_burn(0.05);
    return 0;
}

int main(int argc, char **argv)
{
    static const hazard_case cases[] = {
        {"hosts_posix_timer_keeps_all_its_signals", hosts_posix_timer_keeps_its_signals, false},
        {"hosts_itimer_keeps_its_signals", hosts_itimer_keeps_its_signals, false},
        {"handler_over_ours_that_passes_on_works", handler_over_ours_that_passes_on, false},
        {"handler_over_ours_that_keeps_all_is_told", handler_over_ours_that_keeps_all, false},
        {"storm_of_the_sampling_signal_adds_no_tick", storm_of_the_sampling_signal, false},
        {"ticks_in_handlers_of_other_signals", ticks_in_other_handlers, false},
        {"another_signal_leaves_the_hosts_alone", another_signal_by_option, false},
    };
    return hazard_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
