/* SPDX-License-Identifier: Apache-2.0 */
/* The wall profiler is stopped while another thread changes its rate. The wrapped functions force
 * the interleaving. */
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "wall/wall.h"

static sem_t joined, changing, changed;
static pthread_t test_thread, changer;
static _Atomic bool has_changer, has_joined, wants_lock, is_signalling, destroyed_meanwhile;

static bool is_stopping(void)
{
    return atomic_load(&has_joined) && pthread_equal(pthread_self(), test_thread);
}

int __real_pthread_cond_signal(pthread_cond_t *condition);
int __wrap_pthread_cond_signal(pthread_cond_t *condition);
/* The changer is here, with the lock, until the thread that stops has come to the lock, or to the
 * condition without it. */
int __wrap_pthread_cond_signal(pthread_cond_t *condition)
{
    if (!atomic_load(&has_changer) || !pthread_equal(pthread_self(), changer))
        return __real_pthread_cond_signal(condition);
    atomic_store(&is_signalling, true);
    sem_post(&changing);
    while (!atomic_load(&wants_lock) && !atomic_load(&destroyed_meanwhile))
        sched_yield();
    int error = __real_pthread_cond_signal(condition);
    atomic_store(&is_signalling, false);
    return error;
}

int __real_pthread_cond_destroy(pthread_cond_t *condition);
int __wrap_pthread_cond_destroy(pthread_cond_t *condition);
int __wrap_pthread_cond_destroy(pthread_cond_t *condition)
{
    if (atomic_load(&is_signalling))
        atomic_store(&destroyed_meanwhile, true);
    return __real_pthread_cond_destroy(condition);
}

int __real_pthread_mutex_lock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_lock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_lock(pthread_mutex_t *lock)
{
    if (is_stopping())
        atomic_store(&wants_lock, true);
    return __real_pthread_mutex_lock(lock);
}

int __real_pthread_join(pthread_t thread, void **result);
int __wrap_pthread_join(pthread_t thread, void **result);
/* The profiler's thread has ended. Now the changer comes. */
int __wrap_pthread_join(pthread_t thread, void **result)
{
    int error = __real_pthread_join(thread, result);
    if (!atomic_load(&has_changer) || pthread_equal(thread, changer))
        return error;
    sem_post(&joined);
    sem_wait(&changing);
    atomic_store(&has_joined, true);
    return error;
}

static void *change_the_rate(void *unused)
{
    sem_wait(&joined);
    sp_wall_set_rate(50);
    sem_post(&changed);
    return unused;
}

static void wall_rate_changes_while_it_stops_the_condition_is_not_destroyed_under_it(void **state)
{
    (void)state;
    sp_modules *modules = sp_modules_create();
    sp_wall_config config = {.hz = 20, .max_depth = 16, .all_threads = true, .modules = modules};
    test_thread = pthread_self();
    sem_init(&joined, 0, 0);
    sem_init(&changing, 0, 0);
    sem_init(&changed, 0, 0);
    if (!sp_wall_start(&config)) {
        sp_modules_destroy(modules);
        skip();
    }
    assert_int_equal(pthread_create(&changer, NULL, change_the_rate, NULL), 0);
    atomic_store(&has_changer, true);
    sp_wall_stop();
    sem_wait(&changed);
    assert_false(atomic_load(&destroyed_meanwhile));
    __real_pthread_join(changer, NULL);
    sp_wall_free();
    sp_modules_destroy(modules);
}

int main(void)
{
    alarm(300);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wall_rate_changes_while_it_stops_the_condition_is_not_destroyed_under_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
