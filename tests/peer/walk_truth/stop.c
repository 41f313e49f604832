/* SPDX-License-Identifier: Apache-2.0 */
#include "stop.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <unwind.h>

#define UNW_LOCAL_ONLY
#include <libunwind.h>

#include "context/ring_sig.h"

/* Both are loaded apart from the program's own libraries: libunwind has all functions of libgcc as
 * well, and a program that throws must not come to it because it is tested. */
static struct {
    int (*init)(unw_cursor_t *, unw_context_t *, int);
    int (*step)(unw_cursor_t *);
    int (*get)(unw_cursor_t *, int, unw_word_t *);
    int (*is_signal_frame)(unw_cursor_t *);
} libunwind;

static bool without_libunwind;
static _Unwind_Reason_Code (*libgcc_backtrace)(_Unwind_Trace_Fn, void *);

#define NAME_OF(function)  NAME_OF_(function)
#define NAME_OF_(function) #function

/* libunwind's cache has a lock, and it would hide a wrong lookup of its own behind a right one. */
bool stop_set_up(bool foreign)
{
    without_libunwind = foreign;
    void *library = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);
    void *libgcc = dlopen("libgcc_s.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library || !libgcc)
        return false;
    int (*set_caching_policy)(unw_addr_space_t, unw_caching_policy_t);
    unw_addr_space_t *space = dlsym(library, NAME_OF(unw_local_addr_space));
    *(void **)&set_caching_policy = dlsym(library, NAME_OF(unw_set_caching_policy));
    *(void **)&libunwind.init = dlsym(library, NAME_OF(unw_init_local2));
    *(void **)&libunwind.step = dlsym(library, NAME_OF(unw_step));
    *(void **)&libunwind.get = dlsym(library, NAME_OF(unw_get_reg));
    *(void **)&libunwind.is_signal_frame = dlsym(library, NAME_OF(unw_is_signal_frame));
    *(void **)&libgcc_backtrace = dlsym(libgcc, "_Unwind_Backtrace");
    if (!space || !set_caching_policy || !libunwind.init || !libunwind.step || !libunwind.get ||
        !libunwind.is_signal_frame || !libgcc_backtrace)
        return false;
    set_caching_policy(*space, UNW_CACHE_NONE);
    return true;
}

/* Neither of the two promises anything for stacks that make no sense. */
static sigjmp_buf out_of_crash;

static void on_crash(int number)
{
    siglongjmp(out_of_crash, number);
}

/* Whether MAKE came back. Its caller has not blocked SIGSEGV. */
static bool survives(void (*make)(stop_stack *, void *), stop_stack *stack, void *argument)
{
    struct sigaction action = {.sa_handler = on_crash, .sa_flags = SA_NODEFER}, segv, bus;
    sigaction(SIGSEGV, &action, &segv);
    sigaction(SIGBUS, &action, &bus);
    bool alive = sigsetjmp(out_of_crash, 1) == 0;
    if (alive)
        make(stack, argument);
    else
        stack->failed = true;
    sigaction(SIGSEGV, &segv, NULL);
    sigaction(SIGBUS, &bus, NULL);
    return alive;
}

/* Put the next frame. Where a signal came the frame before is the trampoline, to which the handler
 * returns, unless that was interrupted itself. */
static void put_frame(stop_stack *stack, uint64_t pc, bool is_exact, bool *last_is_exact)
{
    if (is_exact && stack->count > 0 && !*last_is_exact)
        stack->pcs[stack->count - 1] = SP_PC_SIGNAL_HANDLER;
    stack->pcs[stack->count++] = pc - !is_exact;
    *last_is_exact = is_exact;
}

/* A caller's pc is its return address, but where a signal came: libunwind calls that frame the
 * signal's. */
static void walk_by_libunwind(stop_stack *stack, void *ucontext)
{
    unw_cursor_t cursor;
    int more = 1;
    bool last_is_exact = false;
    stack->failed = libunwind.init(&cursor, ucontext, UNW_INIT_SIGNAL_FRAME) != 0;
    while (!stack->failed && more > 0 && stack->count < STOP_DEPTH) {
        unw_word_t pc = 0;
        libunwind.get(&cursor, UNW_REG_IP, &pc);
        if (pc == 0)
            break;
        bool is_exact = stack->count == 0 || libunwind.is_signal_frame(&cursor) > 0;
        put_frame(stack, pc, is_exact, &last_is_exact);
        more = libunwind.step(&cursor);
        stack->failed = more < 0;
    }
}

typedef struct libgcc_walk {
    stop_stack *stack;
    uint64_t first; /* frames before this pc are the handler's own */
    bool found;
    bool last_is_exact;
} libgcc_walk;

static _Unwind_Reason_Code on_libgcc_frame(struct _Unwind_Context *context, void *user)
{
    libgcc_walk *walk = user;
    int is_exact = 0;
    uint64_t pc = _Unwind_GetIPInfo(context, &is_exact);
    walk->found |= is_exact && pc == walk->first;
    if (walk->found && pc && walk->stack->count < STOP_DEPTH)
        put_frame(walk->stack, pc, is_exact, &walk->last_is_exact);
    return _URC_NO_REASON;
}

static void walk_by_libgcc(stop_stack *stack, void *ucontext)
{
    libgcc_walk walk = {.stack = stack, .first = sp_registers_from_ucontext(ucontext).pc};
    libgcc_backtrace(on_libgcc_frame, &walk);
}

static bool begins_with(const stop_stack *stack, const stop_stack *prefix)
{
    return prefix->count <= stack->count &&
           memcmp(stack->pcs, prefix->pcs, prefix->count * sizeof *prefix->pcs) == 0;
}

static bool is_same(const stop_stack *a, const stop_stack *b)
{
    return a->count == b->count && begins_with(a, b);
}

static bool is_root(const stop_score *score, uint64_t pc)
{
    for (uint32_t i = 0; i < score->root_count; i++)
        if (score->roots[i] == pc)
            return true;
    return false;
}

static void note_root(stop_score *score, const stop_stack *whole)
{
    uint64_t pc = whole->pcs[whole->count - 1];
    if (!is_root(score, pc) && score->root_count < STOP_ROOTS)
        score->roots[score->root_count++] = pc;
}

static bool is_whole(const stop_score *score, const stop_stack *stack)
{
    return stack->count && is_root(score, stack->pcs[stack->count - 1]);
}

static stop_verdict judge_marked(const stop_score *score, const stop_example *stop)
{
    bool has_libunwind = is_whole(score, &stop->libunwind);
    bool has_libgcc = is_whole(score, &stop->libgcc);
    if (!has_libunwind && !has_libgcc)
        return STOP_LOST;
    bool agrees = (has_libunwind && begins_with(&stop->libunwind, &stop->ours)) ||
                  (has_libgcc && begins_with(&stop->libgcc, &stop->ours));
    return agrees ? STOP_DOUBT : STOP_WRONG_MARKED;
}

/* The frames that both of the others found are ours as well. A stack that they end later is not
 * whole. */
static stop_verdict judge_whole(const stop_example *stop)
{
    if (is_same(&stop->ours, &stop->libunwind))
        return STOP_EQUAL;
    if (is_same(&stop->ours, &stop->libgcc))
        return STOP_EQUAL_LIBGCC;
    bool agrees =
        begins_with(&stop->ours, &stop->libunwind) && begins_with(&stop->ours, &stop->libgcc);
    return agrees ? STOP_BEYOND : STOP_WRONG;
}

static void keep(stop_score *score, const stop_example *stop)
{
    for (uint32_t i = 0; i < score->example_count; i++) {
        stop_example *known = &score->examples[i];
        if (known->verdict == stop->verdict && is_same(&known->ours, &stop->ours)) {
            known->times++;
            return;
        }
    }
    if (score->example_count < STOP_KEPT)
        score->examples[score->example_count++] = *stop;
}

static void take_walk(stop_score *score, stop_example *stop, sp_stack_bounds bounds,
                      const void *ucontext)
{
    sp_walk walk = {.generation = stop->generation,
                    .registers = sp_registers_from_ucontext(ucontext),
                    .bounds = bounds,
                    .pcs = stop->ours.pcs,
                    .max_depth = STOP_DEPTH};
    sp_walk_stack(&walk);
    stop->ours.count = walk.count;
    stop->end = walk.end;
    score->frames += walk.count;
    score->by_frame_pointer += walk.by_frame_pointer > 0;
    score->ends[walk.end]++;
}

void stop_compare(stop_score *score, const sp_generation *generation, sp_stack_bounds bounds,
                  void *ucontext)
{
    static stop_example stop; /* too large for somebody else's stack */
    stop.times = 1;
    stop.generation = generation;
    stop.libunwind.count = stop.libgcc.count = 0;
    stop.libunwind.failed = stop.libgcc.failed = false;
    take_walk(score, &stop, bounds, ucontext);
    bool alive = without_libunwind || survives(walk_by_libunwind, &stop.libunwind, ucontext);
    score->libunwind_failed += stop.libunwind.failed;
    if (stop.end != SP_WALK_COMPLETE || !is_same(&stop.ours, &stop.libunwind))
        alive &= survives(walk_by_libgcc, &stop.libgcc, ucontext);
    score->reference_crashed += !alive;
    if (stop.end == SP_WALK_TRUNCATED)
        stop.verdict = STOP_DEEP;
    else
        stop.verdict =
            stop.end == SP_WALK_COMPLETE ? judge_whole(&stop) : judge_marked(score, &stop);
    score->verdicts[stop.verdict]++;
    if (stop.verdict == STOP_EQUAL)
        note_root(score, &stop.ours);
    else
        keep(score, &stop);
}

uint64_t stop_count(const stop_score *score)
{
    uint64_t sum = 0;
    for (int i = 0; i < STOP_VERDICTS; i++)
        sum += score->verdicts[i];
    return sum;
}

/* Paths are written as they are: no program that is tested here has a quote in its path. */
static void write_stack(FILE *out, const char *name, const sp_generation *generation,
                        const stop_stack *stack)
{
    fprintf(out, ",\"%s\":[", name);
    for (uint32_t i = 0; i < stack->count; i++) {
        const sp_module *module = sp_generation_find(generation, stack->pcs[i]);
        fprintf(out, "%s\"%s+%#" PRIx64 "\"", i ? "," : "", module ? module->path : "?",
                stack->pcs[i] - (module ? module->bias : 0));
    }
    fprintf(out, "]");
}

static void write_example(FILE *out, const stop_example *stop)
{
    fprintf(out, "{\"verdict\":%d,\"end\":%d,\"times\":%" PRIu64, (int)stop->verdict,
            (int)stop->end, stop->times);
    write_stack(out, "ours", stop->generation, &stop->ours);
    write_stack(out, "libunwind", stop->generation, &stop->libunwind);
    write_stack(out, "libgcc", stop->generation, &stop->libgcc);
    fprintf(out, "}");
}

void stop_write(const stop_score *score, FILE *out)
{
    static const char *const names[STOP_VERDICTS] = {
        "equal", "equal_libgcc", "beyond", "lost", "doubt", "deep", "wrong_marked", "wrong"};
    fprintf(out, "{\"stops\":%" PRIu64, stop_count(score));
    for (int i = 0; i < STOP_VERDICTS; i++)
        fprintf(out, ",\"%s\":%" PRIu64, names[i], score->verdicts[i]);
    fprintf(out,
            ",\"frames\":%" PRIu64 ",\"by_frame_pointer\":%" PRIu64 ",\"libunwind_failed\":%" PRIu64
            ",\"reference_crashed\":%" PRIu64 ",\"ends\":[",
            score->frames, score->by_frame_pointer, score->libunwind_failed,
            score->reference_crashed);
    for (int i = 0; i < SP_WALK_FOLDED; i++)
        fprintf(out, "%s%" PRIu64, i ? "," : "", score->ends[i]);
    fprintf(out, "],\"examples\":[");
    for (uint32_t i = 0; i < score->example_count; i++) {
        fprintf(out, "%s\n", i ? "," : "");
        write_example(out, &score->examples[i]);
    }
    fprintf(out, "]}\n");
}
