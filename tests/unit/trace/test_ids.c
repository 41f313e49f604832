/* SPDX-License-Identifier: Apache-2.0 */
/* Ids: never zero, never twice, whoever makes them. */
#include "unit/trace/support.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "trace/cache.h"
#include "trace/random_id.h"

/* What the generator's authors' own program prints for this state (xoshiro256plusplus.c, Blackman
 * and Vigna). */
static void the_generator_is_xoshiro256_plus_plus(void **state)
{
    (void)state;
    static const uint64_t expected[] = {41943041,
                                        58720359,
                                        3588806011781223,
                                        3591011842654386,
                                        UINT64_C(9228616714210784205),
                                        UINT64_C(9973669472204895162),
                                        UINT64_C(14011001112246962877),
                                        UINT64_C(12406186145184390807)};
    static sp_span_cache cache = {.random = {1, 2, 3, 4}};
    for (size_t i = 0; i < SP_ARRAY_LENGTH(expected); i++)
        assert_int_equal(sp_cache_random(&cache), expected[i]);
}

static void an_id_is_never_zero(void **state)
{
    (void)state;
    static sp_span_cache cache = {.random = {0, 1, 2, 0}}; /* from where the next number is zero */
    sp_span_cache copy = cache;
    assert_int_equal(sp_cache_random(&copy), 0);
    assert_int_not_equal(sp_cache_id(&cache), 0);
    for (int i = 0; i < 10000; i++) {
        uint8_t byte;
        sp_random_id(&byte, 1);
        assert_int_not_equal(byte, 0);
    }
}

/* Each bit of a trace id is set in half of 10^6 of them, within six standard deviations of the
 * binomial distribution: one run in 4 million has a bit outside by chance, all 128 taken together.
 */
static void each_bit_of_trace_ids_is_set_in_half_of_them(void **state)
{
    (void)state;
    enum { IDS = 1000000, BITS = 128 };
    static uint32_t set[BITS];
    for (int i = 0; i < IDS; i++) {
        uint8_t id[16];
        sp_random_id(id, sizeof id);
        for (int bit = 0; bit < BITS; bit++)
            set[bit] += id[bit / 8] >> bit % 8 & 1;
    }
    for (int bit = 0; bit < BITS; bit++) {
        int64_t distance = (int64_t)set[bit] - IDS / 2;
        if (distance * distance > 6 * 6 * IDS / 4)
            fail_msg("bit %d is set in %u of %d", bit, set[bit], IDS);
    }
}

/* --- processes and threads -------------------------------------------------------------------- */

/* 480,000 ids of 64 bits: two are the same by chance in one run of 150 million. */
enum {
    PROCESSES = 6,
    FORKS_OF_CHILDREN = 2,
    WORKERS = 4,
    IDS = 10000,
    MAKERS = PROCESSES * FORKS_OF_CHILDREN
};

/* Shared by all processes. */
static uint64_t (*made)[WORKERS][IDS];

static void make_ids(uint64_t *ids)
{
    for (int i = 0; i < IDS; i++) {
        spanprof_span_options root = SPANPROF_SPAN_OPTIONS_INIT;
        spanprof_span span = spanprof_span_start(NULL, "span", &root);
        spanprof_context context = spanprof_span_context(span);
        spanprof_span_end(span);
        memcpy(&ids[i], i % 2 ? context.span_id : context.trace_id, sizeof ids[i]);
    }
}

static void *run_worker(void *ids)
{
    make_ids(ids);
    return NULL;
}

/* Half of the workers at once, then, with what those gave back at their exit, the others; the last
 * is this thread. */
static void run_workers(uint64_t (*ids)[IDS])
{
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run_worker, ids[i]), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(pthread_create(&threads[0], NULL, run_worker, ids[2]), 0);
    assert_int_equal(pthread_join(threads[0], NULL), 0);
    make_ids(ids[3]);
}

/* A thread of the parent's that lives at the forks: the children are born with its generator, and
 * it goes on with it. */
static void *run_over_the_forks(void *barrier)
{
    uint8_t first[8];
    sp_random_id(first, sizeof first);
    pthread_barrier_wait(barrier);
    pthread_barrier_wait(barrier);
    for (int i = 0; i < WORKERS; i++)
        make_ids(made[1][i]);
    return NULL;
}

static void start(void)
{
    sp_tracer_config config = {.queue_spans = 1, .limits = SP_SPAN_LIMITS_INIT};
    assert_int_equal(sp_tracer_start(&config), SPANPROF_OK);
}

static void wait_for(pid_t child)
{
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* A child of number CHILD, which has one of its own. */
static void run_child(int child)
{
    alarm(300);
    for (int generation = 0; generation < FORKS_OF_CHILDREN; generation++) {
        sp_tracer_after_fork();
        start();
        pid_t own = generation + 1 < FORKS_OF_CHILDREN ? fork() : 1;
        if (own == 0)
            continue;
        run_workers(made[child * FORKS_OF_CHILDREN + generation]);
        if (own > 1)
            wait_for(own);
        _exit(0);
    }
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void no_two_threads_of_no_two_processes_make_the_same_id(void **state)
{
    (void)state;
#if defined(__SANITIZE_THREAD__)
    print_message("skipped: TSan cannot make threads after a fork\n");
    skip();
#endif
    const size_t bytes = MAKERS * sizeof *made, count = bytes / sizeof(uint64_t);
    made = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(made, MAP_FAILED);
    start();
    uint8_t first[8];
    sp_random_id(first, sizeof first); /* so has this thread */
    pthread_t other;
    pthread_barrier_t barrier;
    assert_int_equal(pthread_barrier_init(&barrier, NULL, 2), 0);
    assert_int_equal(pthread_create(&other, NULL, run_over_the_forks, &barrier), 0);
    pthread_barrier_wait(&barrier);
    pid_t children[PROCESSES];
    for (int i = 1; i < PROCESSES; i++) {
        children[i] = fork();
        assert_true(children[i] >= 0);
        if (children[i] == 0)
            run_child(i);
    }
    pthread_barrier_wait(&barrier);
    run_workers(made[0]);
    assert_int_equal(pthread_join(other, NULL), 0);
    pthread_barrier_destroy(&barrier);
    for (int i = 1; i < PROCESSES; i++)
        wait_for(children[i]);
    sp_tracer_stop();
    uint64_t *ids = (uint64_t *)made;
    qsort(ids, count, sizeof *ids, compare);
    assert_int_not_equal(ids[0], 0);
    for (size_t i = 1; i < count; i++)
        assert_true(ids[i] != ids[i - 1]);
    munmap(made, bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_generator_is_xoshiro256_plus_plus),
        cmocka_unit_test(an_id_is_never_zero),
        cmocka_unit_test(each_bit_of_trace_ids_is_set_in_half_of_them),
        cmocka_unit_test(no_two_threads_of_no_two_processes_make_the_same_id),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
