/* SPDX-License-Identifier: Apache-2.0 */
/* The walk beside other unwinders, in one run, on the same stacks: 10 to 200 frames of code without
 * frame pointers. All start in the same function, with no signal in between. Before anything is
 * timed, each has to find the same return addresses as the walk.
 *
 *   warm      the same stack again and again
 *   in turn   200 different stacks, one walk each
 *   emptied   before each walk, what the unwinder itself keeps of addresses that it met is dropped
 *   flushed   before each walk, every line of data of the process is flushed from the CPU's caches
 * (clflush): tables, frame information, the loader's lists, the stack. What the TLB and the branch
 * predictor know stays both      emptied and flushed
 *   + code    the instructions are flushed, too
 *
 * Each walk is timed on its own. Medians, in ns, without what reading the counter takes; and how
 * many times as long as ours that is. The walk along frame pointers is on stacks of the same
 * functions compiled with them: what there is at best.
 *
 *   bench_walk [REPEATS]     TCMALLOC_STACKTRACE_METHOD=libunwind|libgcc|generic_fp chooses
 * gperftools' method */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>
#include <unwind.h>

#if defined(HAVE_LIBUNWIND)
#define UNW_LOCAL_ONLY
#include <libunwind.h>
#endif

#include "bench/deep.h"
#include "bench/figures.h"
#include "unwind/generation_sig.h"
#include "unwind/outside_walk.h"
#include "unwind/stack_bounds.h"
#include "unwind/walk_sig.h"

#if !defined(__x86_64__)
#error "bench_walk: say how this machine flushes a cache line"
#endif

enum {
    FRAMES_MAX = 256,
    STACKS = 200,
    WALKS_IN_A_ROW = 15,
    REPEATS_MAX = 2000,
    SPANS_MAX = 512,
};

typedef struct stack {
    uint64_t pcs[FRAMES_MAX];
    uint32_t count;
} stack;

/* --- The unwinders: each fills in return addresses from its caller's on, or a few frames before
 * --- */

static sp_modules *modules;
static const sp_generation *generation;
static sp_stack_copy *copy;
static _Atomic(const sp_generation *) hazard;
static sp_stack_bounds bounds;
static stack found;
static ucontext_t *here; /* registers of the function that calls the unwinders */

static void walk_ours(stack *out)
{
    sp_walk walk = {.generation = generation,
                    .registers = sp_registers_from_ucontext(here),
                    .bounds = bounds,
                    .pcs = out->pcs,
                    .max_depth = FRAMES_MAX};
    sp_walk_stack(&walk);
    out->count = walk.count;
}

/* As another thread would, from pc and sp alone, with the copying. */
static void walk_outside(stack *out)
{
    sp_registers all = sp_registers_from_ucontext(here);
    sp_walk walk = {.generation = generation,
                    .registers = {.pc = all.pc, .sp = all.sp},
                    .pcs = out->pcs,
                    .max_depth = FRAMES_MAX};
    sp_outside_walk(copy, &walk);
    for (uint32_t i = 1; i < walk.count; i++)
        out->pcs[i]++; /* return addresses, as the others' */
    out->count = walk.count;
}

static void take_generation(void)
{
    modules = sp_modules_create();
    copy = sp_stack_copy_create();
    if (!modules || !copy)
        exit(1);
    generation = sp_generation_enter(modules, &hazard);
}

/* Drop what the walk remembers of program counters. */
static void empty_pc_cache(void)
{
    for (uint32_t i = 0; i < SP_RULE_CACHE_ENTRIES; i++)
        sp_store_relaxed(&generation->rule_cache[i], (uint64_t)0);
}

/* libunwind has a backtrace, too, and gets in front of libc's. */
static int (*glibc_backtrace)(void **, int);

static void find_glibc_backtrace(void)
{
    void *libc = dlopen("libc.so.6", RTLD_NOW);
    if (libc)
        *(void **)&glibc_backtrace = dlsym(libc, "backtrace");
    if (!glibc_backtrace) {
        fprintf(stderr, "bench_walk: no backtrace in libc\n");
        exit(1);
    }
}

static _Unwind_Reason_Code add_frame(struct _Unwind_Context *context, void *user)
{
    stack *out = user;
    if (out->count < FRAMES_MAX)
        out->pcs[out->count++] = _Unwind_GetIP(context);
    return _URC_NO_REASON;
}

static void walk_libgcc(stack *out)
{
    out->count = 0;
    _Unwind_Backtrace(add_frame, out);
}

static void walk_glibc(stack *out)
{
    out->count = (uint32_t)glibc_backtrace((void **)out->pcs, FRAMES_MAX);
}

#if defined(HAVE_LIBUNWIND)
static void walk_unw_step(stack *out)
{
    unw_context_t context;
    unw_cursor_t cursor;
    unw_word_t pc;
    out->count = 0;
    unw_getcontext(&context);
    unw_init_local(&cursor, &context);
    do {
        unw_get_reg(&cursor, UNW_REG_IP, &pc);
        out->pcs[out->count++] = pc;
    } while (out->count < FRAMES_MAX && unw_step(&cursor) > 0);
}

static void walk_unw_backtrace(stack *out)
{
    out->count = (uint32_t)unw_backtrace((void **)out->pcs, FRAMES_MAX);
}

static void empty_libunwind(void)
{
    unw_flush_cache(unw_local_addr_space, 0, 0);
}

static void cache_by_thread(void)
{
    unw_set_caching_policy(unw_local_addr_space, UNW_CACHE_PER_THREAD);
}

static void cache_for_all(void)
{
    unw_set_caching_policy(unw_local_addr_space, UNW_CACHE_GLOBAL);
}
#endif

#if defined(HAVE_GPERFTOOLS)
/* GetStackTrace(void **, int, int); its header is for C++ only. */
int get_stack_trace(void **result, int max_depth, int skip_count) __asm__("_Z13GetStackTracePPvii");

static void walk_gperftools(stack *out)
{
    out->count = (uint32_t)get_stack_trace((void **)out->pcs, FRAMES_MAX, 0);
}
#endif

static void walk_frame_pointers(stack *out)
{
    const uint64_t *frame = (const uint64_t *)here->uc_mcontext.gregs[REG_RBP];
    out->count = 0;
    while ((uintptr_t)frame >= bounds.low && (uintptr_t)frame < bounds.high - 16 &&
           out->count < FRAMES_MAX) {
        const uint64_t *caller = (const uint64_t *)(uintptr_t)frame[0]; // NOLINT
        out->pcs[out->count++] = frame[1];
        if (caller <= frame)
            break;
        frame = caller;
    }
}

typedef struct unwinder {
    const char *name;
    void (*walk)(stack *out);
    void (*empty)(void);   /* its own caches; NULL: it has none */
    void (*prepare)(void); /* NULL: nothing to do */
} unwinder;

static const unwinder unwinders[] = {
    {"sp_walk_stack", walk_ours, empty_pc_cache, NULL},
    {"sp_outside_walk", walk_outside, empty_pc_cache, NULL},
#if defined(HAVE_LIBUNWIND)
    {"unw_step", walk_unw_step, empty_libunwind, cache_for_all},
    {"unw_step, cache by thread", walk_unw_step, empty_libunwind, cache_by_thread},
    {"unw_backtrace", walk_unw_backtrace, empty_libunwind, cache_for_all},
#endif
    {"libgcc _Unwind_Backtrace", walk_libgcc, NULL, NULL},
    {"glibc backtrace", walk_glibc, NULL, NULL},
#if defined(HAVE_GPERFTOOLS)
    {"gperftools GetStackTrace", walk_gperftools, NULL, NULL},
#endif
};
static const unwinder by_frame_pointers = {"frame pointers", walk_frame_pointers, NULL, NULL};

enum { UNWINDERS = sizeof unwinders / sizeof unwinders[0] };

/* --- The CPU's caches ------------------------------------------------------------------------- */

typedef struct span {
    uintptr_t start, end;
} span;

typedef struct spans {
    span all[SPANS_MAX];
    uint32_t count;
    uint64_t bytes;
} spans;

static spans data_spans, code_spans;

/* Readable mappings; not the kernel's pages, and not the file of locales, which nobody here reads.
 */
static void learn_spans(void)
{
    char line[512], access[8], path[256];
    FILE *maps = fopen("/proc/self/maps", "r");
    data_spans.count = code_spans.count = 0;
    data_spans.bytes = code_spans.bytes = 0;
    while (maps && fgets(line, sizeof line, maps)) {
        span one;
        path[0] = 0;
        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %7s %*s %*s %*s %255s", &one.start, &one.end,
                   access, path) < 3 ||
            access[0] != 'r' || strncmp(path, "[v", 2) == 0 || strstr(path, "locale"))
            continue;
        spans *list = access[2] == 'x' ? &code_spans : &data_spans;
        if (list->count < SPANS_MAX) {
            list->all[list->count++] = one;
            list->bytes += one.end - one.start;
        }
    }
    if (maps)
        fclose(maps);
}

static void flush(const spans *list)
{
    for (uint32_t i = 0; i < list->count; i++)
        for (uintptr_t at = list->all[i].start; at < list->all[i].end; at += SP_CACHE_LINE)
            __builtin_ia32_clflush((const void *)at); // NOLINT
    __builtin_ia32_mfence();
}

/* --- Measuring -------------------------------------------------------------------------------- */

typedef enum state { WARM, IN_TURN, EMPTIED, FLUSHED, BOTH, BOTH_AND_CODE, STATES } state;

static const char *const state_names[STATES] = {"warm",    "in turn", "emptied",
                                                "flushed", "both",    "+ code"};

static int repeats = 40;
static double counts_per_ns, counter_counts;
static double figures[UNWINDERS][STATES][REPEATS_MAX];
static bool is_left_out[UNWINDERS];

/* What a leaf is to do, and what it took. */
typedef struct task {
    const unwinder *unwinder;
    state state;
    double counts;
} task;

static double count_one(void (*walk)(stack *))
{
    uint64_t start = figures_count();
    walk(&found);
    return (double)(figures_count() - start) - counter_counts;
}

/* The median of some walks in a row, for a single one has more of what was before it than of STATE.
 */
static double count_some(const unwinder *one, state state)
{
    double counts[WALKS_IN_A_ROW];
    for (int i = 0; i < WALKS_IN_A_ROW; i++) {
        if (state == EMPTIED && one->empty)
            one->empty();
        counts[i] = count_one(one->walk);
    }
    return figures_quantile(counts, WALKS_IN_A_ROW, 0.5);
}

static double count_cold(const unwinder *one, state state)
{
    void (*walk)(stack *) = one->walk;
    walk(&found);
    if (state != FLUSHED && one->empty)
        one->empty();
    learn_spans();
    flush(&data_spans);
    if (state == BOTH_AND_CODE)
        flush(&code_spans);
    return count_one(walk);
}

/* All start here. */
__attribute__((noinline)) static void do_task(void *user)
{
    task *task = user;
    ucontext_t registers;
    getcontext(&registers);
    here = &registers;
    if (task->state == IN_TURN)
        task->counts = count_one(task->unwinder->walk);
    else if (task->state == WARM || task->state == EMPTIED)
        task->counts = count_some(task->unwinder, task->state);
    else
        task->counts = count_cold(task->unwinder, task->state);
    here = NULL;
}

static double measure(const unwinder *one, state state, deep_flavour flavour, uint32_t number,
                      uint32_t functions)
{
    task task = {.unwinder = one, .state = state};
    deep_call(flavour, number, functions, do_task, &task);
    return task.counts;
}

static double measure_in_turn(const unwinder *one, deep_flavour flavour, uint32_t functions)
{
    double counts[STACKS];
    for (int pass = 0; pass < 2; pass++) /* the first is a warm-up */
        for (uint32_t i = 0; i < STACKS; i++)
            counts[i] = measure(one, IN_TURN, flavour, i, functions);
    return figures_quantile(counts, STACKS, 0.5);
}

static void measure_states(const unwinder *one, deep_flavour flavour, uint32_t functions,
                           int repeat, double (*out)[REPEATS_MAX])
{
    if (one->prepare)
        one->prepare();
    uint32_t number = (uint32_t)repeat % STACKS;
    for (state state = 0; state < STATES; state++)
        out[state][repeat] = state == IN_TURN ? measure_in_turn(one, flavour, functions)
                                              : measure(one, state, flavour, number, functions);
}

/* Whether ONE finds the same frames as the walk on a stack: those of the deep functions, and of
 * their caller's and callee's. How an unwinder begins and ends is its own affair. */
static bool finds_the_same(const unwinder *one, deep_flavour flavour, uint32_t functions)
{
    stack expected = {.count = 0};
    uint32_t common = functions + 2;
    measure(&unwinders[0], IN_TURN, flavour, 0, functions);
    for (uint32_t frame = 1; frame <= common; frame++) /* 0 is do_task, which is not a caller */
        expected.pcs[expected.count++] = found.pcs[frame] + 1;
    if (one->prepare)
        one->prepare();
    measure(one, IN_TURN, flavour, 0, functions);
    for (uint32_t first = 0; first < 6 && first + common <= found.count; first++)
        if (found.pcs[first] == expected.pcs[0])
            return memcmp(&found.pcs[first], expected.pcs, common * sizeof found.pcs[0]) == 0;
    return one == &unwinders[0];
}

static void print_row(const char *name, double (*values)[REPEATS_MAX], const double *ours)
{
    printf("  %-26s", name);
    for (int state = 0; state < STATES; state++) {
        double ns = figures_quantile(values[state], (size_t)repeats, 0.5) / counts_per_ns;
        printf(" %9.0f", ns);
        if (ours)
            printf(" x%-6.3g", ns / ours[state]);
        else
            printf("        ");
    }
    printf("\n");
}

static void compare_frame_pointers(uint32_t functions, const double *ours)
{
    static double values[STATES][REPEATS_MAX];
    if (!finds_the_same(&by_frame_pointers, DEEP_WITH_FRAME_POINTERS, functions)) {
        printf("  %s: finds other frames, left out\n", by_frame_pointers.name);
        return;
    }
    for (int repeat = 0; repeat < repeats; repeat++)
        measure_states(&by_frame_pointers, DEEP_WITH_FRAME_POINTERS, functions, repeat, values);
    print_row(by_frame_pointers.name, values, ours);
}

static void compare_unwinders(uint32_t frames, uint32_t functions)
{
    double ours[STATES];
    printf("%u frames, %u of them in 4 shared objects without frame pointers\n  %-26s", frames,
           functions, "");
    for (int state = 0; state < STATES; state++)
        printf(" %9s        ", state_names[state]);
    printf("\n");
    for (int i = 0; i < UNWINDERS; i++) {
        is_left_out[i] = !finds_the_same(&unwinders[i], DEEP_WITHOUT_FRAME_POINTERS, functions);
        if (is_left_out[i])
            printf("  %s: finds other frames, left out\n", unwinders[i].name);
    }
    for (int repeat = 0; repeat < repeats; repeat++)
        for (int i = 0; i < UNWINDERS; i++)
            if (!is_left_out[i])
                measure_states(&unwinders[i], DEEP_WITHOUT_FRAME_POINTERS, functions, repeat,
                               figures[i]);
    for (int state = 0; state < STATES; state++)
        ours[state] = figures_quantile(figures[0][state], (size_t)repeats, 0.5) / counts_per_ns;
    for (int i = 0; i < UNWINDERS; i++)
        if (!is_left_out[i])
            print_row(unwinders[i].name, figures[i], i ? ours : NULL);
    compare_frame_pointers(functions, ours);
    fflush(stdout);
}

static void measure_counter(void)
{
    double counts[1001];
    counts_per_ns = figures_counts_per_ns();
    for (int i = 0; i < 1001; i++) {
        uint64_t start = figures_count();
        counts[i] = (double)(figures_count() - start);
    }
    counter_counts = figures_quantile(counts, 1001, 0.5);
}

static void say_what_is_there(void)
{
    const char *method = getenv("TCMALLOC_STACKTRACE_METHOD");
    (void)method;
#if defined(HAVE_LIBUNWIND)
    printf("libunwind %d.%d.%d", UNW_VERSION_MAJOR, UNW_VERSION_MINOR, UNW_VERSION_EXTRA);
#else
    printf("libunwind: not there");
#endif
#if defined(HAVE_GPERFTOOLS)
    printf("; gperftools %s, method %s\n", GPERFTOOLS_VERSION, method ? method : "its default");
#else
    printf("; gperftools: not there\n");
#endif
    learn_spans();
    printf("flushed: %.1f MB of data, with code %.1f MB; reading the counter: %.0f ns\n",
           (double)data_spans.bytes / 1e6, (double)(data_spans.bytes + code_spans.bytes) / 1e6,
           counter_counts / counts_per_ns);
}

int main(int argc, char **argv)
{
    static const uint32_t frames[] = {10, 26, 50, 100, 200};
    repeats = argc > 1 ? atoi(argv[1]) : repeats;
    if (repeats < 1 || repeats > REPEATS_MAX) {
        fprintf(stderr, "usage: bench_walk [REPEATS]\n");
        return 2;
    }
    find_glibc_backtrace();
    walk_glibc(&found); /* loads libgcc at its first call */
    bounds = sp_stack_bounds_of_self();
    take_generation();
    measure_counter();
    say_what_is_there();
    measure(&unwinders[0], IN_TURN, DEEP_WITHOUT_FRAME_POINTERS, 0, 1);
    uint32_t others = found.count - 1; /* of this program and of libc */
    for (size_t i = 0; i < sizeof frames / sizeof frames[0]; i++)
        compare_unwinders(frames[i], frames[i] - others);
    sp_generation_leave(&hazard);
    sp_stack_copy_destroy(copy);
    sp_modules_destroy(modules);
    return 0;
}
