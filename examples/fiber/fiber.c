/* SPDX-License-Identifier: Apache-2.0 */
/* Fibers (ucontext) that run on two threads: each request is a fiber, which gives up its thread
 * between its steps and may continue on the other thread. What carries the context: the fiber. The
 * scopes of a fiber move with the fiber, because the program calls spanprof_fiber_switch before
 * each switch of stacks. The code of a request looks as if the request had its own thread.
 *
 *     ./fiber [REQUESTS] */
#include <spanprof/spanprof.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

#include "work.h"

enum { THREADS = 2, OPEN = 32, STEPS = 4, STACK_BYTES = 64 * 1024 };

typedef struct request {
    spanprof_fiber fiber;
    ucontext_t here;       /* where the request continues */
    ucontext_t *scheduler; /* of the thread that runs the request */
    unsigned number;
    bool ended;
    _Alignas(16) char stack[STACK_BYTES];
} request;

static request requests[OPEN];
static unsigned wanted, started;

/* The fibers that are ready to run. */
static struct {
    pthread_mutex_t lock;
    request *ready[OPEN];
    unsigned first, count;
} run_queue = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Called in a fiber: let other fibers run. */
static void yield(request *self)
{
    spanprof_fiber_switch((spanprof_fiber){0}); /* the next stack is the thread's own */
    swapcontext(&self->here, self->scheduler);
}

/* Called on a thread's own stack: let the fiber run until it yields. */
static void resume(request *r, ucontext_t *scheduler)
{
    r->scheduler = scheduler;
    spanprof_fiber_switch(r->fiber); /* the next stack is the fiber's */
    swapcontext(scheduler, &r->here);
}

static void answer(unsigned high, unsigned low)
{
    request *self = (request *)(((uintptr_t)high << 32) | low); // NOLINT: makecontext passes ints
    spanprof_span span = spanprof_span_start(NULL, "request", NULL);
    spanprof_span_set_int(span, "request.number", self->number);
    spanprof_scope scope = spanprof_span_attach(span);
    for (int step = 0; step < STEPS; step++) {
        work(self->number);
        yield(self); /* the span stays attached in this fiber */
    }
    spanprof_scope_detach(&scope); /* perhaps on another thread */
    spanprof_span_end(span);
    self->ended = true;
    yield(self);
}

static void begin(request *r, unsigned number)
{
    r->number = number;
    r->ended = false;
    getcontext(&r->here);
    r->here.uc_stack.ss_sp = r->stack;
    r->here.uc_stack.ss_size = sizeof r->stack;
    uintptr_t address = (uintptr_t)r;
    makecontext(&r->here, (void (*)(void))answer, 2, (unsigned)(address >> 32), (unsigned)address);
}

static void put(request *r)
{
    pthread_mutex_lock(&run_queue.lock);
    if (r->ended && started < wanted)
        begin(r, started++);
    if (!r->ended)
        run_queue.ready[(run_queue.first + run_queue.count++) % OPEN] = r;
    pthread_mutex_unlock(&run_queue.lock);
}

static request *take(void)
{
    request *r = NULL;
    pthread_mutex_lock(&run_queue.lock);
    if (run_queue.count > 0) {
        r = run_queue.ready[run_queue.first];
        run_queue.first = (run_queue.first + 1) % OPEN;
        run_queue.count--;
    }
    pthread_mutex_unlock(&run_queue.lock);
    return r;
}

static void *schedule(void *unused)
{
    (void)unused;
    ucontext_t scheduler;
    for (request *r; (r = take()) != NULL; put(r))
        resume(r, &scheduler);
    return NULL;
}

int main(int argc, char **argv)
{
    wanted = argc > 1 ? (unsigned)atoi(argv[1]) : 200;
    if (spanprof_start(NULL, NULL) != SPANPROF_OK)
        fprintf(stderr, "fiber: running without spans\n");
    for (int i = 0; i < OPEN; i++) {
        requests[i].fiber = spanprof_fiber_create(requests[i].stack, sizeof requests[i].stack);
        requests[i].ended = true;
        put(&requests[i]);
    }
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, schedule, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < OPEN; i++)
        spanprof_fiber_destroy(requests[i].fiber);
    spanprof_stop(UINT64_C(5000000000));
    return 0;
}
