/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/read/parallel.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "core/worker.h"

typedef struct work {
    void (*run)(void *state, size_t thread, size_t part);
    void *state;
    size_t count;
    _Atomic size_t next; /* the first part that no thread has taken */
} work;

typedef struct helper {
    work *work;
    size_t number;
    pthread_t thread;
    bool is_there;
} helper;

size_t sp_parallel_threads(size_t count)
{
    cpu_set_t allowed;
    size_t cores =
        sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? (size_t)CPU_COUNT(&allowed) : 1;
    size_t most = count < SP_PARALLEL_MOST ? count : SP_PARALLEL_MOST;
    return cores < most ? cores : most ? most : 1;
}

static void take_parts(work *of, size_t thread)
{
    for (;;) {
        /* Relaxed: `next` is the only thing that changes and is shared by the threads. Results are
         * read after pthread_join, which makes them visible. */
        size_t part = atomic_fetch_add_explicit(&of->next, 1, memory_order_relaxed);
        if (part >= of->count)
            return;
        of->run(of->state, thread, part);
    }
}

static void *help(void *argument)
{
    helper *own = argument;
    take_parts(own->work, own->number);
    return NULL;
}

void sp_parallel_run(size_t threads, size_t count,
                     void (*run)(void *state, size_t thread, size_t part), void *state)
{
    work all = {.run = run, .state = state, .count = count, .next = 1};
    helper helpers[SP_PARALLEL_MOST] = {0};
    for (size_t i = 1; i < threads; i++) {
        helpers[i] = (helper){.work = &all, .number = i};
        helpers[i].is_there = sp_worker_thread_create(&helpers[i].thread, SP_WORKER_KEEPS_FAULTS,
                                                      help, &helpers[i]) == 0;
    }
    if (count)
        run(state, 0, 0);
    take_parts(&all, 0);
    for (size_t i = 1; i < threads; i++)
        if (helpers[i].is_there)
            pthread_join(helpers[i].thread, NULL);
}
