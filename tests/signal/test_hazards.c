/* SPDX-License-Identifier: Apache-2.0 */
/* What broke other profilers, and early versions of this one: each a program in small. Real
 * signals. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <spanprof/spanprof.h>
#include "cpu_work.h"
#include "verdict.h"

#define SECOND UINT64_C(1000000000)

/* What does not come in this time never will. */
enum { PATIENCE_S = 200 };

static const char *program;

static void start(uint32_t hz)
{
    spanprof_options options = SPANPROF_OPTIONS_INIT;
    options.exporter = "none";
    options.cpu_hz = hz;
    assert_int_equal(spanprof_start(&options, NULL), SPANPROF_OK);
}

static spanprof_stats flushed_stats(void)
{
    spanprof_stats stats = SPANPROF_STATS_INIT;
    assert_int_equal(spanprof_flush(60 * SECOND), SPANPROF_OK);
    spanprof_stats_get(&stats);
    return stats;
}

static spanprof_stats stop(void)
{
    spanprof_stats stats = SPANPROF_STATS_INIT;
    assert_int_equal(spanprof_stop(60 * SECOND), SPANPROF_OK);
    spanprof_stats_get(&stats);
    assert_int_equal(stats.ticks, stats.samples_linked + stats.samples_none +
                                      stats.samples_unknown + stats.dropped_samples_ring_full +
                                      stats.dropped_samples_memory +
                                      stats.dropped_samples_small_stack);
    return stats;
}

/* The timer's missed periods come with the first tick after the block, under another span: they
 * must not be put on that one. */
static void ticks_missed_while_blocked_are_unattributed_not_the_next_spans(void **state)
{
    (void)state;
    sigset_t all, before;
    sigfillset(&all);
    double steal = verdict_steal();
    start(1000);
    SPANPROF_SPAN("blocked") {
        pthread_sigmask(SIG_SETMASK, &all, &before);
        burn(0.4);
    }
    SPANPROF_SPAN("next") {
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        burn(0.1);
    }
    spanprof_stats stats = stop();
    steal = verdict_steal() - steal;
    /* Of 500: as many would be too many if the missed ones were put on the next span. */
    assert_true(verdict_within("weights", (double)stats.weights, 50, 250, 100 + steal * 1000));
    assert_true(verdict_within("unattributed, in seconds", (double)stats.unattributed_ns / 1e9,
                               0.25, 1, 0.15 + steal));
}

/* A handler that calls little, and after it the kernel's frame of a tick: the tick itself needs
 * more than SPARE. The sanitizer's clock_gettime takes its share. */
#if defined(__SANITIZE_ADDRESS__)
enum { LITTLE = 4096, SPARE = 1024 };
#else
enum { LITTLE = 1024, SPARE = 1024 };
#endif

static const char *low_end;

static void remember_low_end(int signal)
{
    (void)signal;
    low_end = __builtin_frame_address(0);
}

static void burn_on_small_stack(int signal)
{
    (void)signal;
    burn(0.05);
}

static void raise_on_stack(char *base, size_t size, void (*handler)(int))
{
    stack_t stack = {.ss_sp = base, .ss_size = size}, none = {.ss_flags = SS_DISABLE};
    assert_int_equal(sigaltstack(&stack, NULL), 0);
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
    sigaction(SIGUSR2, &action, NULL);
    SPANPROF_SPAN("small")
        raise(SIGUSR2);
    assert_int_equal(sigaltstack(&none, NULL), 0);
}

/* The kernel's frame fits onto the host's alternate stack, and a walk does not. How large a frame
 * is depends on the registers that the CPU has and the program uses (AT_MINSIGSTKSZ tells only the
 * most that may be), so it is measured. */
static void tick_on_a_signal_stack_too_small_is_dropped(void **state)
{
    (void)state;
    size_t page = (size_t)sysconf(_SC_PAGESIZE), room = 64 * 1024;
    char *memory =
        mmap(NULL, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(memory, page, PROT_NONE); /* whoever writes below the stack ends here */
    raise_on_stack(memory + page, room, remember_low_end);
    size_t frame = (size_t)(memory + page + room - low_end);
    start(1000);
    for (int i = 0; i < 100 && flushed_stats().dropped_samples_small_stack == 0; i++)
        raise_on_stack(memory + page, (2 * frame + LITTLE + SPARE) & ~(size_t)63,
                       burn_on_small_stack);
    spanprof_stats stats = stop();
    munmap(memory, room + page);
    assert_true(stats.dropped_samples_small_stack > 0);
}

static void *attach_and_end(void *scope)
{
    spanprof_context context = {.trace_flags = SPANPROF_TRACE_FLAG_SAMPLED};
    memset(context.trace_id, 1, sizeof context.trace_id);
    memset(context.span_id, 1, sizeof context.span_id);
    *(spanprof_scope *)scope = spanprof_context_attach(&context);
    return NULL;
}

/* The slot of the thread before is free by then. */
static void wait_until_only_the_main_thread_ticks(void)
{
    spanprof_stats stats = flushed_stats();
    for (int i = 0; i < PATIENCE_S * 100 && stats.threads > 1; i++) {
        usleep(10000);
        spanprof_stats_get(&stats);
    }
    assert_int_equal(stats.threads, 1);
}

static void *burn_in_span(void *scope)
{
    SPANPROF_SPAN("later") {
        spanprof_scope_detach(scope);
        for (int i = 0; i < 100 && flushed_stats().samples_linked == 0; i++)
            burn(0.05);
    }
    return NULL;
}

static void scope_of_a_thread_that_ended_reaches_nobody(void **state)
{
    (void)state;
    spanprof_scope scope;
    pthread_t first, second;
    start(1000);
    pthread_create(&first, NULL, attach_and_end, &scope);
    pthread_join(first, NULL);
    wait_until_only_the_main_thread_ticks();
    pthread_create(&second, NULL, burn_in_span, &scope);
    pthread_join(second, NULL);
    spanprof_stats stats = stop();
    assert_int_equal(stats.samples_unknown, 0);
    assert_true(stats.samples_linked > 0);
}

static void *burn_briefly(void *unused)
{
    (void)unused;
    burn(0.03);
    return NULL;
}

/* Threads that are gone before a scan sees them: no sample stands for them, and the books say so.
 */
static void cpu_time_of_threads_never_found_is_unattributed(void **state)
{
    (void)state;
    double steal = verdict_steal();
    start(100);
    for (int i = 0; i < 20; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, burn_briefly, NULL);
        pthread_join(thread, NULL);
    }
    spanprof_stats stats = stop();
    double accounted = (double)stats.weights / 100 + (double)stats.unattributed_ns / 1e9;
    assert_true(verdict_within("CPU time told", accounted, 0.6 * 0.9, 0.6 * 1.5,
                               0.6 * 0.3 + verdict_steal() - steal));
}

/* By /proc; the main thread is a zombie once it has ended, as others are left. */
static bool has_main_ended(void)
{
    char path[64], text[256];
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)getpid());
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    text[length > 0 ? length : 0] = 0;
    return strstr(text, ") Z ");
}

static void *end_last(void *unused)
{
    (void)unused;
    for (int i = 0; i < 1000 && !has_main_ended(); i++)
        usleep(1000);
    return NULL;
}

/* main ends by pthread_exit, then the last worker returns: the process must end, with 0. */
static int run_until_the_last_thread(void)
{
    pthread_t thread;
    start(99);
    pthread_create(&thread, NULL, end_last, NULL);
    pthread_detach(thread);
    pthread_exit(NULL);
}

static void process_ends_with_its_last_thread(void **state)
{
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        execl(program, program, "last thread", NULL);
        _exit(127);
    }
    int status = 0;
    pid_t ended = 0;
    for (int i = 0; i < PATIENCE_S * 100 && ended == 0; i++) {
        usleep(10000);
        ended = waitpid(child, &status, WNOHANG);
    }
    if (ended == 0) {
        kill(child, SIGKILL);
        waitpid(child, &status, 0);
        fail_msg("it still ran after %d s", PATIENCE_S);
    }
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return run_until_the_last_thread();
#if defined(__SANITIZE_THREAD__)
    puts("SKIPPED: TSan delivers signals late");
    return 77;
#endif
    program = argv[0];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ticks_missed_while_blocked_are_unattributed_not_the_next_spans),
        cmocka_unit_test(tick_on_a_signal_stack_too_small_is_dropped),
        cmocka_unit_test(scope_of_a_thread_that_ended_reaches_nobody),
        cmocka_unit_test(cpu_time_of_threads_never_found_is_unattributed),
        cmocka_unit_test(process_ends_with_its_last_thread),
    };
    return verdict_code(cmocka_run_group_tests(tests, NULL, NULL));
}
