/* SPDX-License-Identifier: Apache-2.0 */
/* Walks from a timer's signal handler at random places of real work, each compared with libgcc's. A
 * workload runs until it was stopped often enough, however long that takes. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/time.h>
#include <cmocka.h>

#include "core/clock.h"
#include "libraries.h"
#include "walk_reference.h"

#define STOPS_WANTED 600

#if defined(__clang__)
#define NOT_OPTIMIZED    __attribute__((noinline, optnone))
#define NO_FRAME_POINTER __attribute__((noinline))
#else
#define NOT_OPTIMIZED    __attribute__((noinline, optimize("O0")))
#define NO_FRAME_POINTER __attribute__((noinline, optimize("O2", "omit-frame-pointer")))
#endif

static reference_score score;
static volatile uint64_t sink;

static volatile long tick_us;

/* Once: the next is set when a tick has been looked at, or a slow machine would do nothing but
 * tick. */
static void set_timer(long microseconds)
{
    struct itimerval once = {.it_value.tv_usec = microseconds};
    tick_us = microseconds;
    setitimer(ITIMER_REAL, &once, NULL);
}

static void on_tick(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)info;
    generation = sp_generation_enter(modules, &hazard);
    reference_compare(&score, context);
    sp_generation_leave(&hazard);
    if (tick_us)
        set_timer(tick_us);
}

/* Tick while WORK runs, then insist that no stack was wrong and nearly all were whole. */
static void sample(const char *name, void (*work)(void))
{
    score = (reference_score){0};
    bounds = sp_stack_bounds_of_self();
    sp_modules_refresh(modules);
    set_timer(250);
    while (*(volatile uint64_t *)&score.stops < STOPS_WANTED)
        work();
    set_timer(0);
    generation = sp_generation_enter(modules, &hazard);
    reference_report(name, &score);
    sp_generation_leave(&hazard);
    assert_int_equal(score.wrong, 0);
    assert_true((score.equal + score.unknown) * 1000 >= score.stops * 999);
}

__attribute__((noinline)) static uint64_t recurse(unsigned depth)
{
    uint64_t sum = depth;
    for (unsigned i = 0; i < 50; i++)
        sum += sink ^ i;
    if (depth > 0)
        sum += recurse(depth - 1) + recurse(depth - 1);
    return sum;
}

static void work_recursion(void)
{
    sink = recurse(10);
}

static int compare_ints(const void *left, const void *right)
{
    int a = *(const int *)left, b = *(const int *)right;
    return a < b ? -1 : a > b;
}

static void work_qsort(void)
{
    static int numbers[5000];
    for (int i = 0; i < 5000; i++)
        numbers[i] = i * 7919 % 5003;
    qsort(numbers, 5000, sizeof *numbers, compare_ints);
}

NO_FRAME_POINTER static uint64_t without_frame_pointer(const uint8_t *bytes, unsigned depth)
{
    uint64_t a = 1, b = 2, c = 3, d = 4, e = 5, f = 6;
    for (unsigned i = 0; i < 64; i++) {
        a += bytes[i] * f;
        b ^= a << 3;
        c += b >> 5;
        d ^= c * 31;
        e += d;
        f ^= e + a;
    }
    uint64_t deeper = depth ? without_frame_pointer(bytes, depth - 1) : 0;
    return a + b + c + d + e + f + deeper;
}

static void work_without_frame_pointer(void)
{
    static const uint8_t bytes[64] = {1, 2, 3};
    sink = without_frame_pointer(bytes, 30);
}

NOT_OPTIMIZED static uint64_t not_optimized(unsigned depth)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < 100; i++)
        sum = sum * 3 + i;
    return depth ? sum + not_optimized(depth - 1) : sum;
}

static void work_not_optimized(void)
{
    sink = not_optimized(20);
}

__attribute__((noinline)) static uint64_t dynamic_frame(unsigned depth)
{
    volatile uint8_t variable[depth * 24 + 8];
    volatile uint8_t *more = __builtin_alloca(depth * 8 + 16);
    for (unsigned i = 0; i < depth * 8; i++)
        variable[i] = more[i] = (uint8_t)i;
    return depth ? variable[1] + dynamic_frame(depth - 1) : more[0];
}

static void work_dynamic_frames(void)
{
    sink = dynamic_frame(25);
}

static void work_format(void)
{
    char text[200];
    for (int i = 0; i < 50; i++) {
        snprintf(text, sizeof text, "%d %.17g %s", i, 1.0 / (i + 1), "words");
        sink = (uint64_t)strtod(text, NULL);
    }
}

static void work_malloc(void)
{
    void *blocks[64];
    for (int i = 0; i < 64; i++)
        blocks[i] = malloc((size_t)i * 100 + 1);
    for (int i = 0; i < 64; i++)
        free(blocks[i]);
}

static void on_user_signal(int number)
{
    (void)number;
    work_recursion();
}

static void work_in_signal_handler(void)
{
    raise(SIGUSR1);
}

#define WORK_TEST(work)                                                                            \
    static void walk_in_##work##_equals_libgcc(void **state)                                       \
    {                                                                                              \
        (void)state;                                                                               \
        sample(#work, work);                                                                       \
    }
WORK_TEST(work_recursion)
WORK_TEST(work_qsort)
WORK_TEST(work_without_frame_pointer)
WORK_TEST(work_not_optimized)
WORK_TEST(work_dynamic_frames)
WORK_TEST(work_format)
WORK_TEST(work_malloc)

static void walk_on_an_alternate_stack_crosses_to_the_interrupted_one(void **state)
{
    (void)state;
    static char memory[256 * 1024];
    stack_t alternate = {.ss_sp = memory, .ss_size = sizeof memory};
    stack_t none = {.ss_flags = SS_DISABLE};
    struct sigaction action = {.sa_handler = on_user_signal, .sa_flags = SA_ONSTACK};
    assert_int_equal(sigaltstack(&alternate, NULL), 0);
    assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
    sample("handler on alternate stack", work_in_signal_handler);
    assert_int_equal(sigaltstack(&none, NULL), 0);
    sample("handler on own stack", work_in_signal_handler);
}

static void *thread_main(void *unused)
{
    (void)unused;
    sample("recursion in a thread", work_recursion);
    return NULL;
}

/* The main thread blocks the signal, so that the ticks reach the other one. */
static void walk_in_a_thread_ends_at_its_start(void **state)
{
    (void)state;
    sigset_t alarms;
    pthread_t thread;
    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    assert_int_equal(pthread_create(&thread, NULL, thread_main, NULL), 0);
    pthread_sigmask(SIG_BLOCK, &alarms, NULL);
    pthread_join(thread, NULL);
    pthread_sigmask(SIG_UNBLOCK, &alarms, NULL);
    assert_int_equal(score.wrong, 0);
    assert_true(score.stops >= STOPS_WANTED);
}

static int (*zlib_compress)(void *, unsigned long *, const void *, unsigned long, int);

static void work_compress(void)
{
    static uint8_t text[40000], out[50000];
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (uint8_t)("spans and stacks"[i * i % 16] + i % 7);
    unsigned long size = sizeof out;
    zlib_compress(out, &size, text, sizeof text, 9);
}

static void work_query(void)
{
    run_sql("select x.a, count(*), group_concat(y.b) from t x join t y on x.a = y.b "
            "group by x.a % 13 order by 2");
}

static void walk_in_zlib_equals_libgcc(void **state)
{
    (void)state;
    *(void **)&zlib_compress = find_function("libz.so.1", "compress2");
    sample("zlib", work_compress);
}

static void walk_in_sqlite_equals_libgcc(void **state)
{
    (void)state;
    open_database("create table t(a, b); with recursive n(i) as (select 1 union all select i + 1 "
                  "from n where i < 500) insert into t select i, i * 7 % 500 from n");
    sample("sqlite", work_query);
    close_database();
}

/* A chain of calls that knows its own return addresses, without anybody else's unwinder. */
static uint64_t chain[4], found[WALK_DEPTH];
static sp_walk chain_walk;

static void on_chain_signal(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)info;
    chain_walk.registers = sp_registers_from_ucontext(context);
    sp_walk_stack(&chain_walk);
}

#define RETURN_ADDRESS ((uint64_t)(uintptr_t)__builtin_return_address(0) - 1)

__attribute__((noinline)) static void chain_leaf(void)
{
    chain[0] = RETURN_ADDRESS;
    raise(SIGUSR2);
    sink = 1;
}

__attribute__((noinline)) static void chain_middle(void)
{
    chain[1] = RETURN_ADDRESS;
    chain_leaf();
    sink = 2;
}

__attribute__((noinline)) static void chain_outer(void)
{
    chain[2] = RETURN_ADDRESS;
    chain_middle();
    sink = 3;
}

/* The next SIGUSR2 runs HANDLER, which walks as chain_walk says. */
static void prepare_chain_walk(void (*handler)(int, siginfo_t *, void *), uint32_t max_depth,
                               sp_stack_bounds stack)
{
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
    assert_int_equal(sigaction(SIGUSR2, &action, NULL), 0);
    chain_walk = (sp_walk){.generation = sp_generation_enter(modules, &hazard),
                           .bounds = stack,
                           .pcs = found,
                           .max_depth = max_depth};
}

static void take_chain(uint32_t max_depth, sp_stack_bounds stack)
{
    prepare_chain_walk(on_chain_signal, max_depth, stack);
    chain_outer();
    sp_generation_leave(&hazard);
}

static bool has_chain(void)
{
    for (uint32_t i = 0; i + 3 <= chain_walk.count; i++)
        if (memcmp(&found[i], chain, 3 * sizeof *chain) == 0)
            return true;
    return false;
}

static void walk_of_known_calls_yields_their_return_addresses(void **state)
{
    (void)state;
    take_chain(WALK_DEPTH, sp_stack_bounds_of_self());
    assert_int_equal(chain_walk.end, SP_WALK_COMPLETE);
    assert_int_equal(chain_walk.by_frame_pointer, 0);
    assert_true(has_chain());
}

static void walk_without_bounds_yields_the_same(void **state)
{
    (void)state;
    take_chain(WALK_DEPTH, (sp_stack_bounds){0});
    assert_int_equal(chain_walk.end, SP_WALK_COMPLETE);
    assert_true(has_chain());
}

static void walk_without_room_for_both_ends_keeps_the_leaf(void **state)
{
    (void)state;
    take_chain(2, sp_stack_bounds_of_self());
    assert_int_equal(chain_walk.end, SP_WALK_TRUNCATED);
    assert_int_equal(chain_walk.count, 2);
    take_chain(1, sp_stack_bounds_of_self());
    assert_int_equal(chain_walk.end, SP_WALK_TRUNCATED);
    assert_int_equal(chain_walk.count, 1);
}

/* chain[0]: in the handler; chain[1]: the trampoline, to which it returns. */
__attribute__((noinline)) static void raise_in_handler(void)
{
    chain[0] = RETURN_ADDRESS;
    raise(SIGUSR2);
    sink = 5;
}

static void on_outer_signal(int number)
{
    (void)number;
    chain[1] = RETURN_ADDRESS;
    raise_in_handler();
    sink = 6;
}

static void walk_of_a_handler_names_the_frame_that_it_returns_to(void **state)
{
    (void)state;
    struct sigaction outer = {.sa_handler = on_outer_signal};
    assert_int_equal(sigaction(SIGUSR1, &outer, NULL), 0);
    prepare_chain_walk(on_chain_signal, WALK_DEPTH, sp_stack_bounds_of_self());
    raise(SIGUSR1);
    sp_generation_leave(&hazard);
    assert_int_equal(chain_walk.end, SP_WALK_COMPLETE);
    uint32_t at = 1;
    while (at < chain_walk.count && found[at - 1] != chain[0])
        at++;
    assert_true(at < chain_walk.count);
    assert_true(found[at] == SP_PC_SIGNAL_HANDLER);
    for (uint32_t i = 0; i < chain_walk.count; i++)
        assert_true(found[i] != chain[1]);
}

/* Deeper than the limit: DEPTH calls of one function below main and this one. */
__attribute__((noinline)) static void descend_to(int depth)
{
    if (depth > 0)
        descend_to(depth - 1);
    else
        raise(SIGUSR2);
    sink = 4;
}

static void take_recursion(int depth, uint32_t max_depth)
{
    prepare_chain_walk(on_chain_signal, max_depth, sp_stack_bounds_of_self());
    descend_to(depth);
    sp_generation_leave(&hazard);
}

/* Both ends of the whole stack, at each limit and depth around where the ring behind the gap
 * begins, fills and turns. */
static void walk_deeper_than_its_limit_keeps_both_ends(void **state)
{
    (void)state;
    static uint64_t whole[WALK_DEPTH];
    for (int depth = 0; depth < 60; depth++) {
        take_recursion(depth, WALK_DEPTH);
        assert_int_equal(chain_walk.end, SP_WALK_COMPLETE);
        assert_int_equal(chain_walk.omitted, 0);
        assert_int_equal(chain_walk.leaf_count, chain_walk.count);
        uint32_t count = chain_walk.count;
        memcpy(whole, found, count * sizeof *whole);
        for (uint32_t limit = 4; limit < 50; limit++) {
            take_recursion(depth, limit);
            assert_int_equal(chain_walk.end, SP_WALK_COMPLETE);
            assert_int_equal(chain_walk.count, count < limit ? count : limit);
            assert_int_equal(chain_walk.omitted, count - chain_walk.count);
            uint32_t leaf = chain_walk.leaf_count, root = chain_walk.count - leaf;
            assert_int_equal(root, count > limit ? limit / 4 : 0);
            /* the call of take_recursion is another one, and so is what is above it */
            assert_memory_equal(found, whole, (leaf < 3 ? leaf : 3) * sizeof *found);
            for (uint32_t i = 1; i <= root && i <= 3; i++)
                assert_true(found[chain_walk.count - i] == whole[count - i]);
            for (uint32_t i = 3; i + 6 < leaf && i < (uint32_t)depth; i++)
                assert_true(found[i] == whole[i]);
        }
    }
}

/* One frame for each level: equal neighbours are not merged. */
static void walk_of_a_recursion_has_a_frame_for_each_level(void **state)
{
    (void)state;
    enum { LEVELS = 60 };
    take_recursion(LEVELS, WALK_DEPTH);
    assert_int_equal(chain_walk.end, SP_WALK_COMPLETE);
    uint32_t longest = 0, run = 1;
    for (uint32_t i = 1; i < chain_walk.count; i++) {
        run = found[i] == found[i - 1] ? run + 1 : 1;
        longest = run > longest ? run : longest;
    }
    assert_int_equal(longest, LEVELS);
}

static void walk_of_endless_recursion_keeps_the_leaf(void **state)
{
    (void)state;
    take_recursion(SP_WALK_STEPS_MAX + 10, 64);
    assert_int_equal(chain_walk.end, SP_WALK_TRUNCATED);
    assert_int_equal(chain_walk.count, 48);
    assert_int_equal(chain_walk.omitted, 0);
    take_recursion(SP_WALK_STEPS_MAX / 2, 64);
    assert_int_equal(chain_walk.end, SP_WALK_COMPLETE);
    assert_int_equal(chain_walk.count, 64);
    assert_in_range(chain_walk.omitted, SP_WALK_STEPS_MAX / 2 - 64, SP_WALK_STEPS_MAX / 2);
}

/* What a walk of some 26 frames costs: printed, not judged. */
static void measure(const char *what, sp_stack_bounds stack, sp_walk walk)
{
    enum { ROUNDS = 20000 };
    walk.bounds = stack;
    uint64_t begin = sp_clock_monotonic_ns();
    for (int i = 0; i < ROUNDS; i++)
        sp_walk_stack(&walk);
    uint64_t spent = sp_clock_monotonic_ns() - begin;
    printf("%s: %lu ns for %u frames\n", what, (unsigned long)(spent / ROUNDS), walk.count);
}

static void on_measure(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)info;
    sp_walk walk = chain_walk;
    walk.registers = sp_registers_from_ucontext(context);
    measure("walk on the thread's own stack", walk.bounds, walk);
    measure("walk with guarded loads", (sp_stack_bounds){0}, walk);
    sp_walk_stack(&walk);
    chain_walk.count = walk.count;
}

__attribute__((noinline)) static void descend(unsigned depth)
{
    if (depth)
        descend(depth - 1);
    else
        raise(SIGUSR2);
    sink = depth;
}

static void walk_of_26_frames_tells_its_cost(void **state)
{
    (void)state;
    prepare_chain_walk(on_measure, WALK_DEPTH, sp_stack_bounds_of_self());
    descend(15);
    sp_generation_leave(&hazard);
    assert_true(chain_walk.count >= 20);
}

static int set_up(void **state)
{
    struct sigaction action = {.sa_sigaction = on_tick,
                               .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
    return walk_set_up(state) | sigaction(SIGALRM, &action, NULL);
}

int main(void)
{
#if defined(__SANITIZE_THREAD__)
    puts("SKIPPED: TSan delivers signals late, so a stack is not the one of the moment of the "
         "signal");
    return 77;
#endif
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(walk_of_known_calls_yields_their_return_addresses),
        cmocka_unit_test(walk_without_bounds_yields_the_same),
        cmocka_unit_test(walk_without_room_for_both_ends_keeps_the_leaf),
        cmocka_unit_test(walk_of_a_handler_names_the_frame_that_it_returns_to),
        cmocka_unit_test(walk_deeper_than_its_limit_keeps_both_ends),
        cmocka_unit_test(walk_of_a_recursion_has_a_frame_for_each_level),
        cmocka_unit_test(walk_of_endless_recursion_keeps_the_leaf),
        cmocka_unit_test(walk_in_work_recursion_equals_libgcc),
        cmocka_unit_test(walk_in_work_qsort_equals_libgcc),
        cmocka_unit_test(walk_in_work_without_frame_pointer_equals_libgcc),
        cmocka_unit_test(walk_in_work_not_optimized_equals_libgcc),
        cmocka_unit_test(walk_in_work_dynamic_frames_equals_libgcc),
        cmocka_unit_test(walk_in_work_format_equals_libgcc),
        cmocka_unit_test(walk_in_work_malloc_equals_libgcc),
        cmocka_unit_test(walk_in_zlib_equals_libgcc),
        cmocka_unit_test(walk_in_sqlite_equals_libgcc),
        cmocka_unit_test(walk_on_an_alternate_stack_crosses_to_the_interrupted_one),
        cmocka_unit_test(walk_in_a_thread_ends_at_its_start),
        cmocka_unit_test(walk_of_26_frames_tells_its_cost),
    };
    return cmocka_run_group_tests(tests, set_up, walk_tear_down);
}
