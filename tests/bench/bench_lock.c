/* SPDX-License-Identifier: Apache-2.0 */
/* What libspanprof-preload.so adds to lock and unlock of a free mutex, in nanoseconds, beside the C
 * library's own pair in the same run: while the SDK does not run, and while waits for locks are
 * sampled. The ways take turns, for the machine's speed changes.
 *
 *     bench_lock PRELOAD     starts itself anew with it in LD_PRELOAD */
#include <spanprof/spanprof.h>

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "bench/figures.h"

enum { ROUNDS = 201, PAIRS = 20000 };

typedef int lock_function(pthread_mutex_t *mutex);

typedef struct lock_pair {
    lock_function *lock, *unlock;
} lock_pair;

static lock_pair plain, ours;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static double measure(lock_pair pair)
{
    uint64_t begin = sp_clock_monotonic_ns();
    for (int i = 0; i < PAIRS; i++) {
        pair.lock(&mutex);
        pair.unlock(&mutex);
    }
    return (double)(sp_clock_monotonic_ns() - begin) / PAIRS;
}

static void compare(const char *what)
{
    static double plains[ROUNDS], differences[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        double before = measure(plain), with = measure(ours), after = measure(plain);
        plains[i] = before;
        differences[i] = with - (before + after) / 2;
    }
    double median = figures_quantile(differences, ROUNDS, 0.5);
    printf("%-24s %6.2f ns more (quartiles %5.2f and %5.2f) than the plain pair's %5.2f ns\n", what,
           median, figures_quantile(differences, ROUNDS, 0.25),
           figures_quantile(differences, ROUNDS, 0.75), figures_quantile(plains, ROUNDS, 0.5));
}

static void *unused_thread(void *unused)
{
    return unused;
}

static lock_pair pair_of(void *library)
{
    return (lock_pair){(lock_function *)dlsym(library, "pthread_mutex_lock"),
                       (lock_function *)dlsym(library, "pthread_mutex_unlock")};
}

/* The C library locks in another way while a process has one thread. */
static void have_two_threads(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, unused_thread, NULL);
    pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
    if (argc > 1 && !getenv("BENCH_LOCK")) {
        setenv("LD_PRELOAD", argv[1], 1);
        setenv("BENCH_LOCK", "1", 1);
        execv("/proc/self/exe", argv);
    }
    void *library = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
    plain = library ? pair_of(library) : (lock_pair){0};
    ours = pair_of(RTLD_DEFAULT);
    if (argc < 2 || !plain.lock || plain.lock == ours.lock || plain.unlock == ours.unlock) {
        fprintf(stderr, "bench_lock PRELOAD: the path of libspanprof-preload.so\n");
        return 2;
    }
    spanprof_options options = SPANPROF_OPTIONS_INIT;
    options.exporter = "none";
    options.profiles = "lock";
    have_two_threads();
    compare("the SDK does not run");
    if (spanprof_start(&options, NULL) != SPANPROF_OK)
        return 1;
    compare("lock");
    spanprof_stop(UINT64_MAX);
    return 0;
}
