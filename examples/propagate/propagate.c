/* SPDX-License-Identifier: Apache-2.0 */
/* One trace through a thread and another process.
 *
 * In a process a context is plain data: copy the context together with the work, and attach it on
 * the thread that does the work. Between processes a context is sent as a W3C traceparent: here on
 * the command line of the child, in most programs in a header. */
#include <spanprof/spanprof.h>

#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>

extern char **environ;

static void print_place(const char *where)
{
    char traceparent[56];
    spanprof_context context = spanprof_context_current();
    spanprof_context_inject(&context, traceparent);
    printf("%-8s %s\n", where, traceparent);
    fflush(stdout);
}

/* JOB is the context that was active when the thread was created. */
static void *run_job(void *job)
{
    spanprof_scope scope = spanprof_context_attach(job);
    SPANPROF_SPAN("job") {
        print_place("thread");
    }
    spanprof_scope_detach(&scope);
    return NULL;
}

static int run_child(const char *traceparent)
{
    spanprof_context remote;
    if (!spanprof_context_extract(&remote, traceparent, NULL)) {
        fprintf(stderr, "propagate: \"%s\" is not a traceparent\n", traceparent);
        return 2;
    }
    spanprof_span_options options = {
        .struct_size = sizeof options, .kind = SPANPROF_SPAN_KIND_SERVER, .parent = &remote};
    spanprof_span span = spanprof_span_start(NULL, "child", &options);
    spanprof_scope scope = spanprof_span_attach(span);
    print_place("process");
    spanprof_scope_detach(&scope);
    spanprof_span_end(span);
    return 0;
}

static int run_parent(char *program)
{
    int failed = 1;
    SPANPROF_SPAN("request") {
        print_place("request");
        spanprof_context context = spanprof_context_current();
        pthread_t thread;
        if (pthread_create(&thread, NULL, run_job, &context) == 0)
            pthread_join(thread, NULL);

        char traceparent[56];
        spanprof_context_inject(&context, traceparent);
        char *arguments[] = {program, traceparent, NULL};
        pid_t child;
        int status = 0;
        if (posix_spawn(&child, program, NULL, NULL, arguments, environ) == 0 &&
            waitpid(child, &status, 0) == child)
            failed = status != 0;
    }
    return failed;
}

int main(int argc, char **argv)
{
    /* Each process writes its own files. (With a receiver, both send to the same one.) */
    spanprof_options options = SPANPROF_OPTIONS_INIT;
    options.service_name = argc > 1 ? "propagate-child" : "propagate";
    options.file = options.service_name;
    if (spanprof_start(&options, NULL) != SPANPROF_OK)
        fprintf(stderr, "propagate: running without spans\n");
    int code = argc > 1 ? run_child(argv[1]) : run_parent(argv[0]);
    spanprof_stop(UINT64_C(5000000000));
    return code;
}
