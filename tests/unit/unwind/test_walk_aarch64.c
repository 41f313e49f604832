/* SPDX-License-Identifier: Apache-2.0 */
/* Walks at every instruction of chosen functions on aarch64: each instruction is replaced by a
 * breakpoint until it was reached once. Frames are different there (the return address is in a
 * register until a function saves it, and may be signed), and a process cannot step itself as on
 * x86-64. Works on a real machine and under qemu-user. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#if !defined(__aarch64__)
#include <stdio.h>

int main(void)
{
    puts("SKIPPED: walks at every instruction of aarch64 code; this is another machine "
         "(unit/unwind/walk_steps does the same here)");
    return 77;
}
#else
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "walk_reference.h"

#define BREAKPOINT  UINT32_C(0xd4200000)
#define MAX_STEPPED 512

/* Code under breakpoints. words[i] is a breakpoint while `planted` and not seen[i]; original[i] is
 * what belongs there. */
static struct {
    volatile uint32_t *words;
    size_t count;
    uint32_t original[MAX_STEPPED];
    bool seen[MAX_STEPPED];
    size_t seen_count;
    void (*on_stop)(const ucontext_t *context);
} stepped;

static reference_score score;
static volatile uint64_t sink;

static void flush(void)
{
    char *begin = (char *)(uintptr_t)stepped.words;
    __builtin___clear_cache(begin, begin + 4 * stepped.count);
}

static void plant(void)
{
    for (size_t i = 0; i < stepped.count; i++)
        if (!stepped.seen[i])
            stepped.words[i] = BREAKPOINT;
    flush();
}

/* Comes before everything else in the handler: what it calls may be under breakpoints. */
static void lift(void)
{
    for (size_t i = 0; i < stepped.count; i++)
        stepped.words[i] = stepped.original[i];
    flush();
}

static void on_trap(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)info;
    lift();
    const ucontext_t *interrupted = context;
    size_t index = (interrupted->uc_mcontext.pc - (uint64_t)(uintptr_t)stepped.words) / 4;
    if (index >= stepped.count)
        abort(); /* nobody else plants breakpoints */
    stepped.seen[index] = true;
    stepped.seen_count++;
    stepped.on_stop(interrupted);
    plant();
}

/* Run CODE with a stop at each instruction in [BEGIN, END) that it comes to after it has called
 * plant. */
static void step_through(const void *begin, const void *end, void (*on_stop)(const ucontext_t *),
                         void (*code)(void))
{
    uintptr_t page = (uintptr_t)begin & ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1);
    assert_int_equal(
        mprotect((void *)page, (uintptr_t)end - page, PROT_READ | PROT_WRITE | PROT_EXEC), 0);
    stepped.words = (volatile uint32_t *)(uintptr_t)begin;
    stepped.count = ((uintptr_t)end - (uintptr_t)begin) / 4;
    assert_in_range(stepped.count, 1, MAX_STEPPED);
    stepped.seen_count = 0;
    stepped.on_stop = on_stop;
    for (size_t i = 0; i < stepped.count; i++) {
        stepped.original[i] = stepped.words[i];
        stepped.seen[i] = false;
    }
    code();
    lift();
    mprotect((void *)page, (uintptr_t)end - page, PROT_READ | PROT_EXEC);
}

/* ---- code with frame information: libgcc is the reference ---- */

static void compare_with_libgcc(const ucontext_t *context)
{
    reference_compare(&score, context);
}

/* Each function that is stepped through is a section of its own, whose ends the linker names. */
#define STEPPED(name)                                                                              \
    extern const uint32_t __start_stepped_##name[], __stop_stepped_##name[];                       \
    __attribute__((noinline, noclone, section("stepped_" #name)))

#define STEP_TEST(name, call)                                                                      \
    static void run_##name(void)                                                                   \
    {                                                                                              \
        plant();                                                                                   \
        call;                                                                                      \
    }                                                                                              \
    static void walk_at_each_instruction_of_##name##_equals_libgcc(void **state)                   \
    {                                                                                              \
        (void)state;                                                                               \
        score = (reference_score){0};                                                              \
        step_through(__start_stepped_##name, __stop_stepped_##name, compare_with_libgcc,           \
                     run_##name);                                                                  \
        reference_report(#name, &score);                                                           \
        assert_true(score.stops >= 3);                                                             \
        assert_int_equal(score.equal, score.stops);                                                \
    }

STEPPED(leaf) static uint64_t leaf(uint64_t x)
{
    for (int i = 0; i < 3; i++)
        x = x * 5 + (x >> 7);
    return x;
}
STEP_TEST(leaf, sink = leaf(17))

STEPPED(framed) static uint64_t framed(uint64_t depth)
{
    volatile uint64_t local[8] = {depth};
    uint64_t below = depth ? framed(depth - 1) : leaf(depth);
    return below + local[depth & 7];
}
STEP_TEST(framed, sink = framed(3))

STEPPED(dynamic) static uint64_t dynamic(uint64_t depth)
{
    volatile char variable[depth * 16 + 16];
    variable[depth] = 1;
    uint64_t below = depth ? dynamic(depth - 1) : 0;
    return below + (uint64_t)variable[depth];
}
STEP_TEST(dynamic, sink = dynamic(3))

/* A frame too large for the immediate operand of one instruction. */
STEPPED(large) static uint64_t large(uint64_t depth)
{
    volatile char array[70000];
    array[depth] = 1;
    return (uint64_t)array[depth] + (depth ? large(depth - 1) : 1);
}
STEP_TEST(large, sink = large(1))

STEPPED(without_fp)
__attribute__((optimize("omit-frame-pointer"))) static uint64_t without_fp(uint64_t depth)
{
    uint64_t below = depth ? without_fp(depth - 1) : leaf(depth);
    return below * 3 + depth;
}
STEP_TEST(without_fp, sink = without_fp(3))

/* Signed return addresses: between paciasp and autiasp, in the register as on the stack. */
STEPPED(signed_a)
__attribute__((target("branch-protection=pac-ret+leaf"))) static uint64_t signed_a(uint64_t depth)
{
    uint64_t below = depth ? signed_a(depth - 1) : leaf(depth);
    return below * 3 + depth;
}
STEP_TEST(signed_a, sink = signed_a(3))

STEPPED(signed_b)
__attribute__((target("branch-protection=pac-ret+leaf+b-key"))) static uint64_t
signed_b(uint64_t depth)
{
    uint64_t below = depth ? signed_b(depth - 1) : leaf(depth);
    return below * 3 + depth;
}
STEP_TEST(signed_b, sink = signed_b(3))

STEPPED(signed_leaf)
__attribute__((target("branch-protection=bti+pac-ret+leaf"))) static uint64_t
signed_leaf(uint64_t x)
{
    return x * 3 + (x >> 3);
}
STEP_TEST(signed_leaf, sink = signed_leaf(3))

STEPPED(handler) static void handler(int number)
{
    sink = framed((uint64_t)number & 1) + leaf(1);
}
STEP_TEST(handler, raise(SIGUSR2))

/* A signal that interrupts a leaf: the frame behind the signal frame has its return address in the
 * link register still, of which the kernel's copy tells. The breakpoint is the signal here, and the
 * handler of the stop is stepped through by nobody; so the walk is taken one handler further down.
 */
static void raise_in_stop(const ucontext_t *context)
{
    (void)context;
    raise(SIGUSR1);
}

static void compare_in_signal(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)info;
    reference_compare(&score, context);
}

static void walk_over_a_signal_frame_finds_the_caller_of_a_leaf(void **state)
{
    (void)state;
    score = (reference_score){0};
    step_through(__start_stepped_leaf, __stop_stepped_leaf, raise_in_stop, run_leaf);
    step_through(__start_stepped_signed_a, __stop_stepped_signed_a, raise_in_stop, run_signed_a);
    reference_report("a signal in a leaf", &score);
    assert_true(score.stops >= 10);
    assert_int_equal(score.equal, score.stops);
}

/* In the trampoline itself libgcc is no reference: it may crash. What is known is the stack of the
 * signal, as it was seen in the handler. */
static uint64_t seen_in_handler[WALK_DEPTH];
static uint32_t seen_count;
static const void *trampoline;

static uint32_t walk_context(const void *context, uint64_t *pcs)
{
    sp_walk walk = walk_interrupted(context, pcs);
    return walk.end == SP_WALK_COMPLETE ? walk.count : 0;
}

static void note_trampoline(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)info;
    trampoline = __builtin_extract_return_addr(__builtin_return_address(0));
    seen_count = walk_context(context, seen_in_handler);
}

static uint32_t trampoline_stops, trampoline_right;

static void check_trampoline(const ucontext_t *context)
{
    uint64_t pcs[WALK_DEPTH];
    uint32_t count = walk_context(context, pcs);
    trampoline_stops++;
    /* The second stop is in the return from the first: one signal more. */
    trampoline_right +=
        count >= seen_count + trampoline_stops &&
        memcmp(pcs + count - seen_count, seen_in_handler, seen_count * sizeof *pcs) == 0;
}

static void run_note(void)
{
    if (trampoline)
        plant();
    raise(SIGWINCH);
}

static void walk_in_the_signal_trampoline_finds_the_interrupted_code(void **state)
{
    (void)state;
    struct sigaction action = {.sa_sigaction = note_trampoline, .sa_flags = SA_SIGINFO};
    assert_int_equal(sigaction(SIGWINCH, &action, NULL), 0);
    run_note();
    assert_true(seen_count > 3);
    if ((uintptr_t)trampoline % 4096) {
        printf("SKIP: the vdso has the trampoline, which breakpoints cannot be set in\n");
        skip();
    }
    step_through(trampoline, (const char *)trampoline + 8, check_trampoline, run_note);
    printf("the trampoline: %u stops, %u right\n", trampoline_stops, trampoline_right);
    assert_true(trampoline_stops >= 2);
    assert_int_equal(trampoline_right, trampoline_stops);
}

/* ---- code without frame information: what is known is who called it ---- */

static uint64_t known[WALK_DEPTH]; /* known[0]: the call; then the callers of call_known */
static uint32_t known_count;
static uint32_t right, stops, by_frame_pointer;

static _Unwind_Reason_Code note_frame(struct _Unwind_Context *context, void *user)
{
    int is_exact = 0;
    uint64_t pc = _Unwind_GetIPInfo(context, &is_exact);
    uint32_t *skipped = user;
    if ((*skipped)++ > 0 && pc)
        known[known_count++] = pc - 1;
    return _URC_NO_REASON;
}

static void (*known_code)(void (*)(void));
static void (*known_argument)(void);

static void set_known_code(const void *code)
{
    memcpy(&known_code, &code, sizeof code);
}

__attribute__((noinline, noclone)) static void call_known(void)
{
    uint32_t skipped = 0;
    known_count = 1;
    _Unwind_Backtrace(note_frame, &skipped);
    plant();
    known_code(known_argument);
    sink = 1;
}

/* Walk; the first SKIPPED frames are the code's own, those behind are known. */
static void check_known(const ucontext_t *context, uint32_t skipped)
{
    uint64_t pcs[WALK_DEPTH];
    sp_walk walk = walk_interrupted(context, pcs);
    if (!known[0]) /* the first instruction: nothing has touched the link register */
        known[0] = walk.registers.link - 1;
    by_frame_pointer += walk.by_frame_pointer;
    bool is_right = walk.end == SP_WALK_COMPLETE && walk.count == skipped + known_count &&
                    memcmp(pcs + skipped, known, known_count * sizeof *known) == 0;
    right += is_right;
    if (!is_right && right == stops) {
        printf("  the first difference, end %d:\n", (int)walk.end);
        reference_print_stack("the walk", pcs, walk.count);
        reference_print_stack("known", known, known_count);
    }
    stops++;
}

static void check_leaf_of_known(const ucontext_t *context)
{
    check_known(context, 1);
}

static void check_callee_of_known(const ucontext_t *context)
{
    check_known(context, 2);
}

STEPPED(callee) static void callee(void)
{
    sink = leaf(2);
}

/* Code as a just-in-time compiler makes it, with frame records but without frame information. x0 is
 * whom to call. */
static const uint32_t jit_gcc[] = {
    0xa9be7bfd, /* stp x29, x30, [sp, #-32]! */
    0x910003fd, /* mov x29, sp */
    0xf9000be0, /* str x0, [sp, #16] */
    0xd63f0000, /* blr x0 */
    0xd503201f, /* nop */
    0xa8c27bfd, /* ldp x29, x30, [sp], #32 */
    0xd65f03c0, /* ret */
};
static const uint32_t jit_clang[] = {
    0xd503245f, /* bti c */
    0xd100c3ff, /* sub sp, sp, #48 */
    0xa9027bfd, /* stp x29, x30, [sp, #32] */
    0x910083fd, /* add x29, sp, #32 */
    0xd63f0000, /* blr x0 */
    0xa9427bfd, /* ldp x29, x30, [sp, #32] */
    0x9100c3ff, /* add sp, sp, #48 */
    0xd65f03c0, /* ret */
};
static const uint32_t jit_signed[] = {
    0xd503233f, /* paciasp */
    0xa9bf7bfd, /* stp x29, x30, [sp, #-16]! */
    0x910003fd, /* mov x29, sp */
    0xd63f0000, /* blr x0 */
    0xa8c17bfd, /* ldp x29, x30, [sp], #16 */
    0xd50323bf, /* autiasp */
    0xd65f03c0, /* ret */
};
static const uint32_t jit_leaf[] = {
    0xaa0003e1, /* mov x1, x0 */
    0xd10043ff, /* sub sp, sp, #16 */
    0xf90003e1, /* str x1, [sp] */
    0x910043ff, /* add sp, sp, #16 */
    0xd65f03c0, /* ret */
};

static void walk_jit(const char *name, const uint32_t *code, size_t bytes, bool calls)
{
    void *page =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(page, MAP_FAILED);
    memcpy(page, code, bytes);
    __builtin___clear_cache(page, (char *)page + bytes);
    set_known_code(page);
    known_argument = callee;
    stops = right = by_frame_pointer = 0;
    known[0] = 0;
    step_through(page, (char *)page + bytes, check_leaf_of_known, call_known);
    assert_int_equal(stops, bytes / 4);
    if (calls)
        step_through(__start_stepped_callee, __stop_stepped_callee, check_callee_of_known,
                     call_known);
    printf("%s: %u stops, %u right\n", name, stops, right);
    assert_int_equal(by_frame_pointer, stops);
    assert_int_equal(right, stops);
    munmap(page, 4096);
}

static void walk_through_code_without_table_follows_frame_records(void **state)
{
    (void)state;
    walk_jit("as gcc", jit_gcc, sizeof jit_gcc, true);
    walk_jit("as clang", jit_clang, sizeof jit_clang, true);
    walk_jit("signed", jit_signed, sizeof jit_signed, true);
    walk_jit("leaf", jit_leaf, sizeof jit_leaf, false);
}

/* ---- lazy binding: PLT entries have no frame information, and the loader's is odd ---- */

/* Nothing else here calls these two, so each is bound by the call in here. */
__asm__(".pushsection .text\n"
        ".balign 4\n"
        ".globl bind_one, bind_two\n"
        "bind_one: b llabs\n"
        "bind_two: b ffsll\n"
        ".popsection\n");
extern __attribute__((visibility("hidden"))) const uint32_t bind_one[], bind_two[];

static const uint32_t *branch_target(const uint32_t *branch)
{
    int32_t words = (int32_t)(*branch << 6) >> 6;
    return branch + words;
}

/* All entries stand behind the common part, which begins with stp x16, x30, [sp, #-16]!. */
static const uint32_t *find_plt(const uint32_t *entry)
{
    const uint32_t *common = entry;
    for (int i = 0; i < MAX_STEPPED - 8; i++, common--)
        if (*common == 0xa9bf7bf0)
            return common;
    return NULL;
}

static const uint32_t *plt, *resolver;

static void check_plt(const ucontext_t *context)
{
    const uint32_t *pc = (const uint32_t *)(uintptr_t)context->uc_mcontext.pc; // NOLINT
    check_leaf_of_known(context);
    if (pc < plt + 8 && *pc == 0xd61f0220)                                     /* br x17 */
        resolver = (const uint32_t *)(uintptr_t)context->uc_mcontext.regs[17]; // NOLINT
}

static void walk_in_lazy_binding_finds_the_caller(void **state)
{
    (void)state;
    const uint32_t *entry = branch_target(bind_one);
    plt = find_plt(entry);
    if (!plt) {
        printf("SKIP: this program is not bound lazily\n");
        skip();
    }
    set_known_code(entry);
    known_argument = NULL;
    stops = right = by_frame_pointer = 0;
    known[0] = 0;
    /* The first stop is in the entry, the next ones in the common part, of which the last jumps
     * into the loader. */
    step_through(plt, entry + 4, check_plt, call_known);
    printf("PLT: %u stops, %u right\n", stops, right);
    assert_int_equal(stops, 4 + 5);
    assert_int_equal(right, stops);
}

static void walk_in_the_resolver_finds_the_caller(void **state)
{
    (void)state;
    const uint32_t *end = resolver;
    if (!resolver) {
        printf("SKIP: this program is not bound lazily\n");
        skip();
    }
    while (*end != 0xd61f0200) /* br x16 */
        end++;
    set_known_code(branch_target(bind_two));
    stops = right = by_frame_pointer = 0;
    known[0] = 0;
    step_through(resolver, end + 1, check_leaf_of_known, call_known);
    printf("the loader's trampoline: %u stops, %u right\n", stops, right);
    assert_true(stops >= 20);
    /* Its frame information begins behind the first instruction, and tells nothing of what the PLT
     * entry pushed until there. */
    assert_int_equal(right, stops - 1);
}

static int set_up(void **state)
{
    /* Not deferred: the handler's own return may come to a breakpoint. */
    struct sigaction trap = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO | SA_NODEFER};
    struct sigaction user = {.sa_sigaction = compare_in_signal, .sa_flags = SA_SIGINFO};
    struct sigaction stepped_handler = {.sa_handler = handler};
    return walk_set_up(state) | sigaction(SIGTRAP, &trap, NULL) | sigaction(SIGUSR1, &user, NULL) |
           sigaction(SIGUSR2, &stepped_handler, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(walk_at_each_instruction_of_leaf_equals_libgcc),
        cmocka_unit_test(walk_at_each_instruction_of_framed_equals_libgcc),
        cmocka_unit_test(walk_at_each_instruction_of_dynamic_equals_libgcc),
        cmocka_unit_test(walk_at_each_instruction_of_large_equals_libgcc),
        cmocka_unit_test(walk_at_each_instruction_of_without_fp_equals_libgcc),
        cmocka_unit_test(walk_at_each_instruction_of_signed_a_equals_libgcc),
        cmocka_unit_test(walk_at_each_instruction_of_signed_b_equals_libgcc),
        cmocka_unit_test(walk_at_each_instruction_of_signed_leaf_equals_libgcc),
        cmocka_unit_test(walk_at_each_instruction_of_handler_equals_libgcc),
        cmocka_unit_test(walk_over_a_signal_frame_finds_the_caller_of_a_leaf),
        cmocka_unit_test(walk_in_the_signal_trampoline_finds_the_interrupted_code),
        cmocka_unit_test(walk_through_code_without_table_follows_frame_records),
        cmocka_unit_test(walk_in_lazy_binding_finds_the_caller),
        cmocka_unit_test(walk_in_the_resolver_finds_the_caller),
    };
    return cmocka_run_group_tests(tests, set_up, walk_tear_down);
}
#endif
