/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions and semaphores do what they do without us, cancellation included. Run as test_locks.c
 * is. */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <threads.h>
#include <cmocka.h>

#include "locks/blocked.h"
#include "locks/sampled.h"

static const struct timespec long_ago = {.tv_sec = 1}, no_time = {.tv_sec = 1, .tv_nsec = -1};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static mtx_t mtx;
static cnd_t cnd;
static sem_t semaphore;
static bool is_done;

/* --- a thread that waits ---------------------------------------------------------------------- */

typedef int wait_call(void);

typedef struct waiter {
    wait_call *call;
    _Atomic int tid;
    int result, error, cleaned;
    pthread_t thread;
} waiter;

/* Runs when the thread leaves by cancellation, as the destructor of a C++ object does. */
static void note_cleaning(waiter **w)
{
    (*w)->cleaned = 1;
}

static void *wait_for_it(void *argument)
{
    __attribute__((cleanup(note_cleaning))) waiter *w = argument;
    w->tid = own_tid();
    errno = 77;
    w->result = w->call();
    w->error = errno;
    return NULL;
}

static void start_waiter(waiter *w)
{
    assert_int_equal(pthread_create(&w->thread, NULL, wait_for_it, w), 0);
    wait_until_blocked(&w->tid);
}

/* Another thread waits by CALL until this one calls WAKE. */
static void wait_and_wake(wait_call *call, void (*wake)(void))
{
    waiter w = {.call = call, .result = -1};
    uint64_t before = sampled_calls();
    start_waiter(&w);
    wake();
    pthread_join(w.thread, NULL);
    assert_int_equal(w.result, 0);
    assert_int_equal(w.error, 77);
    assert_true(sampled_calls() >= before + is_sampled()); /* it may wake by itself */
}

/* --- conditions ------------------------------------------------------------------------------- */

typedef int condition_wait(const struct timespec *until);

static int wait_plain(const struct timespec *unused)
{
    (void)unused;
    return pthread_cond_wait(&condition, &mutex);
}

static int wait_timed(const struct timespec *until)
{
    struct timespec later = far(CLOCK_REALTIME);
    return pthread_cond_timedwait(&condition, &mutex, until ? until : &later);
}

static int wait_clock(const struct timespec *until)
{
    struct timespec later = far(CLOCK_MONOTONIC);
    return pthread_cond_clockwait(&condition, &mutex, CLOCK_MONOTONIC, until ? until : &later);
}

static int wait_until_done(condition_wait *wait)
{
    int result = 0;
    pthread_mutex_lock(&mutex);
    while (!is_done && result == 0)
        result = wait(NULL);
    is_done = false;
    pthread_mutex_unlock(&mutex);
    return result;
}

static int until_done(void)
{
    return wait_until_done(wait_plain);
}

static int until_done_timed(void)
{
    return wait_until_done(wait_timed);
}

static int until_done_clock(void)
{
    return wait_until_done(wait_clock);
}

static void set_done(void)
{
    pthread_mutex_lock(&mutex);
    is_done = true;
    pthread_cond_signal(&condition);
    pthread_mutex_unlock(&mutex);
}

static void condition_is_waited_for(void **state)
{
    (void)state;
    wait_and_wake(until_done, set_done);
    wait_and_wake(until_done_timed, set_done);
    wait_and_wake(until_done_clock, set_done);
}

static void condition_answers_errors_as_before(void **state)
{
    (void)state;
    pthread_mutex_lock(&mutex);
    assert_int_equal(wait_timed(&long_ago), ETIMEDOUT);
    assert_int_equal(wait_clock(&long_ago), ETIMEDOUT);
    assert_int_equal(wait_timed(&no_time), EINVAL);
    assert_int_equal(wait_clock(&no_time), EINVAL);
    assert_int_equal(
        pthread_cond_clockwait(&condition, &mutex, CLOCK_PROCESS_CPUTIME_ID, &long_ago), EINVAL);
    assert_int_equal(pthread_mutex_trylock(&mutex), EBUSY);
    pthread_mutex_unlock(&mutex);
}

/* The old kind of condition has no clock of its own: its functions would read another one. */
static void condition_has_the_clock_of_its_attributes(void **state)
{
    (void)state;
    pthread_cond_t monotonic;
    pthread_condattr_t attributes;
    struct timespec now;
    pthread_condattr_init(&attributes);
    assert_int_equal(pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC), 0);
    assert_int_equal(pthread_cond_init(&monotonic, &attributes), 0);
    clock_gettime(CLOCK_MONOTONIC, &now);
    pthread_mutex_lock(&mutex);
    assert_int_equal(pthread_cond_timedwait(&monotonic, &mutex, &now), ETIMEDOUT);
    pthread_mutex_unlock(&mutex);
    assert_int_equal(pthread_cond_destroy(&monotonic), 0);
}

static int cnd_until_done(void)
{
    int result = thrd_success;
    mtx_lock(&mtx);
    while (!is_done && result == thrd_success)
        result = cnd_wait(&cnd, &mtx);
    is_done = false;
    mtx_unlock(&mtx);
    return result == thrd_success ? 0 : -1;
}

static void set_done_c11(void)
{
    mtx_lock(&mtx);
    is_done = true;
    cnd_signal(&cnd);
    mtx_unlock(&mtx);
}

static void condition_of_c11_is_waited_for(void **state)
{
    (void)state;
    assert_int_equal(mtx_init(&mtx, mtx_plain), thrd_success);
    assert_int_equal(cnd_init(&cnd), thrd_success);
    wait_and_wake(cnd_until_done, set_done_c11);
    mtx_lock(&mtx);
    assert_int_equal(cnd_timedwait(&cnd, &mtx, &long_ago), thrd_timedout);
    mtx_unlock(&mtx);
    cnd_destroy(&cnd);
    mtx_destroy(&mtx);
}

/* A thread that is cancelled in CALL: its cleanup runs. */
static void cancel_in(wait_call *call)
{
    waiter w = {.call = call, .result = -1};
    void *result;
    start_waiter(&w);
    pthread_cancel(w.thread);
    pthread_join(w.thread, &result);
    assert_ptr_equal(result, PTHREAD_CANCELED);
    assert_int_equal(w.result, -1);
    assert_int_equal(w.cleaned, 1);
}

static void give_mutex(void *unused)
{
    (void)unused;
    pthread_mutex_unlock(&mutex); /* fails where it was not taken again */
}

static int wait_with_cleanup(void)
{
    pthread_mutex_lock(&mutex);
    pthread_cleanup_push(give_mutex, NULL);
    while (wait_plain(NULL) == 0)
        ;
    pthread_cleanup_pop(1);
    return 0;
}

static void cancelled_wait_for_a_condition_takes_the_mutex_again(void **state)
{
    (void)state;
    cancel_in(wait_with_cleanup);
    assert_int_equal(pthread_mutex_trylock(&mutex), 0);
    pthread_mutex_unlock(&mutex);
}

/* --- semaphores ------------------------------------------------------------------------------- */

static int take(void)
{
    return sem_wait(&semaphore);
}

static int take_timed(void)
{
    struct timespec until = far(CLOCK_REALTIME);
    return sem_timedwait(&semaphore, &until);
}

static int take_clock(void)
{
    struct timespec until = far(CLOCK_MONOTONIC);
    return sem_clockwait(&semaphore, CLOCK_MONOTONIC, &until);
}

static void post(void)
{
    sem_post(&semaphore);
}

static void free_semaphore_is_taken_at_once(void **state)
{
    (void)state;
    wait_call *const calls[] = {take, take_timed, take_clock};
    uint64_t before = sampled_calls();
    for (int i = 0; i < 3; i++) {
        post();
        errno = 77;
        assert_int_equal(calls[i](), 0);
        assert_int_equal(errno, 77);
    }
    assert_int_equal(sampled_calls(), before);
}

static void semaphore_is_waited_for(void **state)
{
    (void)state;
    wait_and_wake(take, post);
    wait_and_wake(take_timed, post);
    wait_and_wake(take_clock, post);
}

static void assert_fails(int result, int error)
{
    assert_int_equal(errno, error);
    assert_int_equal(result, -1);
}

static void semaphore_answers_errors_as_before(void **state)
{
    (void)state;
    assert_fails(sem_timedwait(&semaphore, &long_ago), ETIMEDOUT);
    assert_fails(sem_clockwait(&semaphore, CLOCK_MONOTONIC, &long_ago), ETIMEDOUT);
    post();
    assert_fails(sem_timedwait(&semaphore, &no_time), EINVAL); /* though it is free */
    assert_fails(sem_clockwait(&semaphore, CLOCK_PROCESS_CPUTIME_ID, &long_ago), EINVAL);
    assert_int_equal(take(), 0);
}

static void ignore(int number)
{
    (void)number;
}

static void signal_interrupts_the_wait_for_a_semaphore(void **state)
{
    (void)state;
    waiter w = {.call = take, .result = 0};
    struct sigaction action = {.sa_handler = ignore}, before;
    assert_int_equal(sigaction(SIGUSR1, &action, &before), 0);
    start_waiter(&w);
    pthread_kill(w.thread, SIGUSR1);
    pthread_join(w.thread, NULL);
    assert_int_equal(w.result, -1);
    assert_int_equal(w.error, EINTR);
    sigaction(SIGUSR1, &before, NULL);
}

static void cancelled_wait_for_a_semaphore_takes_nothing(void **state)
{
    (void)state;
    cancel_in(take);
    cancel_in(take_timed);
    cancel_in(take_clock);
    post();
    assert_int_equal(sem_trywait(&semaphore), 0);
}

static int take_when_cancelled(void)
{
    pthread_cancel(pthread_self());
    return take();
}

static void pending_cancellation_acts_though_the_semaphore_is_free(void **state)
{
    (void)state;
    waiter w = {.call = take_when_cancelled, .result = -1};
    void *result;
    post();
    assert_int_equal(pthread_create(&w.thread, NULL, wait_for_it, &w), 0);
    pthread_join(w.thread, &result);
    assert_ptr_equal(result, PTHREAD_CANCELED);
    assert_int_equal(w.cleaned, 1);
    assert_int_equal(sem_trywait(&semaphore), 0);
}

/* --- the SDK ---------------------------------------------------------------------------------- */

/* It waits for its collector by a condition, on a thread of the application. */
static void waits_of_the_sdk_are_not_sampled(void **state)
{
    (void)state;
    uint64_t before = sampled_calls();
    for (int i = 0; i < 10; i++)
        assert_int_equal(sampled_calls(), before);
}

static int prepare(void **state)
{
    sem_init(&semaphore, 0, 0);
    return start(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(condition_is_waited_for),
        cmocka_unit_test(condition_answers_errors_as_before),
        cmocka_unit_test(condition_has_the_clock_of_its_attributes),
        cmocka_unit_test(condition_of_c11_is_waited_for),
        cmocka_unit_test(cancelled_wait_for_a_condition_takes_the_mutex_again),
        cmocka_unit_test(free_semaphore_is_taken_at_once),
        cmocka_unit_test(semaphore_is_waited_for),
        cmocka_unit_test(semaphore_answers_errors_as_before),
        cmocka_unit_test(signal_interrupts_the_wait_for_a_semaphore),
        cmocka_unit_test(cancelled_wait_for_a_semaphore_takes_nothing),
        cmocka_unit_test(pending_cancellation_acts_though_the_semaphore_is_free),
        cmocka_unit_test(waits_of_the_sdk_are_not_sampled),
    };
    return cmocka_run_group_tests(tests, prepare, stop);
}
