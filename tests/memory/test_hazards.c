/* SPDX-License-Identifier: Apache-2.0 */
/* What a program does with its allocator, under sampling of nearly every block, and ticks at a high
 * rate beside: calls do what they did before, nothing hangs, nothing crashes. Started with
 * libspanprof-preload.so by LD_PRELOAD. */
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include <spanprof/spanprof.h>

#define HIDE(value) __asm__ volatile("" : "+r"(value) : : "memory")

static spanprof_stats stats_now(void)
{
    spanprof_stats stats = SPANPROF_STATS_INIT;
    assert_int_equal(spanprof_flush(UINT64_MAX), SPANPROF_OK);
    spanprof_stats_get(&stats);
    return stats;
}

static uint64_t calls_of(const spanprof_stats *stats)
{
    return stats->calls_linked + stats->calls_none + stats->calls_unknown + stats->dropped_calls;
}

/* BYTES as one period after the other, for about one block in COUNT. */
static int start_with(const char *profiles, uint32_t bytes)
{
    spanprof_options options = SPANPROF_OPTIONS_INIT;
    options.exporter = "none";
    options.profiles = profiles;
    options.alloc_bytes = bytes;
    options.cpu_hz = 10000;
    return spanprof_start(&options, NULL) == SPANPROF_OK ? 0 : -1;
}

static int start(void **state)
{
    (void)state;
    return start_with("cpu,alloc,heap", 64);
}

static int stop(void **state)
{
    (void)state;
    return spanprof_stop(UINT64_MAX) == SPANPROF_OK ? 0 : -1;
}

static void each_call_returns_what_it_did_before(void **state)
{
    (void)state;
    void *block = NULL;
    for (size_t bytes = 1; bytes < 1000000; bytes = bytes * 3 + 1) {
        block = calloc(3, bytes);
        assert_non_null(block);
        for (size_t i = 0; i < 3 * bytes; i++)
            assert_int_equal(((char *)block)[i], 0);
        memset(block, 7, 3 * bytes);
        block = realloc(block, 5 * bytes);
        assert_int_equal(((char *)block)[3 * bytes - 1], 7);
        assert_true(malloc_usable_size(block) >= 5 * bytes);
        block = reallocarray(block, 2, bytes);
        assert_int_equal(((char *)block)[2 * bytes - 1], 7);
        free(block);
        assert_int_equal(posix_memalign(&block, 256, bytes), 0);
        assert_int_equal((uintptr_t)block % 256, 0);
        free(block);
        block = aligned_alloc(512, 512 * (1 + bytes / 512));
        assert_int_equal((uintptr_t)block % 512, 0);
        free(block);
        block = memalign(1024, bytes);
        assert_int_equal((uintptr_t)block % 1024, 0);
        free(block);
        block = valloc(bytes);
        assert_int_equal((uintptr_t)block % (uintptr_t)getpagesize(), 0);
        free(block);
        block = pvalloc(bytes);
        assert_int_equal((uintptr_t)block % (uintptr_t)getpagesize(), 0);
        free(block);
    }
    free(NULL);
    spanprof_stats stats = stats_now();
    assert_true(stats.calls_none > 50);
}

static void errno_is_kept_where_the_call_keeps_it(void **state)
{
    (void)state;
    for (int i = 0; i < 1000; i++) {
        errno = 77;
        void *block = malloc(4096);
        assert_int_equal(errno, 77);
        free(block);
        assert_int_equal(errno, 77);
    }
}

static void call_that_fails_does_so_as_the_plain_one(void **state)
{
    (void)state;
    size_t much = PTRDIFF_MAX - 4096, half = SIZE_MAX / 2;
    HIDE(much);
    HIDE(half);
    char *block = malloc(100000);
    char *same = block; /* what the compiler knows of realloc does not hold where it fails */
    HIDE(same);
    strcpy(block, "stays");
    errno = 0;
    assert_null(malloc(much));
    assert_int_equal(errno, ENOMEM);
    errno = 0;
    assert_null(calloc(half, 3));
    assert_int_equal(errno, ENOMEM);
    errno = 0;
    assert_null(realloc(block, much));
    assert_int_equal(errno, ENOMEM);
    errno = 0;
    assert_null(reallocarray(block, half, 3));
    assert_int_equal(errno, ENOMEM);
    assert_string_equal(same, "stays");
    void *aligned = NULL;
    assert_int_equal(posix_memalign(&aligned, 64, much), ENOMEM);
    assert_int_equal(posix_memalign(&aligned, 3, 100), EINVAL);
    free(same);
}

/* A block that could not be reallocated is live until it is freed. */
static void block_that_is_reallocated_is_live_once(void **state)
{
    (void)state;
    uint64_t before = stats_now().live_blocks;
    size_t much = PTRDIFF_MAX - 4096;
    HIDE(much);
    char *block = malloc(1 << 20); /* sampled for certain: exp(-16384) */
    assert_int_equal(stats_now().live_blocks, before + 1);
    assert_null(realloc(block, much));
    assert_int_equal(stats_now().live_blocks, before + 1);
    block = realloc(block, 8 << 20);
    assert_int_equal(stats_now().live_blocks, before + 1);
    block = realloc(block, 1 << 20);
    assert_int_equal(stats_now().live_blocks, before + 1);
    free(block);
    assert_int_equal(stats_now().live_blocks, before);
}

static void *free_it(void *block)
{
    free(block);
    return NULL;
}

static void block_that_another_thread_frees_is_gone(void **state)
{
    (void)state;
    pthread_t thread;
    /* what the C library keeps of its first thread */
    assert_int_equal(pthread_create(&thread, NULL, free_it, NULL), 0);
    pthread_join(thread, NULL);
    uint64_t before = stats_now().live_blocks;
    void *block = malloc(1 << 20);
    assert_int_equal(stats_now().live_blocks, before + 1);
    assert_int_equal(pthread_create(&thread, NULL, free_it, block), 0);
    pthread_join(thread, NULL);
    assert_int_equal(stats_now().live_blocks, before);
}

static _Atomic int done;

static void *allocate_until_done(void *unused)
{
    (void)unused;
    void *kept[64] = {NULL};
    for (unsigned i = 0; !done; i++) {
        free(kept[i % 64]);
        kept[i % 64] = malloc(16 + i % 5000);
    }
    for (int i = 0; i < 64; i++)
        free(kept[i]);
    return NULL;
}

enum { SHELF = 4096, OPERATIONS = 300000, OWNERS = 8 };

/* Blocks of all threads; each begins with its size. */
static _Atomic(size_t *) shelf[SHELF];

static void *exchange_blocks(void *argument)
{
    uint64_t random = (uint64_t)(uintptr_t)argument + 1;
    for (int i = 0; i < OPERATIONS; i++) {
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
        size_t bytes = 16 + (random >> 33) % 3000;
        size_t *block = malloc(bytes);
        if (i % 8 == 0)
            block = realloc(block, bytes = 16 + bytes / 2);
        *block = bytes;
        free(atomic_exchange(&shelf[(random >> 20) % SHELF], block));
    }
    return NULL;
}

/* At a period of 32 KiB. Each thread frees what others have allocated, addresses are used again at
 * once. */
static void live_blocks_are_those_that_no_thread_has_freed(void **state)
{
    (void)state;
    pthread_t threads[OWNERS];
    double expected = 0, variance = 0;
    assert_int_equal(start_with("cpu,heap", 32768), 0);
    uint64_t before = stats_now().live_blocks;
    for (uintptr_t i = 0; i < OWNERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, exchange_blocks, (void *)i),
                         0); // NOLINT
    for (int i = 0; i < OWNERS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < SHELF; i++)
        if (shelf[i]) {
            double sampled = -expm1(-(double)*shelf[i] / 32768);
            expected += sampled;
            variance += sampled * (1 - sampled);
        }
    spanprof_stats stats = stats_now();
    printf("%llu live blocks, expected %.0f +- %.0f; %llu samples, %llu dropped\n",
           (unsigned long long)(stats.live_blocks - before), expected, sqrt(variance),
           (unsigned long long)calls_of(&stats), (unsigned long long)stats.dropped_calls);
    /* What the rings drop is not live for the table either; the C library keeps a block or two for
     * its threads. */
    assert_true((double)(stats.live_blocks - before) < expected + 6 * sqrt(variance) + OWNERS);
    if (stats.dropped_calls == 0)
        assert_true((double)(stats.live_blocks - before) > expected - 6 * sqrt(variance));
    for (int i = 0; i < SHELF; i++)
        free(atomic_exchange(&shelf[i], NULL));
    assert_in_range(stats_now().live_blocks, before, before + OWNERS);
    assert_int_equal(spanprof_stop(UINT64_MAX), SPANPROF_OK);
}

/* The child frees what the parent had sampled, allocates, and may sample itself. */
static void child_main(void *block, int round)
{
    free(block);
    for (int i = 0; i < 100; i++)
        free(malloc(1000));
    if (round % 10 == 0 &&
        (start_with("alloc,heap", 64) != 0 || spanprof_stop(UINT64_MAX) != SPANPROF_OK))
        _exit(2);
    _exit(0);
}

static void forked_children_allocate_and_sample(void **state)
{
    (void)state;
    pthread_t threads[4];
    done = 0;
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, allocate_until_done, NULL), 0);
    for (int round = 0; round < 50; round++) {
        void *block = malloc(100000);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0)
            child_main(block, round);
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
        free(block);
    }
    done = 1;
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
}

static pthread_key_t key;

static void allocate_in_destructor(void *value)
{
    int round = (int)(intptr_t)value;
    free(malloc(5000));
    if (round < 3)
        pthread_setspecific(key, (void *)(intptr_t)(round + 1)); // NOLINT
}

static void *end_with_destructors(void *unused)
{
    spanprof_scope scope = spanprof_context_attach(NULL);
    spanprof_scope_detach(&scope);
    pthread_setspecific(key, (void *)1);
    free(malloc(5000));
    return unused;
}

static void destructors_of_ending_threads_allocate(void **state)
{
    (void)state;
    assert_int_equal(pthread_key_create(&key, allocate_in_destructor), 0);
    for (int i = 0; i < 500; i++) {
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, end_with_destructors, NULL), 0);
        pthread_join(thread, NULL);
    }
}

/* malloc itself is not for handlers; a block of an allocator that is. */
static void tell_of_a_block(int signal)
{
    static char block[64];
    (void)signal;
    if (spanprof_alloc_sampled(block, 4096))
        spanprof_alloc_freed(block);
}

static void handlers_interrupt_samples(void **state)
{
    (void)state;
    static char block[64];
    struct sigaction action = {.sa_handler = tell_of_a_block, .sa_flags = SA_RESTART};
    struct itimerval fast = {{0, 200}, {0, 200}}, off = {0};
    assert_int_equal(sigaction(SIGALRM, &action, NULL), 0);
    setitimer(ITIMER_REAL, &fast, NULL);
    for (int i = 0; i < 200000; i++)
        if (spanprof_alloc_sampled(block, 4096))
            spanprof_alloc_freed(block);
    setitimer(ITIMER_REAL, &off, NULL);
    assert_true(stats_now().calls_none > 0);
}

static void program_starts_and_stops_while_threads_allocate(void **state)
{
    (void)state;
    pthread_t threads[4];
    done = 0;
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, allocate_until_done, NULL), 0);
    for (int round = 0; round < 20; round++) {
        assert_int_equal(start_with(round % 2 ? "alloc" : "heap", 64), 0);
        assert_int_equal(spanprof_pause(), SPANPROF_OK);
        assert_int_equal(spanprof_resume(), SPANPROF_OK);
        assert_int_equal(spanprof_stop(UINT64_MAX), SPANPROF_OK);
    }
    done = 1;
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
}

static void paused_sampling_still_sees_frees(void **state)
{
    (void)state;
    void *block = malloc(1 << 20);
    spanprof_stats before = stats_now();
    assert_true(before.live_blocks >= 1);
    assert_int_equal(spanprof_pause(), SPANPROF_OK);
    for (int i = 0; i < 100; i++)
        free(malloc(100000));
    free(block);
    spanprof_stats paused = stats_now();
    assert_int_equal(calls_of(&paused), calls_of(&before));
    assert_int_equal(paused.live_blocks, before.live_blocks - 1);
    assert_int_equal(spanprof_resume(), SPANPROF_OK);
    free(malloc(1 << 20));
    spanprof_stats resumed = stats_now();
    assert_true(calls_of(&resumed) > calls_of(&paused));
}

/* The threads of the SDK allocate: to aggregate, to name, to build. The application does nothing
 * meanwhile. */
static void threads_of_the_sdk_are_not_sampled(void **state)
{
    (void)state;
    spanprof_stats before = stats_now();
    for (int i = 0; i < 5; i++)
        spanprof_flush(UINT64_MAX);
    spanprof_stats after = stats_now();
    assert_int_equal(calls_of(&after), calls_of(&before));
}

/* Memory runs out under a limit, with the walk, the table and the rings in the middle of it. */
static void memory_that_runs_out_fails_the_call_only(void **state)
{
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        struct rlimit limit = {UINT64_C(400) << 20, UINT64_C(400) << 20};
        int failed = 0;
        if (start_with("alloc,heap", 64) != 0)
            _exit(3);
        setrlimit(RLIMIT_AS, &limit);
        for (int i = 0; i < 100000 && failed < 100; i++) {
            char *block = malloc(100000);
            HIDE(block);
            failed += block == NULL && errno == ENOMEM;
        }
        _exit(failed == 100 ? 0 : 4);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void another_allocator_may_be_loaded(void **state)
{
    (void)state;
    void *library = dlopen("libjemalloc.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!library) /* it wants static thread-local storage, of which there is little left */
        library = dlopen("libtcmalloc_minimal.so.4", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        skip();
    void *(*other_malloc)(size_t) = (void *(*)(size_t))dlsym(library, "malloc");
    void (*other_free)(void *) = (void (*)(void *))dlsym(library, "free");
    for (int i = 0; i < 1000; i++) {
        void *block = malloc(1000), *other = other_malloc(1000);
        free(block);
        other_free(other);
    }
}

static void deep_recursion(int depth)
{
    char *block = malloc(200);
    HIDE(block);
    if (depth)
        deep_recursion(depth - 1);
    free(block);
}

static void stacks_of_a_deep_recursion_are_walked(void **state)
{
    (void)state;
    deep_recursion(3000);
    spanprof_stats stats = stats_now();
    assert_true(calls_of(&stats) > 1000);
}

/* After the SDK has stopped, and after its own handler of exit. */
static void allocate_at_exit(void)
{
    for (int i = 0; i < 1000; i++)
        free(malloc(10000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_call_returns_what_it_did_before, start, stop),
        cmocka_unit_test_setup_teardown(errno_is_kept_where_the_call_keeps_it, start, stop),
        cmocka_unit_test_setup_teardown(call_that_fails_does_so_as_the_plain_one, start, stop),
        cmocka_unit_test_setup_teardown(block_that_is_reallocated_is_live_once, start, stop),
        cmocka_unit_test_setup_teardown(block_that_another_thread_frees_is_gone, start, stop),
        cmocka_unit_test(live_blocks_are_those_that_no_thread_has_freed),
        cmocka_unit_test_setup_teardown(forked_children_allocate_and_sample, start, stop),
        cmocka_unit_test_setup_teardown(destructors_of_ending_threads_allocate, start, stop),
        cmocka_unit_test_setup_teardown(handlers_interrupt_samples, start, stop),
        cmocka_unit_test(program_starts_and_stops_while_threads_allocate),
        cmocka_unit_test_setup_teardown(paused_sampling_still_sees_frees, start, stop),
        cmocka_unit_test_setup_teardown(threads_of_the_sdk_are_not_sampled, start, stop),
        cmocka_unit_test_setup_teardown(memory_that_runs_out_fails_the_call_only, start, stop),
        cmocka_unit_test_setup_teardown(another_allocator_may_be_loaded, start, stop),
        cmocka_unit_test_setup_teardown(stacks_of_a_deep_recursion_are_walked, start, stop),
    };
    atexit(allocate_at_exit);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    if (start_with("alloc,heap", 64) != 0) /* the exit stops it */
        return 1;
    return failed;
}
