/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that begin while the wall profiler runs. No collector looks for them here. */
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "wall/wall.h"
#include "wall/wall_block.h"

enum { HZ = 100, ROUNDS = 200, THREADS = 20 };

/* --- the profiler ----------------------------------------------------------------------------- */

static sp_modules *modules;
static pthread_t watched;
static sem_t watched_is_known, watched_may_end;

/* This thread is known from the begin and waits all the time, so each round visits it. */
static void *wait_all_the_time(void *unused)
{
    sp_thread_self_create();
    sem_post(&watched_is_known);
    sem_wait(&watched_may_end);
    return unused;
}

static bool begin(void)
{
    modules = sp_modules_create();
    sp_wall_config config = {.hz = HZ, .max_depth = 16, .all_threads = true, .modules = modules};
    sem_init(&watched_is_known, 0, 0);
    sem_init(&watched_may_end, 0, 0);
    assert_int_equal(pthread_create(&watched, NULL, wait_all_the_time, NULL), 0);
    sem_wait(&watched_is_known);
    return sp_wall_start(&config);
}

static void end(void)
{
    sp_wall_stop();
    sp_wall_free();
    sem_post(&watched_may_end);
    pthread_join(watched, NULL);
    sp_modules_destroy(modules);
}

static uint64_t visits_until_now(void)
{
    sp_wall_state state;
    sp_wall_state_get(&state);
    return state.visits;
}

/* --- one takes the place of another ----------------------------------------------------------- */

typedef struct waiting {
    sem_t may_end;
    _Atomic pid_t tid;
} waiting;

static void *wait_for_the_end(void *argument)
{
    waiting *self = argument;
    atomic_store(&self->tid, (pid_t)syscall(SYS_gettid));
    sem_wait(&self->may_end);
    return NULL;
}

/* Whether the thread is known after ROUNDS rounds at the latest. Each of them makes at most as many
 * visits as there are threads: this one, the watched one, the new one. */
static bool becomes_known(pid_t tid)
{
    uint64_t visits = visits_until_now() + UINT64_C(3) * ROUNDS;
    bool is_known = false;
    while (!(is_known = sp_thread_find(tid) != NULL) && visits_until_now() < visits)
        usleep(100);
    return is_known;
}

static void wall_thread_that_takes_the_place_of_another_is_known_by_a_round(void **state)
{
    (void)state;
    if (!begin())
        skip();
    for (int i = 0; i < THREADS; i++) {
        pthread_t thread;
        waiting self = {.tid = 0};
        sem_init(&self.may_end, 0, 0);
        assert_int_equal(pthread_create(&thread, NULL, wait_for_the_end, &self), 0);
        while (!atomic_load(&self.tid))
            usleep(100);
        assert_true(becomes_known(atomic_load(&self.tid)));
        sem_post(&self.may_end);
        pthread_join(thread, NULL);
    }
    end();
}

/* --- the sum over threads that live shortly --------------------------------------------------- */

enum { LIVES = 5000, WARM_UP = 128, PERIOD = 1000 };

static uint64_t random_state;

static double draw(void)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(random_state >> 11) * 0x1p-53;
}

/* One life, from a random moment on, of LENGTH cells. A part of LATE of the cells has no round: the
 * next round stands for them, too. Returns the cells that the visits stand for. */
static double cells_seen(double length, double late, uint64_t scan_ns)
{
    sp_wall_block block = {.scan_ns = scan_ns, .last_ns = scan_ns};
    double begin = WARM_UP * (1 + draw()), seen = 0;
    bool is_new = true;
    uint16_t first = 0;
    uint64_t cells = 0;
    for (unsigned cell = 0; cell < begin + length; cell++) {
        double moment = cell + draw();
        cells++;
        if (draw() < late)
            continue;
        sp_wall_block_enter(&block, cells, PERIOD, draw());
        if (moment >= begin && moment < begin + length) {
            double part = sp_wall_block_part(&block, is_new, &first);
            is_new = is_new && part == 0;
            seen += part * (double)cells;
        }
        cells = 0;
    }
    return seen;
}

static void check_mean(double length, double late, uint64_t scan_ns)
{
    double sum = 0, squares = 0;
    random_state = 1;
    for (int i = 0; i < LIVES; i++) {
        double seen = cells_seen(length, late, scan_ns);
        sum += seen;
        squares += seen * seen;
    }
    double mean = sum / LIVES, off = mean - length;
    double error2 = (squares / LIVES - mean * mean) / LIVES;
    assert_true(off * off <= 16 * error2 + 1e-12);
}

/* The random numbers are the same in each run, so four standard errors are a fixed bound. A scan of
 * PERIOD makes blocks of 67 cells. */
static void wall_time_of_a_life_is_unbiased_whatever_its_length(void **state)
{
    (void)state;
    static const double lengths[] = {0.3, 1, 2.5, 7, 20, 100}, lates[] = {0, 0.5, 0.9};
    static const uint64_t scans[] = {0, 30, 100, PERIOD};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (size_t k = 0; k < sizeof lates / sizeof *lates; k++)
            for (size_t n = 0; n < sizeof scans / sizeof *scans; n++)
                check_mean(lengths[i], lates[k], scans[n]);
}

static void wall_block_is_as_long_as_its_scan_is_allowed_again(void **state)
{
    (void)state;
    sp_wall_block block = {.scan_ns = 0};
    sp_wall_block_enter(&block, 1, PERIOD, 0);
    assert_int_equal(block.cells, 1);
    assert_true(sp_wall_block_takes_new(&block));
    sp_wall_block_scanned(&block, PERIOD); /* one may be long by chance */
    sp_wall_block_enter(&block, 1, PERIOD, 0);
    assert_int_equal(block.cells, 1);
    sp_wall_block_scanned(&block, PERIOD);
    sp_wall_block_enter(&block, 1, PERIOD, 0);
    assert_int_equal(block.cells, 67);
    assert_true(block.of_new == 67);
    sp_wall_block_enter(&block, 1, PERIOD, 0);
    assert_false(sp_wall_block_takes_new(&block));
}

int main(void)
{
    alarm(300);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wall_thread_that_takes_the_place_of_another_is_known_by_a_round),
        cmocka_unit_test(wall_time_of_a_life_is_unbiased_whatever_its_length),
        cmocka_unit_test(wall_block_is_as_long_as_its_scan_is_allowed_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
