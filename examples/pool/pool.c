/* SPDX-License-Identifier: Apache-2.0 */
/* A thread pool with a queue. What carries the context: the job has the span, and the thread that
 * takes the job attaches the span.
 *
 *     ./pool [REQUESTS] */
#include <spanprof/spanprof.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "work.h"

enum { WORKERS = 2, QUEUE = 16 };

typedef struct job {
    unsigned request;
    spanprof_span span; /* or a spanprof_context, if another thread ends the span */
} job;

static struct {
    pthread_mutex_t lock;
    pthread_cond_t filled;
    job jobs[QUEUE];
    unsigned first, count;
    bool closed;
} queue = {.lock = PTHREAD_MUTEX_INITIALIZER, .filled = PTHREAD_COND_INITIALIZER};

static bool put(const job *j)
{
    pthread_mutex_lock(&queue.lock);
    bool has_room = queue.count < QUEUE;
    if (has_room)
        queue.jobs[(queue.first + queue.count++) % QUEUE] = *j;
    pthread_cond_signal(&queue.filled);
    pthread_mutex_unlock(&queue.lock);
    return has_room;
}

static bool take(job *j, bool waits)
{
    pthread_mutex_lock(&queue.lock);
    while (waits && queue.count == 0 && !queue.closed)
        pthread_cond_wait(&queue.filled, &queue.lock);
    bool taken = queue.count > 0;
    if (taken) {
        *j = queue.jobs[queue.first];
        queue.first = (queue.first + 1) % QUEUE;
        queue.count--;
    }
    pthread_mutex_unlock(&queue.lock);
    return taken;
}

static void handle(job *j)
{
    spanprof_scope scope =
        spanprof_span_attach(j->span); /* from here on this thread works for the span */
    work(j->request);
    spanprof_scope_detach(&scope);
    spanprof_span_end(j->span); /* any thread may end a span */
}

static void *run_worker(void *unused)
{
    (void)unused;
    job j;
    while (take(&j, true))
        handle(&j);
    return NULL;
}

/* The span begins when the request arrives, so it includes the time in the queue. This thread does
 * not attach the span, because it goes on with the next request. When the queue is full, this
 * thread first handles the oldest job, under that job's span. */
static void accept_request(unsigned request)
{
    job j = {.request = request, .span = spanprof_span_start(NULL, "request", NULL)}, old;
    spanprof_span_set_int(j.span, "request.number", request);
    while (!put(&j))
        if (take(&old, false))
            handle(&old);
}

int main(int argc, char **argv)
{
    unsigned requests = argc > 1 ? (unsigned)atoi(argv[1]) : 200;
    if (spanprof_start(NULL, NULL) != SPANPROF_OK)
        fprintf(stderr, "pool: running without spans\n");
    pthread_t workers[WORKERS];
    for (int i = 0; i < WORKERS; i++)
        pthread_create(&workers[i], NULL, run_worker, NULL);
    for (unsigned request = 0; request < requests; request++)
        accept_request(request);
    pthread_mutex_lock(&queue.lock);
    queue.closed = true;
    pthread_cond_broadcast(&queue.filled);
    pthread_mutex_unlock(&queue.lock);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(workers[i], NULL);
    spanprof_stop(UINT64_C(5000000000));
    return 0;
}
