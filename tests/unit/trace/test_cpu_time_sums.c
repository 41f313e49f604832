/* SPDX-License-Identifier: Apache-2.0 */
/* spanprof.cpu_time_ns against the real clocks: what a local root says, and what its thread spent
 * outside of it, is what the thread's own CPU clock says, but for what it costs to count. The sum
 * is never more. In the median round it may be a tenth less: a round of some 500 us of work has six
 * reads of the clock that are in neither, some 4 us, and 20 us under sanitizers. (The median,
 * because a round that the machine beneath a virtual one interrupts just there has milliseconds in
 * it.)
 *
 * It measures (verdict.h). A quarter less is broken: a round is three equal pieces of work, and one
 * of them is in no account. */
#include "unit/trace/support.h"

#include <pthread.h>
#include <stdlib.h>

#include "verdict.h"

enum { THREADS = 2, ROUNDS = 100, PIECE = 100000 };

/* A round: what its thread spent outside of the request, and in all; then what the root says. */
typedef struct round_books {
    uint64_t outside_ns, total_ns;
    int64_t root_ns;
} round_books;

static round_books books[THREADS * ROUNDS];

/* The same CPU time each time, however long it takes where the core is shared. */
static void work(void)
{
    for (volatile int i = 0; i < PIECE; i++)
        continue;
}

static void run_request(int number)
{
    spanprof_span root = spanprof_span_start(NULL, "root", NULL);
    spanprof_span_set_int(root, "number", number);
    spanprof_scope of_root = spanprof_span_attach(root);
    work();
    spanprof_span child = spanprof_span_start(NULL, "child", NULL);
    spanprof_scope of_child = spanprof_span_attach(child);
    work();
    spanprof_scope_detach(&of_child);
    spanprof_span_end(child);
    spanprof_scope_detach(&of_root);
    spanprof_span_end(root);
}

static void *keep_books(void *argument)
{
    round_books *rounds = argument;
    int first = (int)(rounds - books);
    uint64_t begin = sp_clock_own_cpu_ns();
    for (int i = 0; i < ROUNDS; i++) {
        work();
        rounds[i].outside_ns = sp_clock_own_cpu_ns() - begin;
        run_request(first + i);
        uint64_t end = sp_clock_own_cpu_ns();
        rounds[i].total_ns = end - begin;
        begin = end;
    }
    return NULL;
}

static int64_t attribute(const sp_span_data *data, const char *key)
{
    for (uint32_t i = 0; i < data->attribute_count; i++)
        if (strcmp(data->attributes[i].key, key) == 0)
            return data->attributes[i].value.int_value;
    return -1;
}

static void take_roots(void)
{
    sp_span_data *data;
    for (; sp_tracer_take(&data, 1) == 1; sp_span_data_release(data))
        if (strcmp(data->name, "root") == 0)
            books[attribute(data, "number")].root_ns = attribute(data, "spanprof.cpu_time_ns");
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The share of the median round that nobody accounts for. */
static double check_books(void)
{
    static double missing[THREADS * ROUNDS];
    for (int i = 0; i < THREADS * ROUNDS; i++) {
        const round_books *round = &books[i];
        assert_true(round->root_ns > 0);
        uint64_t accounted = round->outside_ns + (uint64_t)round->root_ns;
        assert_true(accounted <= round->total_ns);
        missing[i] = 1 - (double)accounted / (double)round->total_ns;
    }
    qsort(missing, THREADS * ROUNDS, sizeof missing[0], compare);
    return missing[THREADS * ROUNDS / 2];
}

static void roots_and_the_time_outside_are_the_threads_clock(void **state)
{
    (void)state;
    static const sp_cpu_time modes[] = {SP_CPU_TIME_ROOT, SP_CPU_TIME_ALL};
    for (size_t mode = 0; mode < SP_ARRAY_LENGTH(modes); mode++) {
        sp_tracer_config config = {.queue_spans = QUEUE,
                                   .limits = SP_SPAN_LIMITS_INIT,
                                   .record = true,
                                   .cpu_time = modes[mode]};
        pthread_t threads[THREADS];
        assert_int_equal(sp_tracer_start(&config), SPANPROF_OK);
        for (int i = 0; i < THREADS; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, keep_books, &books[i * ROUNDS]), 0);
        for (int i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
        take_roots();
        sp_tracer_stop();
        double missing = check_books();
        print_message("%s: %.2f %% in no account\n", mode ? "all" : "root", 100 * missing);
        assert_true(missing < 0.25);
        if (missing >= 0.1)
            verdict_unsure("%.2f %% are in no account, less than 10 %% are right", 100 * missing);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(roots_and_the_time_outside_are_the_threads_clock),
    };
    return verdict_code(cmocka_run_group_tests(tests, NULL, NULL));
}
