/* SPDX-License-Identifier: Apache-2.0 */
/* What sampling steals from a thread that computes, as the thread sees it: it reads the time stamp
 * counter in a loop, and where two readings lie further apart than the loop takes, somebody else
 * ran. One run takes turns, in random order, between
 *
 *   nothing            the kernel's own interrupts, and what the machine's neighbours take
 *   sdk HZ             the SDK at 99 and at 1,000 Hz, or at HZ…; 27 frames a stack
 *   empty handler HZ   the same ticks from the same source (CPU timer, or perf event), whose
 * handler does nothing
 *
 * Gaps of 100 us and more are other threads on this core, and on a shared machine others' mostly:
 * told apart. Two figures come of the shorter ones. "ticks" is the sum of those in which a tick was
 * taken: the interrupt, the signal, the handler, the way back, and whatever else came in between,
 * so it is an upper bound (the engine `timer` rides on the kernel's periodic tick, which would have
 * come anyway). "all" is the sum of all short gaps, less that of "nothing" in the same round: the
 * caches that a tick leaves cold do not show in either, the machine's noise shows in the second.
 * Medians over the rounds.
 *
 *   bench_stolen [ROUNDS [SLOT_MS [HZ…]]]       SPANPROF_ENGINE chooses the engine */
#include <fcntl.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include <spanprof/spanprof.h>
#include "core/atomic.h"
#include "core/clock.h"
#include "core/compiler.h"
#include "context/thread.h"

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

enum {
    FRAMES = 26,
    ROUNDS_MAX = 1000,
    GAPS_MAX = 100000,
    SHORTEST_GAP_NS = 300,
    LONGEST_GAP_NS = 100000,
};

typedef enum slot_kind { NOTHING, SDK, EMPTY_HANDLER } slot_kind;

enum { RATES_MAX = 8, SLOTS_MAX = 1 + 2 * RATES_MAX };

static struct {
    slot_kind kind;
    uint32_t hz;
} slots[SLOTS_MAX]; /* the first is NOTHING */
static size_t slot_count = 1;

/* Shares of the slot in percent, ticks in it, and the median of the gaps with a tick (for
 * "nothing": of all short gaps). */
typedef struct measurement {
    double stolen, stolen_by_ticks, elsewhere, ticks, ns_a_gap;
} measurement;

static measurement measured[SLOTS_MAX][ROUNDS_MAX];
static double units_per_ns;
static uint64_t slot_ns = 500 * SP_NS_PER_MS;
static int rounds = 20;
static char engine[16];
static sp_thread *self;
static _Atomic uint64_t empty_ticks;
static _Atomic uint64_t *ticks_taken = &empty_ticks; /* on this thread, by what ticks now */
static uint64_t gaps[GAPS_MAX];
static cpu_set_t all_cores, core_of_round;

static int compare_gaps(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static inline uint64_t counter(void)
{
#if defined(__x86_64__)
    return __rdtsc();
#else
    return sp_clock_monotonic_ns();
#endif
}

static void learn_counter(void)
{
    uint64_t start_ns = sp_clock_monotonic_ns(), start = counter();
    while (sp_clock_monotonic_ns() - start_ns < 200 * SP_NS_PER_MS)
        ;
    units_per_ns = (double)(counter() - start) / (double)(sp_clock_monotonic_ns() - start_ns);
}

/* One core a round, for a change of cores would be a long gap, and cores differ. The
 * SDK's threads, which inherit their mask, are started outside of this: they may have the other
 * cores, as in an application. */
static void stay_on(const cpu_set_t *cores)
{
    syscall(SYS_sched_setaffinity, syscall(SYS_gettid), sizeof *cores, cores);
}

typedef struct gap_sums {
    uint64_t with_tick, without_tick, elsewhere, count, ticks;
} gap_sums;

static void add_gap(gap_sums *sums, uint64_t gap, bool is_long, bool wants_all)
{
    uint64_t ticks = sp_load_relaxed(ticks_taken);
    bool has_tick = ticks != sums->ticks;
    sums->ticks = ticks;
    if (is_long)
        sums->elsewhere += gap;
    else if (has_tick)
        sums->with_tick += gap;
    else
        sums->without_tick += gap;
    if (!is_long && (has_tick || wants_all) && sums->count < GAPS_MAX)
        gaps[sums->count++] = gap;
}

static void count_gaps(measurement *out, bool wants_all)
{
    uint64_t shortest = (uint64_t)(SHORTEST_GAP_NS * units_per_ns);
    uint64_t longest = (uint64_t)(LONGEST_GAP_NS * units_per_ns);
    uint64_t start = counter(), end = start + (uint64_t)((double)slot_ns * units_per_ns);
    uint64_t last = start, ticks_before = sp_load_relaxed(ticks_taken);
    gap_sums sums = {.ticks = ticks_before};
    while (last < end) {
        uint64_t now = counter(), gap = now - last;
        if (SP_UNLIKELY(gap > shortest)) {
            add_gap(&sums, gap, gap >= longest, wants_all);
            now = counter(); /* what noting it took is nobody's */
        }
        last = now;
    }
    double own = (double)(last - start - sums.elsewhere); /* this thread, or a tick on it, ran */
    out->stolen = 100 * (double)(sums.with_tick + sums.without_tick) / own;
    out->stolen_by_ticks = 100 * (double)sums.with_tick / own;
    out->elsewhere = 100 * (double)sums.elsewhere / (double)(last - start);
    out->ticks = (double)(sums.ticks - ticks_before);
    qsort(gaps, sums.count, sizeof gaps[0], compare_gaps);
    out->ns_a_gap = sums.count ? (double)gaps[sums.count / 2] / units_per_ns : 0;
}

static void watch(measurement *out, bool wants_all)
{
    stay_on(&core_of_round);
    count_gaps(out, wants_all);
    stay_on(&all_cores);
}

static void handle_nothing(int signal, siginfo_t *info, void *ucontext)
{
    (void)signal;
    (void)info;
    (void)ucontext;
    sp_count_owned(&empty_ticks, 1);
}

static void take_signal(void)
{
    struct sigaction action = {.sa_sigaction = handle_nothing,
                               .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
    sigfillset(&action.sa_mask);
    sigaction(SIGUSR2, &action, NULL);
}

static void watch_under_timer(uint32_t hz, measurement *out)
{
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR2};
    event.sigev_notify_thread_id = (pid_t)syscall(SYS_gettid);
    struct itimerspec when = {.it_value = sp_timespec_from_ns(SP_NS_PER_S / hz),
                              .it_interval = sp_timespec_from_ns(SP_NS_PER_S / hz)};
    if (timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer) != 0)
        return;
    timer_settime(timer, 0, &when, NULL);
    watch(out, false);
    timer_delete(timer);
}

static void watch_under_perf(uint32_t hz, measurement *out)
{
    struct perf_event_attr attributes = {.size = sizeof attributes,
                                         .type = PERF_TYPE_SOFTWARE,
                                         .config = PERF_COUNT_SW_CPU_CLOCK,
                                         .sample_period = SP_NS_PER_S / hz,
                                         .wakeup_events = 1};
    int fd = (int)syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    if (fd < 0)
        return;
    struct f_owner_ex owner = {.type = F_OWNER_TID, .pid = (pid_t)syscall(SYS_gettid)};
    fcntl(fd, F_SETFL, O_ASYNC | O_NONBLOCK);
    fcntl(fd, F_SETSIG, SIGUSR2);
    fcntl(fd, F_SETOWN_EX, &owner);
    watch(out, false);
    close(fd);
}

static void watch_empty_handler(uint32_t hz, measurement *out)
{
    ticks_taken = &empty_ticks;
    if (strcmp(engine, "perf") == 0)
        watch_under_perf(hz, out);
    else
        watch_under_timer(hz, out);
}

static void watch_sdk(uint32_t hz, measurement *out)
{
    spanprof_options options = SPANPROF_OPTIONS_INIT;
    spanprof_stats stats = SPANPROF_STATS_INIT;
    options.cpu_hz = hz;
    options.exporter = "none";
    if (spanprof_start(&options, NULL) != SPANPROF_OK)
        exit(1);
    uint64_t settled = sp_clock_monotonic_ns() + 50 * SP_NS_PER_MS; /* what the first ticks touch */
    while (sp_clock_monotonic_ns() < settled)
        ;
    spanprof_stats_get(&stats);
    memcpy(engine, stats.engine, sizeof engine);
    ticks_taken = &self->tick.ticks;
    watch(out, false);
    spanprof_stop(SP_NS_PER_S);
}

static void measure_slot(size_t slot, measurement *out)
{
    switch (slots[slot].kind) {
    case NOTHING:
        ticks_taken = &empty_ticks;
        watch(out, true);
        break;
    case SDK:
        watch_sdk(slots[slot].hz, out);
        break;
    case EMPTY_HANDLER:
        watch_empty_handler(slots[slot].hz, out);
        break;
    }
}

static void choose_core(int round)
{
    int wanted = round % CPU_COUNT(&all_cores);
    CPU_ZERO(&core_of_round);
    for (int core = 0; core < CPU_SETSIZE; core++)
        if (CPU_ISSET(core, &all_cores) && wanted-- == 0)
            CPU_SET(core, &core_of_round);
}

static void measure_round(int round)
{
    choose_core(round);
    size_t order[SLOTS_MAX];
    for (size_t i = 0; i < slot_count; i++)
        order[i] = i;
    for (size_t i = slot_count - 1; i > 0; i--) {
        size_t other = (size_t)rand() % (i + 1), kept = order[i];
        order[i] = order[other];
        order[other] = kept;
    }
    for (size_t i = 0; i < slot_count; i++)
        measure_slot(order[i], &measured[order[i]][round]);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The value of the sorted list at SHARE of its length. */
static double quantile(double *values, double share)
{
    qsort(values, (size_t)rounds, sizeof values[0], compare);
    return values[(size_t)(share * (rounds - 1) + 0.5)];
}

/* Of one of a measurement's doubles, at FIELD; relative: its difference to "nothing". */
static double quantile_of(size_t slot, size_t field, bool relative, double share)
{
    double values[ROUNDS_MAX];
    for (int round = 0; round < rounds; round++) {
        const char *one = (const char *)&measured[slot][round];
        const char *nothing = (const char *)&measured[NOTHING][round];
        double value, base;
        memcpy(&value, one + field, sizeof value);
        memcpy(&base, nothing + field, sizeof base);
        values[round] = relative ? value - base : value;
    }
    return quantile(values, share);
}

static void print_slot(size_t slot)
{
    size_t all = offsetof(measurement, stolen), elsewhere = offsetof(measurement, elsewhere);
    double ticks = quantile_of(slot, offsetof(measurement, ticks), false, 0.5);
    double ns = quantile_of(slot, offsetof(measurement, ns_a_gap), false, 0.5);
    if (slots[slot].kind == NOTHING) {
        printf("nothing                 all %.4f %%, longer gaps %.2f %%, median gap %.0f ns\n",
               quantile_of(slot, all, false, 0.5), quantile_of(slot, elsewhere, false, 0.5), ns);
        return;
    }
    printf("%-13s %5u Hz  ticks %.4f %%, %.0f a second of %.0f ns; all %+.4f %% (quartiles %+.4f, "
           "%+.4f), longer gaps %+.2f %%\n",
           slots[slot].kind == SDK ? "sdk" : "empty handler", slots[slot].hz,
           quantile_of(slot, offsetof(measurement, stolen_by_ticks), false, 0.5),
           ticks * (double)SP_NS_PER_S / (double)slot_ns, ns, quantile_of(slot, all, true, 0.5),
           quantile_of(slot, all, true, 0.25), quantile_of(slot, all, true, 0.75),
           quantile_of(slot, elsewhere, true, 0.5));
}

static void compare_slots(void)
{
    for (int round = 0; round < rounds; round++)
        measure_round(round);
    printf("engine %s: %d rounds of %llu ms, medians\n", engine, rounds,
           (unsigned long long)(slot_ns / SP_NS_PER_MS));
    for (size_t slot = 0; slot < slot_count; slot++)
        print_slot(slot);
}

#if defined(__clang__)
#define WITHOUT_FRAME_POINTER __attribute__((noinline)) /* it keeps them: the stack is as deep */
#else
#define WITHOUT_FRAME_POINTER                                                                      \
    __attribute__((noinline, optimize("omit-frame-pointer", "no-optimize-sibling-calls")))
#endif

WITHOUT_FRAME_POINTER static void descend(int depth)
{
    if (depth > 0)
        descend(depth - 1);
    else
        compare_slots();
    __asm__ volatile("" ::: "memory");
}

static void add_rate(uint32_t hz)
{
    if (slot_count + 2 > SLOTS_MAX || hz == 0)
        return;
    slots[slot_count].kind = SDK;
    slots[slot_count++].hz = hz;
    slots[slot_count].kind = EMPTY_HANDLER;
    slots[slot_count++].hz = hz;
}

int main(int argc, char **argv)
{
    rounds = argc > 1 ? atoi(argv[1]) : rounds;
    slot_ns = argc > 2 ? strtoull(argv[2], NULL, 10) * SP_NS_PER_MS : slot_ns;
    if (rounds < 1 || rounds > ROUNDS_MAX || slot_ns == 0) {
        fprintf(stderr, "usage: bench_stolen [ROUNDS [SLOT_MS [HZ...]]]\n");
        return 2;
    }
    for (int i = 3; i < argc; i++)
        add_rate((uint32_t)strtoul(argv[i], NULL, 10));
    if (argc <= 3) {
        add_rate(99);
        add_rate(1000);
    }
    sched_getaffinity(0, sizeof all_cores, &all_cores);
    choose_core(0);
    learn_counter();
    take_signal();
    spanprof_scope scope = spanprof_context_attach(NULL); /* known before each start */
    self = sp_thread_by_slot(scope.thread - 1);
    measurement warm_up;
    watch_sdk(99, &warm_up); /* tells which engine the others are to be compared with */
    descend(FRAMES - 8);
    spanprof_scope_detach(&scope);
    return 0;
}
