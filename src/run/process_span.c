/* SPDX-License-Identifier: Apache-2.0 */
#include "run/process_span.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <spanprof/spanprof.h>
#include "core/env.h"
#include "export/exporter.h"

enum { STARTS_MAX = 1000 };

#define STOP_NS UINT64_C(5000000000)

static spanprof_span span;

/* The name of the command, as it was before main: servers write a title for ps over the arguments,
 * and program_invocation_short_name points to them. */
static char command[NAME_MAX + 1];

static void keep_name(void)
{
    snprintf(command, sizeof command, "%s", program_invocation_short_name);
}

/* Create the file NAME in FOLDER and write our PID into it. Returns 0 or an errno, such as EEXIST.
 */
static int claim(const char *folder, const char *name)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
        return ENAMETOOLONG;
    int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    if (fd < 0)
        return errno;
    int error = dprintf(fd, "%d\n", (int)getpid()) > 0 ? 0 : errno;
    close(fd);
    return error;
}

/* Write an unused prefix to OUT, and create a file with this name: FOLDER/PID, or after an exec
 * FOLDER/PID.2 and so on. Returns 0 or an errno. */
static int claim_own(const char *folder, char out[PATH_MAX])
{
    char name[64];
    int error = EEXIST;
    for (int i = 1; i <= STARTS_MAX && error == EEXIST; i++) {
        snprintf(name, sizeof name, i > 1 ? "%d.%d" : "%d", (int)getpid(), i);
        error = claim(folder, name);
    }
    if (!error && snprintf(out, PATH_MAX, "%s/%s", folder, name) >= PATH_MAX)
        error = ENAMETOOLONG;
    return error;
}

/* Choose the file prefix of this process in a run of `spanprof run`. SPANPROF_RUN is the folder of
 * the run. In the first process *FILES is the prefix of the run; in all others it is OWN, a prefix
 * in the folder. Without a run *FILES is NULL, and then the environment decides. Returns false when
 * the run is over, or its folder cannot be written to: then this process's files would not be
 * collected. */
static bool choose_files(const char **files, char own[PATH_MAX])
{
    const char *folder = sp_env("SPANPROF_RUN");
    *files = NULL;
    if (!folder)
        return true;
    int error = claim(folder, "first");
    *files = error ? own : sp_env("SPANPROF_FILE");
    if (error == EEXIST)
        error = claim_own(folder, own);
    if (error && error != ENOENT)
        fprintf(stderr, "spanprof: %s is not profiled: %s: %s\n", command, folder, strerror(error));
    return error == 0;
}

static void start_span(void)
{
    spanprof_context parent;
    spanprof_attribute pid = {
        .key = "process.pid", .type = SPANPROF_ATTRIBUTE_INT, .value.int_value = getpid()};
    spanprof_span_options options = SPANPROF_SPAN_OPTIONS_INIT;
    options.attributes = &pid;
    options.attribute_count = 1;
    options.parent = &parent; /* all zero without TRACEPARENT: then the span begins a new trace */
    spanprof_context_extract(&parent, sp_env("TRACEPARENT"), sp_env("TRACESTATE"));
    span = spanprof_span_start(spanprof_tracer_get("spanprof run", SPANPROF_VERSION), command,
                               &options);
    spanprof_context context = spanprof_span_context(span);
    spanprof_context_set_default(&context);
}

bool sp_process_span_begin_late(void)
{
    char files[PATH_MAX];
    spanprof_error error;
    spanprof_options options = SPANPROF_OPTIONS_INIT;
    if (!choose_files(&options.file, files))
        return false;
    if (spanprof_start(&options, &error) == SPANPROF_OK) {
        start_span();
        return true;
    }
    if (error.status != SPANPROF_ERROR_DISABLED)
        fprintf(stderr, "spanprof: %s is not profiled: %s\n", command, error.message);
    return false;
}

bool sp_process_span_begin(void)
{
    char traceparent[56];
    keep_name();
    if (!sp_process_span_begin_late())
        return false;
    spanprof_context context = spanprof_span_context(span);
    if (spanprof_context_inject(&context, traceparent) > 0)
        setenv("TRACEPARENT", traceparent, 1);
    sp_env_keep();
    return true;
}

void sp_process_take_files(void)
{
    char own[PATH_MAX];
    const char *files, *prefix = sp_env("SPANPROF_FILE");
    keep_name();
    if (!choose_files(&files, own) && prefix) {
        sp_file_own_prefix(own, sizeof own, prefix, getpid());
        files = own;
    }
    if (files)
        setenv("SPANPROF_FILE", files, 1);
}

static void set_exit_code(int code)
{
    char text[32];
    snprintf(text, sizeof text, "exit code %d", code);
    spanprof_span_set_int(span, "process.exit.code", code);
    if (code != 0)
        spanprof_span_set_status(span, SPANPROF_SPAN_STATUS_ERROR, text);
}

void sp_process_stop(void)
{
    spanprof_stop(STOP_NS);
}

void sp_process_span_end(int code)
{
    if (code >= 0)
        set_exit_code(code);
    spanprof_span_end(span);
    sp_process_stop();
    spanprof_context_set_default(NULL);
}
