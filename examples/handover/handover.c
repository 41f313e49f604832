/* SPDX-License-Identifier: Apache-2.0 */
/* A span that is started on one thread and ended on another, and scopes that do not end in the
 * reverse order of their starts. What carries the context: the message has the span. A thread
 * attaches the span while it works for the request, and the last thread ends the span.
 *
 *     ./handover [REQUESTS] */
#include <spanprof/spanprof.h>

#include <stdio.h>
#include <stdlib.h>
#include <pthread.h>
#include <unistd.h>

#include "work.h"

typedef struct message {
    spanprof_span span;
    unsigned request;
} message;

static int pipe_fds[2];

/* Does the second half of each request, while the first thread begins other requests. */
static void *complete(void *unused)
{
    (void)unused;
    for (message m; read(pipe_fds[0], &m, sizeof m) == sizeof m;) {
        spanprof_scope scope = spanprof_span_attach(m.span);
        work(m.request);
        spanprof_scope_detach(&scope);
        spanprof_span_end(m.span);
    }
    return NULL;
}

static void hand_over(const message *m)
{
    if (write(pipe_fds[1], m, sizeof *m) != sizeof *m)
        spanprof_span_end(m->span);
}

/* Hand the request over before its log entry is complete. The outer scope, the request's, is
 * detached first; the log entry's span stays active. After the inner scope is detached, no span is
 * active. */
static void hand_over_and_log(const message *m, spanprof_scope *scope)
{
    spanprof_span entry =
        spanprof_span_start(NULL, "log", NULL); /* its parent is the active span */
    spanprof_span_set_int(entry, "request.number", m->request + 1);
    spanprof_scope log_scope = spanprof_span_attach(entry);
    hand_over(m);
    spanprof_scope_detach(scope);
    work(m->request + 1);
    spanprof_scope_detach(&log_scope);
    spanprof_span_end(entry);
}

/* Does the first half of a request. */
static void begin(unsigned request)
{
    message m = {.span = spanprof_span_start(NULL, "request", NULL), .request = request};
    spanprof_span_set_int(m.span, "request.number", request);
    spanprof_scope scope = spanprof_span_attach(m.span);
    work(request);
    if (request % 2) {
        hand_over_and_log(&m, &scope);
    } else {
        hand_over(&m);
        spanprof_scope_detach(&scope);
    }
}

int main(int argc, char **argv)
{
    unsigned requests = argc > 1 ? (unsigned)atoi(argv[1]) : 200;
    pthread_t thread;
    if (spanprof_start(NULL, NULL) != SPANPROF_OK)
        fprintf(stderr, "handover: running without spans\n");
    if (pipe(pipe_fds) != 0 || pthread_create(&thread, NULL, complete, NULL) != 0)
        return perror("handover"), 1;
    for (unsigned request = 0; request < requests; request++)
        begin(request), tidy_up();
    close(pipe_fds[1]);
    pthread_join(thread, NULL);
    spanprof_stop(UINT64_C(5000000000));
    return 0;
}
