/* SPDX-License-Identifier: Apache-2.0 */
/* Walks at *every* instruction of some code: the processor's single-step flag raises SIGTRAP after
 * each. Prologues, epilogues, PLT entries, the lazy binding behind them and the vdso are all met,
 * which a timer hits once in a blue moon. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <ucontext.h>
#include <wchar.h>
#include <sys/mman.h>
#include <cmocka.h>

#if !defined(__x86_64__)
int main(void)
{
    puts("SKIPPED: a process cannot step itself on this machine (unit/unwind/walk_aarch64 goes by "
         "breakpoints)");
    return 77;
}
#else
#include "libraries.h"
#include "walk_reference.h"

#define TRAP_FLAG 0x100

static reference_score score;
static volatile sig_atomic_t stepping;
static void (*on_step)(const ucontext_t *context);

static void start_stepping(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)info;
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] |= TRAP_FLAG;
}

static void compare_step(const ucontext_t *context)
{
    reference_compare(&score, context);
}

static void step(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)info;
    if (stepping)
        on_step(context);
    else
        ((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
}

static void install(int number, void (*function)(int, siginfo_t *, void *))
{
    struct sigaction action = {.sa_sigaction = function, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigemptyset(&action.sa_mask);
    assert_int_equal(sigaction(number, &action, NULL), 0);
}

/* Run CODE with a walk at each instruction, then insist that none was wrong. */
static void step_through(const char *name, void (*code)(void))
{
    score = (reference_score){0};
    sp_modules_refresh(modules);
    generation = sp_generation_enter(modules, &hazard);
    on_step = compare_step;
    stepping = 1;
    raise(SIGUSR1);
    code();
    stepping = 0;
    reference_report(name, &score);
    assert_true(score.stops > 50);
    assert_int_equal(score.wrong, 0);
    assert_true(score.equal * 1000 >= score.stops * 999);
}

static int compare_ints(const void *left, const void *right)
{
    int a = *(const int *)left, b = *(const int *)right;
    return a < b ? -1 : a > b;
}

static void sort_numbers(void)
{
    int numbers[40];
    for (int i = 0; i < 40; i++)
        numbers[i] = i * 7919 % 101;
    qsort(numbers, 40, sizeof *numbers, compare_ints);
}

static volatile double sink;

static void print_numbers(void)
{
    char text[200];
    snprintf(text, sizeof text, "%d %s %.17g %Lf", 12, "words", 1.0 / 3, 2.5L);
    sink = strtod(text, NULL);
}

/* None of these is called anywhere else in this program: the first call goes through the loader. */
static void call_lazily(void)
{
    wchar_t wide[8];
    sink = wcstol(L"17", NULL, 10);
    wmemset(wide, L'x', 8);
    sink = (double)mblen("x", 1) + (double)labs(-3) + (double)lldiv(17, 5).rem;
    sink = a64l("abc");
}

static void read_clocks(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    clock_gettime(CLOCK_REALTIME, &now);
    sink = (double)time(NULL);
}

__attribute__((noinline)) static void use_array(volatile char *array, int size)
{
    for (int i = 0; i < size; i += 16)
        array[i] = (char)i;
}

__attribute__((noinline)) static void make_frames(int depth)
{
    volatile char variable[16 * depth + 16];
    use_array(variable, 16 * depth);
    use_array(__builtin_alloca(64), 64);
    if (depth > 0)
        make_frames(depth - 1);
    variable[0] = 1;
}

static void use_dynamic_frames(void)
{
    make_frames(12);
}

/* A vector on the stack with more alignment than the ABI gives: the frame is realigned, its CFA is
 * behind a pointer. */
__attribute__((noinline)) static void realign(int depth)
{
    volatile char aligned[256] __attribute__((aligned(128)));
    use_array(aligned, 256);
    if (depth > 0)
        realign(depth - 1);
    aligned[1] = 1;
}

static void use_realigned_frames(void)
{
    realign(5);
}

/* In the last instructions of longjmp the registers of two frames are mixed: the walk may end in
 * doubt there. */
static void jump_far(void)
{
    static jmp_buf back;
    sort_numbers();
    sort_numbers();
    if (setjmp(back) == 0)
        longjmp(back, 1);
}

static void on_user_signal(int number)
{
    (void)number;
    sort_numbers();
}

static void handle_signal(void)
{
    raise(SIGUSR2);
}

#define STEP_TEST(function)                                                                        \
    static void walk_at_each_instruction_of_##function##_equals_libgcc(void **state)               \
    {                                                                                              \
        (void)state;                                                                               \
        step_through(#function, function);                                                         \
    }
STEP_TEST(sort_numbers)
STEP_TEST(print_numbers)
STEP_TEST(call_lazily)
STEP_TEST(read_clocks)
STEP_TEST(use_dynamic_frames)
STEP_TEST(use_realigned_frames)
STEP_TEST(jump_far)
STEP_TEST(handle_signal)

static int (*zlib_compress)(void *, unsigned long *, const void *, unsigned long);

static void compress_text(void)
{
    static char text[300], out[1000];
    memset(text, 'a', sizeof text / 2);
    unsigned long size = sizeof out;
    zlib_compress(out, &size, text, sizeof text);
}

static void query_database(void)
{
    run_sql("select a, count(*) from t where a > 1 group by a order by 2");
}

static void walk_at_each_instruction_of_zlib_equals_libgcc(void **state)
{
    (void)state;
    *(void **)&zlib_compress = find_function("libz.so.1", "compress");
    step_through("zlib compress", compress_text);
}

static void walk_at_each_instruction_of_sqlite_equals_libgcc(void **state)
{
    (void)state;
    open_database("create table t(a, b); insert into t values (1, 2), (2, 3), (3, 4), (3, 5)");
    step_through("sqlite query", query_database);
    close_database();
}

/* Machine code without frame information that keeps a frame pointer and calls its argument, as a
 * just-in-time compiler's. */
static const uint8_t jit_code[] = {
    0xf3, 0x0f, 0x1e, 0xfa, /* endbr64 */
    0x55,                   /* push %rbp */
    0x48, 0x89, 0xe5,       /* mov %rsp, %rbp */
    0x53, 0x50,             /* push %rbx; push %rax */
    0xff, 0xd7,             /* call *%rdi */
    0x58, 0x5b,             /* pop %rax; pop %rbx */
    0x5d, 0xc3,             /* pop %rbp; ret */
};
static void (*jit)(void (*)(void));
static uint64_t jit_caller;
static uint32_t jit_stops, jit_right;

static void check_jit_step(const ucontext_t *context)
{
    uint64_t pcs[WALK_DEPTH];
    uint64_t offset = sp_registers_from_ucontext(context).pc - (uint64_t)(uintptr_t)jit;
    if (offset >= sizeof jit_code)
        return;
    sp_walk walk = walk_interrupted(context, pcs);
    jit_stops++;
    jit_right += walk.end == SP_WALK_COMPLETE && walk.count > 3 && pcs[1] == jit_caller &&
                 walk.by_frame_pointer == 1;
}

static void called_by_jit(void)
{
    sink = 1;
}

__attribute__((noinline)) static void call_jit(void)
{
    jit(called_by_jit);
    sink = 2;
}

/* Learn the caller's pc from the return address that the first instruction finds on the stack. */
static void learn_jit_caller(const ucontext_t *context)
{
    if ((uint64_t)context->uc_mcontext.gregs[REG_RIP] == (uint64_t)(uintptr_t)jit)
        jit_caller = *(const uint64_t *)(uintptr_t)context->uc_mcontext.gregs[REG_RSP] - 1;
}

static void walk_through_code_without_table_follows_frame_pointers(void **state)
{
    (void)state;
    void *page =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(page, MAP_FAILED);
    memcpy(page, jit_code, sizeof jit_code);
    *(void **)&jit = page;
    on_step = learn_jit_caller;
    stepping = 1;
    raise(SIGUSR1);
    call_jit();
    on_step = check_jit_step;
    call_jit();
    stepping = 0;
    printf("code without table: %u stops, %u right\n", jit_stops, jit_right);
    assert_true(jit_stops >= 10);
    /* Behind `pop %rbp` sits the return, which is recognized; `pop %rbx` is inside the frame. All
     * are right. */
    assert_int_equal(jit_right, jit_stops);
    munmap(page, 4096);
}

/* libgcc itself crashes behind the first frame of a fiber, so it is no reference here: what is
 * known is that fiber_main calls sort_numbers. Fibers' stacks are outside the thread's bounds. */
static ucontext_t fiber, outside;
static char fiber_stack[65536];
static uint32_t fiber_stops, fiber_right, fiber_ends[8];
static uint64_t fiber_call;

__attribute__((noinline)) static void sort_on_fiber(void)
{
    fiber_call = (uint64_t)(uintptr_t)__builtin_return_address(0) - 1;
    sort_numbers();
    sink = 3;
}

static void fiber_main(void)
{
    sort_on_fiber();
    swapcontext(&fiber, &outside);
    sort_on_fiber();
    sink = 4;
}

static void check_fiber_step(const ucontext_t *context)
{
    uint64_t pcs[WALK_DEPTH];
    uint64_t offset = sp_registers_from_ucontext(context).sp - (uint64_t)(uintptr_t)fiber_stack;
    if (offset >= sizeof fiber_stack - 256)
        return;
    sp_walk walk = walk_interrupted(context, pcs);
    fiber_stops++;
    fiber_ends[walk.end]++;
    for (uint32_t i = 0; i < walk.count; i++)
        if (pcs[i] == fiber_call) {
            fiber_right++;
            return;
        }
}

static void walk_on_a_fiber_finds_its_frames(void **state)
{
    (void)state;
    getcontext(&fiber);
    fiber.uc_stack.ss_sp = fiber_stack;
    fiber.uc_stack.ss_size = sizeof fiber_stack;
    fiber.uc_link = &outside;
    makecontext(&fiber, fiber_main, 0);
    on_step = check_fiber_step;
    stepping = 1;
    raise(SIGUSR1);
    swapcontext(&outside, &fiber);
    swapcontext(&outside, &fiber);
    stepping = 0;
    printf("fiber: %u stops, %u right; ends", fiber_stops, fiber_right);
    for (int i = 0; i < 6; i++)
        printf(" %u", fiber_ends[i]);
    printf("\n");
    assert_true(fiber_stops > 1000);
    assert_true(fiber_right * 100 >= fiber_stops * 99);
}

static int set_up(void **state)
{
    install(SIGUSR1, start_stepping);
    install(SIGTRAP, step);
    signal(SIGUSR2, on_user_signal);
    return walk_set_up(state) == 0 && bounds.high > bounds.low ? 0 : -1;
}

int main(void)
{
#if defined(__SANITIZE_THREAD__)
    puts("SKIPPED: TSan delivers signals late, so a stack is not the one of the moment of the "
         "signal");
    return 77;
#endif
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(walk_at_each_instruction_of_sort_numbers_equals_libgcc),
        cmocka_unit_test(walk_at_each_instruction_of_print_numbers_equals_libgcc),
        cmocka_unit_test(walk_at_each_instruction_of_call_lazily_equals_libgcc),
        cmocka_unit_test(walk_at_each_instruction_of_read_clocks_equals_libgcc),
        cmocka_unit_test(walk_at_each_instruction_of_use_dynamic_frames_equals_libgcc),
        cmocka_unit_test(walk_at_each_instruction_of_use_realigned_frames_equals_libgcc),
        cmocka_unit_test(walk_at_each_instruction_of_jump_far_equals_libgcc),
        cmocka_unit_test(walk_at_each_instruction_of_handle_signal_equals_libgcc),
        cmocka_unit_test(walk_at_each_instruction_of_zlib_equals_libgcc),
        cmocka_unit_test(walk_at_each_instruction_of_sqlite_equals_libgcc),
        cmocka_unit_test(walk_on_a_fiber_finds_its_frames),
        cmocka_unit_test(walk_through_code_without_table_follows_frame_pointers),
    };
    return cmocka_run_group_tests(tests, set_up, walk_tear_down);
}
#endif
