/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/clock.h"
#include "core/worker.h"

/* What the worker's thread does, and how far it has come. */
typedef struct owner {
    sp_worker worker;
    sem_t arrived, go_on;
    _Atomic bool inside;
    _Atomic int rounds;
    sp_worker_orders orders; /* of the last wait */
    bool entered;
    sigset_t blocked;
    char name[16];
} owner;

static sem_t destroyed;
static _Atomic int destroy_count;
static pthread_t destroyer;

static void destroy(void *argument)
{
    owner *owner = argument;
    destroyer = pthread_self();
    sp_worker_deinit(&owner->worker);
    sem_destroy(&owner->arrived);
    sem_destroy(&owner->go_on);
    free(owner);
    atomic_fetch_add(&destroy_count, 1);
    sem_post(&destroyed);
}

static owner *create(void)
{
    owner *owner = calloc(1, sizeof *owner);
    assert_non_null(owner);
    atomic_store(&destroy_count, 0);
    sem_init(&destroyed, 0, 0);
    sem_init(&owner->arrived, 0, 0);
    sem_init(&owner->go_on, 0, 0);
    sp_worker_init(&owner->worker, SP_LOCK_COLLECTOR);
    return owner;
}

static uint64_t after_ms(uint64_t ms)
{
    return sp_clock_monotonic_ns() + ms * SP_NS_PER_MS;
}

/* Flushes are answered until the end. */
static void serve(void *argument)
{
    owner *owner = argument;
    pthread_sigmask(SIG_SETMASK, NULL, &owner->blocked);
    pthread_getname_np(pthread_self(), owner->name, sizeof owner->name);
    do {
        owner->orders = sp_worker_wait(&owner->worker, after_ms(60 * 1000));
        atomic_fetch_add(&owner->rounds, 1);
        sp_worker_publish_flushed(&owner->worker, owner->orders.flush_ticket);
        sem_post(&owner->arrived);
    } while (!owner->orders.ending);
}

static void be_held(void *argument)
{
    owner *owner = argument;
    sem_post(&owner->arrived);
    sem_wait(&owner->go_on);
    owner->entered = sp_worker_enter(&owner->worker);
    if (owner->entered)
        sp_worker_leave(&owner->worker);
}

static void be_inside(void *argument)
{
    owner *owner = argument;
    assert_true(sp_worker_enter(&owner->worker));
    atomic_store(&owner->inside, true);
    sem_post(&owner->arrived);
    for (int i = 0; i < 1000; i++)
        sched_yield();
    atomic_store(&owner->inside, false);
    sp_worker_leave(&owner->worker);
}

static void return_at_once(void *unused)
{
    (void)unused;
}

static const sp_worker_role server = {.name = "test-worker", .run = serve, .destroy = destroy};
static const sp_worker_role held = {.name = "test-held", .run = be_held, .destroy = destroy};
static const sp_worker_role insider = {.name = "test-inside", .run = be_inside, .destroy = destroy};
static const sp_worker_role idler = {
    .name = "test-idle", .run = return_at_once, .destroy = destroy};

static void worker_thread_blocks_all_signals_and_has_its_name(void **state)
{
    (void)state;
    owner *owner = create();
    assert_int_equal(sp_worker_start(&owner->worker, &server, owner), 0);
    assert_true(sp_worker_end(&owner->worker, UINT64_MAX));
    assert_true(sp_worker_release(&owner->worker));
    assert_string_equal(owner->name, "test-worker");
    for (int signal = 1; signal < 32; signal++)
        if (signal != SIGKILL && signal != SIGSTOP)
            assert_int_equal(sigismember(&owner->blocked, signal), 1);
    assert_int_equal(atomic_load(&destroy_count), 0);
    destroy(owner);
}

static void worker_flush_returns_when_its_ticket_is_done(void **state)
{
    (void)state;
    owner *owner = create();
    assert_int_equal(sp_worker_start(&owner->worker, &server, owner), 0);
    for (uint64_t n = 1; n <= 100; n++) {
        assert_true(sp_worker_flush(&owner->worker, UINT64_MAX));
        assert_true(owner->orders.flush);
        assert_int_equal(owner->orders.flush_ticket, n);
    }
    sp_worker_end(&owner->worker, UINT64_MAX);
    assert_true(sp_worker_release(&owner->worker));
    destroy(owner);
}

static void worker_is_busy_flush_returns_at_its_deadline(void **state)
{
    (void)state;
    owner *owner = create();
    assert_int_equal(sp_worker_start(&owner->worker, &held, owner), 0);
    assert_false(sp_worker_flush(&owner->worker, after_ms(1)));
    sem_post(&owner->go_on);
    sp_worker_end(&owner->worker, UINT64_MAX);
    assert_true(sp_worker_release(&owner->worker));
    assert_true(owner->entered);
    destroy(owner);
}

static void worker_woken_before_it_waits_returns_at_once(void **state)
{
    (void)state;
    owner *owner = create();
    sp_worker_wake(&owner->worker);
    assert_int_equal(sp_worker_start(&owner->worker, &server, owner), 0);
    sem_wait(&owner->arrived);
    assert_true(owner->orders.woken);
    assert_false(owner->orders.flush);
    sp_worker_end(&owner->worker, UINT64_MAX);
    assert_true(sp_worker_release(&owner->worker));
    assert_false(owner->orders.woken);
    assert_true(owner->orders.flush);
    destroy(owner);
}

static void worker_wait_returns_when_the_time_has_come(void **state)
{
    (void)state;
    owner *owner = create();
    sp_worker_orders orders = sp_worker_wait(&owner->worker, after_ms(1));
    assert_false(orders.flush || orders.woken || orders.ending);
    destroy(owner);
}

static void worker_abandoned_may_enter_nothing_and_frees_itself(void **state)
{
    (void)state;
    owner *owner = create();
    assert_int_equal(sp_worker_start(&owner->worker, &held, owner), 0);
    sem_wait(&owner->arrived);
    assert_false(sp_worker_end(&owner->worker, after_ms(1)));
    assert_true(sp_worker_is_abandoned(&owner->worker));
    sem_post(&owner->go_on); /* it goes no further than enter, whose lock is held here */
    assert_int_equal(atomic_load(&destroy_count), 0);
    assert_false(sp_worker_release(&owner->worker));
    sem_wait(&destroyed);
    assert_int_equal(atomic_load(&destroy_count), 1);
    assert_false(pthread_equal(destroyer, pthread_self()));
}

static void worker_inside_is_not_abandoned_before_it_leaves(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++) {
        owner *owner = create();
        assert_int_equal(sp_worker_start(&owner->worker, &insider, owner), 0);
        sem_wait(&owner->arrived);
        sp_worker_end(&owner->worker, 0);
        assert_false(atomic_load(&owner->inside));
        if (sp_worker_release(&owner->worker))
            destroy(owner);
        sem_wait(&destroyed);
        assert_int_equal(atomic_load(&destroy_count), 1);
    }
}

static void worker_ends_at_any_moment_is_freed_once(void **state)
{
    (void)state;
    for (int i = 0; i < 500; i++) {
        owner *owner = create();
        assert_int_equal(sp_worker_start(&owner->worker, &idler, owner), 0);
        sp_worker_end(&owner->worker, sp_clock_monotonic_ns() + (uint64_t)i * 200);
        if (sp_worker_release(&owner->worker))
            destroy(owner);
        sem_wait(&destroyed);
        assert_int_equal(atomic_load(&destroy_count), 1);
    }
}

static _Atomic(sp_worker *)
    ends_in_wait; /* the next wait with a deadline returns after this one has ended */

int __real_pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *lock,
                                  const struct timespec *until);
int __wrap_pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *lock,
                                  const struct timespec *until);
int __wrap_pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *lock,
                                  const struct timespec *until)
{
    sp_worker *worker = atomic_load(&ends_in_wait);
    if (!worker || lock != &worker->lock.mutex || condition != &worker->progress_condition)
        return __real_pthread_cond_timedwait(condition, lock, until);
    atomic_store(&ends_in_wait, NULL);
    while (!worker->ended) {
        pthread_mutex_unlock(lock);
        sched_yield();
        pthread_mutex_lock(lock);
    }
    return ETIMEDOUT;
}

static void worker_ends_as_the_deadline_comes_is_not_abandoned(void **state)
{
    (void)state;
    owner *owner = create();
    atomic_store(&ends_in_wait, &owner->worker);
    assert_int_equal(sp_worker_start(&owner->worker, &server, owner), 0);
    assert_true(sp_worker_end(&owner->worker, after_ms(60 * 1000)));
    assert_null(atomic_load(&ends_in_wait));
    assert_true(sp_worker_release(&owner->worker));
    destroy(owner);
}

static bool refuses_threads;

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *argument)
{
    return refuses_threads ? EAGAIN : __real_pthread_create(thread, attributes, run, argument);
}

static void worker_thread_refused_tells_why_and_restores_the_mask(void **state)
{
    (void)state;
    sigset_t before, after;
    owner *owner = create();
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    refuses_threads = true;
    assert_int_equal(sp_worker_start(&owner->worker, &server, owner), EAGAIN);
    refuses_threads = false;
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    for (int signal = 1; signal < 32; signal++)
        assert_int_equal(sigismember(&before, signal), sigismember(&after, signal));
    destroy(owner);
}

static void worker_told_to_has_no_fault_blocked(void **state)
{
    (void)state;
    static const sp_worker_role keeps = {
        .name = "test-faults", .run = serve, .destroy = destroy, .signals = SP_WORKER_KEEPS_FAULTS};
    owner *owner = create();
    assert_int_equal(sp_worker_start(&owner->worker, &keeps, owner), 0);
    sp_worker_end(&owner->worker, UINT64_MAX);
    assert_true(sp_worker_release(&owner->worker));
    assert_int_equal(sigismember(&owner->blocked, SIGSEGV), 0);
    assert_int_equal(sigismember(&owner->blocked, SIGABRT), 0);
    assert_int_equal(sigismember(&owner->blocked, SIGTERM), 1);
    assert_int_equal(sigismember(&owner->blocked, SIGPROF), 1);
    destroy(owner);
}

static void publish_that_it_fails(void *argument)
{
    owner *owner = argument;
    sem_wait(&owner->go_on);
    sp_worker_publish_ready(&owner->worker, false);
}

static void publish_that_it_works(void *argument)
{
    owner *owner = argument;
    sp_worker_publish_ready(&owner->worker, true);
    serve(owner);
}

static bool is_ready(void (*run)(void *))
{
    const sp_worker_role role = {.name = "test-ready", .run = run, .destroy = destroy};
    owner *owner = create();
    assert_int_equal(sp_worker_start(&owner->worker, &role, owner), 0);
    sem_post(&owner->go_on);
    bool ready = sp_worker_wait_until_ready(&owner->worker);
    sp_worker_end(&owner->worker, UINT64_MAX);
    assert_true(sp_worker_release(&owner->worker));
    destroy(owner);
    return ready;
}

static void worker_tells_whether_it_has_set_itself_up(void **state)
{
    (void)state;
    assert_true(is_ready(publish_that_it_works));
    assert_false(is_ready(publish_that_it_fails));
}

typedef struct flusher {
    sp_worker *worker;
    uint64_t deadline_ns;
    bool done;
} flusher;

static void *flush(void *argument)
{
    flusher *flusher = argument;
    flusher->done = sp_worker_flush(flusher->worker, flusher->deadline_ns);
    return NULL;
}

static sp_worker_orders wait_for_flush(sp_worker *worker)
{
    sp_worker_orders orders = {0};
    while (!orders.flush)
        orders = sp_worker_wait(worker, UINT64_MAX);
    return orders;
}

/* This thread is the worker's. */
static void worker_flush_under_way_lets_the_next_wait_for_its_turn(void **state)
{
    (void)state;
    pthread_t threads[2];
    owner *owner = create();
    uint64_t now_ns = sp_clock_monotonic_ns();
    flusher first = {&owner->worker, now_ns + 1000 * SP_NS_PER_S, true};
    flusher second = {&owner->worker, now_ns + 2000 * SP_NS_PER_S, false};
    pthread_create(&threads[0], NULL, flush, &first);
    sp_worker_orders orders = wait_for_flush(&owner->worker);
    assert_int_equal(orders.flush_ticket, 1);
    assert_int_equal(orders.flush_until_ns, first.deadline_ns);
    orders = sp_worker_wait(&owner->worker, after_ms(1));
    assert_false(orders.any || orders.flush);
    pthread_create(&threads[1], NULL, flush, &second);
    orders = wait_for_flush(&owner->worker);
    assert_int_equal(orders.flush_ticket, 2);
    assert_int_equal(orders.flush_until_ns, second.deadline_ns);
    sp_worker_give_up_flush(&owner->worker, 1);
    sp_worker_publish_flushed(&owner->worker, 2);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert_false(first.done);
    assert_true(second.done);
    destroy(owner);
}

/* A thread that has more to do before it ends can sleep meanwhile. */
static void worker_hears_of_its_end_once(void **state)
{
    (void)state;
    owner *owner = create();
    owner->worker.ended = true;
    assert_true(sp_worker_end(&owner->worker, 0));
    assert_false(sp_worker_is_flushed(&owner->worker));
    sp_lock_give(&owner->worker.lock);
    sp_worker_orders orders = sp_worker_take_orders(&owner->worker);
    assert_true(orders.any && orders.ending && orders.flush);
    assert_int_equal(orders.flush_until_ns, 0);
    orders = sp_worker_wait(&owner->worker, after_ms(1));
    assert_true(orders.ending);
    assert_false(orders.any || orders.flush);
    sp_worker_publish_flushed(&owner->worker, 1);
    assert_true(sp_worker_is_flushed(&owner->worker));
    destroy(owner);
}

int main(void)
{
    alarm(300);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(worker_thread_blocks_all_signals_and_has_its_name),
        cmocka_unit_test(worker_flush_returns_when_its_ticket_is_done),
        cmocka_unit_test(worker_is_busy_flush_returns_at_its_deadline),
        cmocka_unit_test(worker_woken_before_it_waits_returns_at_once),
        cmocka_unit_test(worker_wait_returns_when_the_time_has_come),
        cmocka_unit_test(worker_abandoned_may_enter_nothing_and_frees_itself),
        cmocka_unit_test(worker_inside_is_not_abandoned_before_it_leaves),
        cmocka_unit_test(worker_ends_at_any_moment_is_freed_once),
        cmocka_unit_test(worker_ends_as_the_deadline_comes_is_not_abandoned),
        cmocka_unit_test(worker_thread_refused_tells_why_and_restores_the_mask),
        cmocka_unit_test(worker_told_to_has_no_fault_blocked),
        cmocka_unit_test(worker_tells_whether_it_has_set_itself_up),
        cmocka_unit_test(worker_flush_under_way_lets_the_next_wait_for_its_turn),
        cmocka_unit_test(worker_hears_of_its_end_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
