/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that go a random way through generated code until each blocks, and the walk of all their
 * stacks from outside. Before its last way a thread goes some that end, which leave return
 * addresses of calls that are over on its stack.
 *
 * Environment: OUTSIDE_WALK_OUT, a file that gets a line for each thread: its id, how the walk
 * ended, fp_by_call, fp_by_return, fp_not_found, and the addresses in hexadecimal;
 * OUTSIDE_WALK_THREADS; OUTSIDE_WALK_SEED. Then the program traps, for a debugger to look at the
 * same stacks; without one it ends with that signal. */
#include "way.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "core/clock.h"
#include "core/cycles_sig.h"
#include "unwind/outside_walk.h"

enum { THREADS_MAX = 1000, WAYS_BEFORE = 6, CALLS_MAX = 16, ENTRIES_MAX = 8192, DEPTH_MAX = 256 };

struct way {
    uint64_t random;
    int left; /* calls */
    bool ends;
    pid_t tid;
};

static way ways[THREADS_MAX];
static way_entry entries[ENTRIES_MAX];
static int entry_count, pipes[2], listener, epoll, child;
static pthread_barrier_t started;

static uint64_t next_random(way *w)
{
    w->random ^= w->random << 13;
    w->random ^= w->random >> 7;
    w->random ^= w->random << 17;
    return w->random >> 11;
}

int way_choice(way *w)
{
    if (--w->left <= 0)
        return 4;
    uint64_t one = next_random(w) % 100;
    return one < 28 ? 0 : one < 56 ? 1 : one < 84 ? 2 : one < 98 ? 3 : 4;
}

static long stay(way *w)
{
    return w->ends ? 0 : (long)pause();
}

way_function *way_pointer(way *w, int number)
{
    int first = 0;
    while (first < entry_count && entries[first].number <= number)
        first++;
    int left = entry_count - first < 40 ? entry_count - first : 40;
    return left ? entries[first + (int)(next_random(w) % (uint64_t)left)].function : stay;
}

long way_number(way *w)
{
    return (long)(next_random(w) & 1023);
}

size_t way_size(way *w)
{
    static const size_t sizes[] = {16, 40, 100, 500, 3000, 9000};
    return sizes[next_random(w) % 6];
}

void way_touch(char *bytes, size_t count)
{
    memset(bytes, 7, count);
}

int way_again(way *w)
{
    return next_random(w) % 2;
}

int way_never(way *w)
{
    return w->left > 1000000;
}

int way_always(way *w)
{
    return w->left < 1000000;
}

void way_rare(way *w)
{
    w->random += 3;
}

void way_give_up(way *w)
{
    (void)w;
    abort();
}

int way_ends(way *w)
{
    return w->ends;
}

int way_pipe(void)
{
    return pipes[0];
}

static struct timespec much_later(void)
{
    struct timespec at;
    clock_gettime(CLOCK_REALTIME, &at);
    at.tv_sec += 100000;
    return at;
}

static long wait_for_semaphore(void)
{
    sem_t semaphore;
    struct timespec at = much_later();
    sem_init(&semaphore, 0, 0);
    return sem_timedwait(&semaphore, &at);
}

static long wait_for_condition(bool is_timed)
{
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
    struct timespec at = much_later();
    pthread_mutex_lock(&mutex);
    return is_timed ? pthread_cond_timedwait(&condition, &mutex, &at)
                    : pthread_cond_wait(&condition, &mutex);
}

static long wait_for_mutex(void)
{
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&mutex);
    return pthread_mutex_lock(&mutex);
}

static long wait_for_signal(void)
{
    sigset_t signals;
    int signal;
    sigemptyset(&signals);
    sigaddset(&signals, SIGUSR2);
    return sigwait(&signals, &signal);
}

long way_block(way *w)
{
    struct epoll_event event;
    fd_set readable;
    int status;
    if (w->ends)
        return 0;
    switch (next_random(w) % 12) {
    case 0:
        return epoll_wait(epoll, &event, 1, -1);
    case 1:
        return wait_for_semaphore();
    case 2:
        return wait_for_condition(false);
    case 3:
        return wait_for_condition(true);
    case 4:
        return accept(listener, NULL, NULL);
    case 5:
        return wait4(child, &status, 0, NULL);
    case 6:
        return wait_for_mutex();
    case 7:
        return wait_for_signal();
    case 8:
        FD_ZERO(&readable);
        FD_SET(pipes[0], &readable);
        return select(pipes[0] + 1, &readable, NULL, NULL, NULL);
    case 9:
        return (long)sleep(100000);
    case 10:
        return usleep(999999999);
    default:
        return recv(listener + 1, &status, 1, 0) + pause();
    }
}

static void *run(void *user)
{
    way *w = user;
    w->tid = (pid_t)syscall(SYS_gettid);
    pthread_barrier_wait(&started);
    for (int i = 0; i <= WAYS_BEFORE; i++) {
        w->ends = i < WAYS_BEFORE;
        w->left = 4 + (int)(next_random(w) % CALLS_MAX);
        way_pointer(w, (int)(next_random(w) % 20))(w);
    }
    return NULL;
}

static int compare_entries(const void *left, const void *right)
{
    return ((const way_entry *)left)->number - ((const way_entry *)right)->number;
}

static void prepare(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    for (int part = 0; parts[part]; part++)
        for (const way_entry *entry = parts[part]; entry->number >= 0 && entry_count < ENTRIES_MAX;
             entry++)
            entries[entry_count++] = *entry;
    qsort(entries, (size_t)entry_count, sizeof entries[0], compare_entries);
    if (pipe(pipes) != 0)
        exit(1);
    epoll = epoll_create1(0);
    listener = socket(AF_UNIX, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&address, sizeof address.sun_family) != 0 ||
        listen(listener, 1) != 0)
        exit(1);
    child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) /* it is waited for, however long the test takes */
            pause();
    }
}

/* True when the thread is in a system call; where. One that waits for a page is not, and has -1 as
 * the call's number. */
static bool read_place(pid_t tid, sp_registers *out)
{
    char path[64], text[256] = "";
    snprintf(path, sizeof path, "/proc/self/task/%d/syscall", (int)tid);
    FILE *file = fopen(path, "re");
    size_t length = file ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file)
        fclose(file);
    text[length] = 0;
    char *pc = strrchr(text, ' ');
    if (!pc || text[0] == '-')
        return false;
    *pc = 0;
    char *sp = strrchr(text, ' ');
    if (!sp)
        return false;
    *out = (sp_registers){.pc = strtoull(pc + 1, NULL, 16), .sp = strtoull(sp + 1, NULL, 16)};
    return true;
}

static void wait_until_blocked(pid_t tid)
{
    sp_registers now = {0}, before = {0};
    for (int same = 0; same < 3;) {
        bool is_blocked = read_place(tid, &now);
        same = is_blocked && now.pc == before.pc && now.sp == before.sp ? same + 1 : 0;
        before = now;
        usleep(1000);
    }
}

static sp_walk walk_thread(sp_stack_copy *copy, const sp_generation *generation, pid_t tid,
                           uint64_t *pcs)
{
    sp_walk walk = {.generation = generation, .pcs = pcs, .max_depth = DEPTH_MAX};
    if (!read_place(tid, &walk.registers))
        exit(1);
    sp_outside_walk(copy, &walk);
    return walk;
}

static void walk_all(int count, FILE *out)
{
    _Atomic(const sp_generation *) hazard;
    sp_modules *modules = sp_modules_create();
    sp_stack_copy *copy = sp_stack_copy_create();
    if (!modules || !copy)
        exit(1);
    const sp_generation *generation = sp_generation_enter(modules, &hazard);
    uint64_t pcs[DEPTH_MAX];
    for (int i = 0; i < count; i++) {
        sp_walk walk = walk_thread(copy, generation, ways[i].tid, pcs);
        sp_walk again = walk_thread(copy, generation, ways[i].tid, pcs);
        if (again.count != walk.count || again.end != walk.end)
            exit(3);
        uint64_t start = sp_clock_monotonic_ns();
        for (int k = 0; k < 10; k++)
            sp_outside_walk(copy, &again);
        uint64_t ns = (sp_clock_monotonic_ns() - start) / 10;
        fprintf(out, "%d %d %u %u %u %" PRIu64, (int)ways[i].tid, (int)walk.end, walk.fp_by_call,
                walk.fp_by_return, walk.fp_not_found, ns);
        for (uint32_t k = 0; k < walk.count; k++)
            fprintf(out, " %" PRIx64, pcs[k]);
        fprintf(out, "\n");
    }
    sp_generation_leave(&hazard);
    sp_stack_copy_destroy(copy);
    sp_modules_destroy(modules);
}

static int setting(const char *name, int otherwise)
{
    const char *text = getenv(name);
    return text ? atoi(text) : otherwise;
}

int main(void)
{
    int count = setting("OUTSIDE_WALK_THREADS", 100), seed = setting("OUTSIDE_WALK_SEED", 1);
    const char *path = getenv("OUTSIDE_WALK_OUT");
    FILE *out = path ? fopen(path, "we") : stdout;
    if (!out || count > THREADS_MAX)
        return 2;
    prepare();
    pthread_barrier_init(&started, NULL, (unsigned)count + 1);
    for (int i = 0; i < count; i++) {
        pthread_t thread;
        ways[i].random =
            ((uint64_t)seed * THREADS_MAX + (uint64_t)i + 1) * UINT64_C(0x9e3779b97f4a7c15);
        if (pthread_create(&thread, NULL, run, &ways[i]) != 0)
            return 1;
    }
    pthread_barrier_wait(&started);
    for (int i = 0; i < count; i++)
        wait_until_blocked(ways[i].tid);
    walk_all(count, out);
    fclose(out);
    raise(SIGTRAP);
    kill(child, SIGKILL);
    return 0;
}
