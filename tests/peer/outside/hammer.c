/* SPDX-License-Identifier: Apache-2.0 */
/* A reader outside that looks, as often as it can but at most at 10 kHz, at threads that switch
 * contexts as fast as they can. Ids carry a checksum: half of a switch would be seen. It looks for
 * some seconds, and on until most looks met a context: where the threads hardly run, many looks in
 * a row meet the same moment.
 *
 *   hammer SECONDS THREADS */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <spanprof/spanprof.h>
#include "outside/outside.h"
#include "truth/foreign_tracer.h"

enum { THREADS_MAX = 8, SPANS = 64, PERIOD_NS = 100000, LEAST_READS = 1000 };

static double seconds = 5;
static int thread_count = 1;

/* --- the process that is looked at ------------------------------------------------------------ */

static spanprof_context contexts[THREADS_MAX][SPANS];

static void make_contexts(void)
{
    for (int thread = 0; thread < THREADS_MAX; thread++)
        for (int i = 0; i < SPANS; i++) {
            spanprof_context *context = &contexts[thread][i];
            for (int byte = 0; byte < 16; byte++)
                context->trace_id[byte] = (uint8_t)(1 + thread + 7 * i + 31 * byte);
            uint64_t span = foreign_checksum(context->trace_id);
            memcpy(context->span_id, &span, sizeof span);
            context->trace_flags = (uint8_t)(i & 3);
        }
}

/* Always under a span, but for the moment between the last detach and the next attach. */
static void switch_all_the_time(int thread)
{
    for (;;)
        for (int i = 0; i + 1 < SPANS; i++) {
            spanprof_scope outer = spanprof_context_attach(&contexts[thread][i]);
            spanprof_scope inner = spanprof_context_attach(&contexts[thread][i + 1]);
            spanprof_scope_detach(&inner);
            spanprof_scope_detach(&outer);
        }
}

static void tell(int out)
{
    pid_t tid = (pid_t)syscall(SYS_gettid);
    if (write(out, &tid, sizeof tid) != sizeof tid)
        _exit(1);
}

typedef struct worker {
    int number, out;
} worker;

static void *work(void *argument)
{
    const worker *self = argument;
    tell(self->out);
    switch_all_the_time(self->number);
    return NULL;
}

static void be_looked_at(int out)
{
    static worker workers[THREADS_MAX];
    pthread_t thread;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    make_contexts();
    for (int i = 0; i < thread_count; i++) {
        workers[i] = (worker){i, out};
        if (pthread_create(&thread, NULL, work, &workers[i]) != 0)
            _exit(1);
    }
    for (;;)
        pause();
}

/* --- the reader ------------------------------------------------------------------------------- */

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static bool is_whole(const sp_outside_context *context)
{
    uint64_t span;
    memcpy(&span, context->span_id, sizeof span);
    return span == foreign_checksum(context->trace_id);
}

typedef struct counts {
    uint64_t reads, whole, none, torn, slow;
} counts;

static counts look_for(sp_outside_process *process, const pid_t *tids)
{
    counts counts = {0};
    sp_outside_context context;
    uint64_t begin = now_ns(), end = begin + (uint64_t)(seconds * 1e9), next = begin;
    while (now_ns() < end || counts.reads < LEAST_READS || counts.whole <= counts.none) {
        uint64_t before_ns = now_ns();
        sp_outside_result result = sp_outside_thread_context(
            process, tids[counts.reads % (unsigned)thread_count], &context);
        if (result != SP_OUTSIDE_OK && result != SP_OUTSIDE_NONE)
            fail_msg("%s", sp_outside_problem(process));
        counts.reads++;
        counts.none += result == SP_OUTSIDE_NONE;
        counts.whole += result == SP_OUTSIDE_OK && is_whole(&context);
        counts.torn += result == SP_OUTSIDE_OK && !is_whole(&context);
        next += PERIOD_NS; /* who comes late makes up for it */
        uint64_t took_ns = now_ns() - before_ns;
        counts.slow += took_ns > PERIOD_NS;
        while (now_ns() < next)
            ;
    }
    double took = (double)(now_ns() - begin) / 1e9;
    print_message("%.1f s, %llu reads (%.0f a second; %llu took longer than 100 us): %llu valid, "
                  "%llu none, %llu torn\n",
                  took, (unsigned long long)counts.reads, (double)counts.reads / took,
                  (unsigned long long)counts.slow, (unsigned long long)counts.whole,
                  (unsigned long long)counts.none, (unsigned long long)counts.torn);
    return counts;
}

static void a_reader_outside_never_sees_half_of_a_switch(void **state)
{
    (void)state;
    int told[2];
    pid_t tids[THREADS_MAX];
    sp_outside_process *process;
    assert_int_equal(pipe(told), 0);
    pid_t child = fork();
    if (child == 0)
        be_looked_at(told[1]);
    for (int i = 0; i < thread_count; i++)
        assert_int_equal(read(told[0], &tids[i], sizeof tids[i]), sizeof tids[i]);
    assert_int_equal(sp_outside_open(child, &process), SP_OUTSIDE_OK);
    counts counts = look_for(process, tids);
    sp_outside_close(process);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    assert_int_equal(counts.torn, 0);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        seconds = atof(argv[1]);
    if (argc > 2)
        thread_count = atoi(argv[2]);
    if (seconds <= 0 || thread_count < 1 || thread_count > THREADS_MAX)
        return 2;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reader_outside_never_sees_half_of_a_switch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
