/* SPDX-License-Identifier: Apache-2.0 */
/* Registered span processors: what they are told, in which order, and what their callbacks may do.
 */
#include "unit/trace/support.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/log.h"
#include "trace/processors.h"
#include "trace/record.h"

static int start_told(void **state)
{
    int failed = start_tracer(state);
    sp_registered_open();
    return failed;
}

static int stop_told(void **state)
{
    bool closed = sp_registered_close(UINT64_MAX) == SPANPROF_OK;
    return closed ? stop_tracer(state) : -1;
}

#define told(test) cmocka_unit_test_setup_teardown(test, start_told, stop_told)

static void add(spanprof_processor processor)
{
    processor.struct_size = sizeof processor;
    assert_int_equal(spanprof_processor_add(&processor), SPANPROF_OK);
}

static void run_span(const char *name)
{
    spanprof_span_end(spanprof_span_start(NULL, name, NULL));
}

/* --- a processor that writes down what it is told --------------------------------------------- */

static char diary[1000];

static int begin_diary(void **state)
{
    diary[0] = 0;
    return start_told(state);
}

#define noted(test) cmocka_unit_test_setup_teardown(test, begin_diary, stop_told)

static void note(const char *who, char what, const char *span)
{
    snprintf(diary + strlen(diary), sizeof diary - strlen(diary), "%s%c%s ", who, what, span);
}

static void note_start(void *who, spanprof_span span, const spanprof_span_view *view,
                       const spanprof_context *parent)
{
    (void)span, (void)parent;
    note(who, '+', view->name);
}

static void note_end(void *who, const spanprof_span_view *view)
{
    note(who, '-', view->name);
}

static spanprof_status note_flush(void *who, uint64_t timeout_ns)
{
    (void)timeout_ns;
    note(who, '!', "");
    return SPANPROF_OK;
}

static spanprof_status note_shutdown(void *who, uint64_t timeout_ns)
{
    (void)timeout_ns;
    note(who, '.', "");
    return SPANPROF_OK;
}

static spanprof_processor notes(char *who)
{
    return (spanprof_processor){.user = who,
                                .on_start = note_start,
                                .on_end = note_end,
                                .flush = note_flush,
                                .shutdown = note_shutdown};
}

static void processors_are_told_in_the_order_of_registration(void **state)
{
    (void)state;
    add(notes("a"));
    add((spanprof_processor){.user = "b", .on_start = note_start});
    add((spanprof_processor){.user = "c", .on_end = note_end});
    add((spanprof_processor){.user = "none"});
    add(notes("d"));
    SPANPROF_SPAN("1") {
        run_span("2");
    }
    assert_string_equal(diary, "a+1 b+1 d+1 a+2 b+2 d+2 a-2 c-2 d-2 a-1 c-1 d-1 ");
    assert_int_equal(sp_registered_flush(UINT64_MAX), SPANPROF_OK);
    assert_string_equal(diary + strlen(diary) - 10, "d-1 a! d! ");
    assert_int_equal(sp_registered_close(UINT64_MAX), SPANPROF_OK);
    assert_string_equal(diary + strlen(diary) - 6, "a. d. ");
    assert_int_equal(sp_registered_flush(UINT64_MAX), SPANPROF_OK);
    assert_int_equal(sp_registered_close(UINT64_MAX), SPANPROF_OK);
    run_span("3");
    assert_string_equal(diary + strlen(diary) - 6, "a. d. ");
    assert_int_equal(release_all(), 3);
}

static void processor_added_twice_is_told_twice(void **state)
{
    (void)state;
    add(notes("a"));
    add(notes("a"));
    run_span("1");
    assert_string_equal(diary, "a+1 a+1 a-1 a-1 ");
    assert_int_equal(release_all(), 1);
}

static void processor_added_while_a_span_lives_is_told_of_its_end(void **state)
{
    (void)state;
    spanprof_span span = spanprof_span_start(NULL, "1", NULL);
    add(notes("a"));
    run_span("2");
    spanprof_span_end(span);
    assert_string_equal(diary, "a+2 a-2 a-1 ");
    assert_int_equal(release_all(), 2);
}

static void processor_waits_for_the_start(void **state)
{
    (void)state;
    assert_int_equal(sp_registered_close(UINT64_MAX), SPANPROF_OK);
    add(notes("a"));
    run_span("1");
    assert_int_equal(sp_registered_flush(UINT64_MAX), SPANPROF_OK);
    assert_int_equal(sp_registered_close(UINT64_MAX), SPANPROF_OK); /* nothing was open */
    assert_string_equal(diary, "");
    sp_registered_open();
    run_span("2");
    assert_string_equal(diary, "a+2 a-2 ");
    assert_int_equal(release_all(), 2);
}

static void spans_of_a_stopped_session_end_untold(void **state)
{
    (void)state;
    add(notes("a"));
    spanprof_span over_stop = spanprof_span_start(NULL, "1", NULL);
    spanprof_span over_both = spanprof_span_start(NULL, "2", NULL);
    assert_int_equal(sp_registered_close(UINT64_MAX), SPANPROF_OK);
    sp_tracer_stop();
    spanprof_span_end(over_stop);
    assert_int_equal(start_told(state), 0);
    add(notes("b"));
    spanprof_span_end(over_both);
    assert_string_equal(diary, "a+1 a+2 a. ");
}

static void unsampled_spans_are_not_told(void **state)
{
    (void)state;
    add(notes("a"));
    spanprof_context parent = {.trace_id = {1}, .span_id = {1}, .remote = 1};
    spanprof_span_options options = SPANPROF_SPAN_OPTIONS_INIT;
    options.parent = &parent;
    spanprof_span_end(spanprof_span_start(NULL, "1", &options));
    assert_string_equal(diary, "");
}

/* --- structs of other versions ---------------------------------------------------------------- */

static void processor_of_bad_size_is_refused(void **state)
{
    (void)state;
    struct {
        spanprof_processor known;
        uint64_t unknown;
    } newer = {.known = notes("a")};
    assert_int_equal(spanprof_processor_add(NULL), SPANPROF_ERROR_INVALID_ARGUMENT);
    assert_int_equal(spanprof_processor_add(&newer.known), SPANPROF_ERROR_INVALID_ARGUMENT);
    newer.known.struct_size = sizeof newer;
    newer.unknown = 1;
    assert_int_equal(spanprof_processor_add(&newer.known), SPANPROF_ERROR_INVALID_ARGUMENT);
    newer.known.struct_size = sizeof newer.known;
    newer.known.reserved = 1;
    assert_int_equal(spanprof_processor_add(&newer.known), SPANPROF_ERROR_INVALID_ARGUMENT);
    run_span("1");
    assert_string_equal(diary, "");
    newer.known.reserved = 0;
    newer.unknown = 0;
    newer.known.struct_size = sizeof newer;
    assert_int_equal(spanprof_processor_add(&newer.known), SPANPROF_OK);
    newer.known.user = "b";
    newer.known.struct_size = offsetof(spanprof_processor, on_end); /* an older caller's */
    assert_int_equal(spanprof_processor_add(&newer.known), SPANPROF_OK);
    run_span("2");
    assert_string_equal(diary, "a+2 b+2 a-2 ");
    assert_int_equal(release_all(), 2);
}

/* --- what a start shows, and what may be written ---------------------------------------------- */

static spanprof_context seen_parent;

static void check_options_and_write(void *user, spanprof_span span, const spanprof_span_view *view,
                                    const spanprof_context *parent)
{
    int *starts = user;
    spanprof_context own = spanprof_span_context(span);
    assert_memory_equal(&own, &view->context, sizeof own);
    assert_int_equal(view->struct_size, sizeof *view);
    assert_int_equal(view->kind, SPANPROF_SPAN_KIND_CLIENT);
    assert_int_equal(view->start_time_ns, 1000);
    assert_int_equal(view->end_time_ns, 0);
    assert_string_equal(view->scope->name, "lib");
    assert_int_equal(view->attribute_count, *starts == 0 ? 1 : 3);
    assert_string_equal(view->attributes[0].key, "given");
    assert_int_equal(view->link_count, 1);
    assert_memory_equal(view->links[0].span_id, ((uint8_t[8]){7}), 8);
    seen_parent = *parent;
    if (*starts == 1) {
        assert_string_equal(view->attributes[1].key, "written");
        assert_string_equal(view->attributes[2].key, "more");
        assert_string_equal(view->name, "renamed");
        assert_int_equal(view->event_count, 1);
    }
    assert_true(spanprof_span_is_recording(span));
    spanprof_span_set_int(span, "written", ++*starts);
    spanprof_span_set_string(span, "more", "text");
    spanprof_span_update_name(span, "renamed");
    spanprof_span_add_event(span, "event", NULL);
    spanprof_span_set_status(span, SPANPROF_SPAN_STATUS_ERROR, "why");
}

static spanprof_span start_with_everything(const spanprof_context *parent)
{
    static const spanprof_attribute given = {.key = "given", .value = {.string_value = "yes"}};
    static const spanprof_context other = {.trace_id = {6}, .span_id = {7}, .trace_flags = 1};
    static const spanprof_link link = {
        .context = &other, .attributes = &given, .attribute_count = 1};
    spanprof_span_options options = SPANPROF_SPAN_OPTIONS_INIT;
    options.parent = parent;
    options.kind = SPANPROF_SPAN_KIND_CLIENT;
    options.start_time_ns = 1000;
    options.attributes = &given;
    options.attribute_count = 1;
    options.links = &link;
    options.link_count = 1;
    return spanprof_span_start(spanprof_tracer_get("lib", "1"), "s", &options);
}

static void start_shows_the_options_and_takes_writes(void **state)
{
    (void)state;
    int starts = 0;
    add((spanprof_processor){.user = &starts, .on_start = check_options_and_write});
    add((spanprof_processor){.user = &starts, .on_start = check_options_and_write});
    spanprof_context parent = {.trace_id = {9}, .span_id = {8}, .trace_flags = 1, .remote = 1};
    spanprof_span span = start_with_everything(&parent);
    assert_int_equal(starts, 2);
    assert_memory_equal(&seen_parent, &parent, sizeof parent);
    spanprof_span_end_at(span, 2000);
    sp_span_data *data = take_one();
    assert_int_equal(data->attribute_count, 3);
    assert_int_equal(data->attributes[1].value.int_value, 2);
    assert_string_equal(data->name, "renamed");
    assert_int_equal(data->event_count, 2);
    assert_string_equal(data->status_message, "why");
    sp_span_data_release(data);
}

static void root_has_a_parent_without_ids(void **state)
{
    (void)state;
    int starts = 0;
    add((spanprof_processor){.user = &starts, .on_start = check_options_and_write});
    spanprof_context parent = {.span_id = {8}, .trace_flags = 1, .carrier = {.slot = 1}};
    spanprof_span_end_at(start_with_everything(&parent), 2000);
    assert_memory_equal(seen_parent.span_id, zeroes, 8);
    assert_int_equal(seen_parent.trace_flags, 0);
    assert_int_equal(seen_parent.carrier.slot, 1);
    assert_int_equal(release_all(), 1);
}

/* --- what an end shows ------------------------------------------------------------------------ */

static spanprof_span_view seen;

/* What VIEW points at stays as it is while the test holds the record. */
static void keep_view(void *user, const spanprof_span_view *view)
{
    (void)user;
    seen = *view;
}

static void end_shows_what_is_exported(void **state)
{
    (void)state;
    add((spanprof_processor){.on_end = keep_view});
    spanprof_context parent = {.trace_id = {9}, .span_id = {8}, .trace_flags = 1, .remote = 1};
    spanprof_span span = start_with_everything(&parent);
    spanprof_context context = spanprof_span_context(span);
    spanprof_span_add_event(span, "event", NULL);
    spanprof_span_set_status(span, SPANPROF_SPAN_STATUS_ERROR, "why");
    for (int i = 0; i < ATTRIBUTE_LIMIT + 3; i++) {
        char key[16];
        snprintf(key, sizeof key, "k%d", i);
        spanprof_span_set_int(span, key, i);
    }
    spanprof_span_end_at(span, 2000);
    sp_span_data *data = take_one();
    assert_int_equal(seen.struct_size, sizeof seen);
    assert_memory_equal(&seen.context, &context, sizeof context);
    assert_memory_equal(seen.context.trace_id, data->trace_id, 16);
    assert_memory_equal(seen.context.span_id, data->span_id, 8);
    assert_memory_equal(seen.parent_span_id, data->parent_span_id, 8);
    assert_int_equal(seen.flags, data->flags);
    assert_int_equal(seen.kind, data->kind);
    assert_int_equal(seen.status, data->status);
    assert_int_equal(seen.start_time_ns, data->start_time_ns);
    assert_int_equal(seen.end_time_ns, data->end_time_ns);
    assert_ptr_equal(seen.name, data->name);
    assert_ptr_equal(seen.status_message, data->status_message);
    assert_ptr_equal(seen.trace_state, data->trace_state);
    assert_ptr_equal(seen.scope, data->scope);
    assert_ptr_equal(seen.attributes, data->attributes);
    assert_ptr_equal(seen.events, data->events);
    assert_ptr_equal(seen.links, data->links);
    assert_int_equal(seen.attribute_count, ATTRIBUTE_LIMIT);
    assert_int_equal(seen.event_count, 1);
    assert_int_equal(seen.link_count, 1);
    assert_int_equal(seen.dropped_attributes_count, 4);
    assert_int_equal(seen.dropped_events_count, data->dropped_events_count);
    assert_int_equal(seen.dropped_links_count, data->dropped_links_count);
    sp_span_data_release(data);
}

/* --- correlation, and spans for processors only ----------------------------------------------- */

static void restart(sp_tracer_config config)
{
    sp_tracer_stop();
    config.queue_spans = QUEUE;
    assert_int_equal(sp_tracer_start(&config), SPANPROF_OK);
}

static const char *profile_id(const spanprof_span_view *view)
{
    for (uint32_t i = 0; i < view->attribute_count; i++)
        if (strcmp(view->attributes[i].key, SP_PROFILE_ID_KEY) == 0)
            return view->attributes[i].value.string_value;
    return "";
}

static int marks_seen;

static void expect_mark(void *user, spanprof_span span, const spanprof_span_view *view,
                        const spanprof_context *parent)
{
    (void)user, (void)span, (void)parent;
    assert_int_equal(strlen(profile_id(view)), 16);
    marks_seen++;
}

static void mark_is_there_before_and_whatever_the_limits(void **state)
{
    (void)state;
    restart((sp_tracer_config){
        .limits = {.attributes = 1, .value_length = 3}, .record = true, .mark_roots = true});
    marks_seen = 0;
    add((spanprof_processor){.on_start = expect_mark, .on_end = keep_view});
    spanprof_span_end_at(start_with_everything(&(spanprof_context){0}), 2000);
    assert_int_equal(marks_seen, 1);
    sp_span_data *data = take_one();
    assert_int_equal(strlen(profile_id(&seen)), 16);
    assert_int_equal(data->attribute_count, 2);
    assert_int_equal(data->dropped_attributes_count, 0);
    sp_span_data_release(data);
}

static void spans_record_for_a_processor_when_nobody_exports(void **state)
{
    (void)state;
    restart((sp_tracer_config){.limits = SP_SPAN_LIMITS_INIT, .record = false});
    spanprof_span span = spanprof_span_start(NULL, "1", NULL);
    assert_false(spanprof_span_is_recording(span));
    spanprof_span_end(span);
    add(notes("a"));
    span = spanprof_span_start(NULL, "2", NULL);
    assert_true(spanprof_span_is_recording(span));
    spanprof_span_end(span);
    assert_string_equal(diary, "a+2 a-2 ");
    assert_int_equal(sp_tracer_queued(), 0);
    assert_int_equal(counters().not_exported, 1);
    assert_int_equal(counters().spans_ended, 2);
}

static spanprof_sampling_decision record_only(const spanprof_sampling_request *request,
                                              spanprof_sampling_result *result, void *user)
{
    (void)request, (void)result, (void)user;
    return SPANPROF_SAMPLING_RECORD_ONLY;
}

static void unsampled_records_are_told_and_not_exported(void **state)
{
    (void)state;
    const spanprof_sampler sampler = {
        .struct_size = sizeof sampler, .kind = SPANPROF_SAMPLER_CALLBACK, .function = record_only};
    restart((sp_tracer_config){
        .queue_spans = QUEUE, .limits = SP_SPAN_LIMITS_INIT, .sampler = &sampler, .record = true});
    add(notes("a"));
    run_span("1");
    assert_string_equal(diary, "a+1 a-1 ");
    assert_int_equal(sp_tracer_queued(), 0);
    assert_int_equal(counters().spans_unsampled, 1);
    assert_int_equal(counters().spans_ended, 0);
}

/* --- callbacks that use the tracer ------------------------------------------------------------ */

static spanprof_span ended_inside;

static void start_and_end_spans(void *who, spanprof_span span, const spanprof_span_view *view,
                                const spanprof_context *parent)
{
    note_start(who, span, view, parent);
    spanprof_span own = spanprof_span_start(NULL, "own", NULL);
    spanprof_scope scope = spanprof_span_attach(own);
    spanprof_span_end(own);
    spanprof_scope_detach(&scope);
    if (ended_inside.slot)
        spanprof_span_end(ended_inside); /* told, from inside */
    ended_inside = (spanprof_span){0};
    errno = ENOTTY;
}

static void start_span_at_end(void *who, const spanprof_span_view *view)
{
    note_end(who, view);
    run_span("own");
    assert_int_equal(spanprof_processor_add(NULL), SPANPROF_ERROR_INVALID_ARGUMENT);
    assert_true(sp_registered_calling());
    errno = ENOTTY;
}

static void callbacks_may_start_and_end_spans(void **state)
{
    (void)state;
    add((spanprof_processor){
        .user = "a", .on_start = start_and_end_spans, .on_end = start_span_at_end});
    add(notes("b"));
    uint64_t misuse = counters().misuse_dead_span;
    ended_inside = spanprof_span_start(NULL, "1", NULL);
    errno = 0;
    run_span("2");
    assert_int_equal(errno, 0);
    assert_string_equal(diary, "a+1 b+1 a+2 a-1 b-1 b+2 a-2 b-2 ");
    assert_false(sp_registered_calling());
    assert_int_equal(counters().misuse_dead_span, misuse);
    assert_int_equal(release_all(), 6);
}

/* A span that a callback starts is nobody's also when it ends outside. */
static spanprof_span left_behind;

static void leave_a_span(void *who, spanprof_span span, const spanprof_span_view *view,
                         const spanprof_context *parent)
{
    note_start(who, span, view, parent);
    left_behind = spanprof_span_start(NULL, "left", NULL);
}

static void span_of_a_callback_ends_outside_untold(void **state)
{
    (void)state;
    add((spanprof_processor){.user = "a", .on_start = leave_a_span, .on_end = note_end});
    run_span("1");
    spanprof_span_end(left_behind);
    assert_string_equal(diary, "a+1 a-1 ");
    assert_int_equal(release_all(), 2);
}

static void end_at_once(void *user, spanprof_span span, const spanprof_span_view *view,
                        const spanprof_context *parent)
{
    (void)user, (void)view, (void)parent;
    spanprof_span_end(span);
}

static void span_that_a_callback_ends_is_told_as_ended(void **state)
{
    (void)state;
    add(notes("a"));
    add((spanprof_processor){.on_start = end_at_once});
    add(notes("b"));
    spanprof_span span = spanprof_span_start(NULL, "1", NULL);
    assert_false(spanprof_span_is_recording(span));
    assert_string_equal(diary, "a+1 a-1 b-1 ");
    assert_int_equal(release_all(), 1);
}

static void add_another(void *who, spanprof_span span, const spanprof_span_view *view,
                        const spanprof_context *parent)
{
    note_start(who, span, view, parent);
    if (strcmp(view->name, "1") == 0)
        add(notes("b"));
}

static void callback_may_add_a_processor(void **state)
{
    (void)state;
    add((spanprof_processor){.user = "a", .on_start = add_another});
    run_span("1"); /* which the new one is told of already, for it is behind */
    run_span("2");
    assert_string_equal(diary, "a+1 b+1 b-1 a+2 b+2 b-2 ");
    assert_int_equal(release_all(), 2);
}

/* --- flush and shutdown ----------------------------------------------------------------------- */

static uint64_t timeouts[3];

static spanprof_status keep_timeout(void *slot, uint64_t timeout_ns)
{
    *(uint64_t *)slot = timeout_ns;
    return slot == &timeouts[1] ? SPANPROF_ERROR_EXPORT : SPANPROF_OK;
}

static void flush_and_shutdown_give_what_time_is_left(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++)
        add((spanprof_processor){
            .user = &timeouts[i], .flush = keep_timeout, .shutdown = keep_timeout});
    assert_int_equal(sp_registered_flush(UINT64_MAX), SPANPROF_ERROR_EXPORT);
    for (int i = 0; i < 3; i++)
        assert_int_equal(timeouts[i], UINT64_MAX);
    uint64_t deadline = sp_clock_monotonic_ns() + 1000 * SP_NS_PER_S;
    assert_int_equal(sp_registered_flush(deadline), SPANPROF_ERROR_EXPORT);
    assert_in_range(timeouts[0], 1, 1000 * SP_NS_PER_S);
    assert_in_range(timeouts[1], 1, timeouts[0]);
    assert_in_range(timeouts[2], 1, timeouts[1]);
    assert_int_equal(sp_registered_flush(1), SPANPROF_ERROR_EXPORT);
    assert_int_equal(timeouts[2], 0);
    timeouts[2] = 1;
    assert_int_equal(sp_registered_close(1), SPANPROF_ERROR_EXPORT);
    assert_int_equal(timeouts[2], 0);
    timeouts[2] = 1;
    assert_int_equal(sp_registered_close(1), SPANPROF_OK); /* once */
    assert_int_equal(timeouts[2], 1);
}

/* --- threads ---------------------------------------------------------------------------------- */

enum { THREADS = 4, SPANS = 3000, LATE = 3 };

static _Atomic uint64_t started, ended, after_shutdown;
static _Atomic bool is_shut;

static void count_start(void *user, spanprof_span span, const spanprof_span_view *view,
                        const spanprof_context *parent)
{
    (void)user, (void)view, (void)parent;
    spanprof_span_set_int(span, "seen", 1);
    sp_count(&started, 1);
    if (sp_load_relaxed(&is_shut))
        sp_count(&after_shutdown, 1);
}

static void count_end(void *user, const spanprof_span_view *view)
{
    (void)user, (void)view;
    sp_count(&ended, 1);
    if (sp_load_relaxed(&is_shut))
        sp_count(&after_shutdown, 1);
}

static spanprof_status shut(void *user, uint64_t timeout_ns)
{
    (void)user, (void)timeout_ns;
    sp_store_relaxed(&is_shut, true);
    return SPANPROF_OK;
}

static void *run_spans(void *unused)
{
    for (int i = 0; i < SPANS; i++)
        run_span("s");
    return unused;
}

static void processors_are_added_and_closed_while_threads_end_spans(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    sp_store_relaxed(&started, 0);
    sp_store_relaxed(&ended, 0);
    add((spanprof_processor){.on_start = count_start, .on_end = count_end, .shutdown = shut});
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run_spans, NULL), 0);
    for (int i = 0; i < LATE; i++) {
        while (sp_load_relaxed(&ended) < (uint64_t)(i + 1) * SPANS / 2)
            sched_yield();
        add((spanprof_processor){.on_end = count_end});
    }
    assert_int_equal(sp_registered_close(UINT64_MAX), SPANPROF_OK);
    sp_store_relaxed(&is_shut, true);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(sp_load_relaxed(&after_shutdown), 0);
    assert_true(sp_load_relaxed(&started) > 0);
    assert_int_equal(counters().spans_ended, THREADS * SPANS);
    release_all();
}

/* --- fork ------------------------------------------------------------------------------------- */

static int check_child(void)
{
    sp_tracer_after_fork();
    diary[0] = 0;
    sp_tracer_config config = {.queue_spans = QUEUE, .limits = SP_SPAN_LIMITS_INIT, .record = true};
    if (sp_tracer_start(&config) != SPANPROF_OK)
        return 1;
    sp_registered_open();
    run_span("1");
    if (diary[0] != 0)
        return 2;
    add(notes("child"));
    run_span("2");
    if (strcmp(diary, "child+2 child-2 ") != 0)
        return 3;
    return sp_registered_close(UINT64_MAX) == SPANPROF_OK &&
                   strcmp(diary, "child+2 child-2 child. ") == 0
               ? 0
               : 4;
}

static int exit_code(pid_t child)
{
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void forked_child_has_no_processors_of_its_parent(void **state)
{
    (void)state;
    add(notes("parent"));
    pid_t child = fork();
    if (child == 0)
        _exit(check_child());
    assert_int_equal(exit_code(child), 0);
    run_span("1");
    assert_string_equal(diary, "parent+1 parent-1 ");
    assert_int_equal(release_all(), 1);
}

static int check_waiting_child(void)
{
    sp_tracer_after_fork();
    sp_registered_open();
    sp_tracer_config config = {.queue_spans = QUEUE, .limits = SP_SPAN_LIMITS_INIT, .record = true};
    if (sp_tracer_start(&config) != SPANPROF_OK)
        return 1;
    run_span("1");
    return strcmp(diary, "waits+1 waits-1 ") == 0 ? 0 : 2;
}

static void processors_that_wait_for_a_start_are_the_child_s_too(void **state)
{
    (void)state;
    assert_int_equal(sp_registered_close(UINT64_MAX), SPANPROF_OK);
    sp_tracer_stop();
    add(notes("waits"));
    pid_t child = fork();
    if (child == 0)
        _exit(check_waiting_child());
    assert_int_equal(exit_code(child), 0);
    assert_int_equal(start_told(state), 0);
}

static int depth_of_child;

/* The child goes on from here: it has no processors any more, ends the callback as its parent does,
 * and still has its view. */
static void fork_inside(pid_t *child, const spanprof_span_view *view)
{
    *child = fork();
    if (*child != 0)
        return;
    sp_tracer_after_fork();
    depth_of_child = sp_registered_calling();
    note("child", ':', view->name);
    note("child", '=', view->attributes[0].value.string_value);
}

static void fork_at_start(void *user, spanprof_span span, const spanprof_span_view *view,
                          const spanprof_context *parent)
{
    (void)span, (void)parent;
    fork_inside(user, view);
}

static void fork_at_end(void *user, const spanprof_span_view *view)
{
    fork_inside(user, view);
}

/* After the call that its callback forked in. */
static int check_child_of_callback(void)
{
    if (depth_of_child != 1 || sp_registered_calling())
        return 11;
    if (strcmp(diary, "child:1 child=long ") != 0)
        return 12;
    sp_span_data *data;
    if (sp_tracer_queued() || sp_tracer_take(&data, 1) || counters().spans_ended)
        return 13; /* the span is its parent's */
    return check_child();
}

/* A span with an attribute, named as it is told, in both processes. */
static spanprof_span start_long(void)
{
    const spanprof_attribute attribute = {.key = "k", .value = {.string_value = "long"}};
    spanprof_span_options options = SPANPROF_SPAN_OPTIONS_INIT;
    options.attributes = &attribute;
    options.attribute_count = 1;
    return spanprof_span_start(NULL, "1", &options);
}

static void on_start_may_fork(void **state)
{
    (void)state;
    pid_t child = -1;
    add((spanprof_processor){.user = &child, .on_start = fork_at_start});
    add(notes("a"));
    spanprof_span span = start_long();
    if (child == 0) {
        spanprof_span_end(span);
        bool is_none = span.slot == 0 && span.generation == 0;
        _exit(is_none && counters().misuse_dead_span == 0 ? check_child_of_callback() : 10);
    }
    spanprof_span_end(span);
    assert_int_equal(exit_code(child), 0);
    assert_string_equal(diary, "a+1 a-1 ");
    assert_int_equal(release_all(), 1);
}

static void on_end_may_fork(void **state)
{
    (void)state;
    pid_t child = -1;
    add((spanprof_processor){.user = &child, .on_end = fork_at_end});
    add((spanprof_processor){.user = "a", .on_end = note_end});
    spanprof_span_end(start_long());
    if (child == 0)
        _exit(check_child_of_callback());
    assert_int_equal(exit_code(child), 0);
    assert_string_equal(diary, "a-1 ");
    assert_int_equal(release_all(), 1);
}

static void fork_in_log(spanprof_log_level level, const char *line, void *user)
{
    (void)level, (void)line;
    *(pid_t *)user = fork();
    if (*(pid_t *)user == 0)
        sp_tracer_after_fork();
}

/* A span that had too much is told to the log, while it ends. */
static void log_may_fork_while_a_span_ends(void **state)
{
    (void)state;
    pid_t child = -1;
    add(notes("a"));
    sp_log_configure(SPANPROF_LOG_WARN, fork_in_log, &child);
    spanprof_span span = spanprof_span_start(NULL, "1", NULL);
    for (char key[] = "0000"; strcmp(key, "0200") != 0;) {
        spanprof_span_set_int(span, key, 1);
        for (int digit = 3; ++key[digit] > '9'; digit--)
            key[digit] = '0';
    }
    spanprof_span_end(span);
    if (child == 0) {
        sp_span_data *data;
        _exit(sp_tracer_queued() || sp_tracer_take(&data, 1) ? 10 : check_child());
    }
    sp_log_configure(SPANPROF_LOG_WARN, NULL, NULL);
    assert_int_equal(exit_code(child), 0);
    assert_string_equal(diary, "a+1 a-1 ");
    assert_int_equal(release_all(), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        /* First, for drops are told once a minute. */
        noted(log_may_fork_while_a_span_ends),
        noted(processors_are_told_in_the_order_of_registration),
        noted(processor_added_twice_is_told_twice),
        noted(processor_added_while_a_span_lives_is_told_of_its_end),
        noted(processor_waits_for_the_start),
        noted(spans_of_a_stopped_session_end_untold),
        noted(unsampled_spans_are_not_told),
        noted(processor_of_bad_size_is_refused),
        told(start_shows_the_options_and_takes_writes),
        told(root_has_a_parent_without_ids),
        told(end_shows_what_is_exported),
        told(mark_is_there_before_and_whatever_the_limits),
        noted(spans_record_for_a_processor_when_nobody_exports),
        noted(unsampled_records_are_told_and_not_exported),
        noted(callbacks_may_start_and_end_spans),
        noted(span_of_a_callback_ends_outside_untold),
        noted(span_that_a_callback_ends_is_told_as_ended),
        noted(callback_may_add_a_processor),
        told(flush_and_shutdown_give_what_time_is_left),
        told(processors_are_added_and_closed_while_threads_end_spans),
        noted(forked_child_has_no_processors_of_its_parent),
        noted(processors_that_wait_for_a_start_are_the_child_s_too),
        noted(on_start_may_fork),
        noted(on_end_may_fork),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
