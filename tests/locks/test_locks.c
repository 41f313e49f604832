/* SPDX-License-Identifier: Apache-2.0 */
/* Locks do what they do without us: each kind of mutex, locks for readers and writers, C11. The
 * same program runs without libspanprof-preload.so, with it while nothing is sampled, and with it
 * (LOCKS_SAMPLED=1) while every wait is. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <cmocka.h>

#include <spanprof/spanprof.h>

#include "locks/blocked.h"
#include "locks/sampled.h"

static const struct timespec long_ago = {.tv_sec = 1}, no_time = {.tv_sec = 1, .tv_nsec = -1};

/* --- a thread that waits ---------------------------------------------------------------------- */

typedef int lock_call(void *lock);

typedef struct waiter {
    lock_call *take, *give;
    void *lock;
    _Atomic int tid;
    int taken, given;
    pthread_t thread;
} waiter;

static void *wait_for_lock(void *argument)
{
    waiter *w = argument;
    w->tid = own_tid();
    w->taken = w->take(w->lock);
    w->given = w->give ? w->give(w->lock) : 0;
    return NULL;
}

static void start_waiter(waiter *w)
{
    assert_int_equal(pthread_create(&w->thread, NULL, wait_for_lock, w), 0);
    wait_until_blocked(&w->tid);
}

/* The calling thread has LOCK; another waits for it by TAKE, and gets it when this one gives it
 * back. */
static void contend(void *lock, lock_call *give_own, lock_call *take, lock_call *give)
{
    waiter w = {.take = take, .give = give, .lock = lock};
    uint64_t before = sampled_calls();
    start_waiter(&w);
    assert_int_equal(give_own(lock), 0);
    pthread_join(w.thread, NULL);
    assert_int_equal(w.taken, 0);
    assert_int_equal(w.given, 0);
    assert_int_equal(sampled_calls(), before + is_sampled());
}

static int mutex_take(void *lock)
{
    return pthread_mutex_lock(lock);
}

static int mutex_take_timed(void *lock)
{
    struct timespec until = far(CLOCK_REALTIME);
    return pthread_mutex_timedlock(lock, &until);
}

static int mutex_take_clock(void *lock)
{
    struct timespec until = far(CLOCK_MONOTONIC);
    return pthread_mutex_clocklock(lock, CLOCK_MONOTONIC, &until);
}

static int mutex_try(void *lock)
{
    return pthread_mutex_trylock(lock);
}

static int mutex_give(void *lock)
{
    return pthread_mutex_unlock(lock);
}

static int take_past(void *lock)
{
    return pthread_mutex_timedlock(lock, &long_ago);
}

/* What CALL answers on another thread. */
static int elsewhere(lock_call *call, void *lock)
{
    waiter w = {.take = call, .lock = lock};
    assert_int_equal(pthread_create(&w.thread, NULL, wait_for_lock, &w), 0);
    pthread_join(w.thread, NULL);
    return w.taken;
}

static pthread_mutex_t *make(int type, int protocol, int robust)
{
    static pthread_mutex_t mutex;
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    assert_int_equal(pthread_mutexattr_settype(&attributes, type), 0);
    assert_int_equal(pthread_mutexattr_setprotocol(&attributes, protocol), 0);
    assert_int_equal(pthread_mutexattr_setrobust(&attributes, robust), 0);
    assert_int_equal(pthread_mutex_init(&mutex, &attributes), 0);
    pthread_mutexattr_destroy(&attributes);
    return &mutex;
}

/* --- mutexes ---------------------------------------------------------------------------------- */

static const int types[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK,
                            PTHREAD_MUTEX_ADAPTIVE_NP};

static void check_mutex(pthread_mutex_t *mutex)
{
    uint64_t before = sampled_calls();
    for (int i = 0; i < 100; i++) {
        errno = 77;
        assert_int_equal(pthread_mutex_lock(mutex), 0);
        assert_int_equal(errno, 77);
        assert_int_equal(elsewhere(mutex_try, mutex), EBUSY);
        assert_int_equal(pthread_mutex_unlock(mutex), 0);
    }
    assert_int_equal(sampled_calls(), before);
    assert_int_equal(pthread_mutex_lock(mutex), 0);
    contend(mutex, mutex_give, mutex_take, mutex_give);
    assert_int_equal(mutex_take_timed(mutex), 0);
    contend(mutex, mutex_give, mutex_take_timed, mutex_give);
    assert_int_equal(pthread_mutex_trylock(mutex), 0);
    assert_int_equal(elsewhere(take_past, mutex), ETIMEDOUT);
    assert_int_equal(pthread_mutex_unlock(mutex), 0);
}

static void each_kind_of_mutex_is_taken_and_given(void **state)
{
    (void)state;
    const int protocols[] = {PTHREAD_PRIO_NONE, PTHREAD_PRIO_INHERIT};
    const int robusts[] = {PTHREAD_MUTEX_STALLED, PTHREAD_MUTEX_ROBUST};
    for (size_t i = 0; i < 4 * 2 * 2; i++) {
        pthread_mutex_t *mutex = make(types[i % 4], protocols[i / 4 % 2], robusts[i / 8]);
        check_mutex(mutex);
        assert_int_equal(pthread_mutex_destroy(mutex), 0);
    }
}

static void mutex_may_be_waited_for_by_another_clock(void **state)
{
    (void)state;
    pthread_mutex_t *mutex = make(PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_NONE, PTHREAD_MUTEX_STALLED);
    struct timespec until = far(CLOCK_MONOTONIC);
    assert_int_equal(mutex_take_clock(mutex), 0);
    contend(mutex, mutex_give, mutex_take_clock, mutex_give);
    /* a clock that locks do not know, on a mutex that is free */
    assert_int_equal(pthread_mutex_clocklock(mutex, CLOCK_PROCESS_CPUTIME_ID, &until), EINVAL);
    assert_int_equal(pthread_mutex_trylock(mutex), 0);
}

static void recursive_mutex_counts(void **state)
{
    (void)state;
    pthread_mutex_t *mutex =
        make(PTHREAD_MUTEX_RECURSIVE, PTHREAD_PRIO_NONE, PTHREAD_MUTEX_STALLED);
    assert_int_equal(pthread_mutex_lock(mutex), 0);
    assert_int_equal(pthread_mutex_lock(mutex), 0);
    assert_int_equal(mutex_take_timed(mutex), 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(elsewhere(mutex_try, mutex), EBUSY);
        assert_int_equal(pthread_mutex_unlock(mutex), 0);
    }
    assert_int_equal(elsewhere(mutex_try, mutex), 0);
}

static void error_checking_mutex_finds_the_deadlock(void **state)
{
    (void)state;
    uint64_t before = sampled_calls();
    for (int protocol = 0; protocol < 2; protocol++) {
        pthread_mutex_t *mutex =
            make(PTHREAD_MUTEX_ERRORCHECK, protocol ? PTHREAD_PRIO_INHERIT : PTHREAD_PRIO_NONE,
                 protocol ? PTHREAD_MUTEX_ROBUST : PTHREAD_MUTEX_STALLED);
        assert_int_equal(pthread_mutex_lock(mutex), 0);
        assert_int_equal(pthread_mutex_lock(mutex), EDEADLK);
        assert_int_equal(mutex_take_timed(mutex), EDEADLK);
        assert_int_equal(elsewhere(mutex_give, mutex), EPERM);
        assert_int_equal(pthread_mutex_unlock(mutex), 0);
        assert_int_equal(pthread_mutex_unlock(mutex), EPERM);
    }
    assert_int_equal(sampled_calls(), before); /* these did not wait */
}

/* Ends with the lock taken. */
static void *die_with_lock(void *argument)
{
    waiter *w = argument;
    w->taken = pthread_mutex_lock(w->lock);
    return NULL;
}

static void robust_mutex_tells_that_its_owner_died(void **state)
{
    (void)state;
    for (int protocol = 0; protocol < 2; protocol++) {
        pthread_mutex_t *mutex =
            make(PTHREAD_MUTEX_NORMAL, protocol ? PTHREAD_PRIO_INHERIT : PTHREAD_PRIO_NONE,
                 PTHREAD_MUTEX_ROBUST);
        waiter w = {.lock = mutex};
        pthread_create(&w.thread, NULL, die_with_lock, &w);
        pthread_join(w.thread, NULL);
        assert_int_equal(pthread_mutex_lock(mutex), EOWNERDEAD);
        assert_int_equal(pthread_mutex_consistent(mutex), 0);
        contend(mutex, mutex_give, mutex_take, mutex_give);
        pthread_create(&w.thread, NULL, die_with_lock, &w);
        pthread_join(w.thread, NULL);
        assert_int_equal(mutex_take_timed(mutex), EOWNERDEAD);
        assert_int_equal(pthread_mutex_unlock(mutex), 0);
        assert_int_equal(pthread_mutex_lock(mutex), ENOTRECOVERABLE);
        assert_int_equal(mutex_take_timed(mutex), ENOTRECOVERABLE);
        assert_int_equal(pthread_mutex_destroy(mutex), 0);
    }
}

/* A call that is no cancellation point ends with the lock taken. */
static int mutex_give_if_taken(void *lock)
{
    int given = pthread_mutex_unlock(lock);
    pthread_testcancel();
    return given;
}

static void cancelled_thread_gets_the_mutex_first(void **state)
{
    (void)state;
    pthread_mutex_t *mutex = make(PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_NONE, PTHREAD_MUTEX_STALLED);
    waiter w = {.take = mutex_take, .give = mutex_give_if_taken, .lock = mutex, .taken = -1};
    void *result;
    assert_int_equal(pthread_mutex_lock(mutex), 0);
    start_waiter(&w);
    pthread_cancel(w.thread);
    assert_int_equal(pthread_mutex_unlock(mutex), 0);
    pthread_join(w.thread, &result);
    assert_ptr_equal(result, PTHREAD_CANCELED);
    assert_int_equal(w.taken, 0);
    assert_int_equal(pthread_mutex_trylock(mutex), 0);
}

/* --- locks for readers and writers ------------------------------------------------------------ */

static int read_take(void *lock)
{
    return pthread_rwlock_rdlock(lock);
}

static int write_take(void *lock)
{
    return pthread_rwlock_wrlock(lock);
}

static int read_take_timed(void *lock)
{
    struct timespec until = far(CLOCK_REALTIME);
    return pthread_rwlock_timedrdlock(lock, &until);
}

static int write_take_timed(void *lock)
{
    struct timespec until = far(CLOCK_REALTIME);
    return pthread_rwlock_timedwrlock(lock, &until);
}

static int read_take_clock(void *lock)
{
    struct timespec until = far(CLOCK_MONOTONIC);
    return pthread_rwlock_clockrdlock(lock, CLOCK_MONOTONIC, &until);
}

static int write_take_clock(void *lock)
{
    struct timespec until = far(CLOCK_MONOTONIC);
    return pthread_rwlock_clockwrlock(lock, CLOCK_MONOTONIC, &until);
}

static int read_past(void *lock)
{
    return pthread_rwlock_timedrdlock(lock, &long_ago);
}

static int write_past(void *lock)
{
    return pthread_rwlock_timedwrlock(lock, &long_ago);
}

static int rwlock_give(void *lock)
{
    return pthread_rwlock_unlock(lock);
}

static void readers_and_writers_wait_for_each_other(void **state)
{
    (void)state;
    pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
    lock_call *const readers[] = {read_take, read_take_timed, read_take_clock};
    lock_call *const writers[] = {write_take, write_take_timed, write_take_clock};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(writers[i](&lock), 0);
        contend(&lock, rwlock_give, readers[i], rwlock_give);
        assert_int_equal(writers[i](&lock), 0);
        contend(&lock, rwlock_give, writers[i], rwlock_give);
        assert_int_equal(readers[i](&lock), 0);
        contend(&lock, rwlock_give, writers[i], rwlock_give);
        assert_int_equal(readers[i](&lock), 0);
        assert_int_equal(elsewhere(read_past, &lock), 0); /* two readers */
        assert_int_equal(pthread_rwlock_unlock(&lock), 0);
        assert_int_equal(pthread_rwlock_unlock(&lock), 0);
    }
}

static void rwlock_answers_errors_as_before(void **state)
{
    (void)state;
    pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
    assert_int_equal(pthread_rwlock_timedrdlock(&lock, &no_time), EINVAL); /* though it is free */
    assert_int_equal(pthread_rwlock_timedwrlock(&lock, &no_time), EINVAL);
    assert_int_equal(pthread_rwlock_clockrdlock(&lock, CLOCK_MONOTONIC, &no_time), EINVAL);
    assert_int_equal(pthread_rwlock_clockwrlock(&lock, CLOCK_MONOTONIC, &no_time), EINVAL);
    assert_int_equal(pthread_rwlock_clockrdlock(&lock, CLOCK_PROCESS_CPUTIME_ID, &long_ago),
                     EINVAL);
    assert_int_equal(pthread_rwlock_clockwrlock(&lock, CLOCK_PROCESS_CPUTIME_ID, &long_ago),
                     EINVAL);
    assert_int_equal(pthread_rwlock_wrlock(&lock), 0);
    assert_int_equal(pthread_rwlock_wrlock(&lock), EDEADLK);
    assert_int_equal(pthread_rwlock_rdlock(&lock), EDEADLK);
    assert_int_equal(elsewhere(read_past, &lock), ETIMEDOUT);
    assert_int_equal(elsewhere(write_past, &lock), ETIMEDOUT);
    assert_int_equal(pthread_rwlock_unlock(&lock), 0);
}

/* --- C11 -------------------------------------------------------------------------------------- */

static int mtx_take(void *lock)
{
    return mtx_lock(lock) == thrd_success ? 0 : -1;
}

static int mtx_take_timed(void *lock)
{
    struct timespec until = far(CLOCK_REALTIME);
    return mtx_timedlock(lock, &until) == thrd_success ? 0 : -1;
}

static int mtx_past(void *lock)
{
    return mtx_timedlock(lock, &long_ago) == thrd_timedout ? ETIMEDOUT : -1;
}

static int mtx_give(void *lock)
{
    return mtx_unlock(lock) == thrd_success ? 0 : -1;
}

static void mutex_of_c11_is_taken_and_given(void **state)
{
    (void)state;
    mtx_t mutex;
    assert_int_equal(mtx_init(&mutex, mtx_timed | mtx_recursive), thrd_success);
    assert_int_equal(mtx_lock(&mutex), thrd_success);
    assert_int_equal(mtx_lock(&mutex), thrd_success);
    assert_int_equal(mtx_unlock(&mutex), thrd_success);
    contend(&mutex, mtx_give, mtx_take, mtx_give);
    assert_int_equal(mtx_take_timed(&mutex), 0);
    assert_int_equal(elsewhere(mtx_past, &mutex), ETIMEDOUT);
    contend(&mutex, mtx_give, mtx_take_timed, mtx_give);
    mtx_destroy(&mutex);
}

/* --- the SDK ---------------------------------------------------------------------------------- */

enum { THREADS = 4, ROUNDS = 2000 };

static void *use_locks_of_the_sdk(void *unused)
{
    for (int i = 0; i < ROUNDS; i++)
        spanprof_value_type_get("rows_of_locks", "rows");
    return unused;
}

static void locks_of_the_sdk_are_not_sampled(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    uint64_t before = sampled_calls();
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, use_locks_of_the_sdk, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(sampled_calls(), before);
}

static pthread_mutex_t common = PTHREAD_MUTEX_INITIALIZER;
static _Atomic int done;

static void *contend_until_done(void *unused)
{
    while (!done) {
        pthread_mutex_lock(&common);
        pthread_mutex_unlock(&common);
    }
    return unused;
}

static void start_threads(pthread_t *threads)
{
    done = 0;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, contend_until_done, NULL), 0);
}

static void end_threads(const pthread_t *threads)
{
    done = 1;
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

/* The mutex is the child's: the parent's thread held it when it forked. */
static void child_main(int round)
{
    pthread_mutex_unlock(&common);
    for (int i = 0; i < 1000; i++)
        if (pthread_mutex_lock(&common) != 0 || pthread_mutex_unlock(&common) != 0)
            _exit(3);
    if (round % 5 == 0 && (start_sampling() != 0 || spanprof_stop(UINT64_MAX) != SPANPROF_OK))
        _exit(2);
    _exit(0);
}

static void forked_children_lock_and_sample(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    start_threads(threads);
    for (int round = 0; round < 20; round++) {
        int status;
        pthread_mutex_lock(&common);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0)
            child_main(round);
        pthread_mutex_unlock(&common);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
    end_threads(threads);
}

static void program_starts_and_stops_while_threads_wait(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    if (is_sampled())
        assert_int_equal(spanprof_stop(UINT64_MAX), SPANPROF_OK);
    start_threads(threads);
    for (int round = 0; round < 10; round++) {
        assert_int_equal(start_sampling(), 0);
        assert_int_equal(spanprof_pause(), SPANPROF_OK);
        assert_int_equal(spanprof_resume(), SPANPROF_OK);
        assert_int_equal(spanprof_stop(UINT64_MAX), SPANPROF_OK);
    }
    end_threads(threads);
    assert_int_equal(start(NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_kind_of_mutex_is_taken_and_given),
        cmocka_unit_test(mutex_may_be_waited_for_by_another_clock),
        cmocka_unit_test(recursive_mutex_counts),
        cmocka_unit_test(error_checking_mutex_finds_the_deadlock),
        cmocka_unit_test(robust_mutex_tells_that_its_owner_died),
        cmocka_unit_test(cancelled_thread_gets_the_mutex_first),
        cmocka_unit_test(readers_and_writers_wait_for_each_other),
        cmocka_unit_test(rwlock_answers_errors_as_before),
        cmocka_unit_test(mutex_of_c11_is_taken_and_given),
        cmocka_unit_test(locks_of_the_sdk_are_not_sampled),
        cmocka_unit_test(forked_children_lock_and_sample),
        cmocka_unit_test(program_starts_and_stops_while_threads_wait),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
