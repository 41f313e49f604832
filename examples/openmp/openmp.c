/* SPDX-License-Identifier: Apache-2.0 */
/* OpenMP: a parallel region's threads do not have the active span of the thread that opened the
 * region. What carries the context: a variable, which is set outside the region and attached inside
 * by each thread. A task may run later, on any thread of the team, so each task has a copy of its
 * span.
 *
 *     ./openmp [REQUESTS] */
#include <spanprof/spanprof.h>

#include <stdio.h>
#include <stdlib.h>

#include "work.h"

enum { PARTS = 16 };

static void compute_in_parallel(unsigned number)
{
    spanprof_context context = spanprof_context_current();
#pragma omp parallel num_threads(2)
    {
        spanprof_scope scope = spanprof_context_attach(&context);
#pragma omp for schedule(dynamic) nowait
        for (int part = 0; part < PARTS; part++)
            work(number);
        /* Detach before the barrier at the end of the region: a thread that waits there, and may
         * spin, does not work for the request. */
        spanprof_scope_detach(&scope);
    }
}

static void answer(unsigned number)
{
    spanprof_span span = spanprof_span_start(NULL, "request", NULL);
    spanprof_span_set_int(span, "request.number", number);
    spanprof_scope scope = spanprof_span_attach(span);
    compute_in_parallel(number);
    spanprof_scope_detach(&scope);
    spanprof_span_end(span);
}

/* One thread takes the requests, and all threads of the team answer them. */
static void answer_as_tasks(unsigned first, unsigned count)
{
#pragma omp parallel num_threads(2)
#pragma omp single
    for (unsigned number = first; number < first + count; number++) {
        spanprof_span span = spanprof_span_start(NULL, "task", NULL);
        spanprof_span_set_int(span, "request.number", number);
#pragma omp task firstprivate(span, number)
        {
            spanprof_scope scope = spanprof_span_attach(span);
            work(number);
            spanprof_scope_detach(&scope);
            spanprof_span_end(span);
        }
    }
}

int main(int argc, char **argv)
{
    unsigned requests = argc > 1 ? (unsigned)atoi(argv[1]) : 64;
    if (spanprof_start(NULL, NULL) != SPANPROF_OK)
        fprintf(stderr, "openmp: running without spans\n");
    for (unsigned number = 0; number < requests; number++) {
        answer(number);
        answer_as_tasks(number, PARTS);
    }
    spanprof_stop(UINT64_C(5000000000));
    return 0;
}
