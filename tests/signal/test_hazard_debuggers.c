/* SPDX-License-Identifier: Apache-2.0 */
/* A process that is looked at from outside: ptrace, gdb, valgrind. All three stop threads at any
 * instruction, and pass our signals on late, also inside a tick. */
#include "hazard.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* --- those that are looked at ----------------------------------------------------------------- */

static int be_traced(void)
{
    hazard_start(10000);
    hazard_say_ready();
    SPANPROF_SPAN("traced")
        hazard_burn_to_ticks(hazard_sized(0.2, 0.5), 6);
    spanprof_stats stats = hazard_stop();
    (void)fprintf(stderr, "   %llu ticks\n", (unsigned long long)stats.ticks);
    return 0;
}

static int be_watched(void)
{
    hazard_start(200);
    SPANPROF_SPAN("watched")
        hazard_burn_to_ticks(hazard_sized(0.05, 0.3), 1);
    spanprof_stats stats = hazard_stop();
    (void)fprintf(stderr, "   %llu ticks\n", (unsigned long long)stats.ticks);
    return 0;
}

/* Until standard input ends, however long gdb takes to start. */
static int be_attached_to(void)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    hazard_start(1000);
    hazard_say_ready();
    SPANPROF_SPAN("attached to") {
        while (poll(&input, 1, 0) == 0)
            hazard_burn(0.01);
        hazard_burn_to_ticks(0, 100);
    }
    hazard_stop();
    return 0;
}

/* --- ptrace ----------------------------------------------------------------------------------- */

static bool seize(pid_t child)
{
    return ptrace(PTRACE_SEIZE, child, NULL, NULL) == 0 &&
           ptrace(PTRACE_INTERRUPT, child, NULL, NULL) == 0;
}

/* The signal to hand on with which the tracee goes on; -1 when it has ended, and well. Waits. */
static int next_stop(pid_t child, bool *is_signal)
{
    int status;
    CHECK_EQUAL(waitpid(child, &status, __WALL), child);
    if (!WIFSTOPPED(status)) {
        CHECK_EQUAL(status, 0);
        return -1;
    }
    int signal = WSTOPSIG(status);
    bool event = status >> 16 != 0;
    *is_signal = !event && signal != SIGTRAP && signal != (SIGTRAP | 0x80);
    return *is_signal ? signal : 0;
}

/* Many single steps, which ticks interrupt and which go through ticks. Then it runs on alone, and
 * has to end well; a million steps may reach its end. */
enum { STEPS_AT_LEAST = 8000 };

static int single_steps(void)
{
    pid_t child = hazard_ready_role("be_traced");
    if (!seize(child)) {
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        return hazard_skip("ptrace is not allowed here");
    }
    unsigned signals = 0;
    for (unsigned step = 0; step < hazard_many(STEPS_AT_LEAST, STEPS_AT_LEAST, 1000000); step++) {
        bool is_signal = false;
        int signal = next_stop(child, &is_signal);
        if (signal < 0) {
            CHECK(step > STEPS_AT_LEAST);
            return 0;
        }
        signals += is_signal;
        CHECK_EQUAL(ptrace(PTRACE_SINGLESTEP, child, NULL, (void *)(intptr_t)signal), 0);
    }
    bool is_signal = false;
    int signal = next_stop(child, &is_signal);
    CHECK_EQUAL(ptrace(PTRACE_DETACH, child, NULL, (void *)(intptr_t)signal), 0);
    (void)fprintf(stderr, "   %u signals on the way\n", signals);
    hazard_wait_well(child, HAZARD_PATIENCE_S);
    return 0;
}

/* As strace does: stopped at both ends of each system call and at each signal, to the end. */
static int traced_to_its_end(void)
{
    pid_t child = hazard_ready_role("be_traced");
    if (!seize(child)) {
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        return hazard_skip("ptrace is not allowed here");
    }
    int status = 0;
    double end = hazard_now() + HAZARD_PATIENCE_S;
    while (waitpid(child, &status, __WALL) == child && WIFSTOPPED(status) && hazard_now() < end) {
        int signal = WSTOPSIG(status) == SIGTRAP || status >> 16 ? 0 : WSTOPSIG(status);
        ptrace(PTRACE_SYSCALL, child, NULL, (void *)(intptr_t)signal);
    }
    CHECK(WIFEXITED(status));
    CHECK_EQUAL(WEXITSTATUS(status), 0);
    return 0;
}

/* --- stopped inside a tick -------------------------------------------------------------------- */

static atomic_bool stopping;
static _Atomic pid_t burning_thread;

static void *burn_until_stopping(void *unused)
{
    atomic_store(&burning_thread, (pid_t)syscall(SYS_gettid));
    hazard_burn_until(&stopping);
    return unused;
}

/* The other thread is stopped in its tick. The stop must not wait for it for ever, nor free what it
 * reads. */
static int stop_beside_a_stopped_thread(void)
{
    prctl(PR_SET_PTRACER, getppid());
    hazard_start(1000);
    pthread_t thread = hazard_thread(burn_until_stopping, NULL);
    pid_t tid;
    char byte;
    while ((tid = atomic_load(&burning_thread)) == 0)
        hazard_burn(0.001);
    CHECK_EQUAL(write(HAZARD_READY_FD, &tid, sizeof tid), sizeof tid);
    CHECK_EQUAL(read(STDIN_FILENO, &byte, 1), 0); /* until the thread is stopped */
    double begin = hazard_now();
    CHECK_EQUAL(spanprof_stop(60 * SECOND), SPANPROF_OK);
    (void)fprintf(stderr, "   stopped in %.3f s\n", hazard_now() - begin);
    hazard_say_ready();
    atomic_store(&stopping, true);
    CHECK_EQUAL(pthread_join(thread, NULL), 0); /* goes on when it is let go */
    hazard_start(1000);
    SPANPROF_SPAN("afterwards")
        hazard_burn_to_ticks(hazard_sized(0.02, 0.1), 6);
    hazard_stop();
    return 0;
}

/* Runs THREAD until a tick's signal comes, and some instructions into the handler. */
static void stop_in_a_tick(pid_t thread, unsigned steps)
{
    for (;;) {
        bool is_signal = false;
        int signal = next_stop(thread, &is_signal);
        CHECK(signal >= 0);
        if (signal == SIGPROF)
            break;
        CHECK_EQUAL(ptrace(PTRACE_CONT, thread, NULL, (void *)(intptr_t)signal), 0);
    }
    for (unsigned i = 0; i < steps; i++) {
        bool is_signal = false;
        CHECK_EQUAL(ptrace(PTRACE_SINGLESTEP, thread, NULL, (void *)(intptr_t)(i ? 0 : SIGPROF)),
                    0);
        CHECK(next_stop(thread, &is_signal) >= 0);
    }
}

/* The standard input of programs that are started next; it ends when what is returned is closed. */
static int hold_input(void)
{
    int ends[2];
    CHECK_EQUAL(pipe(ends), 0);
    CHECK_EQUAL(dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
    close(ends[0]);
    CHECK_EQUAL(fcntl(ends[1], F_SETFD, FD_CLOEXEC), 0);
    return ends[1];
}

static void freeze_and_thaw(unsigned steps)
{
    int hold = hold_input(), ready;
    char byte;
    pid_t thread;
    pid_t child = hazard_role("stop_beside_a_stopped_thread", &ready);
    CHECK_EQUAL(read(ready, &thread, sizeof thread), sizeof thread);
    CHECK(seize(thread));
    stop_in_a_tick(thread, steps);
    close(hold); /* now the other thread stops the SDK */
    CHECK_EQUAL(read(ready, &byte, 1), 1);
    close(ready);
    CHECK_EQUAL(ptrace(PTRACE_DETACH, thread, NULL, NULL), 0);
    hazard_wait_well(child, HAZARD_PATIENCE_S);
}

static int frozen_in_a_tick(void)
{
    pid_t child = hazard_ready_role("be_traced");
    bool allowed = seize(child);
    kill(child, SIGKILL);
    waitpid(child, NULL, __WALL);
    if (!allowed)
        return hazard_skip("ptrace is not allowed here");
    /* In its beginning, and in its walk. The stop waits for a second each time. */
    for (unsigned steps = 40; steps <= 400; steps += hazard_many(360, 120, 120))
        freeze_and_thaw(steps);
    return 0;
}

/* --- gdb and valgrind ------------------------------------------------------------------------- */

static bool is_there(const char *program)
{
    char command[64];
    snprintf(command, sizeof command, "command -v %s >/dev/null", program);
    return system(command) == 0;
}

static void run_well(const char *command, unsigned seconds)
{
    pid_t child = fork();
    if (child == 0) {
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    hazard_wait_well(child, seconds);
}

static int gdb_starts_the_program(void)
{
    char command[8192];
    if (!is_there("gdb"))
        return hazard_skip("gdb is not installed");
    snprintf(command, sizeof command,
             "gdb -nx -batch -return-child-result -ex 'set debuginfod enabled off' "
             "-ex 'set startup-with-shell off' -ex 'break hazard_burn' -ex run -ex bt -ex step "
             "-ex step -ex delete -ex continue --args '%s' be_watched >/dev/null </dev/null",
             hazard_program);
    run_well(command, HAZARD_PATIENCE_S);
    return 0;
}

static int gdb_attaches_and_detaches(void)
{
    char command[256];
    if (!is_there("gdb"))
        return hazard_skip("gdb is not installed");
    int hold = hold_input();
    pid_t child = hazard_ready_role("be_attached_to");
    for (unsigned round = 0; round < hazard_many(1, 2, 2); round++) {
        snprintf(command, sizeof command,
                 "gdb -nx -batch -p %d -ex 'set debuginfod enabled off' -ex 'thread apply all bt' "
                 "-ex stepi -ex stepi -ex detach >/dev/null 2>&1 </dev/null",
                 (int)child);
        run_well(command, HAZARD_PATIENCE_S);
    }
    close(hold);
    hazard_wait_well(child, HAZARD_PATIENCE_S);
    return 0;
}

/* Valgrind runs handlers between its own blocks of translated code. It reports an error with
 * code 99. */
static int valgrind_finds_nothing(void)
{
#if defined(__clang__)
    return hazard_skip("valgrind 3.19 cannot read the DWARF 5 that clang 14 writes");
#endif
    char command[8192];
    if (HAZARD_ASAN)
        return hazard_skip("ASan and valgrind do not work together");
    if (!is_there("valgrind"))
        return hazard_skip("valgrind is not installed");
    snprintf(command, sizeof command, "valgrind -q --error-exitcode=99 '%s' be_watched",
             hazard_program);
    run_well(command, HAZARD_PATIENCE_S);
    return 0;
}

int main(int argc, char **argv)
{
    static const hazard_case cases[] = {
        {"single_steps_under_ptrace_then_detached", single_steps, false},
        {"traced_at_every_system_call_and_signal", traced_to_its_end, false},
        {"stop_while_a_thread_is_frozen_in_a_tick", frozen_in_a_tick, false},
        {"gdb_starts_breaks_and_continues", gdb_starts_the_program, false},
        {"gdb_attaches_and_detaches", gdb_attaches_and_detaches, false},
        {"valgrind_finds_no_error", valgrind_finds_nothing, false},
        {"be_traced", be_traced, true},
        {"be_watched", be_watched, true},
        {"be_attached_to", be_attached_to, true},
        {"stop_beside_a_stopped_thread", stop_beside_a_stopped_thread, true},
    };
    return hazard_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
