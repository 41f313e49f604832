/* SPDX-License-Identifier: Apache-2.0 */
/* Forks, new programs, and all the ways in which a process ends or stops, under ticks. */
#include "hazard.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>

extern char **environ;

static atomic_bool stopping;

typedef struct burners {
    pthread_t threads[2];
} burners;

/* Two threads that tick while the process does what the case is about. */
static burners start_burners(void)
{
    burners all;
    atomic_store(&stopping, false);
    for (int i = 0; i < 2; i++)
        all.threads[i] = hazard_thread(hazard_burn_until, &stopping);
    return all;
}

static void end_burners(burners *all)
{
    atomic_store(&stopping, true);
    for (int i = 0; i < 2; i++)
        CHECK_EQUAL(pthread_join(all->threads[i], NULL), 0);
}

/* --- forks ------------------------------------------------------------------------------------ */

/* In the child: the SDK is silent, and nothing of the parent's is left that could tick or keep the
 * parent's ticks alive. It allocates nothing, for other threads of the parent may have been
 * allocating. */
_Noreturn static void be_a_forked_child(unsigned round)
{
    spanprof_stats stats = hazard_stats();
    CHECK_EQUAL(stats.forked, 1);
    CHECK_EQUAL(stats.running, 0);
    CHECK_EQUAL(stats.ticks, 0);
    CHECK(hazard_timers() <= 0);
    CHECK_EQUAL(hazard_descriptors_of("perf_event"), 0);
    if (round % 10 == 0)
        SPANPROF_SPAN("in the child")
            hazard_burn(0.002);
    _exit(0);
}

static int fork_many_times(void)
{
    hazard_start(10000);
    burners all = start_burners();
    SPANPROF_SPAN("forking")
        for (unsigned round = 0; round < hazard_many(200, 1000, 100000); round++) {
            pid_t child = fork();
            if (child == 0)
                be_a_forked_child(round);
            CHECK(child > 0);
            hazard_wait_well(child, HAZARD_PATIENCE_S);
        }
    hazard_burn_to_ticks(0, 51);
    end_burners(&all);
    spanprof_stats stats = hazard_stop();
    printf("%llu ticks\n", (unsigned long long)stats.ticks);
    return 0;
}

/* A vfork's child runs in our memory, on our stack, with our handler, until it is another program
 * or gone. */
static int vfork_many_times(void)
{
    hazard_start(10000);
    burners all = start_burners();
    for (unsigned round = 0; round < hazard_many(200, 1000, 100000); round++) {
        pid_t child = vfork();
        if (child == 0) {
            if (round % 10 == 0)
                execl("/bin/true", "true", (char *)NULL);
            _exit(0);
        }
        CHECK(child > 0);
        hazard_wait_well(child, HAZARD_PATIENCE_S);
    }
    hazard_burn_to_ticks(0, 21);
    end_burners(&all);
    hazard_stop();
    return 0;
}

/* Whichever way another program is started: no tick of ours may end it. */
static void start_program(unsigned way)
{
    char *arguments[] = {"/bin/sh", "-c", "exit 0", NULL};
    pid_t child = -1;
    if (way % 3 == 0) {
        CHECK_EQUAL(posix_spawn(&child, arguments[0], NULL, NULL, arguments, environ), 0);
    } else if (way % 3 == 1) {
        child = fork();
        if (child == 0) {
            execv(arguments[0], arguments);
            _exit(126);
        }
    } else {
        CHECK_EQUAL(system(arguments[2]), 0);
        return;
    }
    hazard_wait_well(child, HAZARD_PATIENCE_S);
}

static int start_programs_while_ticking(void)
{
    hazard_start(10000);
    burners all = start_burners();
    for (unsigned round = 0; round < hazard_many(30, 150, 5000); round++)
        start_program(round);
    hazard_burn_to_ticks(0, 21);
    end_burners(&all);
    hazard_stop();
    return 0;
}

/* A descriptor of ours that the new program gets would stay open there for good. */
static void start_programs_that_count(spanprof_options *options)
{
    hazard_start_with(options);
    burners all = start_burners();
    for (unsigned round = 0; round < 10; round++)
        hazard_wait_well(hazard_role("has_three_descriptors", NULL), HAZARD_PATIENCE_S);
    end_burners(&all);
    spanprof_stop(SECOND / 10);
}

static int programs_get_no_descriptor(void)
{
    spanprof_options options = SPANPROF_OPTIONS_INIT;
    options.exporter = "none";
    options.cpu_hz = 1000;
    start_programs_that_count(&options);
    return 0;
}

/* Nobody listens there; what the exporter has open for it is what counts. */
static int programs_get_no_descriptor_of_the_exporter(void)
{
    spanprof_options options = SPANPROF_OPTIONS_INIT;
    options.exporter = "otlp";
    options.endpoint = "http://127.0.0.1:9";
    options.window_ms = 100;
    start_programs_that_count(&options);
    return 0;
}

static int has_three_descriptors(void)
{
    CHECK_EQUAL(hazard_descriptors(), 3);
    return 0;
}

/* --- children that sample --------------------------------------------------------------------- */

/* A start, ticks under a span, and a stop: the same in a child as in its parent. Returns the ticks.
 */
static uint64_t run_once(void)
{
    hazard_start(10000);
    SPANPROF_SPAN("own")
        hazard_burn_to_ticks(hazard_sized(0.01, 0.05), 1);
    return hazard_stop().ticks;
}

static int children_with_an_sdk_of_their_own(void)
{
    if (HAZARD_ASAN)
        return hazard_skip(
            "ASan's allocator keeps its locks in a forked child: only programs may start there");
    hazard_start(1000);
    burners all = start_burners();
    SPANPROF_SPAN("parent")
        for (unsigned round = 0; round < hazard_many(4, 10, 1000); round++) {
            pid_t child = fork();
            if (child == 0)
                _exit(run_once() > 0 ? 0 : 9);
            CHECK(child > 0);
            hazard_wait_well(child, HAZARD_PATIENCE_S);
        }
    hazard_burn_to_ticks(0, 21);
    end_burners(&all);
    hazard_stop();
    return 0;
}

/* A child holds copies of the parent's descriptors, and behind one a kernel object lives on. When
 * the parent stops, all the same no tick may come any more: the host's handler is back by then, and
 * would take it for one of its own. */
static atomic_uint host_signals;

static void count_host_signal(int signal)
{
    (void)signal;
    atomic_fetch_add(&host_signals, 1);
}

static int stop_while_a_child_lives(void)
{
    int ends[2];
    char byte;
    struct sigaction action = {.sa_handler = count_host_signal};
    sigaction(SIGPROF, &action, NULL);
    hazard_start(1000);
    hazard_burn(0.05);
    CHECK_EQUAL(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        close(ends[1]);
        _exit(read(ends[0], &byte, 1) == 0 ? 0 : 1); /* until the parent closes its end */
    }
    close(ends[0]);
    int kept = ends[1]; /* hazard_stop counts descriptors */
    CHECK_EQUAL(spanprof_stop(60 * SECOND), SPANPROF_OK);
    hazard_burn(hazard_sized(0.05, 0.2));
    CHECK_EQUAL(atomic_load(&host_signals), 0);
    close(kept);
    hazard_wait_well(child, HAZARD_PATIENCE_S);
    return 0;
}

static void *load_and_unload(void *unused)
{
    while (!atomic_load(&stopping)) {
        void *handle = dlopen(HAZARD_PLUGIN, RTLD_NOW);
        CHECK(handle != NULL);
        dlclose(handle);
    }
    return unused;
}

/* glibc leaves the loader's lock to whoever held it, so a child must not load anything when its
 * parent's threads do. That the SDK's calls work is ours to see to: they must not wait for the lock
 * that a thread of the host's took along. */
static int fork_while_libraries_are_loaded(void)
{
    hazard_start(10000);
    atomic_store(&stopping, false);
    pthread_t loader = hazard_thread(load_and_unload, NULL);
    for (unsigned round = 0; round < hazard_many(60, 300, 20000); round++) {
        pid_t child = fork();
        if (child == 0) {
            spanprof_stats stats = hazard_stats();
            SPANPROF_SPAN("child")
                hazard_burn(0.0005);
            _exit(stats.forked == 1 && spanprof_stop(0) == SPANPROF_ERROR_NOT_STARTED ? 0 : 1);
        }
        CHECK(child > 0);
        hazard_wait_well(child, HAZARD_PATIENCE_S);
    }
    atomic_store(&stopping, true);
    pthread_join(loader, NULL);
    hazard_stop();
    return 0;
}

/* --- exec ------------------------------------------------------------------------------------- */

static int be_the_new_program(void)
{
    hazard_burn(0.002); /* a tick that came along would show now */
    CHECK(hazard_timers() <= 0);
    return 0;
}

extern spanprof_status spanprof_pause(void) __attribute__((weak));

/* The kernel drops POSIX timers and what they have queued. What a perf event has sent stays
 * pending, and the new program has the default action: so whoever execs under that engine pauses
 * before. */
static int exec_now(void)
{
    hazard_start(10000);
    start_burners();
    hazard_burn(0.001 + (double)(getpid() % 50) / 10000);
    if (hazard_is_perf())
        CHECK_EQUAL(spanprof_pause(), SPANPROF_OK);
    execl(hazard_program, hazard_program, "be_the_new_program", (char *)NULL);
    return 126;
}

static int exec_from_a_running_process(void)
{
    if (hazard_is_perf() && !spanprof_pause)
        return hazard_skip("no spanprof_pause in this build");
    for (unsigned round = 0; round < hazard_many(8, 20, 1000); round++)
        hazard_wait_well(hazard_role("exec_now", NULL), HAZARD_PATIENCE_S);
    return 0;
}

/* --- the end ---------------------------------------------------------------------------------- */

static int tick_and_return(void)
{
    hazard_start(10000);
    start_burners();
    hazard_burn(0.005);
    return 3;
}

static int tick_and_exit(void)
{
    exit(tick_and_return());
}

static int tick_and_exit_at_once(void)
{
    _exit(tick_and_return());
}

static int tick_and_quick_exit(void)
{
    quick_exit(tick_and_return());
}

static int tick_and_abort(void)
{
    tick_and_return();
    abort();
}

static void *exit_here(void *unused)
{
    (void)unused;
    exit(3);
}

static int tick_and_exit_elsewhere(void)
{
    tick_and_return();
    hazard_thread(exit_here, NULL);
    hazard_burn(30);
    return 0;
}

/* While threads burn on, and are never joined. */
static int ends_without_stop(void)
{
    static const char *const ways[] = {"tick_and_return", "tick_and_exit", "tick_and_exit_at_once",
                                       "tick_and_quick_exit", "tick_and_exit_elsewhere"};
    for (unsigned round = 0; round < hazard_many(1, 2, 100); round++) {
        for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
            int status = hazard_wait(hazard_role(ways[i], NULL), HAZARD_PATIENCE_S);
            CHECK(WIFEXITED(status));
            CHECK_EQUAL(WEXITSTATUS(status), 3);
        }
        int status = hazard_wait(hazard_role("tick_and_abort", NULL), HAZARD_PATIENCE_S);
        CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    }
    return 0;
}

/* --- signals that end or stop ----------------------------------------------------------------- */

static int tick_for_ever(void)
{
    hazard_start(10000);
    start_burners();
    hazard_burn(0.05);
    hazard_say_ready();
    SPANPROF_SPAN("for ever")
        hazard_burn(60);
    return 0;
}

static int ends_by_the_signal_it_got(void)
{
    static const int signals[] = {SIGTERM, SIGINT, SIGKILL, SIGSEGV};
    for (unsigned round = 0; round < hazard_many(1, 2, 100); round++)
        for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
            if (HAZARD_ASAN && signals[i] == SIGSEGV)
                continue; /* ASan's own handler reports it */
            pid_t child = hazard_ready_role("tick_for_ever");
            CHECK_EQUAL(kill(child, signals[i]), 0);
            int status = hazard_wait(child, HAZARD_PATIENCE_S);
            CHECK(WIFSIGNALED(status));
            CHECK_EQUAL(WTERMSIG(status), signals[i]);
        }
    return 0;
}

static atomic_bool continued;

static void note_continued(int signal)
{
    (void)signal;
    atomic_store(&continued, true);
}

/* Weights and unattributed come to the CPU time, whatever time passed meanwhile. The bounds leave
 * room for the work of start and stop. It works on until it has been stopped. */
static int use_a_second(void)
{
    struct sigaction action = {.sa_handler = note_continued, .sa_flags = SA_RESTART};
    CHECK_EQUAL(sigaction(SIGCONT, &action, NULL), 0);
    hazard_start(1000);
    double before = hazard_process_cpu();
    hazard_say_ready();
    SPANPROF_SPAN("stopped") {
        hazard_burn(hazard_sized(0.3, 1));
        HAZARD_WORK_UNTIL(atomic_load(&continued));
    }
    double cpu = hazard_process_cpu() - before;
    spanprof_stats stats = hazard_stop();
    double told = (double)stats.weights / 1000 + (double)stats.unattributed_ns / 1e9;
    (void)fprintf(stderr, "%.3f s CPU, %.3f s told\n", cpu, told);
    hazard_within("CPU time told", told, cpu - 0.05, cpu + 0.2, 0.1 + hazard_steal());
    return 0;
}

static int stopped_for_a_while(void)
{
    pid_t child = hazard_ready_role("use_a_second");
    usleep(100000);
    CHECK_EQUAL(kill(child, SIGSTOP), 0);
    sleep(hazard_many(1, 1, 60));
    CHECK_EQUAL(kill(child, SIGCONT), 0);
    hazard_wait_well(child, HAZARD_PATIENCE_S);
    return 0;
}

int main(int argc, char **argv)
{
    static const hazard_case cases[] = {
        {"forked_children_are_silent_and_have_nothing_of_ours", fork_many_times, false},
        {"vforked_children_end_as_they_should", vfork_many_times, false},
        {"programs_started_while_ticking_run", start_programs_while_ticking, false},
        {"programs_started_while_ticking_get_no_descriptor", programs_get_no_descriptor, false},
        {"programs_started_while_exporting_get_no_descriptor",
         programs_get_no_descriptor_of_the_exporter, false},
        {"forked_children_sample_with_an_sdk_of_their_own", children_with_an_sdk_of_their_own,
         false},
        {"no_tick_after_stop_while_a_forked_child_lives", stop_while_a_child_lives, false},
        {"fork_while_libraries_are_loaded_leaves_the_sdk_usable", fork_while_libraries_are_loaded,
         false},
        {"exec_from_a_running_process_starts_the_new_program", exec_from_a_running_process, false},
        {"process_ends_without_stop_with_its_own_code", ends_without_stop, false},
        {"process_ends_by_the_signal_it_got", ends_by_the_signal_it_got, false},
        {"process_stopped_for_a_while_goes_on", stopped_for_a_while, false},
        {"has_three_descriptors", has_three_descriptors, true},
        {"be_the_new_program", be_the_new_program, true},
        {"exec_now", exec_now, true},
        {"tick_and_return", tick_and_return, true},
        {"tick_and_exit", tick_and_exit, true},
        {"tick_and_exit_at_once", tick_and_exit_at_once, true},
        {"tick_and_exit_elsewhere", tick_and_exit_elsewhere, true},
        {"tick_and_quick_exit", tick_and_quick_exit, true},
        {"tick_and_abort", tick_and_abort, true},
        {"tick_for_ever", tick_for_ever, true},
        {"use_a_second", use_a_second, true},
    };
    return hazard_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
