/* SPDX-License-Identifier: Apache-2.0 */
/* The time recorder against what threads write down themselves: which contexts, in which order, and
 * between which readings of the clock that they took. Then what is lost, and everything that
 * happens to a process and its threads. */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <spanprof/spanprof.h>
#include "core/clock.h"
#include "core/compiler.h"
#include "core/log.h"
#include "sdk/switch_file.h"
#include "context/switch_recorder.h"
#include "context/thread.h"
#include "tool/read/switches.h"

static char directory[64], path[80];

static int setup(void **state)
{
    (void)state;
    strcpy(directory, "/tmp/spanprof-switches-XXXXXX");
    assert_non_null(mkdtemp(directory));
    snprintf(path, sizeof path, "%s/s", directory);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    unlink(path);
    rmdir(directory);
    return 0;
}

/* --- the file --------------------------------------------------------------------------------- */

static uint8_t *load(const char *name, size_t *length)
{
    FILE *file = fopen(name, "rb");
    struct stat status;
    assert_non_null(file);
    assert_int_equal(fstat(fileno(file), &status), 0);
    uint8_t *data = malloc((size_t)status.st_size + 1);
    assert_non_null(data);
    *length = fread(data, 1, (size_t)status.st_size, file);
    assert_int_equal(*length, status.st_size);
    fclose(file);
    return data;
}

static void read_file(sp_switches *out, const char *name)
{
    size_t length;
    uint8_t *data = load(name, &length);
    const char *wrong = sp_switches_read(out, data, length);
    if (wrong)
        fail_msg("byte %llu: %s", (unsigned long long)out->read_bytes, wrong);
    assert_int_equal(out->read_bytes, length);
    free(data);
}

static const sp_switch_thread *thread_called(const sp_switches *switches, int64_t tid)
{
    for (size_t i = 0; i < switches->thread_count; i++)
        if (switches->threads[i].tid == tid)
            return &switches->threads[i];
    fail_msg("thread %lld is not in the file", (long long)tid);
    return NULL;
}

/* The number in the span id of INTERVAL's context; 0 for no span, UINT64_MAX for unknown. */
static uint64_t id_of(const sp_switches *switches, const sp_switch_interval *interval)
{
    uint64_t id = 0;
    if (interval->state == SP_SWITCH_STATE_UNKNOWN)
        return UINT64_MAX;
    if (interval->state == SP_SWITCH_STATE_CONTEXT) {
        const sp_switch_context *context = sp_intern_key(&switches->contexts, interval->context);
        memcpy(&id, context->span_id, sizeof id);
        uint64_t trace[2];
        memcpy(trace, context->trace_id, sizeof trace);
        assert_int_equal(trace[0], id / 8 + 1); /* as context_of made it */
        assert_int_equal(trace[1], 7);
        uint64_t root;
        memcpy(&root, context->local_root_span_id, sizeof root);
        assert_int_equal(root, id / 8 + 1);
        assert_int_equal(context->trace_flags, id % 4 == 0 ? 0 : 1);
        assert_int_equal(context->remote, id % 5 == 0);
    }
    return id;
}

/* Eight spans each share a trace. */
static spanprof_context context_of(uint64_t id)
{
    spanprof_context context = {.trace_flags = id % 4 != 0, .remote = id % 5 == 0};
    uint64_t trace[2] = {id / 8 + 1, 7};
    memcpy(context.trace_id, trace, sizeof trace);
    memcpy(context.span_id, &id, sizeof id);
    memcpy(context.local_root_span_id, trace, 8);
    return context;
}

static spanprof_scope attach(uint64_t id)
{
    spanprof_context context = context_of(id);
    return spanprof_context_attach(id ? &context : NULL);
}

static uint64_t active_id(void)
{
    spanprof_context context = spanprof_context_current();
    uint64_t id;
    memcpy(&id, context.span_id, sizeof id);
    return id;
}

static void start(void)
{
    assert_true(sp_switch_file_start(path));
}

static char last_log[400];
static int log_lines;

static void keep_log(spanprof_log_level level, const char *line, void *user)
{
    (void)level, (void)user;
    snprintf(last_log, sizeof last_log, "%s", line);
    log_lines++;
}

/* A run that was given up on ends very soon once its file has taken everything: at the latest with
 * this. */
static void wait_for_the_last_run(void)
{
    sp_log_configure(SPANPROF_LOG_OFF, NULL, NULL);
    while (!sp_switch_file_start("/dev/null"))
        sched_yield();
    assert_int_equal(sp_switch_file_stop(UINT64_MAX), SPANPROF_OK);
    sp_log_configure(SPANPROF_LOG_DEFAULT, NULL, NULL);
}

static sp_switch_counters stop(void)
{
    sp_switch_counters counters;
    assert_int_equal(sp_switch_file_stop(UINT64_MAX), SPANPROF_OK);
    sp_switch_file_counters_get(&counters);
    return counters;
}

/* --- truth ------------------------------------------------------------------------------------ */

enum { THREADS = 6, STEPS = 20000, DEPTH = 40, STEPS_A_FLUSH = 300 };

/* A switch, and the clock before and after it. */
typedef struct step {
    uint64_t before_ns, after_ns, id;
} step;

typedef struct worker {
    uint64_t seed;
    int64_t tid;
    step steps[STEPS];
    size_t count; /* of switches that changed something */
} worker;

static uint64_t random_of(worker *w, uint64_t below)
{
    w->seed = w->seed * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (w->seed >> 33) % below;
}

/* Some ids come back soon, some late, most are new; some are "no span". */
static uint64_t choose_id(worker *w, uint64_t number)
{
    switch (random_of(w, 8)) {
    case 0:
        return 0;
    case 1:
        return 1 + random_of(w, 20);
    case 2:
        return 1 + random_of(w, 1000);
    default:
        return 10000 + number * 3 + w->seed % 3;
    }
}

static void note(worker *w, uint64_t before_ns)
{
    step now = {before_ns, sp_clock_monotonic_ns(), active_id()};
    if (w->count == 0 || w->steps[w->count - 1].id != now.id)
        w->steps[w->count++] = now;
}

/* Attach and detach, also out of order, at random. Flushes keep the ring from filling. */
static void *work(void *argument)
{
    worker *w = argument;
    spanprof_scope scopes[DEPTH];
    size_t depth = 0;
    w->tid = syscall(SYS_gettid);
    for (uint64_t i = 0; i < STEPS; i++) {
        if (i % STEPS_A_FLUSH == 0)
            sp_switch_file_flush(UINT64_MAX);
        uint64_t choice = random_of(w, 10), before_ns = sp_clock_monotonic_ns();
        if (depth == 0 || (depth < DEPTH && choice < 5)) {
            scopes[depth++] = attach(choose_id(w, i));
        } else {
            size_t which = choice == 9 ? random_of(w, depth) : depth - 1;
            spanprof_scope_detach(&scopes[which]);
            memmove(&scopes[which], &scopes[which + 1], (depth - which - 1) * sizeof scopes[0]);
            depth--;
        }
        note(w, before_ns);
    }
    for (; depth; depth--)
        spanprof_scope_detach(&scopes[depth - 1]);
    return NULL;
}

/* All that the thread noted stands in the file, one after the other, and nothing else; what comes
 * behind is the scopes left at its end. */
static void compare(const sp_switches *switches, const worker *w)
{
    const sp_switch_thread *thread = thread_called(switches, w->tid);
    assert_true(thread->interval_count >= w->count);
    assert_true(thread->has_exited);
    size_t first =
        thread->intervals[0].state == SP_SWITCH_STATE_UNKNOWN; /* until the first switch */
    for (size_t i = 0; i < w->count; i++) {
        const sp_switch_interval *interval = &thread->intervals[first + i];
        assert_int_equal(id_of(switches, interval), w->steps[i].id);
        assert_in_range(interval->start_ns, w->steps[i].before_ns, w->steps[i].after_ns);
        assert_true(i == 0 || interval->start_ns == interval[-1].end_ns);
        const sp_switch_context *context;
        sp_switch_state state = sp_switches_find(switches, w->tid, interval->end_ns - 1, &context);
        assert_int_equal(state, interval->state);
        assert_ptr_equal(context, state == SP_SWITCH_STATE_CONTEXT
                                      ? sp_intern_key(&switches->contexts, interval->context)
                                      : NULL);
    }
}

static void switches_are_what_the_threads_noted(void **state)
{
    (void)state;
    worker *workers = calloc(THREADS, sizeof *workers);
    pthread_t threads[THREADS];
    sp_switches switches;
    assert_non_null(workers);
    start();
    for (size_t i = 0; i < THREADS; i++) {
        workers[i].seed = i + 1;
        pthread_create(&threads[i], NULL, work, &workers[i]);
    }
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    sp_switch_counters counters = stop();
    read_file(&switches, path);
    assert_int_equal(counters.lost, 0);
    assert_int_equal(switches.lost, 0);
    assert_false(switches.is_cut);
    assert_int_equal(switches.thread_count, THREADS);
    assert_int_equal(counters.recorded, switches.switches); /* and not the threads' ends */
    for (size_t i = 0; i < THREADS; i++)
        compare(&switches, &workers[i]);
    sp_switches_deinit(&switches);
    free(workers);
}

/* --- loss ------------------------------------------------------------------------------------- */

enum { FLOOD = 200000, TRICKLE = 500, FLOODERS = 3, FIRST = 10, RECURRING = 5 };

/* All threads have flooded; the rings are empty again. */
static pthread_barrier_t flooded, emptied;

/* A span that is new, in it one that comes back, and both left again. 4 COUNT switches. */
static void switch_fast(uint64_t from, uint64_t count)
{
    for (uint64_t i = from; i < from + count; i++) {
        spanprof_scope outer = attach(FIRST + i), inner = attach(1 + i % RECURRING);
        spanprof_scope_detach(&inner);
        spanprof_scope_detach(&outer);
    }
}

static void *flood(void *argument)
{
    (void)argument;
    switch_fast(0, FLOOD);
    pthread_barrier_wait(&flooded);
    pthread_barrier_wait(&emptied);
    switch_fast(FLOOD, TRICKLE);
    return NULL;
}

/* What flood() does next after `last`, NEW being the new span that it was in last; UINT64_MAX: not
 * known. */
static bool may_follow(uint64_t last, uint64_t new, uint64_t id)
{
    if (last == UINT64_MAX)
        return true;
    if (last == 0)
        return id >= FIRST && (new == UINT64_MAX || id == new + 1);
    if (last < FIRST)
        return id >= FIRST && (new == UINT64_MAX || id == new) &&
               1 + (id - FIRST) % RECURRING == last;
    return id == 0 || id == 1 + (last - FIRST) % RECURRING;
}

/* Where nothing is missing each is what comes next. So no context reaches across a gap, and no
 * number means what it meant before one. */
static void expect_no_wrong_neighbours(const sp_switches *switches, const sp_switch_thread *thread)
{
    uint64_t last = UINT64_MAX, new = UINT64_MAX, newest = 0;
    for (size_t n = 0; n < thread->interval_count; n++) {
        uint64_t id = id_of(switches, &thread->intervals[n]);
        if (id == UINT64_MAX) {
            last = new = id;
            continue;
        }
        assert_true(may_follow(last, new, id));
        if (id >= FIRST) {
            assert_true(id >= newest);
            new = newest = id;
        }
        last = id;
    }
}

/* Everything that comes out of the pipe, from when the flood is over. */
typedef struct pipe_end {
    int fd;
    uint8_t *data;
    size_t length;
} pipe_end;

static void *empty_pipe(void *argument)
{
    pipe_end *end = argument;
    ssize_t count;
    do {
        end->data = realloc(end->data, end->length + 65536);
        count = read(end->fd, end->data + end->length, 65536);
        end->length += count > 0 ? (size_t)count : 0;
    } while (count > 0);
    return NULL;
}

/* The file is a pipe that nobody reads while the threads switch, so that rings fill up for certain;
 * then it is read, and they go on. */
static void flood_is_written_or_counted(void **state)
{
    (void)state;
    pthread_t threads[FLOODERS], reading;
    sp_switches switches;
    assert_int_equal(mkfifo(path, 0600), 0);
    pipe_end end = {.fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)};
    start();
    fcntl(end.fd, F_SETFL, 0);
    pthread_barrier_init(&flooded, NULL, FLOODERS + 1);
    pthread_barrier_init(&emptied, NULL, FLOODERS + 1);
    for (size_t i = 0; i < FLOODERS; i++)
        pthread_create(&threads[i], NULL, flood, NULL);
    pthread_barrier_wait(&flooded);
    pthread_create(&reading, NULL, empty_pipe, &end);
    sp_switch_file_flush(UINT64_MAX);
    pthread_barrier_wait(&emptied);
    for (size_t i = 0; i < FLOODERS; i++)
        pthread_join(threads[i], NULL);
    sp_switch_counters counters = stop();
    pthread_join(reading, NULL);
    close(end.fd);
    assert_null(sp_switches_read(&switches, end.data, end.length));
    assert_int_equal(switches.read_bytes, end.length);
    free(end.data);
    assert_int_equal(counters.recorded, switches.switches);
    assert_int_equal(counters.recorded + counters.lost, FLOODERS * 4 * (uint64_t)(FLOOD + TRICKLE));
    assert_int_equal(switches.lost, counters.lost);
    assert_true(counters.lost > 0);
    for (size_t i = 0; i < switches.thread_count; i++) {
        const sp_switch_thread *thread = &switches.threads[i];
        expect_no_wrong_neighbours(&switches, thread);
        assert_true(thread->interval_count > 4 * TRICKLE); /* what came after the loss is there */
    }
    sp_switches_deinit(&switches);
}

/* Another tracer's events, and a thread's end, that find no room are records that the file says are
 * missing, and no switches. */
static void *flood_with_events(void *argument)
{
    (void)argument;
    spanprof_context context = context_of(9);
    switch_fast(0, 10);
    for (int i = 0; i < FLOOD; i++)
        sp_switch_recorder_span_end(&context);
    return NULL;
}

static void events_that_are_lost_are_no_switches(void **state)
{
    (void)state;
    pthread_t thread;
    sp_switches switches;
    sp_switch_counters counters;
    assert_int_equal(mkfifo(path, 0600), 0);
    pipe_end end = {.fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)};
    start();
    fcntl(end.fd, F_SETFL, 0);
    pthread_create(&thread, NULL, flood_with_events, NULL);
    pthread_join(thread, NULL);
    assert_int_equal(sp_switch_file_stop(sp_clock_monotonic_ns()), SPANPROF_ERROR_TIMEOUT);
    empty_pipe(&end);
    close(end.fd);
    assert_null(sp_switches_read(&switches, end.data, end.length));
    free(end.data);
    sp_switch_file_counters_get(&counters);
    assert_int_equal(switches.switches, 40);
    assert_int_equal(counters.recorded, 40);
    assert_int_equal(counters.lost, 0);
    assert_true(switches.lost > 0);
    assert_int_equal(switches.events + switches.lost, FLOOD + 1);
    sp_switches_deinit(&switches);
    wait_for_the_last_run();
}

/* --- threads ---------------------------------------------------------------------------------- */

static void *live_shortly(void *argument)
{
    int64_t *tid = argument;
    char name[16];
    *tid = syscall(SYS_gettid);
    snprintf(name, sizeof name, "short-%d", (int)(*tid % 1000));
    pthread_setname_np(pthread_self(), name);
    attach(8 * (uint64_t)*tid + 1); /* and never detached */
    return NULL;
}

static void slot_used_again_is_another_thread(void **state)
{
    (void)state;
    enum { LIVES = 100 };
    int64_t tids[LIVES];
    sp_switches switches;
    sp_switch_counters counters;
    start();
    for (int i = 0; i < LIVES; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, live_shortly, &tids[i]);
        pthread_join(thread, NULL);
        if (i % 10 == 0)
            sp_switch_file_flush(UINT64_MAX);
    }
    counters = stop();
    read_file(&switches, path);
    assert_int_equal(counters.lost, 0);
    assert_int_equal(switches.thread_count, LIVES);
    for (int i = 0; i < LIVES; i++) {
        const sp_switch_thread *thread = thread_called(&switches, tids[i]);
        char name[16];
        snprintf(name, sizeof name, "short-%d", (int)(tids[i] % 1000));
        assert_string_equal(thread->name, name);
        assert_true(thread->has_exited);
        const sp_switch_interval *last = &thread->intervals[thread->interval_count - 1];
        assert_int_equal(id_of(&switches, last), 8 * (uint64_t)tids[i] + 1);
    }
    sp_switches_deinit(&switches);
}

static void *detach_it(void *scope)
{
    assert_int_equal(spanprof_scope_detach(scope), SPANPROF_ERROR_OTHER_THREAD);
    return NULL;
}

static void detach_by_another_thread_is_unknown_until_the_next_switch(void **state)
{
    (void)state;
    pthread_t thread;
    sp_switches switches;
    start();
    spanprof_scope first = attach(1), second = attach(2), copy = second;
    pthread_create(&thread, NULL, detach_it, &copy);
    pthread_join(thread, NULL);
    spanprof_scope third = attach(3);
    spanprof_scope_detach(&third);
    stop();
    read_file(&switches, path);
    const sp_switch_thread *own = thread_called(&switches, syscall(SYS_gettid));
    const uint64_t expected[] = {1, UINT64_MAX, 3, 1};
    size_t at = own->intervals[0].state == SP_SWITCH_STATE_UNKNOWN;
    assert_int_equal(own->interval_count - at, SP_ARRAY_LENGTH(expected));
    for (size_t i = 0; i < SP_ARRAY_LENGTH(expected); i++)
        assert_int_equal(id_of(&switches, &own->intervals[at + i]), expected[i]);
    sp_switches_deinit(&switches);
    spanprof_scope_detach(&first);
}

/* The owner sleeps: nobody tells of the detach, so what it is at is not known from the last time
 * that all was well. */
static void detach_by_another_thread_of_a_sleeper_is_unknown(void **state)
{
    (void)state;
    pthread_t thread;
    sp_switches switches;
    const sp_switch_context *context;
    start();
    spanprof_scope scope = attach(1), copy = scope;
    sp_switch_file_flush(UINT64_MAX);
    uint64_t well_ns = sp_clock_monotonic_ns();
    sp_switch_file_flush(UINT64_MAX);
    pthread_create(&thread, NULL, detach_it, &copy);
    pthread_join(thread, NULL);
    uint64_t after_ns = sp_clock_monotonic_ns();
    stop();
    read_file(&switches, path);
    int64_t tid = syscall(SYS_gettid);
    assert_int_equal(sp_switches_find(&switches, tid, well_ns, &context), SP_SWITCH_STATE_CONTEXT);
    assert_int_equal(sp_switches_find(&switches, tid, after_ns, &context), SP_SWITCH_STATE_UNKNOWN);
    sp_switches_deinit(&switches);
    spanprof_scope_detach(&scope);
    scope = attach(2);
    spanprof_scope_detach(&scope);
}

/* --- the process ------------------------------------------------------------------------------ */

static void second_run_knows_a_thread_from_its_first_switch_on(void **state)
{
    (void)state;
    sp_switches switches;
    const sp_switch_context *context;
    start();
    spanprof_scope scope = attach(1);
    stop();
    uint64_t between_ns = sp_clock_monotonic_ns();
    spanprof_scope unseen = attach(2);
    start();
    uint64_t before_ns = sp_clock_monotonic_ns();
    spanprof_scope seen = attach(3);
    uint64_t after_ns = sp_clock_monotonic_ns();
    sp_switch_file_flush(UINT64_MAX);
    stop();
    read_file(&switches, path);
    int64_t tid = syscall(SYS_gettid);
    assert_int_equal(switches.thread_count, 1);
    assert_int_equal(switches.switches, 1);
    assert_int_equal(sp_switches_find(&switches, tid, between_ns, &context),
                     SP_SWITCH_STATE_UNKNOWN);
    assert_int_equal(sp_switches_find(&switches, tid, before_ns - 1, &context),
                     SP_SWITCH_STATE_UNKNOWN);
    assert_int_equal(sp_switches_find(&switches, tid, after_ns, &context), SP_SWITCH_STATE_CONTEXT);
    sp_switches_deinit(&switches);
    spanprof_scope_detach(&seen);
    spanprof_scope_detach(&unseen);
    spanprof_scope_detach(&scope);
}

static void child_writes_nothing_into_its_parents_file(void **state)
{
    (void)state;
#if defined(__SANITIZE_THREAD__)
    print_message("skipped: ThreadSanitizer confuses the threads of a child with its parent's\n");
    skip();
#endif
    char own[96];
    sp_switches switches;
    unsetenv("SPANPROF_EXPORTER");
    setenv("SPANPROF_SWITCHES", path, 1);
    spanprof_options options = SPANPROF_OPTIONS_INIT;
    options.exporter = "none";
    options.profiles = "none";
    assert_int_equal(spanprof_start(&options, NULL), SPANPROF_OK);
    spanprof_scope scope = attach(1);
    /* The SDK's threads rest now: a sanitizer's allocator does not bear a fork in the middle of its
     * work. */
    assert_int_equal(spanprof_flush(UINT64_MAX), SPANPROF_OK);
    pid_t child = fork();
    if (child == 0) {
        spanprof_scope lost = attach(2);
        bool started = spanprof_start(&options, NULL) == SPANPROF_OK;
        spanprof_scope_detach(&lost);
        spanprof_scope found = attach(3);
        spanprof_scope_detach(&found);
        _exit(started && spanprof_stop(UINT64_MAX) == SPANPROF_OK ? 0 : 1);
    }
    int status;
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
    spanprof_scope_detach(&scope);
    assert_int_equal(spanprof_stop(UINT64_MAX), SPANPROF_OK);
    spanprof_stats stats = SPANPROF_STATS_INIT;
    spanprof_stats_get(&stats);
    assert_int_equal(stats.switches_recorded, 2);
    assert_int_equal(stats.dropped_switches, 0);
    unsetenv("SPANPROF_SWITCHES");

    read_file(&switches, path);
    assert_int_equal(switches.switches, 2);
    assert_int_equal(switches.pid, getpid());
    sp_switches_deinit(&switches);
    snprintf(own, sizeof own, "%s.%d", path, (int)child);
    read_file(&switches, own);
    assert_int_equal(switches.switches, 3);
    assert_int_equal(switches.pid, child);
    assert_int_equal(switches.threads[0].tid, child);
    sp_switches_deinit(&switches);
    unlink(own);
}

/* The child's options name its parent's file: it records nothing, says so once, and the rest of it
 * runs. */
static void child_with_its_parents_path_leaves_the_file_alone(void **state)
{
    (void)state;
#if defined(__SANITIZE_THREAD__)
    print_message("skipped: ThreadSanitizer confuses the threads of a child with its parent's\n");
    skip();
#endif
    sp_switches switches;
    spanprof_options options = SPANPROF_OPTIONS_INIT;
    options.exporter = "none";
    options.profiles = "none";
    options.switches = path;
    assert_int_equal(spanprof_start(&options, NULL), SPANPROF_OK);
    switch_fast(0, 10);
    assert_int_equal(spanprof_flush(UINT64_MAX), SPANPROF_OK);
    pid_t child = fork();
    if (child == 0) {
        spanprof_stats stats = SPANPROF_STATS_INIT;
        options.log = keep_log;
        log_lines = 0;
        bool started = spanprof_start(&options, NULL) == SPANPROF_OK;
        bool said = log_lines == 1 && strstr(last_log, "another time recorder writes it");
        switch_fast(0, 10);
        bool stopped = spanprof_stop(UINT64_MAX) == SPANPROF_OK;
        spanprof_stats_get(&stats);
        _exit(started && said && stopped && stats.switches_recorded == 0 ? 0 : 1);
    }
    int status;
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
    switch_fast(0, 10);
    assert_int_equal(spanprof_stop(UINT64_MAX), SPANPROF_OK);
    read_file(&switches, path);
    assert_int_equal(switches.pid, getpid());
    assert_int_equal(switches.switches, 80);
    assert_false(switches.is_cut);
    sp_switches_deinit(&switches);
    start(); /* nobody keeps the lock */
    stop();
}

/* By its name, and by another one. */
static void file_of_the_exporter_is_left_alone(void **state)
{
    (void)state;
    char profiles[96], other[96];
    struct stat status;
    snprintf(profiles, sizeof profiles, "%s/p.profiles.jsonl", directory);
    snprintf(other, sizeof other, "%s/other", directory);
    snprintf(path, sizeof path, "%s/p", directory);
    spanprof_options options = SPANPROF_OPTIONS_INIT;
    options.exporter = "file";
    options.file = path;
    options.log = keep_log;
    assert_int_equal(symlink(profiles, other), 0);
    for (int i = 0; i < 2; i++) {
        options.switches = i ? other : profiles;
        log_lines = 0;
        assert_int_equal(spanprof_start(&options, NULL), SPANPROF_OK);
        assert_int_equal(log_lines, 1);
        assert_non_null(strstr(last_log, "profiles or spans are written to it"));
        switch_fast(0, 10);
        assert_int_equal(spanprof_stop(UINT64_MAX), SPANPROF_OK);
        assert_int_equal(stat(profiles, &status), 0);
        size_t length;
        uint8_t *data = load(profiles, &length);
        assert_false(sp_switches_recognize(data, length));
        free(data);
    }
    sp_log_configure(SPANPROF_LOG_DEFAULT, NULL, NULL);
    unlink(other);
    unlink(profiles);
    snprintf(other, sizeof other, "%s.traces.jsonl", path);
    unlink(other);
}

/* A run whose file takes nothing, given up on: the writer waits in the pipe, with the rings full of
 * what is the run's. END is the pipe's other end. */
static void give_up_on_a_run(pipe_end *end)
{
    assert_int_equal(mkfifo(path, 0600), 0);
    *end = (pipe_end){.fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)};
    start();
    fcntl(end->fd, F_SETFL, 0);
    switch_fast(0, FLOOD);
    assert_int_equal(sp_switch_file_stop(sp_clock_monotonic_ns()), SPANPROF_ERROR_TIMEOUT);
}

static void run_that_was_given_up_on_keeps_the_rings_to_itself(void **state)
{
    (void)state;
    char second[96];
    pipe_end end;
    sp_switches switches;
    sp_switch_counters counters;
    snprintf(second, sizeof second, "%s.2", path);
    give_up_on_a_run(&end);
    sp_log_configure(SPANPROF_LOG_DEFAULT, keep_log, NULL);
    log_lines = 0;
    assert_false(sp_switch_file_start(second));
    assert_int_equal(log_lines, 1);
    assert_non_null(strstr(last_log, "no switch is recorded"));
    assert_int_equal(access(second, F_OK), -1);
    switch_fast(0, 10); /* by nobody recorded */
    empty_pipe(&end);
    close(end.fd);
    assert_null(sp_switches_read(&switches, end.data, end.length));
    assert_int_equal(switches.read_bytes, end.length);
    expect_no_wrong_neighbours(&switches, thread_called(&switches, syscall(SYS_gettid)));
    sp_switch_file_counters_get(&counters);
    assert_int_equal(counters.recorded + counters.lost, 4 * (uint64_t)FLOOD);
    sp_switches_deinit(&switches);
    free(end.data);
    wait_for_the_last_run();
    assert_true(sp_switch_file_start(second));
    switch_fast(0, 10);
    counters = stop();
    assert_int_equal(counters.recorded, 40);
    assert_int_equal(counters.lost, 0);
    read_file(&switches, second);
    assert_int_equal(switches.switches, 40);
    sp_switches_deinit(&switches);
    unlink(second);
}

/* Nobody waits in the child. Its first look empties the rings of what its parent has. */
static void child_of_a_run_that_was_given_up_on_records(void **state)
{
    (void)state;
#if defined(__SANITIZE_THREAD__)
    print_message("skipped: ThreadSanitizer confuses the threads of a child with its parent's\n");
    skip();
#endif
    char own[96];
    pipe_end end;
    sp_switches switches;
    snprintf(own, sizeof own, "%s.2", path);
    give_up_on_a_run(&end);
    pid_t child = fork();
    if (child == 0) {
        sp_switch_file_after_fork();
        if (!sp_switch_file_start(own))
            _exit(1);
        sp_switch_file_flush(UINT64_MAX);
        switch_fast(0, 10);
        _exit(sp_switch_file_stop(UINT64_MAX) == SPANPROF_OK ? 0 : 2);
    }
    int status;
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
    read_file(&switches, own);
    assert_int_equal(switches.switches, 40);
    sp_switches_deinit(&switches);
    unlink(own);
    empty_pipe(&end); /* ends: no child holds the other end open */
    close(end.fd);
    free(end.data);
    wait_for_the_last_run();
}

static void full_disk_ends_the_file_with_a_whole_block(void **state)
{
    (void)state;
    struct rlimit before, small = {.rlim_cur = 5000};
    sp_switches switches;
    uint64_t attached = 0;
    getrlimit(RLIMIT_FSIZE, &before);
    small.rlim_max = before.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    start();
    log_lines = 0;
    sp_log_configure(SPANPROF_LOG_DEFAULT, keep_log, NULL);
    setrlimit(RLIMIT_FSIZE, &small);
    for (; attached < 2000; attached++) {
        spanprof_scope scope = attach(10 + attached);
        spanprof_scope_detach(&scope);
        if (attached % 100 == 0)
            sp_switch_file_flush(UINT64_MAX);
    }
    sp_switch_counters counters = stop();
    setrlimit(RLIMIT_FSIZE, &before);
    sp_log_configure(SPANPROF_LOG_DEFAULT, NULL, NULL);
    assert_int_equal(log_lines, 1);
    assert_non_null(strstr(last_log, "File too large"));
    read_file(&switches, path);
    assert_false(switches.is_cut);
    assert_true(counters.recorded > 0 && counters.recorded < 2 * attached);
    assert_int_equal(switches.switches, counters.recorded);
    assert_true(counters.lost > 0);
    sp_switches_deinit(&switches);
}

/* What a kill leaves, at any byte, is read as far as blocks are whole, and says what the whole file
 * says. */
static void file_cut_anywhere_is_read_up_to_there(void **state)
{
    (void)state;
    size_t length;
    sp_switches whole, part;
    pid_t child = fork();
    if (child == 0) {
        start();
        for (uint64_t i = 1;; i++) {
            spanprof_scope scope = attach(8 * i);
            sp_switch_file_flush(UINT64_MAX);
            spanprof_scope_detach(&scope);
            if (i == 5)
                raise(SIGKILL);
        }
    }
    int status;
    waitpid(child, &status, 0);
    assert_true(WIFSIGNALED(status));
    uint8_t *data = load(path, &length);
    assert_null(sp_switches_read(&whole, data, length));
    assert_true(whole.switches >= 9);
    const sp_switch_thread *all = &whole.threads[0];
    for (size_t cut = 64; cut < length; cut++) {
        uint8_t *copy = malloc(cut); /* so that a sanitizer sees what reads behind */
        memcpy(copy, data, cut);
        assert_null(sp_switches_read(&part, copy, cut));
        assert_true(part.read_bytes <= cut && part.is_cut == (part.read_bytes < cut));
        for (size_t n = 0; part.thread_count && n < part.threads[0].interval_count; n++) {
            const sp_switch_interval *interval = &part.threads[0].intervals[n];
            assert_int_equal(interval->start_ns, all->intervals[n].start_ns);
            assert_true(interval->end_ns <= all->intervals[n].end_ns);
            assert_int_equal(id_of(&part, interval), id_of(&whole, &all->intervals[n]));
        }
        sp_switches_deinit(&part);
        free(copy);
    }
    sp_switches_deinit(&whole);
    free(data);
}

/* --- tracers that tell only start and end ----------------------------------------------------- */

static void starts_and_ends_of_another_tracer_are_told(void **state)
{
    (void)state;
    sp_switches switches;
    spanprof_options options = SPANPROF_OPTIONS_INIT;
    options.exporter = "none";
    options.profiles = "none";
    options.switches = path;
    assert_int_equal(spanprof_start(&options, NULL), SPANPROF_OK);
    spanprof_context parent = context_of(9), child = context_of(11), ignored = context_of(8);
    memset(child.local_root_span_id, 0, sizeof child.local_root_span_id);
    uint64_t times[4] = {sp_clock_monotonic_ns()};
    spanprof_processor_on_start(&parent, NULL, "parent", 0, NULL);
    times[1] = sp_clock_monotonic_ns();
    spanprof_processor_on_start(&child, &parent, "child", 0, NULL);
    spanprof_processor_on_start(&ignored, NULL, "not sampled", 0, NULL);
    times[2] = sp_clock_monotonic_ns();
    spanprof_processor_on_end(&child, 0);
    times[3] = sp_clock_monotonic_ns();
    assert_int_equal(spanprof_stop(UINT64_MAX), SPANPROF_OK);
    read_file(&switches, path);
    assert_int_equal(switches.events, 3);
    const sp_switch_thread *own = thread_called(&switches, syscall(SYS_gettid));
    assert_int_equal(own->event_count, 3);
    for (size_t i = 0; i < 3; i++)
        assert_in_range(own->events[i].time_ns, times[i], times[i + 1]);
    assert_memory_equal(own->events[0].span_id, parent.span_id, 8);
    assert_memory_equal(own->events[1].span_id, child.span_id, 8);
    assert_memory_equal(own->events[1].parent_span_id, parent.span_id, 8);
    assert_memory_equal(own->events[1].local_root_span_id, parent.local_root_span_id, 8);
    assert_memory_equal(own->events[2].trace_id, child.trace_id, 16);
    assert_false(own->events[1].is_end);
    assert_true(own->events[2].is_end);
    sp_switches_deinit(&switches);
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(switches_are_what_the_threads_noted),
        CASE(flood_is_written_or_counted),
        CASE(events_that_are_lost_are_no_switches),
        CASE(slot_used_again_is_another_thread),
        CASE(detach_by_another_thread_is_unknown_until_the_next_switch),
        CASE(detach_by_another_thread_of_a_sleeper_is_unknown),
        CASE(second_run_knows_a_thread_from_its_first_switch_on),
        CASE(child_writes_nothing_into_its_parents_file),
        CASE(child_with_its_parents_path_leaves_the_file_alone),
        CASE(file_of_the_exporter_is_left_alone),
        CASE(run_that_was_given_up_on_keeps_the_rings_to_itself),
        CASE(child_of_a_run_that_was_given_up_on_records),
        CASE(full_disk_ends_the_file_with_a_whole_block),
        CASE(file_cut_anywhere_is_read_up_to_there),
        CASE(starts_and_ends_of_another_tracer_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
