/* SPDX-License-Identifier: Apache-2.0 */
/* Worker processes by fork. What carries the context: a traceparent in the message to the worker,
 * like a header between hosts. In a forked child the SDK does not run until the child starts its
 * own SDK, with its own files or connections.
 *
 *     ./worker [REQUESTS] */
#include <spanprof/spanprof.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "work.h"

enum { WORKERS = 2 };

typedef struct message {
    unsigned request;
    char traceparent[56];
} message;

static void handle(const message *m)
{
    spanprof_context remote;
    spanprof_context_extract(&remote, m->traceparent, NULL); /* all zero when it is not valid */
    spanprof_span_options options = SPANPROF_SPAN_OPTIONS_INIT;
    options.kind = SPANPROF_SPAN_KIND_SERVER;
    options.parent = &remote;
    spanprof_span span = spanprof_span_start(NULL, "handle", &options);
    spanprof_span_set_int(span, "request.number", m->request);
    spanprof_scope scope = spanprof_span_attach(span);
    work(m->request);
    spanprof_scope_detach(&scope);
    spanprof_span_end(span);
}

static void run_worker(int number, int channel)
{
    char file[4096];
    const char *prefix = getenv("SPANPROF_FILE");
    snprintf(file, sizeof file, "%s.worker-%d", prefix ? prefix : "worker", number);
    spanprof_options options = SPANPROF_OPTIONS_INIT;
    options.file = file; /* two processes must not write to the same file */
    if (spanprof_start(&options, NULL) != SPANPROF_OK)
        fprintf(stderr, "worker %d: running without spans\n", number);
    for (message m; read(channel, &m, sizeof m) == sizeof m;) {
        handle(&m);
        if (write(channel, &m.request, sizeof m.request) < 0)
            break;
    }
    spanprof_stop(UINT64_C(5000000000));
}

static void start_worker(int number, int channels[WORKERS])
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) != 0)
        exit((perror("worker"), 1));
    if (fork() == 0) {
        for (int i = 0; i < number; i++)
            close(channels[i]);
        close(pair[0]);
        run_worker(number, pair[1]);
        _exit(0);
    }
    close(pair[1]);
    channels[number] = pair[0];
}

/* Send one request to each worker, and wait for all answers. */
static void serve(unsigned request, const int channels[WORKERS])
{
    SPANPROF_SPAN("request") {
        spanprof_context context = spanprof_context_current();
        for (int i = 0; i < WORKERS; i++) {
            message m = {.request = request + (unsigned)i};
            spanprof_context_inject(&context, m.traceparent);
            if (write(channels[i], &m, sizeof m) < 0)
                exit((perror("worker"), 1));
        }
        unsigned answer;
        for (int i = 0; i < WORKERS; i++)
            if (read(channels[i], &answer, sizeof answer) <= 0)
                exit((fprintf(stderr, "worker: one has ended\n"), 1));
    }
}

int main(int argc, char **argv)
{
    unsigned requests = argc > 1 ? (unsigned)atoi(argv[1]) : 200;
    int channels[WORKERS];
    if (spanprof_start(NULL, NULL) != SPANPROF_OK)
        fprintf(stderr, "worker: running without spans\n");
    for (int i = 0; i < WORKERS; i++)
        start_worker(i, channels);
    for (unsigned request = 0; request < requests; request += WORKERS)
        serve(request, channels);
    for (int i = 0; i < WORKERS; i++)
        close(channels[i]);
    while (wait(NULL) > 0)
        ;
    spanprof_stop(UINT64_C(5000000000));
    return 0;
}
