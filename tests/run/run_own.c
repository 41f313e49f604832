/* SPDX-License-Identifier: Apache-2.0 */
/* A program that uses spanprof itself: run_own [fork]. */
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

int main(int argc, char **argv)
{
    (void)argv;
    int failed = start();
    if (argc > 1)
        failed += fork_workers();
    return failed + work_and_stop();
}
