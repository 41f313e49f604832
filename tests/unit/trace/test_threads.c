/* SPDX-License-Identifier: Apache-2.0 */
/* Spans used by several threads. Also run under ThreadSanitizer; what the threads do is checked
 * once they have ended. */
#include "unit/trace/support.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4 };

static void run_threads(void *(*body)(void *), void *argument)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, body, argument), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
}

static void wait_for(pthread_barrier_t *barrier)
{
    pthread_barrier_wait(barrier);
}

/* --- one span, many threads ------------------------------------------------------------------- */

enum { ROUNDS = 300, CALLS_A_ROUND = 20 };

typedef struct shared_span {
    pthread_barrier_t barrier;
    spanprof_span span;
    spanprof_context context;
    _Atomic int next_thread;
    _Atomic uint64_t wrong_contexts;
} shared_span;

static void use_shared(shared_span *shared, int self)
{
    char key[16], value[64];
    for (int i = 0; i < CALLS_A_ROUND; i++) {
        snprintf(key, sizeof key, "key.%d", (i + self) % 6);
        snprintf(value, sizeof value, "value of thread %d, %0*d", self, i, 0);
        spanprof_span_set_string(shared->span, key, value);
        spanprof_span_set_string_array(shared->span, "array", (const char *const[]){key, value}, 2);
        spanprof_span_add_event(shared->span, value, NULL);
        spanprof_span_update_name(shared->span, key);
        spanprof_span_set_status(shared->span, SPANPROF_SPAN_STATUS_ERROR, value);
        spanprof_context context = spanprof_span_context(shared->span);
        if (is_valid(&context) && memcmp(&context, &shared->context, sizeof context) != 0)
            atomic_fetch_add(&shared->wrong_contexts, 1);
        spanprof_scope scope = spanprof_span_attach(shared->span);
        spanprof_scope_detach(&scope);
        if (self == 0 && i == CALLS_A_ROUND / 2)
            spanprof_span_end(shared->span);
    }
}

static void *hammer(void *argument)
{
    shared_span *shared = argument;
    int self = atomic_fetch_add(&shared->next_thread, 1);
    for (int round = 0; round < ROUNDS; round++) {
        if (self == 0) {
            shared->span = spanprof_span_start(NULL, "shared", NULL);
            shared->context = spanprof_span_context(shared->span);
        }
        wait_for(&shared->barrier);
        use_shared(shared, self);
        wait_for(&shared->barrier);
        if (self == 0 && round % 100 == 0)
            release_all();
    }
    return NULL;
}

static void check_shared(const sp_span_data *data)
{
    assert_in_range(data->attribute_count, 2, 7);
    for (uint32_t i = 0; i < data->attribute_count; i++) {
        const spanprof_attribute *attribute = &data->attributes[i];
        bool is_array = attribute->type == SPANPROF_ATTRIBUTE_STRING_ARRAY;
        const char *value =
            is_array ? attribute->value.string_array[1] : attribute->value.string_value;
        assert_memory_equal(value, "value of thread ", 16);
    }
    assert_in_range(data->event_count, 1, THREADS * CALLS_A_ROUND);
    for (uint32_t i = 0; i < data->event_count; i++)
        assert_memory_equal(data->events[i].name, "value of thread ", 16);
    assert_memory_equal(data->name, "key.", 4);
    assert_memory_equal(data->status_message, "value of thread ", 16);
}

static void threads_hammering_one_span_while_it_ends_find_it_whole_or_dead(void **state)
{
    (void)state;
    shared_span shared = {.next_thread = 0};
    assert_int_equal(pthread_barrier_init(&shared.barrier, NULL, THREADS), 0);
    uint64_t misuse = counters().misuse_dead_span;
    run_threads(hammer, &shared);
    pthread_barrier_destroy(&shared.barrier);
    assert_int_equal(shared.wrong_contexts, 0);
    assert_true(counters().misuse_dead_span > misuse);
    sp_tracer_counters c = counters();
    assert_int_equal(c.spans_started, ROUNDS);
    assert_int_equal(c.spans_ended, ROUNDS);
    sp_span_data *data;
    while (sp_tracer_take(&data, 1) == 1) {
        check_shared(data);
        sp_span_data_release(data);
    }
}

/* Two threads end one span at the same time: one of them does. */
static void *end_together(void *argument)
{
    shared_span *shared = argument;
    int self = atomic_fetch_add(&shared->next_thread, 1);
    for (int round = 0; round < ROUNDS; round++) {
        if (self == 0) {
            spanprof_span_options options = SPANPROF_SPAN_OPTIONS_INIT;
            options.parent = &shared->context;
            shared->span = spanprof_span_start(NULL, "shared", &options);
        }
        wait_for(&shared->barrier);
        spanprof_span_end(shared->span);
        wait_for(&shared->barrier);
    }
    return NULL;
}

static void span_that_all_threads_end_ends_once(void **state)
{
    (void)state;
    static const char *const parents[] = {
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"};
    for (int i = 0; i < 2; i++) {
        shared_span shared = {.next_thread = 0};
        assert_true(spanprof_context_extract(&shared.context, parents[i], NULL));
        assert_int_equal(pthread_barrier_init(&shared.barrier, NULL, THREADS), 0);
        uint64_t misuse = counters().misuse_dead_span;
        run_threads(end_together, &shared);
        pthread_barrier_destroy(&shared.barrier);
        assert_int_equal(counters().misuse_dead_span - misuse, ROUNDS * (THREADS - 1));
        assert_int_equal(release_all(), i == 0 ? ROUNDS : 0);
    }
    assert_int_equal(counters().spans_unsampled, ROUNDS);
}

/* --- spans that change threads ---------------------------------------------------------------- */

enum { HANDED = 400 };

static void *end_all(void *argument)
{
    spanprof_span *spans = argument;
    for (int i = 0; i < HANDED; i++)
        spanprof_span_end(spans[i]);
    return NULL;
}

static void spans_ended_on_threads_that_go_away_give_their_slots_back(void **state)
{
    (void)state;
    uint64_t highest = 0, first_highest = 0;
    for (int round = 0; round < 20; round++) {
        spanprof_span spans[HANDED];
        for (int i = 0; i < HANDED; i++) {
            spans[i] = spanprof_span_start(NULL, "handed over", NULL);
            highest = spans[i].slot > highest ? spans[i].slot : highest;
        }
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, end_all, spans), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_int_equal(release_all(), HANDED);
        if (round == 0)
            first_highest = highest;
    }
    /* No more slots than one round needs, and the batches that caches hold. */
    assert_in_range(highest, first_highest, first_highest + 2 * 4 * 32);
}

/* --- producers and the consumer --------------------------------------------------------------- */

enum { PRODUCED = 20000 };

static _Atomic bool stop_consumer;

static void *produce(void *argument)
{
    (void)argument;
    for (int i = 0; i < PRODUCED; i++) {
        spanprof_span span = spanprof_span_start(NULL, "produced", NULL);
        spanprof_span_set_int(span, "number", i);
        spanprof_span_end(span);
    }
    return NULL;
}

static void *consume(void *argument)
{
    size_t *taken = argument;
    sp_span_data *out[64];
    for (;;) {
        bool last = atomic_load(&stop_consumer);
        size_t count = sp_tracer_take(out, 64);
        for (size_t i = 0; i < count; i++) {
            if (out[i]->attribute_count != 1 || strcmp(out[i]->name, "produced") != 0)
                abort();
            sp_span_data_release(out[i]);
        }
        *taken += count;
        if (count == 0 && last)
            return NULL;
    }
}

static void books_balance_with_producers_and_a_consumer(void **state)
{
    (void)state;
    size_t taken = 0;
    pthread_t consumer;
    atomic_store(&stop_consumer, false);
    assert_int_equal(pthread_create(&consumer, NULL, consume, &taken), 0);
    run_threads(produce, NULL);
    atomic_store(&stop_consumer, true);
    assert_int_equal(pthread_join(consumer, NULL), 0);
    sp_tracer_counters c = counters();
    assert_int_equal(c.spans_started, THREADS * PRODUCED);
    assert_int_equal(c.spans_ended, THREADS * PRODUCED);
    assert_int_equal(c.spans_ended, taken + c.dropped_queue_full);
    assert_true(taken >= QUEUE);
}

static void *start_and_stop(void *argument)
{
    pthread_barrier_t *barrier = argument;
    wait_for(barrier);
    for (int i = 0; i < PRODUCED; i++)
        spanprof_span_end(spanprof_span_start(NULL, "s", NULL));
    return NULL;
}

static void stop_and_start_under_load_loses_no_slot(void **state)
{
    (void)state;
    pthread_barrier_t barrier;
    pthread_t threads[THREADS];
    assert_int_equal(pthread_barrier_init(&barrier, NULL, THREADS + 1), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, start_and_stop, &barrier), 0);
    wait_for(&barrier);
    for (int i = 0; i < 200; i++) {
        sp_tracer_stop();
        release_all();
        assert_int_equal(start_tracer(NULL), 0);
    }
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    pthread_barrier_destroy(&barrier);
    release_all();
    assert_int_equal(sp_tracer_queued(), 0);
    spanprof_span span = spanprof_span_start(NULL, "last", NULL);
    assert_in_range(span.slot, 1, 2 * (QUEUE + 2 * 64 * (THREADS + 1) + HANDED + 64));
    spanprof_span_end(span);
    assert_int_equal(release_all(), 1);
    sp_tracer_stop();
    start_tracer(NULL); /* fresh books for the teardown: spans that lived over a stop did not end in
                           this session */
}

/* --- fork in the middle of it all ------------------------------------------------------------- */

static _Atomic bool stop_load;

static void *load(void *argument)
{
    (void)argument;
    while (!atomic_load(&stop_load)) {
        spanprof_span span = spanprof_span_start(NULL, "load", NULL);
        spanprof_span_set_string(span, "key", "value");
        spanprof_span_end(span);
    }
    return NULL;
}

/* In the child of a process whose other threads were anywhere. A lock of theirs that it waited for
 * would be its end. */
static int use_tracer_in_child(void)
{
    alarm(300);
    sp_tracer_after_fork();
    if (start_tracer(NULL) != 0)
        return 1;
    for (int i = 0; i < 3 * QUEUE; i++)
        spanprof_span_end(spanprof_span_start(spanprof_tracer_get("child", "1"), "child", NULL));
    sp_tracer_counters c = counters();
    if (c.spans_started != 3 * QUEUE || c.spans_ended != 3 * QUEUE ||
        c.dropped_queue_full != 2 * QUEUE)
        return 2;
    return release_all() == QUEUE ? 0 : 3;
}

static void forked_child_of_busy_threads_can_trace(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    atomic_store(&stop_load, false);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, load, NULL), 0);
    for (int i = 0; i < 30; i++) {
        pid_t child = fork();
        if (child == 0)
            _exit(use_tracer_in_child());
        int status = -1;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
        release_all(); /* so that the threads do more than drop */
    }
    atomic_store(&stop_load, true);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    release_all();
}

/* --- cancellation ----------------------------------------------------------------------------- */

/* Its first span makes what a thread keeps, with calls that a cancellation may end. */
static void *cancel_before_the_first_span(void *started)
{
    pthread_cancel(pthread_self());
    spanprof_span span = spanprof_span_start(NULL, "first", NULL);
    *(bool *)started = true;
    spanprof_span_end(span);
    pthread_testcancel();
    return NULL;
}

static void cancelled_thread_starts_its_first_span_to_the_end(void **state)
{
    (void)state;
    bool started = false;
    void *result = NULL;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, cancel_before_the_first_span, &started), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_true(started);
    assert_ptr_equal(result, PTHREAD_CANCELED);
    release_all();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        traced(threads_hammering_one_span_while_it_ends_find_it_whole_or_dead),
        traced(span_that_all_threads_end_ends_once),
        traced(spans_ended_on_threads_that_go_away_give_their_slots_back),
        traced(books_balance_with_producers_and_a_consumer),
        traced(stop_and_start_under_load_loses_no_slot),
        traced(forked_child_of_busy_threads_can_trace),
        traced(cancelled_thread_starts_its_first_span_to_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
