/* SPDX-License-Identifier: Apache-2.0 */
/* What a system may refuse: system calls, /proc, privileges, queues, descriptors. The SDK runs on,
 * says so once, and counts. */
#include "hazard.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/perf_event.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { NOBODY = 65534 };

/* --- seccomp ---------------------------------------------------------------------------------- */

/* System calls A and B fail with EPERM from now on, as the default policy of containers has it. */
static void refuse(int a, int b)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)a, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)b, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof filter / sizeof *filter, .filter = filter};
    CHECK_EQUAL(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    CHECK_EQUAL(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

static void *burn_in_a_span(void *unused)
{
    SPANPROF_SPAN("work")
        hazard_burn(hazard_sized(0.05, 0.1));
    return unused;
}

/* Two threads at work, until there are TICKS; everything that they used is in the weights or in the
 * unattributed time, and no more than the process used. (Where the host of a virtual machine takes
 * the processor away, that is more than the threads meant to use.) */
static spanprof_stats run_two_threads(uint64_t ticks)
{
    double seconds = 2 * hazard_sized(0.05, 0.1);
    double cpu_before = hazard_process_cpu();
    hazard_start(1000);
    pthread_t other = hazard_thread(burn_in_a_span, NULL);
    burn_in_a_span(NULL);
    hazard_burn_to_ticks(0, ticks);
    pthread_join(other, NULL);
    char engine[16];
    memcpy(engine, hazard_stats().engine, sizeof engine);
    spanprof_stats stats = hazard_stop();
    memcpy(stats.engine, engine, sizeof engine);
    double told = (double)stats.weights / 1000 + (double)stats.unattributed_ns / 1e9;
    double used = hazard_process_cpu() - cpu_before;
    (void)fprintf(
        stderr, "   engine %s, %llu ticks, %.3f s told of %.3f used, %llu threads failed\n", engine,
        (unsigned long long)stats.ticks, told, used, (unsigned long long)stats.failed_threads);
    /* Were one of the threads missing, it would be further out. */
    hazard_within("CPU time told", told, seconds - 0.01, used + 0.01,
                  seconds * 0.2 + hazard_steal());
    return stats;
}

static int perf_event_open_refused(void)
{
    refuse(SYS_perf_event_open, SYS_perf_event_open);
    spanprof_stats stats = run_two_threads(11);
    CHECK(strcmp(stats.engine, "timer") == 0);
    unsigned expected = hazard_is_perf(); /* who did not ask for perf misses nothing */
    CHECK_EQUAL(hazard_awaited_warnings("", expected), expected);
    return 0;
}

static int timer_create_refused(void)
{
    refuse(SYS_timer_create, SYS_timer_create);
    spanprof_stats stats = run_two_threads(hazard_is_perf() ? 11 : 0);
    if (hazard_is_perf()) {
        CHECK(strcmp(stats.engine, "perf") == 0);
        CHECK_EQUAL(hazard_warnings(""), 0);
        return 0;
    }
    CHECK(stats.failed_threads >= 2);
    CHECK(hazard_awaited_warnings("", 1) >= 1 && hazard_warnings("") <= 2);
    return 0;
}

static int both_refused(void)
{
    refuse(SYS_perf_event_open, SYS_timer_create);
    spanprof_stats stats = run_two_threads(0);
    CHECK_EQUAL(stats.ticks, 0);
    CHECK(stats.failed_threads >= 2);
    /* perf, timer, this thread */
    CHECK(hazard_awaited_warnings("", 1) >= 1 && hazard_warnings("") <= 3);
    return 0;
}

/* Frames that are on no known stack are read by this call: without it such stacks end early. */
static int guarded_loads_refused(void)
{
    refuse(SYS_process_vm_readv, SYS_process_vm_readv);
    run_two_threads(11);
    return 0;
}

/* --- /proc ------------------------------------------------------------------------------------ */

/* An empty /proc for this process alone. */
static bool hide_proc(void)
{
    if (unshare(CLONE_NEWNS) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0)
        return false;
    return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("none", "/proc", "tmpfs", 0, NULL) == 0 && access("/proc/self", F_OK) != 0;
}

static int without_proc(void)
{
    if (!hide_proc())
        return hazard_skip("no mount namespace may be made here");
    spanprof_stats stats = run_two_threads(20);
    hazard_within("unknown samples", (double)stats.samples_unknown, 0, (double)stats.ticks / 20, 4);
    CHECK_EQUAL(hazard_awaited_warnings("/proc/self/task", 1), 1);
    return 0;
}

/* --- privileges ------------------------------------------------------------------------------- */

static void become(uid_t user)
{
    CHECK_EQUAL(setresgid(user, user, user), 0);
    CHECK_EQUAL(setresuid(user, user, user), 0);
    CHECK_EQUAL(prctl(PR_SET_DUMPABLE, 1), 0); /* as a program that this user started */
}

static const char paranoid_path[] = "/proc/sys/kernel/perf_event_paranoid";

/* Asked by ourselves: whether this process may count its kernel time, too. */
static bool perf_is_allowed(void)
{
    struct perf_event_attr attributes = {.type = PERF_TYPE_SOFTWARE,
                                         .size = sizeof attributes,
                                         .config = PERF_COUNT_SW_CPU_CLOCK,
                                         .sample_period = 1000000,
                                         .disabled = 1};
    int fd = (int)syscall(SYS_perf_event_open, &attributes, 0, -1, -1, 0);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

/* In a child, for there is no way back from being nobody. */
static void run_as(uid_t user)
{
    pid_t child = fork();
    if (child == 0) {
        if (user)
            become(user);
        bool perf = hazard_is_perf() && perf_is_allowed();
        spanprof_stats stats = run_two_threads(11);
        if (hazard_is_perf() && perf != perf_is_allowed()) {
            hazard_unsure("another program has written %s", paranoid_path);
            _exit(HAZARD_UNSURE);
        }
        CHECK(strcmp(stats.engine, perf ? "perf" : "timer") == 0);
        CHECK_EQUAL(stats.failed_threads, 0);
        unsigned expected = hazard_is_perf() && !perf;
        CHECK_EQUAL(hazard_awaited_warnings("", expected), expected);
        _exit(hazard_verdict());
    }
    CHECK(child > 0);
    hazard_wait_well(child, HAZARD_PATIENCE_S);
}

static bool set_paranoid(const char *level)
{
    int fd = open(paranoid_path, O_WRONLY | O_CLOEXEC);
    bool written = fd >= 0 && write(fd, level, strlen(level)) == (ssize_t)strlen(level);
    if (fd >= 0)
        close(fd);
    return written;
}

static int be_nobody(void)
{
    run_as(NOBODY);
    return 0;
}

/* May do all, whatever the level. */
static int be_root(void)
{
    run_as(0);
    return 0;
}

static bool is_well_at(const char *level, const char *role)
{
    CHECK(set_paranoid(level));
    (void)fprintf(stderr, "   level %s\n", level);
    int status = hazard_wait(hazard_role(role, NULL), HAZARD_PATIENCE_S);
    if (WIFEXITED(status) && WEXITSTATUS(status) == HAZARD_UNSURE)
        hazard_unsure("level %s", level);
    return WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == HAZARD_UNSURE);
}

/* The levels work in processes of their own, so that whatever becomes of them the system's is put
 * back. */
static int paranoid_levels(void)
{
    static const char *const levels[] = {"-1", "0", "1", "2", "3", "4"};
    char before[16] = "";
    int fd = open(paranoid_path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, before, sizeof before - 1) <= 0 || !set_paranoid(before))
        return hazard_skip(
            "kernel.perf_event_paranoid cannot be written: not root, or no right to");
    close(fd);
    bool well = true;
    for (size_t i = 0; i < sizeof levels / sizeof *levels && well; i++)
        well = is_well_at(levels[i], "be_nobody");
    well = well && is_well_at("4", "be_root");
    CHECK(set_paranoid(before));
    CHECK(well);
    return 0;
}

/* --- the queue of signals --------------------------------------------------------------------- */

enum { CROWD = 40 };

static atomic_bool crowd_may_go;
static atomic_int crowd_attached;

static void *attach_and_wait(void *unused)
{
    SPANPROF_SPAN("crowd") {
        hazard_burn(0.002);
        atomic_fetch_add(&crowd_attached, 1);
        while (!atomic_load(&crowd_may_go))
            usleep(5000);
    }
    return unused;
}

/* CROWD threads that are all there at once. */
static void run_crowd(uint32_t *threads)
{
    pthread_t crowd[CROWD];
    for (int i = 0; i < CROWD; i++)
        crowd[i] = hazard_thread(attach_and_wait, NULL);
    while (atomic_load(&crowd_attached) < CROWD)
        usleep(5000);
    *threads = hazard_stats().threads;
    atomic_store(&crowd_may_go, true);
    for (int i = 0; i < CROWD; i++)
        pthread_join(crowd[i], NULL);
}

/* A user with no other processes. Keeps the right to perf events; the queue is then this user's,
 * where nobody else puts signals. */
static void become_nobody_else(void)
{
    uid_t user = 20000 + (uid_t)getpid() % 40000;
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {{0}, {0}};
    CHECK_EQUAL(prctl(PR_SET_KEEPCAPS, 1), 0);
    CHECK_EQUAL(syscall(SYS_capget, &header, data), 0);
    become(user);
    data[1].effective = data[1].permitted & 1u << (CAP_PERFMON - 32);
    data[0].effective = data[0].permitted & 1u << CAP_SYS_PTRACE;
    CHECK_EQUAL(syscall(SYS_capset, &header, data), 0);
}

static int queue_of_signals_is_full(void)
{
    if (getuid() != 0)
        return hazard_skip("needs root, to be a user whose queue nobody else fills");
    become_nobody_else();
    struct rlimit few = {CROWD / 2, CROWD / 2};
    CHECK_EQUAL(setrlimit(RLIMIT_SIGPENDING, &few), 0);
    uint32_t threads = 0;
    hazard_start(1000);
    run_crowd(&threads);
    hazard_burn_to_ticks(0, 1);
    spanprof_stats stats = hazard_stop();
    (void)fprintf(stderr, "   %u threads tick, %llu failed\n", threads,
                  (unsigned long long)stats.failed_threads);
    if (hazard_is_perf()) { /* its signals are not queued by that limit */
        CHECK_EQUAL(stats.failed_threads, 0);
        CHECK(threads >= CROWD);
        return 0;
    }
    CHECK(stats.failed_threads >= CROWD / 2);
    CHECK(threads <= CROWD / 2);
    CHECK_EQUAL(hazard_awaited_warnings("RLIMIT_SIGPENDING", 1), 1);
    return 0;
}

/* Exact, for this user has no other process. */
static int queued_signals_are_back(void)
{
    if (getuid() != 0)
        return hazard_skip("needs root, to be a user whose queue nobody else fills");
    become_nobody_else();
    long before = hazard_queued_signals();
    for (unsigned round = 0; round < hazard_many(2, 5, 5); round++) {
        uint32_t threads = 0;
        atomic_store(&crowd_may_go, false);
        atomic_store(&crowd_attached, 0);
        hazard_start(1000);
        run_crowd(&threads);
        hazard_burn(0.02);
        hazard_stop();
        HAZARD_WORK_UNTIL(hazard_queued_signals() == before);
    }
    return 0;
}

/* --- descriptors ------------------------------------------------------------------------------ */

/* No descriptor is left: the engine perf gives later threads a timer, /proc is not read, and the
 * host's own open fails as it would. */
static int descriptors_are_used_up(void)
{
    struct rlimit few = {64, 64};
    CHECK_EQUAL(setrlimit(RLIMIT_NOFILE, &few), 0);
    hazard_start(1000);
    int taken[64], count = 0;
    while (count < 64 && (taken[count] = dup(0)) >= 0)
        count++;
    uint32_t threads = 0;
    run_crowd(&threads);
    double begin = hazard_process_cpu();
    SPANPROF_SPAN("without descriptors")
        hazard_burn_to_ticks(0.2, 20);
    double cpu = hazard_process_cpu() - begin;
    uint64_t weights = hazard_stats().weights;
    while (count > 0)
        close(taken[--count]);
    spanprof_stats stats = hazard_stop();
    (void)fprintf(stderr, "   %u threads tick, %llu failed, %llu weights in %.3f s\n", threads,
                  (unsigned long long)stats.failed_threads, (unsigned long long)weights, cpu);
    CHECK(threads >= CROWD);
    CHECK_EQUAL(stats.failed_threads, 0);
    hazard_enough("weights", (double)stats.weights, 180); /* of 200, and the crowd's 80 */
    if (hazard_is_perf())
        CHECK_EQUAL(hazard_awaited_warnings("RLIMIT_NOFILE", 1), 1);
    return 0;
}

enum { FILES = 3000 };

static int files[FILES];

/* Under every number that was just closed, so that a close of ours by number would hit one of them.
 */
static unsigned open_files(void)
{
    unsigned count = 0;
    while (count < FILES && (files[count] = dup(STDERR_FILENO)) >= 0)
        count++;
    return count;
}

static void check_files(unsigned count)
{
    struct stat wanted, found;
    CHECK_EQUAL(fstat(STDERR_FILENO, &wanted), 0);
    for (unsigned i = 0; i < count; i++) {
        CHECK_EQUAL(fstat(files[i], &found), 0);
        CHECK_EQUAL(found.st_ino, wanted.st_ino);
        CHECK(!(fcntl(files[i], F_GETFL) & O_ASYNC));
    }
}

/* What a program does that becomes a daemon, or is cautious. Our own descriptors go, and the
 * numbers are the host's from then on. */
static int host_closes_all_descriptors(void)
{
    struct rlimit many = {8192, 8192};
    if (setrlimit(RLIMIT_NOFILE, &many) != 0)
        (void)fprintf(stderr, "   fewer descriptors than are wanted\n");
    hazard_start(1000);
    static atomic_bool stop;
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        threads[i] = hazard_thread(hazard_burn_until, &stop);
    hazard_burn(hazard_sized(0.03, 0.1));
    CHECK_EQUAL(close_range(3, ~0u, 0), 0);
    unsigned count = open_files();
    SPANPROF_SPAN("after")
        hazard_burn(hazard_sized(0.05, 0.2));
    atomic_store(&stop, true);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL); /* each takes its own event down */
    /* It ticks again. */
    hazard_burn_to_ticks(hazard_sized(0.05, 0.2), hazard_flushed_stats().ticks + 1);
    check_files(count);
    spanprof_stop(60 * SECOND);
    check_files(count);
    spanprof_stats stats = hazard_stats();
    CHECK_EQUAL(stats.ticks, stats.samples_linked + stats.samples_none + stats.samples_unknown +
                                 stats.dropped_samples_ring_full + stats.dropped_samples_memory +
                                 stats.dropped_samples_small_stack);
    CHECK_EQUAL(hazard_descriptors_of("perf_event"), 0);
    CHECK(hazard_timers() <= 0);
    return 0;
}

int main(int argc, char **argv)
{
    static const hazard_case cases[] = {
        {"perf_event_open_refused_gives_timer", perf_event_open_refused, false},
        {"timer_create_refused_is_told", timer_create_refused, false},
        {"both_engines_refused_are_told_and_all_is_unattributed", both_refused, false},
        {"guarded_loads_refused_still_samples", guarded_loads_refused, false},
        {"no_proc_samples_threads_that_attach", without_proc, false},
        {"paranoid_levels_as_root_and_nobody", paranoid_levels, false},
        {"be_nobody", be_nobody, true},
        {"be_root", be_root, true},
        {"queue_of_signals_full_is_counted_and_told_once", queue_of_signals_is_full, false},
        {"queued_signals_are_back_where_they_were", queued_signals_are_back, false},
        {"descriptors_used_up_still_samples", descriptors_are_used_up, false},
        {"host_that_closes_all_descriptors_keeps_its_own", host_closes_all_descriptors, false},
    };
    return hazard_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
