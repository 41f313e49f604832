/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that end, fork, exec, load and unload libraries, and are stopped, while they are visited;
 * and what a system may refuse to the visitor. The program goes on, what is missing is said once,
 * and nothing is left behind. */
#include "hazard.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { NOBODY = 65534, WALL_HZ = 1000, THREADS = 8, NAP_US = 300 };

extern char **environ;

static void start_wall(uint32_t wall_hz)
{
    spanprof_options options = SPANPROF_OPTIONS_INIT;
    options.exporter = "none";
    options.profiles = "cpu,wall";
    options.cpu_hz = 99;
    options.wall_hz = wall_hz;
    hazard_start_with(&options);
}

/* Stop, and tell what came of it. */
static spanprof_stats stop_wall(void)
{
    spanprof_stats stats = hazard_stop();
    (void)fprintf(stderr,
                  "   %llu visits, %llu unmoved, %llu linked, %llu none, %llu unknown, %llu "
                  "failed, %llu dropped\n",
                  (unsigned long long)stats.visits, (unsigned long long)stats.visits_unmoved,
                  (unsigned long long)stats.visits_linked, (unsigned long long)stats.visits_none,
                  (unsigned long long)stats.visits_unknown, (unsigned long long)stats.failed_visits,
                  (unsigned long long)stats.dropped_visits);
    CHECK_EQUAL(stats.visits, stats.visits_linked + stats.visits_none + stats.visits_unknown +
                                  stats.dropped_visits);
    return stats;
}

static void *nap_until(void *stop)
{
    while (!atomic_load((atomic_bool *)stop))
        SPANPROF_SPAN("napping")
            usleep(NAP_US);
    return NULL;
}

/* Threads that are there to be visited while something else goes on. */
static atomic_bool crowd_ends;
static pthread_t crowd[THREADS];

static void gather_crowd(void)
{
    atomic_store(&crowd_ends, false);
    for (int i = 0; i < THREADS; i++)
        crowd[i] = hazard_thread(nap_until, &crowd_ends);
}

static void disperse_crowd(void)
{
    atomic_store(&crowd_ends, true);
    for (int i = 0; i < THREADS; i++)
        pthread_join(crowd[i], NULL);
}

/* Until there are COUNT visits more; a limit of time is run_case's. */
static void wait_for_visits(uint64_t count)
{
    uint64_t end = hazard_stats().visits + count;
    while (hazard_stats().visits < end)
        usleep(1000);
}

/* Until COUNT visits have found a span, in all. */
static void wait_for_linked(uint64_t count)
{
    while (hazard_flushed_stats().visits_linked < count)
        usleep(10000);
}

static long visitor_files(void)
{
    return hazard_descriptors_of("/syscall");
}

/* --- threads ---------------------------------------------------------------------------------- */

static void *live_briefly(void *number)
{
    SPANPROF_SPAN("brief")
        usleep((useconds_t)(uintptr_t)number % 1500);
    return NULL;
}

/* Ids of threads, and slots, are used again and again. */
static int threads_come_and_go(void)
{
    unsigned many = hazard_many(1000, 3000, 100000);
    start_wall(WALL_HZ);
    for (unsigned n = 0; n < many || hazard_stats().visits <= 100; n += THREADS) {
        pthread_t threads[THREADS];
        for (unsigned i = 0; i < THREADS; i++)
            threads[i] = hazard_thread(live_briefly, (void *)(uintptr_t)((n + i) * 37));
        for (unsigned i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
    }
    CHECK_EQUAL(stop_wall().failed_visits, 0);
    return 0;
}

static char alternate_stack[64 * 1024];

static void nap_in_handler(int signal)
{
    (void)signal;
    usleep((useconds_t)hazard_many(20000, 200000, 200000));
    wait_for_visits(20);
}

/* A handler waits, on the thread's own stack and on another. Between the two flushes no visit finds
 * the thread outside of the span. */
static int waits_in_a_handler(void)
{
    stack_t stack = {.ss_sp = alternate_stack, .ss_size = sizeof alternate_stack};
    struct sigaction action = {.sa_handler = nap_in_handler};
    CHECK_EQUAL(sigaltstack(&stack, NULL), 0);
    start_wall(WALL_HZ);
    for (int on_stack = 0; on_stack < 2; on_stack++) {
        action.sa_flags = on_stack ? SA_ONSTACK : 0;
        sigaction(SIGUSR1, &action, NULL);
        SPANPROF_SPAN("handled") {
            spanprof_stats before = hazard_flushed_stats();
            raise(SIGUSR1);
            spanprof_stats after = hazard_flushed_stats();
            CHECK(after.visits_linked - before.visits_linked >= 15); /* of 20 */
            CHECK_EQUAL(after.visits_none, before.visits_none);
            hazard_within("visits whose span is unknown",
                          (double)(after.visits_unknown - before.visits_unknown), 0, 1, 4);
        }
    }
    stop_wall();
    return 0;
}

/* --- processes -------------------------------------------------------------------------------- */

/* A child that begins anew, under its own number of threads. */
static void sample_in_child(void)
{
    atomic_bool stop = false;
    start_wall(WALL_HZ);
    pthread_t thread = hazard_thread(nap_until, &stop);
    wait_for_visits(20);
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
    CHECK(spanprof_stop(20 * SECOND) == SPANPROF_OK);
}

static int forks_while_visited(void)
{
    start_wall(WALL_HZ);
    gather_crowd();
    wait_for_visits(200);
    for (unsigned n = 0; n < hazard_many(20, 60, 2000); n++) {
        pid_t child = -1;
        SPANPROF_SPAN("forking")
            child = fork();
        if (child == 0) {
            CHECK_EQUAL(visitor_files(), 0);
            CHECK_EQUAL(hazard_threads(), 1); /* no visitor */
            CHECK_EQUAL(hazard_stats().visits, 0);
            if (n % 10 == 0)
                sample_in_child();
            _exit(0);
        }
        CHECK(child > 0);
        hazard_wait_well(child, HAZARD_PATIENCE_S);
    }
    wait_for_visits(200);
    disperse_crowd();
    stop_wall();
    return 0;
}

static int has_no_files(void)
{
    CHECK_EQUAL(visitor_files(), 0);
    CHECK_EQUAL(hazard_descriptors_of("/task"), 0);
    return 0;
}

/* posix_spawn is vfork and exec; a thread waits in the former until the child has done the latter.
 */
static int execs_while_visited(void)
{
    start_wall(WALL_HZ);
    gather_crowd();
    for (unsigned n = 0; n < hazard_many(20, 60, 1000); n++) {
        pid_t child = -1;
        SPANPROF_SPAN("spawning")
            child = hazard_role("has_no_files", NULL);
        hazard_wait_well(child, HAZARD_PATIENCE_S);
    }
    disperse_crowd();
    stop_wall();
    return 0;
}

static atomic_bool has_been_told;

static void note_told(int signal)
{
    (void)signal;
    atomic_store(&has_been_told, true);
}

/* Until it gets SIGUSR1. */
static int naps_and_goes_on(void)
{
    struct sigaction action = {.sa_handler = note_told, .sa_flags = SA_RESTART};
    CHECK_EQUAL(sigaction(SIGUSR1, &action, NULL), 0);
    start_wall(WALL_HZ);
    gather_crowd();
    wait_for_visits(100);
    hazard_say_ready();
    while (!atomic_load(&has_been_told))
        usleep(1000);
    wait_for_visits(hazard_many(100, 500, 500));
    disperse_crowd();
    stop_wall();
    return 0;
}

static int is_stopped_and_continued(void)
{
    pid_t child = hazard_ready_role("naps_and_goes_on");
    for (int n = 0; n < 10; n++) {
        kill(child, SIGSTOP);
        usleep(20000);
        kill(child, SIGCONT);
        usleep(5000);
    }
    CHECK_EQUAL(kill(child, SIGUSR1), 0);
    hazard_wait_well(child, HAZARD_PATIENCE_S);
    return 0;
}

/* Whether /proc/PROCESS/FILE begins with TEXT, or has it after its last parenthesis. */
static bool proc_says(pid_t process, const char *file, const char *text)
{
    char path[64], found[256];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)process, file);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t length = read(fd, found, sizeof found - 1);
    close(fd);
    found[length > 0 ? length : 0] = 0;
    const char *at = strrchr(found, ')');
    return strncmp(at ? at + 1 : found, text, strlen(text)) == 0;
}

/* Some systems do not say what a process waits in, and a late look finds the sleep over. */
static bool proc_says_soon(pid_t process, const char *file, const char *text)
{
    for (int i = 0; i < 2000; i++) {
        if (proc_says(process, file, text))
            return true;
        usleep(500);
    }
    return false;
}

static bool sleeps_soon(pid_t process)
{
    char sleeping[16];
    snprintf(sleeping, sizeof sleeping, "%d ", (int)SYS_clock_nanosleep);
    return proc_says_soon(process, "syscall", sleeping);
}

/* The main thread has been visited in its sleep. */
static void *say_ready_when_visited(void *unused)
{
    sleeps_soon(getpid());
    wait_for_visits(50);
    hazard_say_ready();
    return unused;
}

static struct sigaction sdk_action;
static _Thread_local volatile unsigned ticks;

static void count_tick(int signal, siginfo_t *info, void *context)
{
    ticks++;
    sdk_action.sa_sigaction(signal, info, context);
}

static void watch_ticks(void)
{
    CHECK_EQUAL(sigaction(SIGPROF, NULL, &sdk_action), 0);
    struct sigaction action = sdk_action;
    action.sa_sigaction = count_tick;
    CHECK_EQUAL(sigaction(SIGPROF, &action, NULL), 0);
}

/* A CPU tick may cut a sleep short: one of a perf event at any time (docs/design/sampling.md), and
 * one of a timer when the thread goes on after a stop, because it is about to leave the kernel
 * then. A visit and a stop may not, so a tick must have come. */
static void sleep_on(struct timespec left)
{
    unsigned before = ticks;
    while (nanosleep(&left, &left) != 0) {
        CHECK_EQUAL(errno, EINTR);
        CHECK(ticks != before);
        before = ticks;
    }
}

static int sleeps_for_a_second(void)
{
    spanprof_options options = SPANPROF_OPTIONS_INIT;
    options.exporter = "file";
    options.profiles = "cpu,wall";
    options.wall_hz = WALL_HZ;
    hazard_start_with(&options);
    pthread_t other = hazard_thread(say_ready_when_visited, NULL);
    SPANPROF_SPAN("sleeping") {
        watch_ticks();
        sleep_on((struct timespec){.tv_sec = 1});
        CHECK_EQUAL(sigaction(SIGPROF, &sdk_action, NULL), 0);
    }
    CHECK_EQUAL(pthread_join(other, NULL), 0);
    stop_wall();
    return 0;
}

static void stop_and_continue_in_sleep(pid_t child)
{
    bool sleeps = sleeps_soon(child);
    CHECK_EQUAL(kill(child, SIGSTOP), 0);
    if (!sleeps || !proc_says_soon(child, "stat", " T"))
        hazard_unsure("the child was not stopped in its sleep");
    CHECK_EQUAL(kill(child, SIGCONT), 0);
}

/* The kernel restarts the call, and calls it restart_syscall from then on. */
static int call_that_was_stopped_keeps_its_name(void)
{
    static char text[1 << 20];
    char directory[] = "/tmp/spanprof-wall-XXXXXX", prefix[64], path[96];
    CHECK(mkdtemp(directory) != NULL);
    snprintf(prefix, sizeof prefix, "%s/p", directory);
    snprintf(path, sizeof path, "%s.profiles.jsonl", prefix);
    CHECK_EQUAL(setenv("SPANPROF_FILE", prefix, 1), 0);
    pid_t child = hazard_ready_role("sleeps_for_a_second");
    stop_and_continue_in_sleep(child);
    hazard_wait_well(child, HAZARD_PATIENCE_S);
    unsetenv("SPANPROF_FILE");
    FILE *file = fopen(path, "re");
    CHECK(file);
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    (void)fclose(file);
    unlink(path);
    snprintf(path, sizeof path, "%s.traces.jsonl", prefix);
    unlink(path);
    CHECK_EQUAL(rmdir(directory), 0);
    CHECK(strstr(text, "\"clock_nanosleep\""));
    CHECK(!strstr(text, "restart_syscall"));
    return 0;
}

/* --- libraries -------------------------------------------------------------------------------- */

static void *wait_in_library(void *stop)
{
    while (!atomic_load((atomic_bool *)stop))
        SPANPROF_SPAN("in a library") {
            void *library = dlopen(HAZARD_PLUGIN, RTLD_NOW | RTLD_LOCAL);
            CHECK(library);
            void (*nap)(unsigned) =
                (void (*)(unsigned))(uintptr_t)dlsym(library, "hazard_plugin_nap");
            CHECK(nap);
            nap(2000);
            CHECK_EQUAL(dlclose(library), 0);
        }
    return NULL;
}

static int libraries_come_and_go(void)
{
    atomic_bool stop = false;
    pthread_t threads[3];
    start_wall(WALL_HZ);
    for (int i = 0; i < 3; i++)
        threads[i] = hazard_thread(wait_in_library, &stop);
    wait_for_visits(hazard_many(300, 1500, 50000));
    atomic_store(&stop, true);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    stop_wall();
    return 0;
}

/* --- what is refused -------------------------------------------------------------------------- */

/* System call NUMBER fails with EPERM from now on. */
static void refuse(int number)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof filter / sizeof *filter, .filter = filter};
    CHECK_EQUAL(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    /* For all threads: the visitor may be there already. */
    CHECK_EQUAL(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program),
                0);
}

/* No visits and one warning that says why; ticks go on. */
static int runs_without_wall(const char *reason)
{
    start_wall(WALL_HZ);
    CHECK_EQUAL(hazard_stats().wall_running, 0);
    CHECK(strstr(hazard_stats().wall_reason, reason));
    CHECK_EQUAL(hazard_awaited_warnings("no wall time", 1), 1);
    SPANPROF_SPAN("work")
        hazard_burn_to_ticks(hazard_sized(0.05, 0.3), 6);
    CHECK_EQUAL(stop_wall().visits, 0);
    return 0;
}

static int is_not_dumpable(void)
{
    if (getuid() == 0)
        CHECK(setresgid(NOBODY, NOBODY, NOBODY) == 0 && setresuid(NOBODY, NOBODY, NOBODY) == 0);
    CHECK_EQUAL(prctl(PR_SET_DUMPABLE, 0), 0);
    return runs_without_wall("not dumpable");
}

static int proc_is_missing(void)
{
    if (unshare(CLONE_NEWNS) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0)
        return hazard_skip("no mount namespace may be made here");
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("none", "/proc", "tmpfs", 0, NULL) != 0)
        return hazard_skip("/proc may not be hidden here");
    return runs_without_wall("/proc is not mounted");
}

static int reading_is_refused(void)
{
    refuse(SYS_pread64);
    return runs_without_wall("/proc");
}

/* Stacks cannot be copied: they end at the system call, and are told as such. */
static int copying_is_refused(void)
{
    start_wall(WALL_HZ);
    gather_crowd();
    wait_for_visits(50);
    refuse(SYS_process_vm_readv);
    wait_for_visits(200);
    wait_for_linked(201);
    disperse_crowd();
    stop_wall();
    return 0;
}

/* In the middle of the run: one warning, however many threads fail. */
static int reading_is_refused_later(void)
{
    start_wall(WALL_HZ);
    gather_crowd();
    wait_for_visits(50);
    refuse(SYS_pread64);
    while (hazard_stats().failed_visits < 20)
        usleep(1000);
    disperse_crowd();
    stop_wall();
    CHECK_EQUAL(hazard_awaited_warnings("cannot be looked at", 1), 1);
    return 0;
}

static int descriptors_are_few(void)
{
    struct rlimit limit = {.rlim_cur = 48, .rlim_max = 48};
    CHECK_EQUAL(setrlimit(RLIMIT_NOFILE, &limit), 0);
    start_wall(WALL_HZ);
    gather_crowd();
    wait_for_visits(500);
    CHECK(visitor_files() <= 6); /* an eighth */
    disperse_crowd();
    CHECK_EQUAL(stop_wall().failed_visits, 0);
    return 0;
}

/* As daemons do that mean to close what their parent left open. The numbers are taken at once by
 * files of the program, which the visitor must neither read as its own nor close. */
static int descriptors_are_closed(void)
{
    int mine[64];
    start_wall(WALL_HZ);
    gather_crowd();
    wait_for_visits(200);
    CHECK_EQUAL(close_range(3, ~0u, 0), 0);
    for (size_t i = 0; i < sizeof mine / sizeof *mine; i++)
        CHECK((mine[i] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0);
    usleep(100000);
    disperse_crowd();
    CHECK_EQUAL(spanprof_stop(20 * SECOND), SPANPROF_OK);
    for (size_t i = 0; i < sizeof mine / sizeof *mine; i++)
        CHECK(fcntl(mine[i], F_GETFD) >= 0);
    return 0;
}

/* Memory ends while threads are visited for the first time. */
static int memory_is_short(void)
{
    if (HAZARD_ASAN)
        return hazard_skip("AddressSanitizer needs its memory");
    struct rlimit before, none;
    start_wall(WALL_HZ);
    gather_crowd();
    CHECK_EQUAL(getrlimit(RLIMIT_AS, &before), 0);
    none = (struct rlimit){.rlim_cur = 1, .rlim_max = before.rlim_max};
    CHECK_EQUAL(setrlimit(RLIMIT_AS, &none), 0);
    usleep((useconds_t)hazard_many(100000, 300000, 300000));
    CHECK_EQUAL(setrlimit(RLIMIT_AS, &before), 0);
    wait_for_visits(200);
    disperse_crowd();
    stop_wall();
    return 0;
}

/* --- settings --------------------------------------------------------------------------------- */

static void setting_gives(const char *name, const char *value, uint32_t hz)
{
    setenv("SPANPROF_PROFILES", "cpu,wall", 1);
    setenv(name, value, 1);
    unsigned before = hazard_warnings(name);
    hazard_start(99);
    CHECK_EQUAL(hazard_stats().wall_hz, hz);
    CHECK_EQUAL(hazard_awaited_warnings(name, before + 1), before + 1);
    hazard_stop();
    unsetenv(name);
}

static int settings_are_wrong(void)
{
    setting_gives("SPANPROF_WALL_HZ", "abc", 20);
    setting_gives("SPANPROF_WALL_HZ", "0", 20);
    setting_gives("SPANPROF_WALL_HZ", "-5", 20);
    setting_gives("SPANPROF_WALL_THREADS", "x", 20);
    unsetenv("SPANPROF_PROFILES");
    return 0;
}

static void *flush_until(void *stop)
{
    while (!atomic_load((atomic_bool *)stop))
        CHECK(spanprof_flush(SECOND * 10) == SPANPROF_OK);
    return NULL;
}

/* Everything that changes the engine, while others flush. */
static int is_changed_while_it_runs(void)
{
    pthread_t flushers[3];
    atomic_bool stop = false;
    start_wall(100);
    gather_crowd();
    for (int i = 0; i < 3; i++)
        flushers[i] = hazard_thread(flush_until, &stop);
    for (unsigned n = 0; n < hazard_many(10, 40, 1000); n++) {
        CHECK_EQUAL(spanprof_set_rate(SPANPROF_PROFILE_WALL, 50 + n % 900), SPANPROF_OK);
        usleep(2000);
        CHECK_EQUAL(spanprof_pause(), SPANPROF_OK);
        usleep(2000);
        CHECK_EQUAL(spanprof_resume(), SPANPROF_OK);
        wait_for_visits(1);
    }
    atomic_store(&stop, true);
    for (int i = 0; i < 3; i++)
        pthread_join(flushers[i], NULL);
    wait_for_linked(1);
    disperse_crowd();
    stop_wall();
    return 0;
}

static int pause_means_no_visits(void)
{
    start_wall(WALL_HZ);
    gather_crowd();
    wait_for_visits(100);
    CHECK_EQUAL(spanprof_pause(), SPANPROF_OK);
    uint64_t visits = hazard_stats().visits;
    usleep((useconds_t)hazard_many(50000, 250000, 250000));
    /* At 1000 Hz these would be some hundreds. The round that was under way goes to its end,
     * whenever that is. */
    CHECK(hazard_stats().visits <= visits + THREADS + 1);
    CHECK_EQUAL(spanprof_resume(), SPANPROF_OK);
    wait_for_visits(100);
    disperse_crowd();
    stop_wall();
    return 0;
}

static int starts_and_stops(void)
{
    gather_crowd();
    for (unsigned n = 0; n < hazard_many(6, 20, 500); n++) {
        start_wall(WALL_HZ);
        if (n % 2)
            wait_for_visits(10);
        stop_wall();
    }
    disperse_crowd();
    return 0;
}

static const hazard_case cases[] = {
    {"threads_come_and_go", threads_come_and_go, false},
    {"waits_in_a_handler", waits_in_a_handler, false},
    {"forks_while_visited", forks_while_visited, false},
    {"execs_while_visited", execs_while_visited, false},
    {"is_stopped_and_continued", is_stopped_and_continued, false},
    {"call_that_was_stopped_keeps_its_name", call_that_was_stopped_keeps_its_name, false},
    {"libraries_come_and_go", libraries_come_and_go, false},
    {"is_not_dumpable", is_not_dumpable, false},
    {"proc_is_missing", proc_is_missing, false},
    {"reading_is_refused", reading_is_refused, false},
    {"copying_is_refused", copying_is_refused, false},
    {"reading_is_refused_later", reading_is_refused_later, false},
    {"descriptors_are_few", descriptors_are_few, false},
    {"descriptors_are_closed", descriptors_are_closed, false},
    {"memory_is_short", memory_is_short, false},
    {"settings_are_wrong", settings_are_wrong, false},
    {"is_changed_while_it_runs", is_changed_while_it_runs, false},
    {"pause_means_no_visits", pause_means_no_visits, false},
    {"starts_and_stops", starts_and_stops, false},
    {"has_no_files", has_no_files, true},
    {"naps_and_goes_on", naps_and_goes_on, true},
    {"sleeps_for_a_second", sleeps_for_a_second, true},
};

int main(int argc, char **argv)
{
    return hazard_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
