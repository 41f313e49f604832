/* SPDX-License-Identifier: Apache-2.0 */
/* A program that knows nothing of spanprof, for run_test.py: run_work WHAT [ARGUMENT]. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CPU_MS = 150 };

static volatile unsigned sink;

/* CPU_MS of this thread's CPU time. */
__attribute__((noinline)) void run_work_spin(void)
{
    struct timespec now, start;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
    do {
        for (unsigned i = 0; i < 100000; i++)
            sink += i * i;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    } while ((now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000 < CPU_MS);
}

static void *thread_main(void *unused)
{
    (void)unused;
    run_work_spin();
    return NULL;
}

static int work_in_threads(void)
{
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, thread_main, NULL);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    return 0;
}

/* As servers do whose signals one thread waits for. */
static int work_in_threads_that_block_all_signals(void)
{
    sigset_t all, before;
    sigfillset(&all);
    if (pthread_sigmask(SIG_SETMASK, &all, &before) != 0 || sigismember(&before, SIGUSR1))
        return 1;
    work_in_threads();
    if (sigprocmask(SIG_SETMASK, NULL, &before) != 0 || !sigismember(&before, SIGUSR1))
        return 1;
    return sigprocmask(-1, &before, NULL) == -1 && errno == EINVAL ? 0 : 1;
}

/* The child's exit code. */
static int wait_for(pid_t child)
{
    int status = -1;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 100;
}

static int fork_and_work(void)
{
    pid_t child = fork();
    if (child == 0) {
        usleep(100 * 1000);
        run_work_spin();
        _exit(7); /* runs no exit handler */
    }
    return wait_for(child) == 7 ? 0 : 1;
}

/* As a server's worker may have it: with a title for ps in place of the arguments, too. */
static int fork_and_work_without_environment(void)
{
    clearenv();
    program_invocation_short_name[0] = '?';
    return fork_and_work();
}

/* As a server that starts as root has it for its workers. */
static int fork_and_work_as_another_user(void)
{
    enum { NOBODY = 65534 };
    pid_t child = fork();
    if (child == 0) {
        if (setgid(NOBODY) != 0 || setuid(NOBODY) != 0)
            _exit(1);
        usleep(100 * 1000);
        run_work_spin();
        _exit(7);
    }
    return wait_for(child) == 7 ? 0 : 1;
}

static int fork_for_a_moment(void)
{
    pid_t child = fork();
    if (child == 0)
        _exit(7);
    return wait_for(child) == 7 ? 0 : 1;
}

/* The child shares our memory until it execs: its failing exec and its _exit must not end our span.
 */
static int vfork_and_fail(void)
{
    pid_t child;
    char *words[] = {"nothing", NULL};
    int error = posix_spawn(&child, "/nonexistent/program", NULL, NULL, words, NULL);
    child = vfork();
    if (child == 0) {
        execl("/nonexistent/program", "program", (char *)NULL);
        _exit(errno == ENOENT ? 9 : 1);
    }
    run_work_spin();
    return error == ENOENT && wait_for(child) == 9 ? 0 : 1;
}

static int exec_itself(const char *path)
{
    run_work_spin();
    execl(path, "second", "spin", (char *)NULL);
    return 1;
}

static int exec_with_environment(const char *path)
{
    char *environment[] = {"A=only", NULL};
    execle(path, "second", "environment", (char *)NULL, environment);
    return 1;
}

/* Each of the family fails as it does without us, and the program goes on. */
static int exec_nothing(void)
{
    char *words[] = {"program", NULL}, *environment[] = {NULL};
    const char *nothing = "/nonexistent/program";
    int failed = 0;
    failed += execl(nothing, "program", (char *)NULL) == -1 && errno == ENOENT;
    failed += execlp(nothing, "program", (char *)NULL) == -1 && errno == ENOENT;
    failed += execle(nothing, "program", (char *)NULL, environment) == -1 && errno == ENOENT;
    failed += execv(nothing, words) == -1 && errno == ENOENT;
    failed += execve(nothing, words, environment) == -1 && errno == ENOENT;
    failed += execvp(nothing, words) == -1 && errno == ENOENT;
    failed += execvpe(nothing, words, environment) == -1 && errno == ENOENT;
    failed += fexecve(-1, words, environment) == -1;
    usleep(100 * 1000);
    run_work_spin();
    return failed == 8 ? 0 : 1;
}

static void on_signal(int number)
{
    (void)number;
    _exit(11); /* in a handler */
}

/* As an interpreter looks before it installs its own. */
static int look_at_handlers(void)
{
    static const int numbers[] = {SIGHUP, SIGINT, SIGPIPE, SIGTERM};
    struct sigaction before, standard = {.sa_handler = SIG_DFL}, own = {.sa_handler = on_signal};
    int wrong = 0;
    for (int i = 0; i < 4; i++) {
        wrong += sigaction(numbers[i], NULL, &before) != 0 || before.sa_handler != SIG_DFL;
        wrong += signal(numbers[i], on_signal) != SIG_DFL;
        wrong += sigaction(numbers[i], &standard, &before) != 0 || before.sa_handler != on_signal;
        wrong += sigaction(numbers[i], &own, &before) != 0 || before.sa_handler != SIG_DFL;
        wrong += signal(numbers[i], SIG_IGN) != on_signal || signal(numbers[i], SIG_DFL) != SIG_IGN;
    }
    errno = 0;
    wrong += signal(SIGKILL, on_signal) != SIG_ERR || errno != EINVAL;
    return wrong;
}

static volatile sig_atomic_t profiling_signals, wrong_masks;

static void on_profiling_signal(int number)
{
    sigset_t blocked;
    sigprocmask(SIG_BLOCK, NULL, &blocked);
    wrong_masks += !sigismember(&blocked, number) || sigismember(&blocked, SIGUSR1);
    profiling_signals++;
}

/* Whether the handler gets what this thread sends itself. The kernel keeps one pending signal of a
 * number: what is sent while a tick is pending is lost. */
static bool reaches_handler(int number)
{
    sig_atomic_t before = profiling_signals;
    for (int i = 0; i < 100 && profiling_signals == before; i++)
        raise(number);
    return profiling_signals == before + 1;
}

/* By a set of NUMBER alone. */
static bool cannot_block(int number)
{
    sigset_t one, blocked;
    sigemptyset(&one);
    sigaddset(&one, number);
    bool done = sigprocmask(SIG_BLOCK, &one, NULL) == 0 &&
                sigprocmask(SIG_BLOCK, NULL, &blocked) == 0 && sigismember(&blocked, number);
    return sigprocmask(SIG_UNBLOCK, &one, NULL) != 0 || !done;
}

/* Asks for each way to handle NUMBER, while ticks send it. How many answers are wrong: ticks must
 * not reach the handlers, and the program's own signals must. */
static int handle_the_signal_of_ticks(int number)
{
    struct sigaction before, own = {.sa_handler = on_profiling_signal};
    int wrong = sigaction(number, &own, &before) != 0 || before.sa_handler != SIG_DFL;
    run_work_spin();
    wrong += profiling_signals != 0;
    wrong += !reaches_handler(number) || wrong_masks != 0;
    pid_t child = vfork(); /* has this memory, and handlers of its own */
    if (child == 0)
        _exit(signal(number, SIG_IGN) == on_profiling_signal ? 9 : 1);
    wrong += wait_for(child) != 9 || signal(number, SIG_IGN) != on_profiling_signal;
    run_work_spin();
    raise(number);
    wrong += sysv_signal(number, on_profiling_signal) != SIG_IGN;
    wrong += !reaches_handler(number);
    raise(number); /* the handler was for once */
    wrong += profiling_signals != 2 || signal(number, SIG_DFL) != SIG_DFL;
    run_work_spin();
    return wrong + cannot_block(number);
}

/* The allocator's lock is held most of the time. */
static int allocate_for_ever(void)
{
    run_work_spin();
    printf("ready\n");
    fflush(stdout);
    for (volatile int goes_on = 1; goes_on;) {
        char *small = malloc(200000), *large = malloc(3000000);
        small[0] = large[0] = 1;
        free(small);
        free(large);
    }
    return 1;
}

static int wait_for_signal(void (*handler)(int))
{
    if (handler != SIG_DFL)
        signal(SIGTERM, handler);
    run_work_spin();
    printf("ready\n");
    fflush(stdout);
    while (pause() == -1)
        continue;
    return 1;
}

static int allocate(void)
{
    for (int i = 0; i < 200; i++) {
        char *block = malloc(1 << 16);
        memset(block, i, 1 << 16);
        sink += (unsigned)block[i];
        free(block);
    }
    return 0;
}

static int exit_now(void *unused)
{
    (void)unused;
    _exit(7);
}

/* As sandboxes do it: the child has this process's memory, and zeros for thread-local storage. */
static int exit_without_storage(void)
{
    enum { ROOM = 65536 };
    static char stack[ROOM] __attribute__((aligned(16))),
        storage[ROOM] __attribute__((aligned(16)));
    int status = 0, flags = CLONE_VM | CLONE_VFORK | CLONE_SETTLS | SIGCHLD;
    pid_t child = clone(exit_now, stack + ROOM, flags, NULL, NULL, storage + ROOM / 2);
    run_work_spin();
    return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/* As nginx does: a daemon that writes over its environment. It ends when WORDS[2], a FIFO, has been
 * opened and closed by a writer. */
static int become_daemon(char **words)
{
    int ready[2];
    char byte = 0;
    if (pipe(ready) != 0)
        return 1;
    if (fork() != 0) {
        close(ready[1]);
        return read(ready[0], &byte, 1) == 1 ? 0 : 1;
    }
    setsid();
    char *fifo = strdup(words[2]);
    for (char **word = environ; *word; word++)
        memset(*word, 0, strlen(*word));
    dup2(open("/dev/null", O_RDWR), STDERR_FILENO);
    dup2(STDERR_FILENO, STDOUT_FILENO);
    if (write(ready[1], &byte, 1) != 1)
        return 1;
    close(open(fifo, O_RDONLY));
    return 0;
}

static void *run_work_live_shortly(void *unused)
{
    usleep(100 * 1000);
    return unused;
}

static void *start_one_after_another(void *unused)
{
    pthread_t thread;
    for (int i = 0; i < 12; i++) {
        pthread_create(&thread, NULL, run_work_live_shortly, NULL);
        pthread_join(thread, NULL);
    }
    return unused;
}

/* 48 threads that sleep for 4.8 s together. Their number hardly changes. */
static int work_in_short_threads(void)
{
    pthread_t starters[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&starters[i], NULL, start_one_after_another, NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(starters[i], NULL);
    return 0;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "spin") == 0)
        return run_work_spin(), 0;
    if (strcmp(what, "threads") == 0)
        return work_in_threads();
    if (strcmp(what, "blocking_threads") == 0)
        return work_in_threads_that_block_all_signals();
    if (strcmp(what, "fork") == 0)
        return fork_and_work();
    if (strcmp(what, "fork_without_environment") == 0)
        return fork_and_work_without_environment();
    if (strcmp(what, "fork_as_another_user") == 0)
        return fork_and_work_as_another_user();
    if (strcmp(what, "daemon") == 0)
        return become_daemon(argv);
    if (strcmp(what, "short_fork") == 0)
        return fork_for_a_moment();
    if (strcmp(what, "vfork") == 0)
        return vfork_and_fail();
    if (strcmp(what, "exec") == 0)
        return exec_itself(argv[0]);
    if (strcmp(what, "execle") == 0)
        return exec_with_environment(argv[0]);
    if (strcmp(what, "environment") == 0)
        return getenv("A") && !getenv("PATH") ? 0 : 1;
    if (strcmp(what, "exec_nothing") == 0)
        return exec_nothing();
    if (strcmp(what, "_exit") == 0)
        run_work_spin(), _exit(5);
    if (strcmp(what, "without_storage") == 0)
        return exit_without_storage();
    if (strcmp(what, "quick_exit") == 0)
        run_work_spin(), quick_exit(6);
    if (strcmp(what, "signal") == 0)
        return wait_for_signal(SIG_DFL);
    if (strcmp(what, "handler") == 0)
        return wait_for_signal(on_signal);
    if (strcmp(what, "handlers") == 0)
        return look_at_handlers();
    if (strcmp(what, "profiling_signal") == 0)
        return handle_the_signal_of_ticks(SIGPROF);
    if (strcmp(what, "malloc") == 0)
        return allocate_for_ever();
    if (strcmp(what, "allocate") == 0)
        return allocate();
    if (strcmp(what, "short_threads") == 0)
        return work_in_short_threads();
    if (strcmp(what, "sleep") == 0)
        return usleep(300 * 1000);
    return 2;
}
