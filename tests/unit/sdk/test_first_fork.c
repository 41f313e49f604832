/* SPDX-License-Identifier: Apache-2.0 */
/* A fork while another thread is inside the process's first call of a kind, and holds a lock of the
 * library: the child can make that call, too. Each case is a process of its own, which forks while
 * a thread has just taken the lock that it takes first, second, … in the call. */
#include <spanprof/fiber.h>
#include <spanprof/sdk.h>

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/atomic.h"
#include "sanitizers.h"
#include "context/sample_keys.h"

/* A child that hangs does so for ever; one that does not is done in a millisecond on an idle
 * machine. */
enum { PATIENCE_S = 120, MANY_LOCKS = 20 };

static _Thread_local int locks_to_go; /* 0: this thread does not stop */
static _Atomic int holding, forking, forked;

/* The linker sends locking here (tests/CMakeLists.txt): a lock is tried, then waited for. */
int __real_pthread_mutex_lock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_lock(pthread_mutex_t *lock);
int __real_pthread_mutex_trylock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_trylock(pthread_mutex_t *lock);

/* Whether the main thread waits, by the letter that the kernel has for that. */
static bool main_thread_waits(void)
{
    char path[64], text[256] = "";
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)getpid());
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = read(fd, text, sizeof text - 1);
    close(fd);
    const char *name_end = length > 0 ? strrchr(text, ')') : NULL;
    return name_end && name_end[2] == 'S';
}

/* Until the fork is over, or waits for this lock, as it should. */
static void hold(void)
{
    struct timespec moment = {.tv_nsec = 1000 * 1000};
    atomic_store(&holding, 1);
    while (!atomic_load(&forked) && !(atomic_load(&forking) && main_thread_waits()))
        nanosleep(&moment, NULL);
}

int __wrap_pthread_mutex_lock(pthread_mutex_t *lock)
{
    int status = __real_pthread_mutex_lock(lock);
    if (locks_to_go > 0 && --locks_to_go == 0)
        hold();
    return status;
}

int __wrap_pthread_mutex_trylock(pthread_mutex_t *lock)
{
    int status = __real_pthread_mutex_trylock(lock);
    if (status == 0 && locks_to_go > 0 && --locks_to_go == 0)
        hold();
    return status;
}

static void create_a_fiber(void)
{
    (void)spanprof_fiber_create(NULL, 0);
}

static void attach(void)
{
    spanprof_context context = {.trace_id = {1}, .span_id = {1}};
    spanprof_scope scope = spanprof_context_attach(&context);
    spanprof_scope_detach(&scope);
}

static void put_a_key(void)
{
    sp_sample_key_put("key");
}

static void make_a_carrier(void)
{
    spanprof_context context = {.trace_id = {1}, .span_id = {1}};
    (void)spanprof_context_set_attribute(&context, "key", "value");
}

static void ask_for_statistics(void)
{
    spanprof_stats stats = {.struct_size = sizeof stats};
    spanprof_stats_get(&stats);
}

typedef struct first_call {
    void (*make)(void);
    int lock;
} first_call;

static void *make_and_stop(void *argument)
{
    const first_call *call = argument;
    locks_to_go = call->lock;
    call->make();
    locks_to_go = 0;
    atomic_store(&holding, 2);
    return NULL;
}

enum { WELL = 0, HUNG = 1, NO_SUCH_LOCK = 2 };

static int fork_in(first_call call)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, make_and_stop, &call) != 0)
        return 3;
    while (!atomic_load(&holding))
        continue;
    if (atomic_load(&holding) == 2 && !pthread_join(thread, NULL))
        return NO_SUCH_LOCK;
    atomic_store(&forking, 1);
    pid_t child = fork();
    if (child == 0) {
        alarm(PATIENCE_S);
        call.make();
        _exit(0);
    }
    atomic_store(&forked, 1);
    int status = -1;
    waitpid(child, &status, 0);
    pthread_join(thread, NULL);
    return status == 0 ? WELL : HUNG;
}

static void assert_child_can(void (*make)(void))
{
    int result = WELL, lock = 0;
    while (result == WELL && lock < MANY_LOCKS) {
        first_call call = {.make = make, .lock = ++lock};
        pid_t process = fork();
        if (process == 0)
            _exit(fork_in(call));
        int status = -1;
        waitpid(process, &status, 0);
        assert_true(WIFEXITED(status));
        result = WEXITSTATUS(status);
    }
    assert_int_equal(result, NO_SUCH_LOCK);
    assert_true(lock > 1);
}

static void fork_during_the_first_fiber_leaves_no_lock_behind(void **state)
{
    (void)state;
    assert_child_can(create_a_fiber);
}

static void fork_during_the_first_attach_leaves_no_lock_behind(void **state)
{
    (void)state;
    assert_child_can(attach);
}

static void fork_during_the_first_sample_key_leaves_no_lock_behind(void **state)
{
    (void)state;
    assert_child_can(put_a_key);
}

static void fork_during_the_first_carrier_leaves_no_lock_behind(void **state)
{
    (void)state;
    assert_child_can(make_a_carrier);
}

static void fork_while_statistics_are_read_before_a_start_leaves_no_lock_behind(void **state)
{
    (void)state;
    assert_child_can(ask_for_statistics);
}

int main(void)
{
    const char *why = why_forked_child_cannot_start();
    if (why) {
        printf("skipped: %s\n", why);
        return 77;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fork_during_the_first_fiber_leaves_no_lock_behind),
        cmocka_unit_test(fork_during_the_first_attach_leaves_no_lock_behind),
        cmocka_unit_test(fork_during_the_first_sample_key_leaves_no_lock_behind),
        cmocka_unit_test(fork_during_the_first_carrier_leaves_no_lock_behind),
        cmocka_unit_test(fork_while_statistics_are_read_before_a_start_leaves_no_lock_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
