/* SPDX-License-Identifier: Apache-2.0 */
/* A program that uses spanprof itself, for run_test.py: run_own [WHAT [SIGNAL]]. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <spanprof/spanprof.h>

static int start(void)
{
    spanprof_error error;
    return spanprof_start(NULL, &error) == SPANPROF_OK ? 0 : 1;
}

static int work_and_stop(void)
{
    SPANPROF_SPAN("own work") {
        spanprof_flush(UINT64_C(10000000000));
    }
    return spanprof_stop(UINT64_C(10000000000)) == SPANPROF_OK ? 0 : 1;
}

/* As a server's workers do, which start for themselves. */
static int fork_workers(void)
{
    int failed = 0, status = 0;
    for (int i = 0; i < 2; i++)
        if (fork() == 0)
            _exit(start() || work_and_stop());
    while (wait(&status) > 0)
        failed += status != 0;
    return failed;
}

/* End by signal NUMBER. The recording is not stopped. */
static int end_by(int number)
{
    SPANPROF_SPAN("own work") {
    }
    raise(number);
    for (int i = 0; i < 60; i++) /* after most signals the thread goes on for a moment */
        sleep(1);
    return 1;
}

/* A worker that starts for itself ends by the signal; this process goes on. */
static int end_worker_by(int number)
{
    int status = 0;
    if (fork() == 0)
        _exit(start() || end_by(number));
    wait(&status);
    return !WIFSIGNALED(status) || WTERMSIG(status) != number || work_and_stop();
}

/* A failed exec changes nothing for the recording. */
static int fail_to_exec(void)
{
    execl("/nowhere", "nowhere", (char *)NULL);
    return work_and_stop();
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    int number = argc > 2 ? atoi(argv[2]) : SIGTERM;
    if (strcmp(what, "early_signal") == 0)
        return end_by(number);
    int failed = start();
    if (strcmp(what, "signal") == 0)
        return failed || end_by(number);
    if (strcmp(what, "worker_signal") == 0)
        return failed || end_worker_by(number);
    if (strcmp(what, "exec") == 0)
        return failed + fail_to_exec();
    if (strcmp(what, "fork") == 0)
        failed += fork_workers();
    return failed + work_and_stop();
}
