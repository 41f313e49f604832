/* SPDX-License-Identifier: Apache-2.0 */
/* libuv: one part of each request is done in the loop, another part in libuv's thread pool. What
 * carries the context: `data` of the handle or work points at the request, which has the span. Each
 * callback attaches the span first and detaches it last.
 *
 *     ./callbacks_uv [REQUESTS] */
#include <spanprof/spanprof.h>

#include <stdio.h>
#include <stdlib.h>
#include <uv.h>

#include "work.h"

enum { OPEN = 32 };

typedef struct request {
    spanprof_span span;
    unsigned number;
    uv_timer_t timer;
    uv_work_t work;
} request;

static unsigned wanted, started;

static void start(request *r);

/* Runs in the loop again: write the answer, and let the next request begin. */
static void on_computed(uv_work_t *computed, int status)
{
    request *r = computed->data;
    spanprof_scope scope = spanprof_span_attach(r->span);
    if (status == 0)
        work(r->number);
    spanprof_scope_detach(&scope);
    spanprof_span_end(r->span);
    start(r);
}

/* Runs on a thread of the pool. */
static void compute(uv_work_t *computed)
{
    request *r = computed->data;
    spanprof_scope scope = spanprof_span_attach(r->span);
    work(r->number);
    spanprof_scope_detach(&scope);
}

/* Runs in the loop, when the request has arrived. */
static void on_arrival(uv_timer_t *timer)
{
    request *r = timer->data;
    spanprof_scope scope = spanprof_span_attach(r->span);
    work(r->number);
    uv_queue_work(timer->loop, &r->work, compute, on_computed);
    spanprof_scope_detach(&scope);
}

static void start(request *r)
{
    if (started == wanted)
        return;
    r->number = started++;
    r->span = spanprof_span_start(NULL, "request", NULL);
    spanprof_span_set_int(r->span, "request.number", r->number);
    r->timer.data = r->work.data = r;
    uv_timer_start(&r->timer, on_arrival, r->number % 2, 0); /* some arrive later than others */
}

int main(int argc, char **argv)
{
    static request open_requests[OPEN];
    wanted = argc > 1 ? (unsigned)atoi(argv[1]) : 200;
    if (spanprof_start(NULL, NULL) != SPANPROF_OK)
        fprintf(stderr, "callbacks_uv: running without spans\n");
    for (int i = 0; i < OPEN; i++) {
        uv_timer_init(uv_default_loop(), &open_requests[i].timer);
        start(&open_requests[i]);
    }
    uv_run(uv_default_loop(), UV_RUN_DEFAULT);
    spanprof_stop(UINT64_C(5000000000));
    return 0;
}
