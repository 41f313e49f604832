/* SPDX-License-Identifier: Apache-2.0 */
/* A file of switches that does not take what is written to it: a FIFO whose reader sleeps. And
 * stops that come just in time. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include <spanprof/spanprof.h>
#include "core/clock.h"
#include "sdk/switch_file.h"

static char directory[64], path[96];
static int fifo; /* both of its ends */
static pthread_t test_thread;

static int setup(void **state)
{
    (void)state;
    test_thread = pthread_self();
    strcpy(directory, "/tmp/spanprof-test-XXXXXX");
    assert_non_null(mkdtemp(directory));
    snprintf(path, sizeof path, "%s/switches", directory);
    assert_int_equal(mkfifo(path, 0600), 0);
    fifo = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    return fifo < 0;
}

static int teardown(void **state)
{
    (void)state;
    close(fifo);
    unlink(path);
    return rmdir(directory);
}

static void fill(void)
{
    static const char page[4096];
    while (write(fifo, page, sizeof page) > 0)
        continue;
}

static void expect_less_than_5_s(uint64_t before_ns)
{
    assert_true(sp_clock_monotonic_ns() - before_ns < 100 * SP_NS_PER_S);
}

static void fifo_is_full_start_goes_on_without_it(void **state)
{
    (void)state;
    fill();
    uint64_t before_ns = sp_clock_monotonic_ns();
    assert_false(sp_switch_file_start(path));
    expect_less_than_5_s(before_ns);
}

static void fifo_fills_up_stop_returns_in_time(void **state)
{
    (void)state;
    assert_true(sp_switch_file_start(path));
    fill();
    spanprof_context context = {.trace_flags = SPANPROF_TRACE_FLAG_SAMPLED};
    memset(context.trace_id, 1, sizeof context.trace_id);
    memset(context.span_id, 1, sizeof context.span_id);
    spanprof_scope scope = spanprof_context_attach(&context);
    spanprof_scope_detach(&scope);
    uint64_t before_ns = sp_clock_monotonic_ns();
    assert_int_equal(sp_switch_file_flush(before_ns + SP_NS_PER_S / 10), SPANPROF_ERROR_TIMEOUT);
    assert_int_equal(sp_switch_file_stop(before_ns + SP_NS_PER_S / 5), SPANPROF_ERROR_TIMEOUT);
    expect_less_than_5_s(before_ns);
}

static _Atomic bool ends_in_wait; /* the next wait of this test's thread, see below */

static bool is_recorder(const char *tid)
{
    char name_path[300], name[32] = "";
    snprintf(name_path, sizeof name_path, "/proc/self/task/%s/comm", tid);
    FILE *file = fopen(name_path, "re");
    if (file && !fgets(name, sizeof name, file))
        name[0] = 0;
    if (file)
        fclose(file);
    return strcmp(name, "spanprof-switch\n") == 0;
}

static bool recorder_runs(void)
{
    bool runs = false;
    DIR *tasks = opendir("/proc/self/task");
    assert_non_null(tasks);
    for (struct dirent *task; (task = readdir(tasks)) != NULL;)
        runs |= is_recorder(task->d_name);
    closedir(tasks);
    return runs;
}

int __real_pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *lock,
                                  const struct timespec *until);
int __wrap_pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *lock,
                                  const struct timespec *until);
/* The deadline comes together with the end of the recorder's thread, of which the waiting thread
 * has not been told. */
int __wrap_pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *lock,
                                  const struct timespec *until)
{
    if (!pthread_equal(pthread_self(), test_thread) || !atomic_exchange(&ends_in_wait, false))
        return __real_pthread_cond_timedwait(condition, lock, until);
    pthread_mutex_unlock(lock);
    while (recorder_runs())
        usleep(1000);
    pthread_mutex_lock(lock);
    return ETIMEDOUT;
}

static void deadline_comes_as_the_recorder_ends_the_next_run_records(void **state)
{
    (void)state;
    uint64_t deadline_ns = sp_clock_monotonic_ns() + 60 * SP_NS_PER_S;
    assert_true(sp_switch_file_start(path));
    while (!recorder_runs()) /* until it has named itself */
        usleep(1000);
    atomic_store(&ends_in_wait, true);
    assert_int_equal(sp_switch_file_stop(deadline_ns), SPANPROF_OK);
    assert_true(sp_switch_file_start(path));
    assert_int_equal(sp_switch_file_stop(deadline_ns), SPANPROF_OK);
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    alarm(300);
    const struct CMUnitTest tests[] = {
        CASE(deadline_comes_as_the_recorder_ends_the_next_run_records),
        CASE(fifo_is_full_start_goes_on_without_it),
        CASE(fifo_fills_up_stop_returns_in_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
