/* SPDX-License-Identifier: Apache-2.0 */
/* What a tick costs the interrupted thread: a signal that our handler takes, beside the same signal
 * whose handler does nothing.
 *
 * The thread sends it to itself (rt_tgsigqueueinfo), with what a timer's signal carries, so that
 * sp_handle_tick does all that it does for one: finds the thread's state, takes the generation,
 * reads the context, which has changed since the last tick, walks, and writes interval and sample.
 * Time is from before the system call until after it. The signal comes in code without frame
 * pointers, FRAMES deep, on STACKS different stacks in turn; the rings are emptied outside of the
 * measured time. The two handlers take turns: a round is all stacks with one and all stacks with
 * the other. The ratio is that of a round's medians.
 *
 * A timer's or an event's signal costs the thread more than one that it sends itself (the
 * interrupt, the kernel's list of timers): then the handler's share, and the ratio, are smaller.
 *
 * With "foreign" the context is another tracer's, who publishes it himself.
 *
 *   bench_tick [ROUNDS [STACKS [FRAMES [foreign]]]] */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <spanprof/spanprof.h>
#include "bench/deep.h"
#include "bench/figures.h"
#include "cpu/cpu_engine.h"
#include "unwind/walk_sig.h"

enum { ROUNDS_MAX = 1000, STACKS_MAX = 10000, SIGNAL = SIGUSR2 };

typedef void handler(int, siginfo_t *, void *);

/* The figures of the handler in turn. */
typedef struct tally {
    double counts[STACKS_MAX];
    uint64_t bytes, ticks_with_interval;
    uint32_t frames; /* of the last tick */
    bool has_doubt;
} tally;

static int rounds = 40;
static uint32_t stacks = 200, frames = 26;
static uint32_t depth; /* functions to call for FRAMES frames, the program's beginning included */
static sp_thread *self;
static siginfo_t info;
static long process;
static uint64_t signal_start, signal_end;

static void handle_nothing(int signal, siginfo_t *unused, void *ucontext)
{
    (void)signal;
    (void)unused;
    (void)ucontext;
}

static void install(handler *action_of_signal)
{
    struct sigaction action = {.sa_sigaction = action_of_signal,
                               .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
    sigfillset(&action.sa_mask);
    sigaction(SIGNAL, &action, NULL);
}

/* Not through libc, whose raise blocks all signals and allows them again: two more system calls. */
static inline long send_signal(void)
{
    long result = SYS_rt_tgsigqueueinfo;
    register siginfo_t *carried __asm__("r10") = &info;
    __asm__ volatile("syscall"
                     : "+a"(result)
                     : "D"(process), "S"((long)self->registered.tid), "d"((long)SIGNAL),
                       "r"(carried)
                     : "rcx", "r11", "memory");
    return result;
}

static void be_interrupted(void *unused)
{
    (void)unused;
    signal_start = figures_count();
    long result = send_signal();
    signal_end = figures_count();
    if (result != 0) {
        fprintf(stderr, "sending the signal: error %ld\n", -result);
        exit(1);
    }
}

/* What the last tick wrote; its room is given back. */
static const sp_sample_record *take_records(tally *out)
{
    sp_ring *ring = &self->tick.ring;
    const sp_sample_record *sample = NULL;
    uint64_t head = sp_load_relaxed(&ring->head);
    const sp_record *record;
    out->bytes = 0;
    while ((record = sp_ring_peek(ring, head))) {
        if (record->kind == SP_RECORD_SAMPLE)
            sample = (const void *)record;
        if (record->kind != SP_RECORD_SKIP)
            out->bytes += record->size;
        out->ticks_with_interval += record->kind == SP_RECORD_INTERVAL;
        sp_ring_pop(ring, record);
    }
    return sample;
}

extern _Thread_local void *otel_thread_ctx_v1;
static bool is_foreign;

static void tick_on(uint32_t stack, tally *out)
{
    static struct {
        uint8_t ids[24], valid, trace_flags;
        uint16_t attributes_bytes;
    } record = {.valid = 1, .trace_flags = 1};
    spanprof_context context = {.trace_flags = 1};
    spanprof_scope scope = {0};
    memset(context.trace_id, (int)(stack % 255) + 1, 24);
    memset(record.ids, (int)(stack % 255) + 1, sizeof record.ids);
    if (is_foreign)
        otel_thread_ctx_v1 = &record;
    else
        scope = spanprof_context_attach(&context);
    deep_call(DEEP_WITHOUT_FRAME_POINTERS, stack, depth, be_interrupted, NULL);
    if (!is_foreign)
        spanprof_scope_detach(&scope);
    out->counts[stack] = (double)(signal_end - signal_start);
}

__attribute__((noinline)) static double measure(handler *action_of_signal, tally *out)
{
    install(action_of_signal);
    out->ticks_with_interval = 0;
    out->has_doubt = false;
    for (uint32_t stack = 0; stack < stacks; stack++) {
        tick_on(stack, out);
        const sp_sample_record *sample = take_records(out);
        if (action_of_signal == sp_handle_tick) {
            out->frames = sample ? sample->count : 0;
            out->has_doubt |= out->frames != frames || sample->end != SP_WALK_COMPLETE;
        }
    }
    return figures_quantile(out->counts, stacks, 0.5);
}

/* Of FRAMES frames some are those of this program and of libc. */
static uint32_t depth_for(uint32_t frames_with_one)
{
    uint32_t others = frames_with_one - 1;
    if (frames_with_one == 0 || frames <= others || frames - others > DEEP_FRAMES_MAX) {
        fprintf(stderr, "bench_tick: no stacks of %u frames\n", frames);
        exit(2);
    }
    return frames - others;
}

static void print_quantiles(const char *what, double *values, double unit)
{
    printf("%-28s %8.2f   (quartiles %.2f, %.2f)\n", what,
           figures_quantile(values, (size_t)rounds, 0.5) / unit,
           figures_quantile(values, (size_t)rounds, 0.25) / unit,
           figures_quantile(values, (size_t)rounds, 0.75) / unit);
}

static void compare_handlers(double counts_per_ns)
{
    static double empty[ROUNDS_MAX], tick[ROUNDS_MAX], ratio[ROUNDS_MAX], more[ROUNDS_MAX];
    static tally figures;
    depth = 1;
    measure(sp_handle_tick, &figures);
    depth = depth_for(figures.frames);
    measure(sp_handle_tick, &figures); /* warm-up */
    bool has_doubt = figures.has_doubt;
    for (int round = 0; round < rounds; round++) {
        empty[round] = measure(handle_nothing, &figures);
        tick[round] = measure(sp_handle_tick, &figures);
        has_doubt |= figures.has_doubt || figures.ticks_with_interval != stacks;
        ratio[round] = tick[round] / empty[round];
        more[round] = tick[round] - empty[round];
    }
    printf("%d rounds of %u stacks of %u frames, %u of them in 4 shared objects without frame "
           "pointers; %u different return addresses\n",
           rounds, stacks, frames, depth, deep_places(stacks, depth));
    print_quantiles("signal, empty handler, ns", empty, counts_per_ns);
    print_quantiles("signal, tick, ns", tick, counts_per_ns);
    print_quantiles("what the tick adds, ns", more, counts_per_ns);
    print_quantiles("ratio", ratio, 1);
    printf("bytes in the ring for a tick: %llu (interval and sample)\n",
           (unsigned long long)figures.bytes);
    if (has_doubt) {
        printf("WRONG: not every tick found %u frames and a new context\n", frames);
        exit(1);
    }
}

int main(int argc, char **argv)
{
    rounds = argc > 1 ? atoi(argv[1]) : rounds;
    stacks = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : stacks;
    frames = argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 10) : frames;
    is_foreign = argc > 4 && strcmp(argv[4], "foreign") == 0;
    if (rounds < 1 || rounds > ROUNDS_MAX || stacks < 1 || stacks > STACKS_MAX) {
        fprintf(stderr, "usage: bench_tick [ROUNDS [STACKS [FRAMES [foreign]]]]\n");
        return 2;
    }
    sp_modules *modules = sp_modules_create();
    self = sp_thread_self_create();
    if (!modules || !self)
        return 1;
    /* Synthetic: nothing else makes this thread tick, and no collector drains its ring. */
    sp_engine_config config = {
        .cpu_hz = 99, .max_depth = 256, .signal = SIGNAL, .synthetic = true, .modules = modules};
    sp_engine_start(&config, NULL);
    process = getpid();
    info.si_signo = SIGNAL;
    info.si_code = SI_TIMER;
    info.si_value.sival_ptr = self;
    compare_handlers(figures_counts_per_ns());
    sp_engine_stop();
    sp_modules_destroy(modules);
    return 0;
}
