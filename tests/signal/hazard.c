/* SPDX-License-Identifier: Apache-2.0 */
#include "hazard.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include <cmocka.h>

#include "verdict.h"

_Static_assert((int)HAZARD_FAILED == (int)VERDICT_BROKEN &&
                   (int)HAZARD_UNSURE == (int)VERDICT_UNSURE &&
                   (int)HAZARD_SKIPPED == (int)VERDICT_SKIPPED,
               "the verdicts of verdict.h");

/* A case that takes longer hangs. The long ones have a time limit of ctest's only. */
enum { CASE_SECONDS = 240, LONG_SECONDS = 3000, WARNING_SECONDS = 60 };

enum { LINES_MAX = 64, LINE_BYTES = 512 };

extern char **environ;
const char *hazard_program;

static struct {
    const hazard_case *cases;
    size_t count;
    unsigned skipped;
    unsigned ran;
    char lines[LINES_MAX][LINE_BYTES]; /* the SDK's warnings */
    atomic_uint line_count;
    long descriptors, timers; /* at the start */
    double steal;             /* the same */
} hazard;

_Noreturn void hazard_failed(const char *file, int line, const char *what, long long a, long long b)
{
    char text[512];
    int length = snprintf(text, sizeof text, "%s:%d: %s does not hold (%lld, %lld; errno %d)\n",
                          file, line, what, a, b, errno);
    if (write(STDERR_FILENO, text, (size_t)length) < 0)
        _exit(HAZARD_FAILED + 1);
    _exit(HAZARD_FAILED);
}

void hazard_check_equal(const char *file, int line, const char *what, long long a, long long b)
{
    if (a != b)
        hazard_failed(file, line, what, a, b);
}

int hazard_skip(const char *reason)
{
    printf("SKIPPED: %s\n", reason);
    (void)fflush(stdout);
    return HAZARD_SKIPPED;
}

static bool is_set(const char *name)
{
    const char *value = getenv(name);
    return value && *value;
}

bool hazard_is_perf(void)
{
    const char *engine = getenv("SPANPROF_ENGINE");
    return engine && strcmp(engine, "perf") == 0;
}

unsigned hazard_many(unsigned gate, unsigned full, unsigned endurance)
{
    if (is_set("SPANPROF_TEST_HAZARD_LONG"))
        return endurance;
    return verdict_is_full() ? full : gate;
}

double hazard_sized(double gate, double full)
{
    return verdict_is_full() || is_set("SPANPROF_TEST_HAZARD_LONG") ? full : gate;
}

/* --- what is measured ------------------------------------------------------------------------- */

void hazard_unsure(const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    verdict_unsure("%s", text);
}

void hazard_enough(const char *what, double got, double wanted)
{
    verdict_enough(what, got, wanted);
}

void hazard_within(const char *what, double value, double low, double high, double margin)
{
    if (!verdict_within(what, value, low, high, margin))
        _exit(HAZARD_FAILED);
}

int hazard_verdict(void)
{
    return verdict_code(0);
}

double hazard_steal(void)
{
    double steal = verdict_steal() - hazard.steal;
    return steal > 0 ? steal : 0; /* /proc may be hidden by now */
}

/* --- what a process has ----------------------------------------------------------------------- */

/* The file's beginning as text, or NULL. */
static char *read_text(const char *path, char *text, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    size_t length = 0;
    ssize_t got;
    while (length < size - 1 && (got = read(fd, text + length, size - 1 - length)) > 0)
        length += (size_t)got;
    close(fd);
    text[length] = 0;
    return text;
}

/* Whether descriptor NAME of DIRECTORY is a kind of file whose name contains KIND. */
static bool is_kind(int directory, const char *name, const char *kind)
{
    char target[256];
    ssize_t length = readlinkat(directory, name, target, sizeof target - 1);
    target[length > 0 ? length : 0] = 0;
    return length > 0 && atoi(name) != directory && strstr(target, kind);
}

/* By hand, for opendir allocates. */
long hazard_descriptors_of(const char *kind)
{
    int fd = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    _Alignas(8) char entries[4096];
    long count = 0, length;
    while ((length = syscall(SYS_getdents64, fd, entries, sizeof entries)) > 0)
        for (long at = 0; at < length;) {
            unsigned short size;
            memcpy(&size, entries + at + 16, sizeof size); /* d_reclen */
            count += is_kind(fd, entries + at + 19 /* d_name */, kind);
            at += size;
        }
    close(fd);
    return count;
}

long hazard_descriptors(void)
{
    return hazard_descriptors_of("");
}

long hazard_timers(void)
{
    char text[8192];
    if (!read_text("/proc/self/timers", text, sizeof text))
        return -1;
    long count = 0;
    for (const char *at = text; (at = strstr(at, "ID: ")) != NULL; at++)
        count++;
    return count;
}

static long status_field(const char *name)
{
    char text[8192];
    const char *at = read_text("/proc/self/status", text, sizeof text);
    at = at ? strstr(at, name) : NULL;
    return at ? atol(at + strlen(name)) : -1;
}

long hazard_queued_signals(void)
{
    return status_field("SigQ:");
}

long hazard_resident_kib(void)
{
    return status_field("VmRSS:");
}

long hazard_mapped_kib(void)
{
    return status_field("VmSize:");
}

long hazard_threads(void)
{
    return status_field("Threads:");
}

double hazard_process_cpu(void)
{
    return clock_seconds(CLOCK_PROCESS_CPUTIME_ID);
}

double hazard_now(void)
{
    return clock_seconds(CLOCK_MONOTONIC);
}

__attribute__((noinline)) void hazard_burn(double seconds)
{
    burn(seconds);
}

hazard_work hazard_work_of(double seconds, uint64_t ticks)
{
    return (hazard_work){.part = cpu_work_of(CLOCK_PROCESS_CPUTIME_ID, seconds),
                         .patience = cpu_work_of(CLOCK_PROCESS_CPUTIME_ID, seconds + 10),
                         .ticks = ticks};
}

bool hazard_work_goes_on(hazard_work *work)
{
    if (cpu_work_goes_on(&work->part))
        return true;
    uint64_t ticks = hazard_flushed_stats().ticks;
    if (ticks >= work->ticks)
        return false;
    if (!cpu_work_goes_on(&work->patience))
        hazard_failed(__FILE__, __LINE__, "ticks come", (long long)ticks, (long long)work->ticks);
    work->part = cpu_work_of(CLOCK_PROCESS_CPUTIME_ID, 0.02);
    return true;
}

void hazard_burn_to_ticks(double seconds, uint64_t ticks)
{
    hazard_burn(seconds);
    for (hazard_work work = hazard_work_of(0, ticks); hazard_work_goes_on(&work);)
        ;
}

void *hazard_burn_until(void *stop)
{
    while (!atomic_load((atomic_bool *)stop))
        SPANPROF_SPAN("burning")
            spin(0.001);
    return NULL;
}

pthread_t hazard_thread(void *(*function)(void *), void *argument)
{
    pthread_t thread;
    CHECK_EQUAL(pthread_create(&thread, NULL, function, argument), 0);
    return thread;
}

/* --- a run of the SDK ------------------------------------------------------------------------- */

static void keep_line(spanprof_log_level level, const char *line, void *user)
{
    (void)level;
    (void)user;
    unsigned n = atomic_fetch_add(&hazard.line_count, 1);
    if (n < LINES_MAX)
        snprintf(hazard.lines[n], LINE_BYTES, "%s", line);
    (void)fprintf(stderr, "   told: %s\n", line);
}

unsigned hazard_warnings(const char *text)
{
    unsigned found = 0, count = atomic_load(&hazard.line_count);
    for (unsigned n = 0; n < count && n < LINES_MAX; n++)
        found += strstr(hazard.lines[n], text) != NULL;
    return found;
}

unsigned hazard_awaited_warnings(const char *text, unsigned least)
{
    double end = hazard_now() + WARNING_SECONDS;
    while (hazard_warnings(text) < least && hazard_now() < end)
        usleep(1000);
    return hazard_warnings(text);
}

void hazard_start_with(spanprof_options *options)
{
    spanprof_error error = {0};
    options->log = keep_line;
    hazard.descriptors = hazard_descriptors();
    hazard.timers = hazard_timers();
    hazard.steal = verdict_steal();
    if (spanprof_start(options, &error) != SPANPROF_OK)
        hazard_failed(__FILE__, __LINE__, error.message ? error.message : "start", error.status,
                      error.system_errno);
}

void hazard_start(uint32_t hz)
{
    spanprof_options options = SPANPROF_OPTIONS_INIT;
    options.exporter = "none";
    options.cpu_hz = hz;
    hazard_start_with(&options);
}

spanprof_stats hazard_stats(void)
{
    spanprof_stats stats = SPANPROF_STATS_INIT;
    spanprof_stats_get(&stats);
    return stats;
}

spanprof_stats hazard_flushed_stats(void)
{
    CHECK_EQUAL(spanprof_flush(60 * SECOND), SPANPROF_OK);
    return hazard_stats();
}

spanprof_stats hazard_stop(void)
{
    CHECK_EQUAL(spanprof_stop(60 * SECOND), SPANPROF_OK);
    spanprof_stats stats = hazard_stats();
    CHECK_EQUAL(stats.ticks, stats.samples_linked + stats.samples_none + stats.samples_unknown +
                                 stats.dropped_samples_ring_full + stats.dropped_samples_memory +
                                 stats.dropped_samples_small_stack);
    CHECK(stats.weights >= stats.ticks);
    CHECK_EQUAL(hazard_descriptors(), hazard.descriptors);
    CHECK_EQUAL(hazard_timers(), hazard.timers);
    return stats;
}

/* --- processes -------------------------------------------------------------------------------- */

pid_t hazard_role(const char *name, int *pipe)
{
    char *arguments[] = {(char *)(uintptr_t)hazard_program, (char *)(uintptr_t)name, NULL};
    posix_spawn_file_actions_t actions;
    int ends[2];
    pid_t child;
    posix_spawn_file_actions_init(&actions);
    if (pipe) {
        CHECK_EQUAL(pipe2(ends, O_CLOEXEC), 0);
        posix_spawn_file_actions_adddup2(&actions, ends[1], HAZARD_READY_FD);
    }
    CHECK_EQUAL(posix_spawn(&child, hazard_program, &actions, NULL, arguments, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    if (pipe) {
        close(ends[1]);
        *pipe = ends[0];
    }
    return child;
}

pid_t hazard_ready_role(const char *name)
{
    int ready;
    char byte;
    pid_t child = hazard_role(name, &ready);
    CHECK_EQUAL(read(ready, &byte, 1), 1);
    close(ready);
    return child;
}

void hazard_say_ready(void)
{
    if (write(HAZARD_READY_FD, "r", 1) != 1)
        _exit(5);
}

int hazard_wait(pid_t child, unsigned seconds)
{
    int status = 0;
    double end = hazard_now() + seconds;
    useconds_t pause = 50;
    pid_t ended;
    while ((ended = waitpid(child, &status, WNOHANG)) == 0 && hazard_now() < end) {
        usleep(pause);
        pause = pause < 20000 ? pause * 2 : pause;
    }
    if (ended == 0) {
        kill(child, SIGKILL);
        waitpid(child, &status, 0);
        hazard_failed(__FILE__, __LINE__, "a child ends in time", child, seconds);
    }
    CHECK_EQUAL(ended, child);
    return status;
}

void hazard_wait_well(pid_t child, unsigned seconds)
{
    int status = hazard_wait(child, seconds);
    if (WIFSIGNALED(status))
        hazard_failed(__FILE__, __LINE__, "a child is not ended by a signal", child,
                      WTERMSIG(status));
    if (WEXITSTATUS(status) == HAZARD_UNSURE)
        verdict_unsure_count++; /* the child has said why */
    else
        CHECK_EQUAL(WEXITSTATUS(status), 0);
}

/* --- the program ------------------------------------------------------------------------------ */

/* As cmocka sees a case: a process that has to end with 0, or is unsure. */
static void run_case(void **state)
{
    const hazard_case *one = *state;
    int status = hazard_wait(hazard_role(one->name, NULL),
                             hazard_many(CASE_SECONDS, CASE_SECONDS, LONG_SECONDS));
    if (WIFEXITED(status) && WEXITSTATUS(status) == HAZARD_SKIPPED) {
        hazard.skipped++;
        skip();
    }
    hazard.ran++;
    if (WIFSIGNALED(status))
        fail_msg("ended by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    if (WEXITSTATUS(status) == HAZARD_UNSURE) {
        verdict_unsure_count++; /* the case has said why */
        return;
    }
    assert_int_equal(WEXITSTATUS(status), 0);
}

static int run_all(void)
{
    struct CMUnitTest *tests = calloc(hazard.count, sizeof *tests);
    size_t count = 0;
    for (size_t i = 0; tests && i < hazard.count; i++)
        if (!hazard.cases[i].is_role)
            tests[count++] =
                (struct CMUnitTest){.name = hazard.cases[i].name,
                                    .test_func = run_case,
                                    .initial_state = (void *)(uintptr_t)&hazard.cases[i]};
    int failed = _cmocka_run_group_tests("hazards", tests, count, NULL, NULL);
    free(tests);
    if (failed == 0 && hazard.ran == 0)
        return HAZARD_SKIPPED;
    return verdict_code(failed);
}

/* Which engine really runs: without the privilege perf gives way to timer, which has tests of its
 * own. */
static int tell_engine(void)
{
    hazard_start(1000);
    char engine[16];
    memcpy(engine, hazard_stats().engine, sizeof engine);
    hazard_stop();
    printf("engine: %s\n", engine);
    return hazard_is_perf() && strcmp(engine, "perf") != 0 ? HAZARD_SKIPPED : 0;
}

int hazard_main(int argc, char **argv, const hazard_case *cases, size_t count)
{
#if defined(__SANITIZE_THREAD__)
    return hazard_skip("TSan delivers signals late");
#endif
    /* What a shell or a test runner left open is not handed on: cases count descriptors. */
    for (int fd = 3; fd < 1024; fd++)
        fcntl(fd, F_SETFD, FD_CLOEXEC);
    static char path[4096];
    hazard_program = realpath("/proc/self/exe", path) ? path : argv[0];
    hazard.cases = cases;
    hazard.count = count;
    if (argc > 1 && strcmp(argv[1], "engine") == 0)
        return tell_engine();
    for (size_t i = 0; argc > 1 && i < count; i++)
        if (strcmp(argv[1], cases[i].name) == 0) {
            int code = cases[i].run();
            return code ? code : verdict_code(0);
        }
    if (argc > 1) {
        (void)fprintf(stderr, "no case %s\n", argv[1]);
        return 2;
    }
    /* What whoever started the tests left open is not ours to count. */
    CHECK_EQUAL(close_range(3, ~0u, 0), 0);
    int status = hazard_wait(hazard_role("engine", NULL), CASE_SECONDS);
    if (WIFEXITED(status) && WEXITSTATUS(status) == HAZARD_SKIPPED)
        return hazard_skip("the engine perf is not allowed here: what runs instead has its test");
    return run_all();
}
