/* SPDX-License-Identifier: Apache-2.0 */
/* An event loop: one thread serves many requests in turns, one step of a request each time its
 * descriptor is ready. What carries the context: the request that epoll returns has the span. The
 * span is attached for the step, and detached before the loop continues.
 *
 *     ./callbacks_epoll [REQUESTS] */
#include <spanprof/spanprof.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "work.h"

enum { OPEN = 32, STEPS = 4 };

typedef struct request {
    spanprof_span span;
    unsigned number;
    int step;
    int fd; /* in place of a connection; readable when there is a step to do */
} request;

static void start(request *r, unsigned number)
{
    r->number = number;
    r->step = 0;
    r->span = spanprof_span_start(NULL, "request", NULL); /* not attached yet: no work is done */
    spanprof_span_set_int(r->span, "request.number", number);
    eventfd_write(r->fd, 1);
}

/* Do one step of R. Returns whether it was the last one. */
static bool on_readable(request *r)
{
    eventfd_t ignored;
    eventfd_read(r->fd, &ignored);
    spanprof_scope scope = spanprof_span_attach(r->span);
    work(r->number);
    spanprof_scope_detach(&scope);
    if (++r->step < STEPS) {
        eventfd_write(r->fd, 1);
        return false;
    }
    spanprof_span_end(r->span);
    return true;
}

int main(int argc, char **argv)
{
    unsigned requests = argc > 1 ? (unsigned)atoi(argv[1]) : 200, started = 0, ended = 0;
    static request open_requests[OPEN];
    int loop = epoll_create1(EPOLL_CLOEXEC);
    if (spanprof_start(NULL, NULL) != SPANPROF_OK)
        fprintf(stderr, "callbacks_epoll: running without spans\n");
    for (int i = 0; i < OPEN; i++) {
        request *r = &open_requests[i];
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = r};
        r->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        epoll_ctl(loop, EPOLL_CTL_ADD, r->fd, &event);
        if (started < requests)
            start(r, started++);
    }
    while (ended < requests) {
        struct epoll_event events[OPEN];
        int count = epoll_wait(loop, events, OPEN, -1);
        for (int i = 0; i < count; i++) {
            request *r = events[i].data.ptr;
            if (!on_readable(r))
                continue;
            ended++;
            if (started < requests)
                start(r, started++);
        }
    }
    spanprof_stop(UINT64_C(5000000000));
    close(loop);
    return 0;
}
