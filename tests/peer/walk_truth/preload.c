/* SPDX-License-Identifier: Apache-2.0 */
/* For LD_PRELOAD into a program that nobody wrote for it. A thread of its own stops one of the
 * program's running threads at random moments with a signal, whose handler compares (stop.h). When
 * there were stops enough, the score is written and the program ends, whatever it is doing. One
 * stop at a time.
 *
 * WALK_TRUTH_OUT     file to write; without it nothing is done. Children do not inherit it.
 * WALK_TRUTH_STOPS   stops wanted (2000)
 * WALK_TRUTH_SECONDS after which it ends with fewer (60)
 * WALK_TRUTH_FOREIGN set: much of the program's code has no frame information (stop.h)
 * WALK_TRUTH_ALTERNATE_STACK set: its stacks are too small for a handler, which goes to the
 * alternate one */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/clock.h"
#include "loader_view.h"
#include "cpu/cpu_engine.h"
#include "unwind/stack_bounds.h"
#include "stop.h"

enum {
    THREADS_MAX = 128,
    PERIOD_MIN_NS = 50000,
    PERIOD_MAX_NS = 1500000,
    SCAN_NS = 20000000,
    GIVE_UP_NS = 20000000,
    FIRST_NS = 300000000 /* a language's runtime that sets up all signals has done so */
};

/* What the driver asks of a handler. `phase` is ASKED by the driver, TAKEN by the handler of the
 * thread that it means, DONE when it compared; NONE again by the driver. */
enum { NONE, ASKED, TAKEN, DONE };
static struct {
    _Atomic int phase;
    sp_thread *thread;
    const sp_generation *generation;
} request;

static sp_modules *modules;
static stop_score score;
static sp_thread *threads[THREADS_MAX];
static int thread_count;
static int signal_number;

/* As a tick does it: the first stop of a thread only notes where its stack is, and all loads are
 * guarded. */
static sp_stack_bounds bounds_of(sp_thread *thread, const void *ucontext)
{
    sp_stack_bounds bounds = {.low = sp_load_relaxed(&thread->tick.stack_low),
                              .high = sp_load_acquire(&thread->tick.stack_high)};
    uint64_t tp;
    __asm__("mov %%fs:0, %0" : "=r"(tp));
    sp_store_relaxed(&thread->tick.seen_tp, tp);
    sp_store_relaxed(&thread->tick.seen_sp, sp_registers_from_ucontext(ucontext).sp);
    return bounds;
}

static void on_stop(int number, siginfo_t *info, void *ucontext)
{
    (void)number;
    (void)info;
    int asked = ASKED, saved_errno = errno;
    if (gettid() != request.thread->registered.tid ||
        !atomic_compare_exchange_strong(&request.phase, &asked, TAKEN))
        return;
    stop_compare(&score, request.generation, bounds_of(request.thread, ucontext), ucontext);
    atomic_store(&request.phase, DONE);
    errno = saved_errno;
}

/* Go takes over all signals of its process, and its stacks are too small for a handler: ours is
 * installed late, again and again and on the alternate stack. Faults stay possible: stop.c catches
 * them. */
static void install(void)
{
    struct sigaction action = {.sa_sigaction = on_stop, .sa_flags = SA_SIGINFO | SA_RESTART};
    if (getenv("WALK_TRUTH_ALTERNATE_STACK"))
        action.sa_flags |= SA_ONSTACK;
    sigfillset(&action.sa_mask);
    sigdelset(&action.sa_mask, SIGSEGV);
    sigdelset(&action.sa_mask, SIGBUS);
    sigaction(signal_number, &action, NULL);
}

static uint64_t random_below(uint64_t limit)
{
    static uint64_t state;
    if (!state)
        state = sp_clock_monotonic_ns() | 1;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % limit;
}

static void sleep_ns(uint64_t ns)
{
    struct timespec time = {.tv_sec = (time_t)(ns / 1000000000),
                            .tv_nsec = (long)(ns % 1000000000)};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
}

static sp_thread *known_thread(pid_t tid)
{
    for (int i = 0; i < thread_count; i++)
        if (threads[i]->registered.tid == tid)
            return threads[i];
    return NULL;
}

static sp_thread *add_thread(pid_t tid)
{
    sp_thread *thread = aligned_alloc(_Alignof(sp_thread), sizeof *thread);
    if (thread) {
        memset(thread, 0, sizeof *thread);
        thread->registered.tid = tid;
    }
    return thread;
}

/* List the threads anew, but for this one. Those that ended are forgotten. */
static void scan_threads(void)
{
    sp_thread *now[THREADS_MAX];
    int count = 0;
    DIR *folder = opendir("/proc/self/task");
    struct dirent *entry;
    while (folder && count < THREADS_MAX && (entry = readdir(folder))) {
        pid_t tid = atoi(entry->d_name);
        if (tid == 0 || tid == gettid())
            continue;
        sp_thread *thread = known_thread(tid);
        if (!thread)
            thread = add_thread(tid);
        if (thread)
            now[count++] = thread;
    }
    if (folder)
        closedir(folder);
    memcpy(threads, now, (size_t)count * sizeof *now); /* what is left out is a leak of a test */
    thread_count = count;
}

static bool is_running(pid_t tid)
{
    char path[64], text[256] = "";
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)tid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return false;
    ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    const char *state = length > 0 ? strrchr(text, ')') : NULL;
    return state && state[1] == ' ' && state[2] == 'R';
}

/* A thread that waits is left alone: the signal would end its system call. */
static sp_thread *choose_thread(void)
{
    if (thread_count == 0)
        return NULL;
    int first = (int)random_below((uint64_t)thread_count);
    for (int i = 0; i < thread_count; i++) {
        sp_thread *thread = threads[(first + i) % thread_count];
        if (is_running(thread->registered.tid))
            return thread;
    }
    return NULL;
}

/* Whether a handler took the request: a thread that fell asleep or blocks the signal does not. */
static bool is_taken(void)
{
    uint64_t give_up = sp_clock_monotonic_ns() + GIVE_UP_NS;
    int asked = ASKED;
    while (atomic_load(&request.phase) == ASKED && sp_clock_monotonic_ns() < give_up)
        sleep_ns(5000);
    return !atomic_compare_exchange_strong(&request.phase, &asked, NONE);
}

static void stop_thread(sp_thread *thread)
{
    static uint32_t number;
    if (sp_modules_refresh(modules) || number == 0) {
        loader_view_take();
        while (sp_modules_generation(modules, number + 1))
            number++;
    }
    request.thread = thread;
    request.generation = sp_modules_generation(modules, number);
    loader_view_serve(thread->registered.tid);
    atomic_store(&request.phase, ASKED);
    if (syscall(SYS_tgkill, getpid(), thread->registered.tid, signal_number) != 0)
        atomic_store(&request.phase, NONE);
    else if (is_taken())
        while (atomic_load(&request.phase) != DONE)
            sleep_ns(5000);
    loader_view_serve(0);
    sp_stack_learn(thread);
}

static uint64_t setting(const char *name, uint64_t otherwise)
{
    const char *value = getenv(name);
    return value ? strtoull(value, NULL, 10) : otherwise;
}

static void write_score(const char *path)
{
    FILE *out = fopen(path, "we");
    if (!out)
        _exit(3);
    stop_write(&score, out);
    (void)fclose(out);
}

static void *drive(void *path)
{
    uint64_t wanted = setting("WALK_TRUTH_STOPS", 2000);
    uint64_t end = sp_clock_monotonic_ns() + setting("WALK_TRUTH_SECONDS", 60) * 1000000000;
    uint64_t scanned = 0;
    prctl(PR_SET_TIMERSLACK, 1);
    sleep_ns(FIRST_NS);
    modules = sp_modules_create();
    while (modules && stop_count(&score) < wanted && sp_clock_monotonic_ns() < end) {
        if (sp_clock_monotonic_ns() - scanned > SCAN_NS) {
            install();
            scan_threads();
            scanned = sp_clock_monotonic_ns();
        }
        sp_thread *thread = choose_thread();
        if (thread)
            stop_thread(thread);
        sleep_ns(PERIOD_MIN_NS + random_below(PERIOD_MAX_NS - PERIOD_MIN_NS));
    }
    write_score(path);
    _exit(0);
}

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("WALK_TRUTH_OUT");
    pthread_t driver;
    sigset_t all, before;
    if (!path)
        return;
    char *kept = strdup(path);
    unsetenv("WALK_TRUTH_OUT");
    signal_number = SIGRTMAX - 3;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (!kept || !stop_set_up(getenv("WALK_TRUTH_FOREIGN")) ||
        pthread_create(&driver, NULL, drive, kept) != 0)
        _exit(3);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}
