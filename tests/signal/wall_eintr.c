/* SPDX-License-Identifier: Apache-2.0 */
/* No system call of the application ends sooner for wall time: threads wait in every way that a
 * signal would break, with spans active, and each call has to come back without EINTR, and a
 * timeout not before its time. Public API only.
 *
 *   wall_eintr SECONDS THREADS [signals | ticks]
 *
 * The same threads wait first without the SDK, for a fourth of the time, and again for all of it
 * when something went wrong with the SDK. What happens there, too, is the machine's. So it is
 * broken (tests/verdict.py) that a kind of call is interrupted, fails, or ends much too early with
 * the SDK and not without; the rest is unsure.
 *
 * `signals` sends a signal to the threads as other profilers do; the program has to be broken then,
 * or it would prove nothing.
 *
 * `ticks` asks the same of CPU ticks: no tick may end a call, as timers promise. With
 * SPANPROF_ENGINE=perf the program has to be broken. */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/io_uring.h>
#include <linux/time_types.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <spanprof/spanprof.h>
#include "verdict.h"

#define NS_PER_S  1000000000ull
#define NS_PER_MS 1000000ull
enum { THREADS_MAX = 1000, WAIT_MS_MAX = 40, FEED_MS = 7, CONTROL_PART = 4 };

/* Clocks that are set or slewed explain that a timeout ends so much early. */
#define CLOCKS_REACH_NS NS_PER_MS

/* Until the signals of `signals` have cut a call short. */
enum { SIGNALS_PATIENCE_S = 100 };

typedef struct waiter {
    pthread_t thread;
    struct kind *kind;
    uint64_t random;
    int pipe[2], sockets[2], epoll, ring;
    sem_t semaphore;
    pthread_mutex_t mutex;
    pthread_cond_t condition;
} waiter;

/* Waits for MS and returns 0 when the time is over, which is what should happen, an errno
 * otherwise. */
typedef int wait_function(waiter *self, unsigned ms);

/* What became of the calls of a kind. */
typedef struct outcome {
    atomic_ullong calls, interrupted, wrong;
    atomic_ullong early;          /* by more than CLOCKS_REACH_NS */
    atomic_ullong slightly_early; /* by less */
    atomic_ullong ticked;         /* interrupted or early, and a CPU tick came meanwhile */
} outcome;

typedef struct kind {
    const char *name;
    wait_function *wait;
    bool has_no_timeout;
    bool counts_jiffies; /* the kernel keeps this timeout in jiffies */
    outcome without, with;
} kind;

/* Threads write what becomes of their calls here. */
static bool is_control = true;

static outcome *outcome_of(kind *k)
{
    return is_control ? &k->without : &k->with;
}

/* CPU ticks are signals: they come while a thread works, and its way into a call is work, too. A
 * call that one has hit is told apart. */
static struct sigaction sdk_action;
static _Thread_local volatile unsigned ticks;
static bool judges_ticks; /* mode `ticks`: such a call counts as interrupted */

static waiter *waiters;
static int waiter_count;
static atomic_bool stopping;

static uint64_t read_clock(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

static uint64_t now_ns(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

static struct timespec timespec_of(uint64_t ns)
{
    return (struct timespec){.tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S)};
}

/* A deadline by the real-time clock, for calls that know no other. */
static struct timespec real_time_in(unsigned ms)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return timespec_of((uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec + ms * NS_PER_MS);
}

static int wait_epoll(waiter *self, unsigned ms)
{
    struct epoll_event event;
    return epoll_wait(self->epoll, &event, 1, (int)ms) < 0 ? errno : 0;
}

static int wait_poll(waiter *self, unsigned ms)
{
    struct pollfd descriptor = {.fd = self->sockets[0], .events = POLLIN};
    return poll(&descriptor, 1, (int)ms) < 0 ? errno : 0;
}

static int wait_select(waiter *self, unsigned ms)
{
    (void)self;
    struct timeval time = {.tv_usec = (long)ms * 1000};
    return select(0, NULL, NULL, NULL, &time) < 0 ? errno : 0;
}

static int wait_nanosleep(waiter *self, unsigned ms)
{
    (void)self;
    struct timespec time = timespec_of(ms * NS_PER_MS);
    return nanosleep(&time, NULL) < 0 ? errno : 0;
}

static int wait_recv(waiter *self, unsigned ms)
{
    char byte;
    struct timeval time = {.tv_usec = (long)ms * 1000};
    setsockopt(self->sockets[0], SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
    return recv(self->sockets[0], &byte, 1, 0) < 0 && errno != EAGAIN ? errno : 0;
}

static int wait_semaphore(waiter *self, unsigned ms)
{
    struct timespec until = real_time_in(ms);
    return sem_timedwait(&self->semaphore, &until) < 0 && errno != ETIMEDOUT ? errno : 0;
}

static int wait_futex(waiter *self, unsigned ms)
{
    (void)self;
    uint32_t word = 0;
    struct timespec time = timespec_of(ms * NS_PER_MS);
    long result = syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &time, NULL, 0);
    return result < 0 && errno != ETIMEDOUT ? errno : 0;
}

/* Woken for no reason is allowed, so it waits until the time is over. */
static int wait_condition(waiter *self, unsigned ms)
{
    struct timespec until = timespec_of(now_ns() + ms * NS_PER_MS);
    int error = 0;
    pthread_mutex_lock(&self->mutex);
    while (error == 0)
        error = pthread_cond_timedwait(&self->condition, &self->mutex, &until);
    pthread_mutex_unlock(&self->mutex);
    return error == ETIMEDOUT ? 0 : error;
}

/* Fed by the main thread. */
static int wait_pipe(waiter *self, unsigned ms)
{
    (void)ms;
    char byte;
    return read(self->pipe[0], &byte, 1) < 0 ? errno : 0;
}

static int wait_signal(waiter *self, unsigned ms)
{
    (void)self;
    sigset_t never;
    sigemptyset(&never);
    sigaddset(&never, SIGUSR2);
    struct timespec time = timespec_of(ms * NS_PER_MS);
    return sigtimedwait(&never, NULL, &time) < 0 && errno != EAGAIN ? errno : 0;
}

static int wait_ring(waiter *self, unsigned ms)
{
    struct __kernel_timespec time = {.tv_nsec = (long long)(ms * NS_PER_MS)};
    struct io_uring_getevents_arg argument = {.ts = (uint64_t)(uintptr_t)&time};
    long result =
        syscall(SYS_io_uring_enter, self->ring, 0, 1, IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG,
                &argument, sizeof argument);
    return result < 0 && errno != ETIME ? errno : 0;
}

static kind kinds[] = {
    {.name = "epoll_wait", .wait = wait_epoll},
    {.name = "poll", .wait = wait_poll},
    {.name = "select", .wait = wait_select},
    {.name = "nanosleep", .wait = wait_nanosleep},
    {.name = "recv", .wait = wait_recv, .counts_jiffies = true},
    {.name = "sem_timedwait", .wait = wait_semaphore},
    {.name = "futex", .wait = wait_futex},
    {.name = "cond_timedwait", .wait = wait_condition},
    {.name = "read", .wait = wait_pipe, .has_no_timeout = true},
    {.name = "sigtimedwait", .wait = wait_signal},
    {.name = "io_uring_enter", .wait = wait_ring}, /* the last: left out where it is refused */
};
static size_t kind_count = sizeof kinds / sizeof *kinds;

static int open_ring(void)
{
    struct io_uring_params parameters = {0};
    int fd = (int)syscall(SYS_io_uring_setup, 1, &parameters);
    if (fd >= 0 && parameters.features & IORING_FEAT_EXT_ARG)
        return fd;
    if (fd >= 0) {
        close(fd);
        errno = ENOSYS;
    }
    return -1;
}

static void must(bool holds, const char *what)
{
    if (holds)
        return;
    perror(what);
    exit(1);
}

static void init_waiter(waiter *self, int index)
{
    pthread_condattr_t monotonic;
    struct epoll_event event = {.events = EPOLLIN};
    self->random = 0x9e3779b97f4a7c15u * (uint64_t)(index + 1);
    self->kind = &kinds[(size_t)index % kind_count];
    must(pipe(self->pipe) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, self->sockets) == 0, "pipe");
    self->epoll = epoll_create1(EPOLL_CLOEXEC);
    must(epoll_ctl(self->epoll, EPOLL_CTL_ADD, self->sockets[0], &event) == 0, "epoll_ctl");
    self->ring = self->kind->wait == wait_ring ? open_ring() : -1;
    sem_init(&self->semaphore, 0, 0);
    pthread_mutex_init(&self->mutex, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&self->condition, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

/* Jiffies are late while the host holds the core that counts them, and then catch up at once: a
   timeout that is kept in jiffies ends early by as much, to the monotonic clock (35 ms were seen,
   in a program with no profiler). The coarse clock is advanced with them, so it is the one to hold
   such a timeout against; it may be one jiffy behind when the timeout ends. */
static int wait_and_measure(waiter *self, unsigned ms, uint64_t *early_ns)
{
    const kind *k = self->kind;
    clockid_t clock = k->counts_jiffies ? CLOCK_MONOTONIC_COARSE : CLOCK_MONOTONIC;
    struct timespec jiffy = {0};
    if (k->counts_jiffies)
        clock_getres(clock, &jiffy);
    uint64_t begin_ns = read_clock(clock);
    int error = k->wait(self, ms);
    uint64_t took_ns = read_clock(clock) - begin_ns + (uint64_t)jiffy.tv_nsec;
    *early_ns = !k->has_no_timeout && took_ns < ms * NS_PER_MS ? ms * NS_PER_MS - took_ns : 0;
    return error;
}

/* io_uring_enter runs a timer's work inside the call, so a tick may end it with every engine. */
static bool excuses_ticks(const kind *k)
{
    return !judges_ticks || k->wait == wait_ring;
}

static void wait_once(waiter *self)
{
    self->random = self->random * 6364136223846793005u + 1442695040888963407u;
    unsigned ms = 1 + (unsigned)(self->random >> 33) % WAIT_MS_MAX, ticks_before = ticks;
    uint64_t early_ns;
    int error = wait_and_measure(self, ms, &early_ns);
    outcome *o = outcome_of(self->kind);
    atomic_fetch_add(&o->calls, 1);
    if ((error == EINTR || early_ns) && ticks != ticks_before && excuses_ticks(self->kind))
        atomic_fetch_add(&o->ticked, 1);
    else if (error == EINTR)
        atomic_fetch_add(&o->interrupted, 1);
    else if (error)
        atomic_fetch_add(&o->wrong, 1);
    else if (early_ns)
        atomic_fetch_add(early_ns > CLOCKS_REACH_NS ? &o->early : &o->slightly_early, 1);
}

static void *run(void *argument)
{
    waiter *self = argument;
    while (!atomic_load(&stopping))
        SPANPROF_SPAN("waiting")
            wait_once(self);
    return NULL;
}

static void handle(int signal)
{
    (void)signal;
}

static void count_tick(int signal, siginfo_t *info, void *context)
{
    ticks++;
    sdk_action.sa_sigaction(signal, info, context);
}

/* In front of the SDK's handler. */
static void watch_ticks(void)
{
    sigaction(SIGPROF, NULL, &sdk_action);
    struct sigaction action = sdk_action;
    action.sa_sigaction = count_tick;
    if (sdk_action.sa_flags & SA_SIGINFO)
        sigaction(SIGPROF, &action, NULL);
}

static void send_signals(void)
{
    for (int i = 0; i < waiter_count; i++)
        pthread_kill(waiters[i].thread, SIGUSR1);
}

static void feed_pipes(void)
{
    for (int i = 0; i < waiter_count; i++)
        must(write(waiters[i].pipe[1], "", 1) == 1 || errno == EAGAIN, "write");
}

static bool is_any_interrupted(void)
{
    for (size_t i = 0; i < kind_count; i++)
        if (atomic_load(&kinds[i].with.interrupted) > 0)
            return true;
    return false;
}

static bool goes_on(uint64_t start_ns, double seconds, bool signals)
{
    double passed = (double)(now_ns() - start_ns) / (double)NS_PER_S;
    return passed < seconds || (signals && passed < SIGNALS_PATIENCE_S && !is_any_interrupted());
}

/* Pipes are fed until all have ended: a thread may be waiting for its next byte. */
static void run_for(double seconds, bool signals)
{
    struct timespec pause = timespec_of(FEED_MS * NS_PER_MS);
    atomic_store(&stopping, false);
    for (int i = 0; i < waiter_count; i++)
        must(pthread_create(&waiters[i].thread, NULL, run, &waiters[i]) == 0, "pthread_create");
    uint64_t start_ns = now_ns();
    while (goes_on(start_ns, seconds, signals)) {
        feed_pipes();
        if (signals)
            send_signals();
        nanosleep(&pause, NULL);
    }
    atomic_store(&stopping, true);
    feed_pipes();
    for (int i = 0; i < waiter_count; i++)
        pthread_join(waiters[i].thread, NULL);
}

static void print_outcome(const char *name, const char *run, const outcome *o)
{
    printf("%-15s %-7s %8llu calls: %llu EINTR, %llu early, %llu slightly early, %llu failed, "
           "%llu cut short by a CPU tick\n",
           name, run, o->calls, o->interrupted, o->early, o->slightly_early, o->wrong, o->ticked);
}

/* COUNT calls of KIND went wrong, and CONTROL without the SDK. Returns whether the SDK is to blame.
 */
static bool judge_count(const char *kind, const char *what, unsigned long long count,
                        unsigned long long control)
{
    if (count == 0)
        return false;
    if (control > 0) {
        verdict_unsure("%s: %llu %s, and %llu without the SDK", kind, count, what, control);
        return false;
    }
    printf("BROKEN: %s: %llu %s, and none without the SDK\n", kind, count, what);
    return true;
}

static bool judge_kind(const kind *k)
{
    bool broken = judge_count(k->name, "interrupted", k->with.interrupted, k->without.interrupted);
    broken |= judge_count(k->name, "early", k->with.early, k->without.early);
    broken |= judge_count(k->name, "failed", k->with.wrong, k->without.wrong);
    if (k->with.slightly_early > 0)
        verdict_unsure("%s: %llu early by less than clocks explain", k->name,
                       k->with.slightly_early);
    return broken;
}

static bool is_any_wrong(void)
{
    for (size_t i = 0; i < kind_count; i++) {
        const outcome *with = &kinds[i].with;
        if (with->interrupted + with->early + with->wrong > 0)
            return true;
    }
    return false;
}

static bool judge_calls(void)
{
    bool broken = false;
    for (size_t i = 0; i < kind_count; i++) {
        print_outcome(kinds[i].name, "without", &kinds[i].without);
        print_outcome(kinds[i].name, "with", &kinds[i].with);
    }
    for (size_t i = 0; i < kind_count; i++)
        broken |= judge_kind(&kinds[i]);
    return broken;
}

static bool prepare(int argc, char **argv)
{
    waiter_count = argc >= 3 ? atoi(argv[2]) : 0;
    if (waiter_count < 1 || waiter_count > THREADS_MAX || atof(argv[1]) <= 0) {
        fprintf(stderr, "usage: wall_eintr SECONDS THREADS [signals | ticks]\n");
        return false;
    }
    int ring = open_ring();
    if (ring < 0) {
        printf("io_uring_enter is left out: %s\n", strerror(errno));
        kind_count--;
    } else {
        close(ring);
    }
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};
    sigaction(SIGUSR1, &action, NULL);
    sigset_t never;
    sigemptyset(&never);
    sigaddset(&never, SIGUSR2);
    sigprocmask(SIG_BLOCK, &never, NULL);
    waiters = calloc((size_t)waiter_count, sizeof *waiters);
    return waiters;
}

/* With the SDK. RUNNING gets the counters of the moment before the stop, which know the engine. */
static spanprof_stats run_sampled(double seconds, bool signals, spanprof_stats *running)
{
    spanprof_options options = SPANPROF_OPTIONS_INIT;
    spanprof_stats stats = SPANPROF_STATS_INIT;
    options.exporter = "none";
    must(spanprof_start(&options, NULL) == SPANPROF_OK, "spanprof_start");
    watch_ticks();
    is_control = false;
    run_for(seconds, signals);
    spanprof_stats_get(running);
    if (sdk_action.sa_flags & SA_SIGINFO)
        sigaction(SIGPROF, &sdk_action, NULL);
    spanprof_stop(20 * NS_PER_S);
    spanprof_stats_get(&stats);
    printf("%llu visits (%llu unmoved, %llu linked, %llu unknown), %llu ticks\n",
           (unsigned long long)stats.visits, (unsigned long long)stats.visits_unmoved,
           (unsigned long long)stats.visits_linked, (unsigned long long)stats.visits_unknown,
           (unsigned long long)stats.ticks);
    return stats;
}

/* The short form takes a tenth, but not less than a second. */
static double seconds_of(const char *argument)
{
    double full = atof(argument), sized = verdict_sized(full);
    return sized >= 1 ? sized : full < 1 ? full : 1;
}

/* Whether this machine can answer what mode `ticks` asks. */
static bool can_judge_ticks(const spanprof_stats *running)
{
    const char *asked = getenv("SPANPROF_ENGINE");
    printf("engine %s: %s\n", running->engine, running->engine_reason);
    if (asked && strcmp(asked, "perf") == 0 && strcmp(running->engine, "perf") != 0) {
        printf("SKIPPED: the engine perf is not allowed here\n");
        return false;
    }
    if (strstr(running->engine_reason, "on this kernel")) {
        printf(
            "SKIPPED: this kernel sends a timer's tick from the interrupt, and the SDK says so\n");
        return false;
    }
    return true;
}

static int judge_visits(const spanprof_stats *stats, double seconds)
{
    if (stats->wall_reason[0]) {
        printf("SKIPPED: no wall time here: %s\n", stats->wall_reason);
        return VERDICT_SKIPPED;
    }
    if (stats->visits < (uint64_t)(seconds * waiter_count))
        verdict_unsure("%llu visits are too few to prove anything",
                       (unsigned long long)stats->visits);
    return verdict_code(0);
}

int main(int argc, char **argv)
{
    if (!prepare(argc, argv))
        return 2;
    double seconds = seconds_of(argv[1]);
    bool signals = argc > 3 && strcmp(argv[3], "signals") == 0;
    spanprof_stats running = SPANPROF_STATS_INIT;
    judges_ticks = argc > 3 && strcmp(argv[3], "ticks") == 0;
    for (int i = 0; i < waiter_count; i++)
        init_waiter(&waiters[i], i);
    run_for(seconds / CONTROL_PART, false);
    spanprof_stats stats = run_sampled(seconds, signals, &running);
    if (judges_ticks && !can_judge_ticks(&running))
        return VERDICT_SKIPPED;
    if (is_any_wrong()) {
        is_control = true;
        run_for(seconds, false);
    }
    if (judge_calls())
        return VERDICT_BROKEN;
    return judges_ticks ? verdict_code(0) : judge_visits(&stats, seconds);
}
