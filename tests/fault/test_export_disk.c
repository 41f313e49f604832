/* SPDX-License-Identifier: Apache-2.0 */
/* A disk that does not answer: a write to a file blocks, and nothing ends it. The exporter's thread
 * is given up on, and later ones have no harm from it when the disk comes back. */
#include "fault/export_fixture.h"

#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "trace/provider.h"

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool hangs;
    int waiting; /* threads */
} disk = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

/* In the place of the C library's. */
ssize_t writev(int fd, const struct iovec *ranges, int count)
{
    pthread_mutex_lock(&disk.lock);
    disk.waiting++;
    pthread_cond_broadcast(&disk.changed);
    while (disk.hangs)
        pthread_cond_wait(&disk.changed, &disk.lock);
    disk.waiting--;
    pthread_cond_broadcast(&disk.changed);
    pthread_mutex_unlock(&disk.lock);
    return syscall(SYS_writev, fd, ranges, count);
}

static void set_hangs(bool hangs)
{
    pthread_mutex_lock(&disk.lock);
    disk.hangs = hangs;
    pthread_cond_broadcast(&disk.changed);
    pthread_mutex_unlock(&disk.lock);
}

static void wait_for_writers(int count)
{
    pthread_mutex_lock(&disk.lock);
    while (disk.waiting != count)
        pthread_cond_wait(&disk.changed, &disk.lock);
    pthread_mutex_unlock(&disk.lock);
}

static char directory[64], prefix[128];

static void remove_file(const char *name)
{
    char path[192];
    snprintf(path, sizeof path, "%s.%s.jsonl", prefix, name);
    unlink(path);
}

static int setup(void **state)
{
    strcpy(directory, "/tmp/spanprof-test-XXXXXX");
    assert_non_null(mkdtemp(directory));
    snprintf(prefix, sizeof prefix, "%s/out", directory);
    fixture_setup(state);
    fixture *f = *state;
    f->config.http[SP_TRACES].enabled = f->config.http[SP_PROFILES].enabled = false;
    f->config.file_enabled = true;
    f->config.file_prefix = prefix;
    f->config.file_format = SP_OTLP_JSON;
    return 0;
}

static int teardown(void **state)
{
    set_hangs(false);
    fixture_teardown(state);
    remove_file("traces");
    remove_file("profiles");
    rmdir(directory);
    return 0;
}

static bool is_export_thread(const char *tid)
{
    char name[64] = "", path[300];
    snprintf(path, sizeof path, "/proc/self/task/%s/comm", tid);
    FILE *file = fopen(path, "r");
    if (file) {
        name[fread(name, 1, sizeof name - 1, file)] = 0;
        fclose(file);
    }
    return strcmp(name, "spanprof-export\n") == 0;
}

static bool export_thread_is_there(void)
{
    bool found = false;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *task; (task = readdir(tasks));)
        found |= is_export_thread(task->d_name);
    closedir(tasks);
    return found;
}

static void disk_hangs_stop_returns_in_time(void **state)
{
    fixture *f = *state;
    fixture_start(f);
    set_hangs(true);
    submit(f, "{}");
    wait_for_writers(1);
    uint64_t before_ns = sp_clock_monotonic_ns();
    sp_exporter *left = f->exporter;
    assert_int_equal(sp_exporter_destroy(left, before_ns + SP_NS_PER_S / 10, &f->counted),
                     SPANPROF_ERROR_TIMEOUT);
    f->exporter = NULL;
    assert_true(sp_clock_monotonic_ns() - before_ns < 100 * SP_NS_PER_S);
    assert_true(f->counted.thread_left);
    assert_int_equal(f->counted.dropped_unreachable, 1);
    assert_int_equal(log_awaited("a disk does not answer", 1), 1);
}

/* The thread that was given up on takes no span of the next exporter's, and ends. */
static void disk_comes_back_the_next_exporter_has_all_spans(void **state)
{
    fixture *f = *state;
    disk_hangs_stop_returns_in_time(state);
    f->submitted = 0;
    end_spans(f, "span", 5);
    set_hangs(false);
    while (export_thread_is_there())
        usleep(1000);
    assert_int_equal(sp_tracer_queued(), 5);
    fixture_start(f);
    assert_int_equal(flush(f), SPANPROF_OK);
    fixture_stop(f, PATIENCE_NS);
    assert_int_equal(f->counted.spans, 5);
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    alarm(300);
    const struct CMUnitTest tests[] = {
        CASE(disk_hangs_stop_returns_in_time),
        CASE(disk_comes_back_the_next_exporter_has_all_spans),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
