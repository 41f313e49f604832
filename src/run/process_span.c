/* SPDX-License-Identifier: Apache-2.0 */
#include "run/process_span.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <spanprof/spanprof.h>

enum { STARTS_MAX = 1000 };

#define STOP_NS UINT64_C(5000000000)

static spanprof_span span;

/* Whether this call has made the file NAME in FOLDER. */
static bool claim(const char *folder, const char *name)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
        return false;
    int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

/* The file prefix of this process in a run of `spanprof run`, whose folder SPANPROF_RUN is: the
 * run's own for the first process, FOLDER/PID for all others, and FOLDER/PID.2 and so on after an
 * exec. NULL: no such run, and the environment says it. */
static const char *choose_files(char out[PATH_MAX])
{
    char name[64];
    const char *folder = secure_getenv("SPANPROF_RUN");
    if (!folder || !*folder)
        return NULL;
    if (claim(folder, "first"))
        return secure_getenv("SPANPROF_FILE");
    for (int i = 1; i <= STARTS_MAX; i++) {
        snprintf(name, sizeof name, i > 1 ? "%d.%d" : "%d", (int)getpid(), i);
        if (claim(folder, name))
            break;
    }
    return snprintf(out, PATH_MAX, "%s/%s", folder, name) < PATH_MAX ? out : NULL;
}

static void start_span(void)
{
    spanprof_context parent;
    spanprof_attribute pid = {
        .key = "process.pid", .type = SPANPROF_ATTRIBUTE_INT, .value.int_value = getpid()};
    spanprof_span_options options = SPANPROF_SPAN_OPTIONS_INIT;
    options.attributes = &pid;
    options.attribute_count = 1;
    options.parent = &parent; /* all zero when there is none: a new trace */
    spanprof_context_extract(&parent, secure_getenv("TRACEPARENT"), secure_getenv("TRACESTATE"));
    span = spanprof_span_start(spanprof_tracer_get("spanprof run", SPANPROF_VERSION),
                               program_invocation_short_name, &options);
    spanprof_context context = spanprof_span_context(span);
    spanprof_context_set_default(&context);
}

bool sp_process_span_begin_late(void)
{
    char files[PATH_MAX];
    spanprof_error error;
    spanprof_options options = SPANPROF_OPTIONS_INIT;
    options.file = choose_files(files);
    if (spanprof_start(&options, &error) == SPANPROF_OK) {
        start_span();
        return true;
    }
    if (error.status != SPANPROF_ERROR_DISABLED)
        fprintf(stderr, "spanprof: %s is not profiled: %s\n", program_invocation_short_name,
                error.message);
    return false;
}

bool sp_process_span_begin(void)
{
    char traceparent[56];
    if (!sp_process_span_begin_late())
        return false;
    spanprof_context context = spanprof_span_context(span);
    if (spanprof_context_inject(&context, traceparent) > 0)
        setenv("TRACEPARENT", traceparent, 1);
    return true;
}

void sp_process_span_end(void)
{
    spanprof_span_end(span);
    spanprof_stop(STOP_NS);
    spanprof_context_set_default(NULL);
}
