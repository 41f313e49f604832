/* SPDX-License-Identifier: Apache-2.0 */
/* The workload of the truth test: threads whose every span works in a function of its own, so that
 * a stack tells which span was active. What a sample should be linked to is written into the trace
 * id: "TRUT", function, thread, serial. Public API only.
 *
 *   truth_workload SECONDS THREADS [TICKS | waits]
 *
 * With `waits` the functions wait instead, in several ways, now for microseconds and now for
 * milliseconds: the truth of wall time.
 *
 * Prints one JSON line: the CPU time that the threads used, by their own clocks, and the SDK's
 * counters. truth_judge.py reads it together with the exported profiles. Consecutive spans of a
 * thread never use the same function: a stale link shows. */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <spanprof/spanprof.h>

enum { FUNCTIONS = 16, UNSAMPLED = 100, BETWEEN = 200, MAX_THREADS = 64 };

typedef struct worker {
    pthread_t thread;
    int index;
    uint64_t random;
    uint64_t serial;
    unsigned last_function;
    uint64_t cpu_ns;
    /* The mailbox through which the next worker's helper duties come. */
    pthread_mutex_t lock;
    spanprof_span span_to_end;
    spanprof_scope scope_to_detach;
    /* What its waits are for: nothing, ever, and a pipe that is fed again and again. */
    int never[2], fed[2], epoll;
} worker;

static worker workers[MAX_THREADS];
static int worker_count;
static atomic_bool stopping;
static atomic_bool fed_enough;
static bool waits;
static volatile uint64_t sink;

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t random_next(worker *self)
{
    self->random ^= self->random << 13;
    self->random ^= self->random >> 7;
    self->random ^= self->random << 17;
    return self->random;
}

/* Busy for about NS, in the caller's own frame. */
static inline __attribute__((always_inline)) void spin(uint64_t ns)
{
    uint64_t end = clock_ns(CLOCK_MONOTONIC) + ns, x = ns;
    do {
        for (int i = 0; i < 200; i++)
            x = x * 6364136223846793005u + 1442695040888963407u;
    } while (clock_ns(CLOCK_MONOTONIC) < end);
    sink = x;
}

/* Waits for about NS, in the way that the last bits say. All of a thread's waits of one kind are at
 * one pc, and mostly at one sp: only the caller tells one span's from another's. */
__attribute__((noinline)) static void wait_for(worker *self, uint64_t ns)
{
    struct timespec time = {.tv_sec = (time_t)(ns / 1000000000u),
                            .tv_nsec = (long)(ns % 1000000000u)};
    struct pollfd never = {.fd = self->never[0], .events = POLLIN};
    struct epoll_event event;
    uint32_t word = 0;
    char byte;
    switch (ns % 5) {
    case 0:
        nanosleep(&time, NULL);
        break;
    case 1:
        syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &time, NULL, 0);
        break;
    case 2:
        ppoll(&never, 1, &time, NULL);
        break;
    case 3:
        if (ns >= 1000000) { /* epoll knows milliseconds only */
            epoll_wait(self->epoll, &event, 1, (int)(ns / 1000000));
            break;
        }
        pselect(0, NULL, NULL, NULL, &time, NULL);
        break;
    default:
        if (read(self->fed[0], &byte, 1) != 1)
            abort();
    }
}

/* Keeps the compiler from merging functions that do the same, and from turning the call before it
 * into a jump. */
#define BE_DISTINCT(n) __asm__ volatile("" : : "i"(n) : "memory")

static void nested(worker *self, int depth);

/* Short waits and a few long ones, so that there are as many of them as time in them. */
static inline __attribute__((always_inline)) void spend(worker *self, uint64_t ns)
{
    if (waits)
        wait_for(self, ns % 16 ? ns : 50 * ns + ns % 5);
    else
        spin(ns);
}

#define SPAN_FUNCTION(k)                                                                           \
    __attribute__((noinline)) static void span_work_##k(worker *self, uint64_t ns, int depth)      \
    {                                                                                              \
        spend(self, ns / 2);                                                                       \
        if (depth > 0)                                                                             \
            nested(self, depth - 1);                                                               \
        spend(self, ns / 2);                                                                       \
        BE_DISTINCT(k);                                                                            \
    }
SPAN_FUNCTION(0)
SPAN_FUNCTION(1)
SPAN_FUNCTION(2)
SPAN_FUNCTION(3)
SPAN_FUNCTION(4)
SPAN_FUNCTION(5)
SPAN_FUNCTION(6)
SPAN_FUNCTION(7)
SPAN_FUNCTION(8)
SPAN_FUNCTION(9)
SPAN_FUNCTION(10)
SPAN_FUNCTION(11)
SPAN_FUNCTION(12)
SPAN_FUNCTION(13)
SPAN_FUNCTION(14)
SPAN_FUNCTION(15)

static void (*const span_functions[FUNCTIONS])(worker *, uint64_t, int) = {
    span_work_0,  span_work_1,  span_work_2,  span_work_3,  span_work_4,  span_work_5,
    span_work_6,  span_work_7,  span_work_8,  span_work_9,  span_work_10, span_work_11,
    span_work_12, span_work_13, span_work_14, span_work_15,
};

__attribute__((noinline)) static void unsampled_work(worker *self, uint64_t ns)
{
    spend(self, ns);
    BE_DISTINCT(__COUNTER__ + 100);
}

__attribute__((noinline)) static void between_work(worker *self, uint64_t ns)
{
    spend(self, ns);
    BE_DISTINCT(__COUNTER__ + 100);
}

/* Another thread may detach the scope at any moment of this: linked to its own span before, unknown
 * after. */
__attribute__((noinline)) static void foreign_detach_work(worker *self, uint64_t ns)
{
    spend(self, ns);
    BE_DISTINCT(__COUNTER__ + 100);
}

/* A remote parent whose trace id says which function and thread its child works in. */
static spanprof_context parent_for(worker *self, unsigned function, bool sampled)
{
    spanprof_context parent = {.remote = 1,
                               .trace_flags = sampled ? SPANPROF_TRACE_FLAG_SAMPLED : 0};
    uint16_t words[2] = {(uint16_t)function, (uint16_t)self->index};
    uint64_t serial = ++self->serial;
    memcpy(parent.trace_id, "TRUT", 4);
    memcpy(parent.trace_id + 4, words, 4);
    memcpy(parent.trace_id + 8, &serial, 8);
    memset(parent.span_id, 0xaa, 8);
    return parent;
}

static spanprof_span start_span(worker *self, unsigned function, bool sampled)
{
    spanprof_context parent = parent_for(self, function, sampled);
    spanprof_span_options options = SPANPROF_SPAN_OPTIONS_INIT;
    options.parent = &parent;
    return spanprof_span_start(NULL, "truth", &options);
}

static unsigned pick_function(worker *self)
{
    unsigned function = (unsigned)(random_next(self) % FUNCTIONS);
    if (function == self->last_function)
        function = (function + 1) % FUNCTIONS;
    self->last_function = function;
    return function;
}

static uint64_t pick_duration(worker *self)
{
    return 1000 + random_next(self) % 39000;
}

static void nested(worker *self, int depth)
{
    unsigned function = pick_function(self);
    spanprof_span span = start_span(self, function, true);
    spanprof_scope scope = spanprof_span_attach(span);
    span_functions[function](self, pick_duration(self), depth);
    spanprof_scope_detach(&scope);
    spanprof_span_end(span);
}

/* The outer scope is detached while the inner lives, and then once more. */
static void out_of_order(worker *self)
{
    unsigned outer_function = pick_function(self), inner_function = pick_function(self);
    spanprof_span outer = start_span(self, outer_function, true),
                  inner = start_span(self, inner_function, true);
    spanprof_scope outer_scope = spanprof_span_attach(outer);
    span_functions[outer_function](self, pick_duration(self), 0);
    spanprof_scope inner_scope = spanprof_span_attach(inner);
    span_functions[inner_function](self, pick_duration(self), 0);
    spanprof_scope copy = outer_scope;
    spanprof_scope_detach(&outer_scope);
    spanprof_span_end(outer);
    span_functions[inner_function](self, pick_duration(self), 0);
    spanprof_scope_detach(&copy); /* twice: nothing */
    span_functions[inner_function](self, pick_duration(self), 0);
    spanprof_scope_detach(&inner_scope);
    spanprof_span_end(inner);
    between_work(self, pick_duration(self)); /* the dead outer scope must not be active now */
}

/* The span is ended by another thread while it is active here: it stays active until its scope
 * ends. */
static void ended_elsewhere(worker *self)
{
    worker *other = &workers[(self->index + 1) % worker_count];
    unsigned function = pick_function(self);
    spanprof_span span = start_span(self, function, true);
    spanprof_scope scope = spanprof_span_attach(span);
    pthread_mutex_lock(&other->lock);
    spanprof_span before = other->span_to_end;
    other->span_to_end = span;
    pthread_mutex_unlock(&other->lock);
    spanprof_span_end(before);
    span_functions[function](self, 2 * pick_duration(self), 0);
    spanprof_scope_detach(&scope);
}

/* The other thread detaches our scope. It is the outer one's turn again when we next switch. */
static void detached_elsewhere(worker *self)
{
    worker *other = &workers[(self->index + 1) % worker_count];
    unsigned function = pick_function(self);
    spanprof_span span = start_span(self, function, true);
    spanprof_scope scope = spanprof_span_attach(span), copy = scope;
    pthread_mutex_lock(&other->lock);
    other->scope_to_detach = scope;
    pthread_mutex_unlock(&other->lock);
    foreign_detach_work(self, 4 * pick_duration(self));
    spanprof_scope_detach(&copy); /* or ours, when the other was not there in time */
    spanprof_span_end(span);
}

static void unsampled(worker *self)
{
    spanprof_span span = start_span(self, UNSAMPLED, false);
    spanprof_scope scope = spanprof_span_attach(span);
    unsampled_work(self, pick_duration(self));
    spanprof_scope_detach(&scope);
    spanprof_span_end(span);
}

/* Two spans take turns every 20 us; both wait in the same way, at the same pc and sp. */
static void alternating(worker *self)
{
    unsigned functions[2] = {pick_function(self), 0};
    functions[1] = pick_function(self);
    spanprof_span spans[2] = {start_span(self, functions[0], true),
                              start_span(self, functions[1], true)};
    for (int turn = 0; turn < 40; turn++) {
        spanprof_scope scope = spanprof_span_attach(spans[turn % 2]);
        span_functions[functions[turn % 2]](self, 20002 + 2 * (uint64_t)(turn / 2 % 5), 0);
        spanprof_scope_detach(&scope);
    }
    spanprof_span_end(spans[0]);
    spanprof_span_end(spans[1]);
}

/* A context that another thread may have made, attached as plain data; the span is long ended. */
static void carried(worker *self)
{
    unsigned function = pick_function(self);
    spanprof_span span = start_span(self, function, true);
    spanprof_context context = spanprof_span_context(span);
    spanprof_span_end(span);
    spanprof_scope scope = spanprof_context_attach(&context);
    span_functions[function](self, pick_duration(self), 1);
    spanprof_scope_detach(&scope);
}

static void serve_mailbox(worker *self)
{
    pthread_mutex_lock(&self->lock);
    spanprof_span span = self->span_to_end;
    spanprof_scope scope = self->scope_to_detach;
    memset(&self->span_to_end, 0, sizeof self->span_to_end);
    memset(&self->scope_to_detach, 0, sizeof self->scope_to_detach);
    pthread_mutex_unlock(&self->lock);
    if (span.slot)
        spanprof_span_end(span);
    if (scope.serial)
        spanprof_scope_detach(&scope);
}

static void *work(void *argument)
{
    worker *self = argument;
    char name[16];
    snprintf(name, sizeof name, "truth-%d", self->index);
    pthread_setname_np(pthread_self(), name);
    if (waits)
        prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
    uint64_t before = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    while (!atomic_load(&stopping)) {
        serve_mailbox(self);
        switch (random_next(self) % 9) {
        case 0:
            out_of_order(self);
            break;
        case 1:
            ended_elsewhere(self);
            break;
        case 2:
            detached_elsewhere(self);
            break;
        case 3:
            unsampled(self);
            break;
        case 4:
            carried(self);
            break;
        case 5:
            alternating(self);
            break;
        default:
            nested(self, (int)(random_next(self) % 4));
        }
        between_work(self, pick_duration(self));
    }
    self->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - before;
    return NULL;
}

static void print_result(const char *engine, uint64_t cpu_ns)
{
    spanprof_stats stats = SPANPROF_STATS_INIT;
    spanprof_stats_get(&stats);
    printf("{\"visits\":%llu,\"unmoved\":%llu,\"visits_linked\":%llu,\"visits_none\":%llu,\"visits_"
           "unknown\":%llu,"
           "\"discarded\":%llu,\"visits_dropped\":%llu,\"wall\":%d,",
           (unsigned long long)stats.visits, (unsigned long long)stats.visits_unmoved,
           (unsigned long long)stats.visits_linked, (unsigned long long)stats.visits_none,
           (unsigned long long)stats.visits_unknown, (unsigned long long)stats.visits_discarded,
           (unsigned long long)stats.dropped_visits, stats.wall_reason[0] == 0);
    printf("\"engine\":\"%s\",\"cpu_ns\":%llu,\"ticks\":%llu,\"weights\":%llu,\"linked\":%llu,"
           "\"none\":%llu,"
           "\"unknown\":%llu,"
           "\"ring_full\":%llu,\"memory\":%llu,\"small_stack\":%llu,\"unattributed_ns\":%llu,"
           "\"incomplete\":%llu,"
           "\"truncated\":%llu,"
           "\"foreign\":%llu,\"dead_scope\":%llu}\n",
           engine, (unsigned long long)cpu_ns, (unsigned long long)stats.ticks,
           (unsigned long long)stats.weights, (unsigned long long)stats.samples_linked,
           (unsigned long long)stats.samples_none, (unsigned long long)stats.samples_unknown,
           (unsigned long long)stats.dropped_samples_ring_full,
           (unsigned long long)stats.dropped_samples_memory,
           (unsigned long long)stats.dropped_samples_small_stack,
           (unsigned long long)stats.unattributed_ns, (unsigned long long)stats.stacks_incomplete,
           (unsigned long long)stats.stacks_truncated,
           (unsigned long long)stats.misuse_foreign_scope,
           (unsigned long long)stats.misuse_dead_scope);
}

/* Each byte ends a wait. */
static void *feed(void *unused)
{
    (void)unused;
    struct timespec pause = {.tv_nsec = 300000};
    while (!atomic_load(&fed_enough)) {
        for (int i = 0; i < worker_count; i++)
            if (write(workers[i].fed[1], "", 1) != 1 && errno != EAGAIN)
                abort();
        nanosleep(&pause, NULL);
    }
    return NULL;
}

static void init_worker(int index)
{
    worker *self = &workers[index];
    self->index = index;
    self->random = 0x9e3779b97f4a7c15u * (uint64_t)(index + 1);
    pthread_mutex_init(&self->lock, NULL);
    self->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (self->epoll < 0 || pipe(self->never) != 0 || pipe2(self->fed, O_CLOEXEC) != 0 ||
        fcntl(self->fed[1], F_SETFL, O_NONBLOCK) != 0)
        abort();
}

/* For SECONDS, and then until there are TICKS: on a machine that is busy with other things they
 * take longer. Ten times as long is too long. */
static void wait_for_work(double seconds, uint64_t ticks)
{
    spanprof_stats stats = SPANPROF_STATS_INIT;
    uint64_t begin = clock_ns(CLOCK_MONOTONIC), end = begin + (uint64_t)(seconds * 1e9),
             give_up = begin + (uint64_t)(seconds * 1e10), now = begin;
    while (now < end || (now < give_up && stats.ticks < ticks)) {
        struct timespec pause = {.tv_nsec = 20000000};
        nanosleep(&pause, NULL);
        spanprof_stats_get(&stats);
        now = clock_ns(CLOCK_MONOTONIC);
    }
}

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? atof(argv[1]) : 5;
    uint64_t ticks = argc > 3 ? strtoull(argv[3], NULL, 10) : 0;
    worker_count = argc > 2 ? atoi(argv[2]) : 8;
    if (worker_count < 2 || worker_count > MAX_THREADS || seconds <= 0) {
        fprintf(stderr, "usage: truth_workload SECONDS THREADS (2 to %d) [TICKS | waits]\n",
                MAX_THREADS);
        return 2;
    }
    spanprof_error error;
    if (spanprof_start(NULL, &error) != SPANPROF_OK) {
        fprintf(stderr, "spanprof_start: %s\n", error.message);
        return 1;
    }
    waits = argc > 3 && strcmp(argv[3], "waits") == 0;
    for (int i = 0; i < worker_count; i++)
        init_worker(i);
    pthread_t feeder;
    pthread_create(&feeder, NULL, feed, NULL);
    for (int i = 0; i < worker_count; i++)
        pthread_create(&workers[i].thread, NULL, work, &workers[i]);
    wait_for_work(seconds, ticks);
    atomic_store(&stopping, true);
    uint64_t cpu_ns = 0;
    for (int i = 0; i < worker_count; i++) {
        pthread_join(workers[i].thread, NULL);
        cpu_ns += workers[i].cpu_ns;
    }
    atomic_store(&fed_enough, true);
    pthread_join(feeder, NULL);
    spanprof_stats running = SPANPROF_STATS_INIT; /* the engine's name, while there is one */
    spanprof_stats_get(&running);
    spanprof_stop(60000000000u);
    print_result(running.engine, cpu_ns);
    return 0;
}
