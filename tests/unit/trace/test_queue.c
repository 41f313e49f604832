/* SPDX-License-Identifier: Apache-2.0 */
/* The life of the tracer: the queue of finished spans, its books, processors, stop and start, fork,
 * and its memory. */
#include "unit/trace/support.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/hex.h"
#include "trace/trace_internal.h"
#include "trace/random_id.h"

static int wakes;

static void count_wake(void *user)
{
    assert_ptr_equal(user, &wakes);
    wakes++;
}

static sp_tracer_config config_with_queue(uint32_t spans)
{
    return (sp_tracer_config){.queue_spans = spans,
                              .limits = SP_SPAN_LIMITS_INIT,
                              .record = true,
                              .wake_spans = 4,
                              .wake = count_wake,
                              .wake_user = &wakes};
}

static void start_with(sp_tracer_config config)
{
    assert_int_equal(sp_tracer_start(&config), SPANPROF_OK);
    wakes = 0;
}

static void run_spans(int count)
{
    for (int i = 0; i < count; i++) {
        char name[16];
        snprintf(name, sizeof name, "%d", i);
        spanprof_span_end(spanprof_span_start(NULL, name, NULL));
    }
}

static void queue_hands_out_the_oldest_first(void **state)
{
    (void)state;
    start_with(config_with_queue(100));
    sp_span_data *out[100];
    int next = 0;
    run_spans(10);
    assert_int_equal(sp_tracer_queued(), 10);
    assert_int_equal(sp_tracer_take(out, 3), 3);
    assert_int_equal(sp_tracer_queued(), 7);
    for (int i = 0; i < 3; i++)
        assert_int_equal(atoi(out[i]->name), next++);
    spanprof_span_end(spanprof_span_start(NULL, "10", NULL));
    assert_int_equal(sp_tracer_take(out + 3, 97), 8);
    for (int i = 3; i < 11; i++)
        assert_int_equal(atoi(out[i]->name), next++);
    for (int i = 0; i < 11; i++)
        sp_span_data_release(out[i]);
    sp_span_data_release(NULL);
    assert_int_equal(sp_tracer_take(out, 1), 0);
    sp_tracer_stop();
}

static void queue_full_drops_and_counts(void **state)
{
    (void)state;
    start_with(config_with_queue(5));
    run_spans(12);
    sp_tracer_counters c = counters();
    assert_int_equal(c.spans_started, 12);
    assert_int_equal(c.spans_ended, 12);
    assert_int_equal(c.dropped_queue_full, 7);
    assert_int_equal(sp_tracer_queued(), 5);
    sp_span_data *kept = take_one(); /* those that came first are kept */
    assert_string_equal(kept->name, "0");
    sp_span_data_release(kept);
    run_spans(2); /* room for one again */
    assert_int_equal(counters().dropped_queue_full, 8);
    assert_int_equal(release_all(), 5);
    sp_tracer_stop();
}

static void queue_wakes_each_time_it_rises_to_the_mark(void **state)
{
    (void)state;
    start_with(config_with_queue(100));
    run_spans(3);
    assert_int_equal(wakes, 0);
    run_spans(1);
    assert_int_equal(wakes, 1);
    run_spans(5);
    assert_int_equal(wakes, 1);
    release_all();
    run_spans(4);
    assert_int_equal(wakes, 2);
    release_all();
    sp_tracer_stop();
}

static void stop_keeps_the_queue_and_ends_live_spans_into_nothing(void **state)
{
    (void)state;
    start_with(config_with_queue(100));
    assert_int_equal(sp_tracer_start(&(sp_tracer_config){.queue_spans = 1}),
                     SPANPROF_ERROR_ALREADY_STARTED);
    run_spans(2);
    spanprof_span over_stop = spanprof_span_start(NULL, "over stop", NULL);
    spanprof_span over_both = spanprof_span_start(NULL, "over stop and start", NULL);
    sp_tracer_stop();
    sp_tracer_stop();
    uint64_t misuse = counters().misuse_dead_span;
    spanprof_span none = spanprof_span_start(NULL, "none", NULL);
    assert_int_equal(none.slot, 0);
    spanprof_span_set_int(none, "k", 1); /* no misuse: it is what start returned */
    spanprof_span_set_int(over_stop, "k", 1);
    spanprof_span_end(over_stop);
    spanprof_span_end(none);
    assert_int_equal(counters().misuse_dead_span, misuse);
    assert_int_equal(sp_tracer_queued(), 2);
    start_with(config_with_queue(100));
    assert_int_equal(counters().spans_started, 0);
    run_spans(1);
    spanprof_span_end(over_both);
    sp_tracer_counters c = counters();
    assert_int_equal(c.spans_started, 1);
    assert_int_equal(c.spans_ended, 1);
    assert_int_equal(release_all(), 3);
    spanprof_span_end(over_both);
    assert_int_equal(counters().misuse_dead_span, misuse + 1);
    sp_tracer_stop();
}

static void tracer_that_records_nothing_still_gives_contexts(void **state)
{
    (void)state;
    sp_tracer_config config = config_with_queue(100);
    config.record = false;
    config.mark_all = true;
    start_with(config);
    spanprof_span span = spanprof_span_start(NULL, "s", NULL);
    spanprof_context context = spanprof_span_context(span);
    assert_true(is_valid(&context));
    assert_int_equal(context.trace_flags & SPANPROF_TRACE_FLAG_SAMPLED,
                     SPANPROF_TRACE_FLAG_SAMPLED);
    spanprof_span_set_string(span, "k", "v");
    spanprof_span_end(span);
    sp_tracer_counters c = counters();
    assert_int_equal(c.spans_started, 1);
    assert_int_equal(c.spans_ended, 1);
    assert_int_equal(sp_tracer_queued(), 0);
    sp_tracer_stop();
}

/* --- correlation ------------------------------------------------------------------------------ */

/* Whether DATA is marked, and if so rightly. */
static bool is_marked(const sp_span_data *data)
{
    char id[17];
    sp_hex_encode(id, data->span_id, 8);
    for (uint32_t i = 0; i < data->attribute_count; i++)
        if (strcmp(data->attributes[i].key, "pyroscope.profile.id") == 0) {
            assert_int_equal(data->attributes[i].type, SPANPROF_ATTRIBUTE_STRING);
            assert_string_equal(data->attributes[i].value.string_value, id);
            return true;
        }
    return false;
}

/* A root with a child: child first, as they end. */
static void expect_marks(bool mark_roots, bool mark_all, bool child_marked, bool root_marked)
{
    sp_tracer_config config = config_with_queue(100);
    config.mark_roots = mark_roots;
    config.mark_all = mark_all;
    start_with(config);
    SPANPROF_SPAN("root") {
        SPANPROF_SPAN("child") {
        }
    }
    sp_span_data *data = take_one();
    assert_int_equal(is_marked(data), child_marked);
    sp_span_data_release(data);
    data = take_one();
    assert_int_equal(is_marked(data), root_marked);
    sp_span_data_release(data);
    sp_tracer_stop();
}

static void correlation_marks_what_it_is_told_to(void **state)
{
    (void)state;
    expect_marks(false, false, false, false);
    expect_marks(true, false, false, true);
    expect_marks(false, true, true, true);
    expect_marks(true, true, true, true);
}

/* --- memory ----------------------------------------------------------------------------------- */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HAS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HAS_SANITIZER 1
#endif
#endif

/* What the process has written to, in memory or swapped out. Not the resident size: that changes
 * when the kernel takes pages away, and statm is off by some pages for each core. Under a sanitizer
 * the memory is its own (freed memory is kept back, accesses are recorded), and says nothing. */
static size_t used_bytes(void)
{
#ifdef HAS_SANITIZER
    return 0;
#endif
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    char line[256];
    size_t anonymous = 0, swapped = 0;
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        sscanf(line, "Anonymous: %zu kB", &anonymous);
        sscanf(line, "Swap: %zu kB", &swapped);
    }
    fclose(file);
    assert_true(anonymous > 0);
    return (anonymous + swapped) * 1024;
}

/* Returns the highest slot that was used. */
static uint64_t many_spans(int count)
{
    uint64_t highest = 0;
    for (int i = 0; i < count; i++) {
        spanprof_span span = spanprof_span_start(NULL, "a span whose name is not short", NULL);
        highest = span.slot > highest ? span.slot : highest;
        for (int k = 0; k < 8; k++) { /* enough to spill out of the slot */
            char key[40];
            snprintf(key, sizeof key, "some.attribute.with.a.long.name.%d", k);
            spanprof_span_set_string(span, key, "a value, again");
        }
        spanprof_span_end(span);
        if (i % 500 == 0)
            release_all();
    }
    release_all();
    return highest;
}

#ifdef HAS_SANITIZER
enum { MANY_SPANS = 50000, MANY_UPDATES = 20000 }; /* it looks at each access, and not at memory */
#else
enum { MANY_SPANS = 1000000, MANY_UPDATES = 300000 };
#endif

static void million_spans_do_not_grow_the_memory(void **state)
{
    (void)state;
    start_with(config_with_queue(300)); /* less than what ends in between: some are dropped */
    uint64_t highest = many_spans(5000);
    size_t before = used_bytes();
    assert_int_equal(many_spans(MANY_SPANS), highest);
    assert_in_range(used_bytes(), 0, before + (1u << 20));
    sp_tracer_counters c = counters();
    assert_int_equal(c.spans_started, MANY_SPANS + 5000);
    assert_int_equal(c.spans_ended, MANY_SPANS + 5000);
    assert_true(c.dropped_queue_full > 0);
    sp_tracer_stop();
}

static void one_span_updated_for_ever_takes_bounded_memory(void **state)
{
    (void)state;
    start_with(config_with_queue(10));
    spanprof_span span = spanprof_span_start(NULL, "progress", NULL);
    spanprof_span_set_string(span, "percent", "100 %");
    size_t before = used_bytes();
    char text[64];
    for (int i = 0; i < MANY_UPDATES; i++) {
        snprintf(text, sizeof text, "%.*s", i % 60,
                 "............................................................");
        spanprof_span_set_string(span, "percent", text);
        spanprof_span_set_status(span, SPANPROF_SPAN_STATUS_ERROR, text);
    }
    assert_in_range(used_bytes(), 0, before + (1u << 20));
    spanprof_span_end(span);
    assert_int_equal(release_all(), 1);
    sp_tracer_stop();
}

/* In a child, for the limit cannot be taken back. */
static int start_spans_until_memory_is_short(void)
{
    struct rlimit limit;
    size_t pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%zu", &pages) != 1 || getrlimit(RLIMIT_AS, &limit) != 0)
        return 1;
    fclose(file);
    limit.rlim_cur = pages * (size_t)sysconf(_SC_PAGESIZE) + (4u << 20);
    char *big = calloc(1, 3u << 20);
    if (!big || setrlimit(RLIMIT_AS, &limit) != 0)
        return 2;
    memset(big, 'x', (3u << 20) - 1);
    enum { MANY = 1000000 };
    uint64_t started = 0;
    spanprof_span first = spanprof_span_start(NULL, "first", NULL), span = first;
    for (; span.slot && started < MANY; started++)
        span = spanprof_span_start(NULL, "s", NULL);
    if (started == 0 || started == MANY || counters().dropped_memory != 1 ||
        counters().spans_started != started)
        return 3;
    spanprof_span_set_string(first, "big", big);
    spanprof_span_set_string(first, big, "big");
    spanprof_span_set_string_array(first, "big", (const char *const[]){big}, 1);
    spanprof_span_set_int(first, "small", 1);
    spanprof_span_add_event(first, big, NULL);
    spanprof_span_record_error(first, "small", big, NULL, NULL);
    spanprof_span_update_name(first, big);
    if (spanprof_tracer_get_with(&(spanprof_tracer_options){
            .struct_size = sizeof(spanprof_tracer_options), .schema_url = big}))
        return 6;
    spanprof_span_end(first);
    sp_span_data *data = NULL;
    if (sp_tracer_take(&data, 1) != 1 || data->dropped_attributes_count != 3 ||
        data->attribute_count != 1 || data->dropped_events_count != 1 || data->event_count != 1 ||
        data->events[0].attribute_count != 1 || data->events[0].dropped_attributes_count != 1 ||
        strcmp(data->name, "first") != 0)
        return 4;
    sp_span_data_release(data); /* and there is a slot again */
    return spanprof_span_start(NULL, "again", NULL).slot ? 0 : 5;
}

static void spans_without_memory_are_counted_and_harmless(void **state)
{
    (void)state;
#ifdef HAS_SANITIZER
    print_message("skipped: a sanitizer needs the address space that this test takes away\n");
    skip();
#endif
    start_with(config_with_queue(10));
    pid_t child = fork();
    if (child == 0)
        _exit(start_spans_until_memory_is_short());
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    sp_tracer_stop();
}

/* --- fork ------------------------------------------------------------------------------------- */

enum {
    CHILD_GOOD = 0,
    CHILD_QUEUE = 1,
    CHILD_RUNS = 2,
    CHILD_HANDLE = 3,
    CHILD_START = 4,
    CHILD_ID = 5,
    CHILD_COUNTS = 6,
    CHILD_SPANS = 64
};

static int check_child(spanprof_span of_parent, const uint8_t *next_id_of_parent)
{
    sp_tracer_after_fork();
    if (sp_tracer_queued() != 0)
        return CHILD_QUEUE;
    if (spanprof_span_start(NULL, "s", NULL).slot != 0)
        return CHILD_RUNS;
    if (counters().spans_started != 0)
        return CHILD_COUNTS;
    sp_tracer_config config = config_with_queue(CHILD_SPANS);
    if (sp_tracer_start(&config) != SPANPROF_OK)
        return CHILD_START;
    spanprof_span spans[CHILD_SPANS]; /* one of them is in the slot where the parent's had been */
    for (int i = 0; i < CHILD_SPANS; i++)
        spans[i] = spanprof_span_start(NULL, "child", NULL);
    spanprof_span_set_int(of_parent, "k", 1);
    spanprof_span_end(of_parent);
    spanprof_context first = spanprof_span_context(spans[0]);
    for (int i = 0; i < CHILD_SPANS; i++)
        spanprof_span_end(spans[i]);
    sp_span_data *data = NULL;
    for (int i = 0; i < CHILD_SPANS; i++) {
        if (sp_tracer_take(&data, 1) != 1 || data->attribute_count != 0 ||
            counters().misuse_dead_span != 2)
            return CHILD_HANDLE;
        sp_span_data_release(data);
    }
    return memcmp(first.span_id, next_id_of_parent, 8) == 0 ? CHILD_ID : CHILD_GOOD;
}

static void forked_child_starts_with_nothing_of_the_parent(void **state)
{
    (void)state;
    start_with(config_with_queue(10));
    run_spans(3);
    spanprof_span live = spanprof_span_start(NULL, "live", NULL);
    int pipes[2];
    assert_int_equal(pipe(pipes), 0);
    /* As if other threads were in the middle of something. */
    pthread_mutex_lock(&sp_record_pool.lock.mutex);
    pthread_mutex_lock(&sp_light_pool.lock.mutex);
    pid_t child = fork();
    if (child == 0) {
        alarm(300);
        uint8_t id[8];
        _exit(read(pipes[0], id, sizeof id) == (ssize_t)sizeof id ? check_child(live, id) : 99);
    }
    pthread_mutex_unlock(&sp_light_pool.lock.mutex);
    pthread_mutex_unlock(&sp_record_pool.lock.mutex);
    uint8_t id[8]; /* the very next of the generator, which the child has a copy of */
    sp_random_id(id, sizeof id);
    assert_int_equal(write(pipes[1], id, sizeof id), sizeof id);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), CHILD_GOOD);
    close(pipes[0]);
    close(pipes[1]);
    spanprof_span_end(live); /* the parent goes on */
    assert_int_equal(release_all(), 4);
    sp_tracer_stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        /* First, while the slots of the parent are in their first generation, as those of the child
           will be. */
        cmocka_unit_test(forked_child_starts_with_nothing_of_the_parent),
        cmocka_unit_test(queue_hands_out_the_oldest_first),
        cmocka_unit_test(queue_full_drops_and_counts),
        cmocka_unit_test(queue_wakes_each_time_it_rises_to_the_mark),
        cmocka_unit_test(stop_keeps_the_queue_and_ends_live_spans_into_nothing),
        cmocka_unit_test(tracer_that_records_nothing_still_gives_contexts),
        cmocka_unit_test(correlation_marks_what_it_is_told_to),
        cmocka_unit_test(million_spans_do_not_grow_the_memory),
        cmocka_unit_test(one_span_updated_for_ever_takes_bounded_memory),
        cmocka_unit_test(spans_without_memory_are_counted_and_harmless),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
