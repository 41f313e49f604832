/* SPDX-License-Identifier: Apache-2.0 */
/* Starts the program and waits for its end. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/compiler.h"
#include "core/path.h"
#include "tool/command/run.h"
#include "tool/text/messages.h"

/* A terminal sends these signals to the program, too. This process ignores them. */
static const int from_terminal[] = {SIGINT, SIGQUIT};
/* These signals to this process are passed on to the program. */
static const int passed_on[] = {SIGHUP, SIGTERM, SIGUSR1, SIGUSR2};

enum { BOTH = SP_ARRAY_LENGTH(from_terminal) + SP_ARRAY_LENGTH(passed_on) };

static volatile sig_atomic_t child;

static void pass_on(int number)
{
    int error = errno;
    if (child > 0)
        kill((pid_t)child, number);
    errno = error;
}

/* Ignore the signals from a terminal and pass on the others. BEFORE gets the previous actions. */
static void take_signals(struct sigaction before[BOTH])
{
    struct sigaction ignore = {.sa_handler = SIG_IGN}, pass = {.sa_handler = pass_on};
    for (size_t i = 0; i < SP_ARRAY_LENGTH(from_terminal); i++)
        sigaction(from_terminal[i], &ignore, before++);
    for (size_t i = 0; i < SP_ARRAY_LENGTH(passed_on); i++)
        sigaction(passed_on[i], &pass, before++);
}

static void give_signals(const struct sigaction before[BOTH])
{
    for (size_t i = 0; i < SP_ARRAY_LENGTH(from_terminal); i++)
        sigaction(from_terminal[i], before++, NULL);
    for (size_t i = 0; i < SP_ARRAY_LENGTH(passed_on); i++)
        sigaction(passed_on[i], before++, NULL);
}

/* Put WORD at the front of the list in the environment variable NAME, followed by SEPARATOR. */
static void put_in_front(const char *name, const char *word, char separator)
{
    const char *before = getenv(name);
    char *value = NULL;
    if (before && *before && asprintf(&value, "%s%c%s", word, separator, before) > 0)
        setenv(name, value, 1);
    else
        setenv(name, word, 1);
    free(value);
}

static void set_profiles(const sp_run_options *options)
{
    setenv("SPANPROF_PROFILES", sp_run_profiles(options), 1);
    if (options->wall)
        put_in_front("SPANPROF_PROFILES", "wall", ',');
    /* All threads work for the span of the process. */
    if (sp_run_records_wall(options))
        setenv("SPANPROF_WALL_THREADS", "all", 0);
}

/* Set one service name for all programs of the run, unless the environment has one. */
static void set_service(const sp_run *run)
{
    const char *attributes = getenv("OTEL_RESOURCE_ATTRIBUTES"), *name = run->options->service;
    if (name)
        setenv("OTEL_SERVICE_NAME", name, 1);
    else if (!attributes || !strstr(attributes, "service.name"))
        setenv("OTEL_SERVICE_NAME", sp_path_base(run->program[0]), 0);
}

static void set_environment(const sp_run *run)
{
    char hz[24];
    put_in_front("LD_PRELOAD", run->preload, ':');
    set_profiles(run->options);
    set_service(run);
    if (run->options->hz) {
        snprintf(hz, sizeof hz, "%llu", (unsigned long long)run->options->hz);
        setenv("SPANPROF_CPU_HZ", hz, 1);
    }
    if (!run->writes_files)
        return;
    if (getenv("SPANPROF_EXPORTER"))
        put_in_front("SPANPROF_EXPORTER", "file", ',');
    else
        setenv("SPANPROF_EXPORTER", "file", 1);
    setenv("SPANPROF_FILE", run->prefix, 1);
    setenv("SPANPROF_RUN", run->folder, 1);
}

/* Become the program, in the child. If exec fails, its errno is written to the pipe TOLD. */
static void become(const sp_run *run, const struct sigaction before[BOTH], int told)
{
    give_signals(before);
    set_environment(run);
    execvp(run->program[0], run->program);
    int error = errno;
    if (write(told, &error, sizeof error) < 0)
        error = 0; /* the pipe is closed: only the exit code can show the failure */
    _exit(127);
}

/* Read the errno of exec from the pipe TELLS; 0: exec succeeded. */
static int read_error(int tells)
{
    int error = 0;
    ssize_t length;
    do
        length = read(tells, &error, sizeof error);
    while (length < 0 && errno == EINTR);
    return length == (ssize_t)sizeof error ? error : 0;
}

static int cannot_start(const sp_run *run, int error)
{
    return sp_tool_wrong("run: %s cannot be started: %s", run->program[0], strerror(error));
}

int sp_run_program(const sp_run *run, int *status)
{
    struct sigaction before[BOTH];
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return cannot_start(run, errno);
    take_signals(before);
    pid_t process = fork();
    int error = process < 0 ? errno : 0;
    if (process == 0)
        become(run, before, ends[1]);
    child = process;
    close(ends[1]);
    if (!error)
        error = read_error(ends[0]);
    close(ends[0]);
    while (process > 0 && waitpid(process, status, 0) < 0 && errno == EINTR)
        continue;
    child = 0;
    give_signals(before);
    return error ? cannot_start(run, error) : SP_TOOL_DONE;
}
