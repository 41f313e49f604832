/* SPDX-License-Identifier: Apache-2.0 */
/* Each part of a start fails in turn: memory, memory mappings, threads. What is returned is what
 * the error says. */
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include <spanprof/spanprof.h>
#include "failing_memory.h"
#include "remove_folder.h"
#include "sdk/synthetic.h"

#define SECOND UINT64_C(1000000000)

enum { MOST_CALLS = 20000 };

/* A start takes so long under TSan, which looks for races and not for leaks, that only some of the
 * calls fail there. */
#ifdef __SANITIZE_THREAD__
enum { MEMORY_STEP = 3 };
#else
enum { MEMORY_STEP = 1 };
#endif

typedef enum what { NOTHING, MEMORY, MAPPINGS, THREADS } what;

/* Of calls of the thread that starts. */
static _Thread_local what failing;
static _Thread_local int calls_left; /* that succeed before one fails */
static _Thread_local int failed_calls;

static bool fails(what kind)
{
    if (failing != kind || calls_left-- != 0)
        return false;
    failed_calls++;
    return true;
}

static bool allocation_fails(void)
{
    return fails(MEMORY);
}

char *__real_strdup(const char *text);
char *__wrap_strdup(const char *text);
char *__wrap_strdup(const char *text)
{
    return fails(MEMORY) ? NULL : __real_strdup(text);
}

void *__real_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    if (!fails(MAPPINGS))
        return __real_mmap(at, bytes, protection, flags, fd, offset);
    errno = ENOMEM;
    return MAP_FAILED;
}

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *argument)
{
    return fails(THREADS) ? EAGAIN : __real_pthread_create(thread, attributes, run, argument);
}

typedef int (*visit_module)(struct dl_phdr_info *, size_t, void *);

typedef struct visitor {
    visit_module visit;
    void *user;
} visitor;

static int visit_if_chosen(struct dl_phdr_info *module, size_t bytes, void *user)
{
    static const char *const chosen[] = {"vdso", "libc.so", "libprotobuf-c"};
    visitor *v = user;
    bool is_chosen = !*module->dlpi_name; /* the program */
    for (size_t i = 0; i < sizeof chosen / sizeof *chosen; i++)
        is_chosen |= strstr(module->dlpi_name, chosen[i]) != NULL;
    return is_chosen ? v->visit(module, bytes, v->user) : 0;
}

/* A start compiles the unwind tables of all modules, which is nearly all of its time. These few
 * are enough: with all of them no allocation has another call chain. */
int __real_dl_iterate_phdr(visit_module visit, void *user);
int __wrap_dl_iterate_phdr(visit_module visit, void *user);
int __wrap_dl_iterate_phdr(visit_module visit, void *user)
{
    visitor v = {visit, user};
    return __real_dl_iterate_phdr(visit_if_chosen, &v);
}

static char directory[64], prefix[80], switches[80];

static int setup(void **state)
{
    (void)state;
    strcpy(directory, "/tmp/spanprof-start-XXXXXX");
    if (!mkdtemp(directory))
        return -1;
    snprintf(prefix, sizeof prefix, "%s/p", directory);
    snprintf(switches, sizeof switches, "%s/s", directory);
    sp_sdk_use_synthetic_ticks();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    spanprof_stop(60 * SECOND);
    return remove_folder(directory);
}

static void keep_quiet(spanprof_log_level level, const char *line, void *user)
{
    (void)level, (void)line, (void)user;
}

static spanprof_options options_with_everything(void)
{
    spanprof_options options = SPANPROF_OPTIONS_INIT;
    options.exporter = "file";
    options.file = prefix;
    options.profiles = "cpu,wall,alloc,heap";
    options.service_name = "test";
    options.resource_attributes = "a=b,c=d";
    options.sample_attributes = "tenant";
    options.switches = switches;
    options.log = keep_quiet;
    return options;
}

/* A message says what happened, and behind a colon or semicolon what to do. */
static void expect_error(spanprof_status status, const spanprof_error *error, what kind)
{
    assert_int_equal(error->status, status);
    assert_non_null(error->message);
    assert_non_null(strpbrk(error->message, ":;"));
    assert_int_equal(status, kind == THREADS ? SPANPROF_ERROR_SYSTEM : SPANPROF_ERROR_NO_MEMORY);
    assert_int_equal(error->system_errno, kind == THREADS ? EAGAIN : 0);
}

/* One start in which the call after N others fails. Returns whether there was such a call. */
static bool start_with_failure(what kind, int n, int *refused)
{
    spanprof_options options = options_with_everything();
    spanprof_error error = {.status = SPANPROF_ERROR_FORMAT, .system_errno = -1};
    spanprof_stats stats = SPANPROF_STATS_INIT;
    failing = kind;
    calls_left = n;
    failed_calls = 0;
    spanprof_status status = spanprof_start(&options, &error);
    failing = NOTHING;
    spanprof_stats_get(&stats);
    assert_int_equal(stats.running, status == SPANPROF_OK);
    if (status != SPANPROF_OK) {
        assert_int_equal(failed_calls, 1);
        expect_error(status, &error, kind);
        ++*refused;
    } else {
        assert_int_equal(error.status, SPANPROF_ERROR_FORMAT); /* untouched */
        spanprof_stop(60 * SECOND);
    }
    return failed_calls > 0;
}

/* One call in STEP. AT_LEAST so many parts cannot do without. */
static void fail_each(what kind, int step, int at_least)
{
    int n = 0, refused = 0;
    while (n < MOST_CALLS && start_with_failure(kind, n, &refused))
        n += step;
    print_message("%d calls, %d of those that failed end a start\n", n, refused);
    assert_true(n < MOST_CALLS);
    assert_true(refused >= at_least);
}

static void start_without_memory_says_so(void **state)
{
    (void)state;
    fail_each(MEMORY, MEMORY_STEP, 3);
}

static void start_without_mappings_says_so(void **state)
{
    (void)state;
    fail_each(MAPPINGS, 1, 0);
}

static void start_without_threads_says_so(void **state)
{
    (void)state;
    /* Log relay, exporter and collector are needed, wall profiler and recorder are not. */
    fail_each(THREADS, 1, 3);
}

static void start_that_fails_needs_no_error(void **state)
{
    (void)state;
    spanprof_options options = options_with_everything();
    failing = THREADS;
    calls_left = 0;
    assert_int_equal(spanprof_start(&options, NULL), SPANPROF_ERROR_SYSTEM);
    failing = NOTHING;
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    alarm(600);
    const struct CMUnitTest tests[] = {
        CASE(start_without_threads_says_so),
        CASE(start_without_memory_says_so),
        CASE(start_without_mappings_says_so),
        CASE(start_that_fails_needs_no_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
