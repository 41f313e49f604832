/* SPDX-License-Identifier: Apache-2.0 */
/* A model that several threads make in parts is the one that a single thread makes: every number,
 * text and sum. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/buffer.h"
#include "core/compiler.h"
#include "tool/model/model.h"
#include "tool/model/sum.h"
#include "tool/text/messages.h"

enum { REQUESTS = 40, SPANS = 60, FUNCTIONS = 30, STACKS = 25, LINKS = 20, SAMPLES = 70 };

/* Added to the value of each sample. */
static int64_t more_value;

static int notes;
void __wrap_sp_tool_note(const char *format, ...) SP_PRINTF(1, 2);
void __wrap_sp_tool_note(const char *format, ...)
{
    (void)format;
    notes++;
}

static uint32_t next_random(uint32_t *state, uint32_t below)
{
    *state = *state * 1664525U + 1013904223U;
    return (*state >> 8) % below;
}

/* ---- recordings as OTLP/JSON ---- */

static void add_spans(sp_buffer *out)
{
    sp_buffer_add_string(
        out, "{\"resourceSpans\":[{\"resource\":{\"attributes\":[{\"key\":\"service.name\","
             "\"value\":{\"stringValue\":\"shop\"}}]},\"scopeSpans\":[{\"spans\":[");
    for (int i = 1; i <= SPANS; i++)
        sp_buffer_printf(out,
                         "%s{\"traceId\":\"%032x\",\"spanId\":\"%016x\","
                         "\"name\":\"function_%d\",\"startTimeUnixNano\":\"%d\","
                         "\"endTimeUnixNano\":\"%d\"}",
                         i > 1 ? "," : "", i / 10 + 1, i, i, 1000 + i, 2000 + i);
    sp_buffer_add_string(out, "]}]}]}\n");
}

/* The first strings of each dictionary. After them come the names of functions, and the ids of
 * spans as text. */
static const char *const words[] = {"",
                                    "cpu",
                                    "nanoseconds",
                                    "wall",
                                    "delay",
                                    "inuse_space",
                                    "bytes",
                                    SP_WHERE_KEY,
                                    "lock",
                                    SP_LOCK_NAME_KEY,
                                    SP_LOCK_ADDRESS_KEY,
                                    SP_HOLDER_TRACE_KEY,
                                    SP_HOLDER_SPAN_KEY,
                                    SP_HOLDER_STACK_KEY,
                                    SP_LIVE_AGE_KEY,
                                    "thread.name",
                                    "file.c"};
enum { CPU = 1, NANOSECONDS, WALL, DELAY, INUSE, BYTES, FIRST_KEY, WORDS = 17 };

static void add_functions(sp_buffer *out, uint32_t *state)
{
    sp_buffer_add_string(out, "\"stringTable\":[");
    for (int i = 0; i < WORDS; i++)
        sp_buffer_printf(out, "%s\"%s\"", i ? "," : "", words[i]);
    for (int i = 0; i < FUNCTIONS; i++)
        sp_buffer_printf(out, ",\"function_%u<int>\"", next_random(state, 80));
    for (unsigned i = 0; i < LINKS; i++)
        sp_buffer_printf(out, ",\"%032x\"", next_random(state, SPANS) / 10 + 1);
    for (unsigned i = 0; i < LINKS; i++)
        sp_buffer_printf(out, ",\"%016x\"", next_random(state, SPANS) + 1);
    sp_buffer_add_string(out, "],\"functionTable\":[{}");
    for (int i = 0; i < FUNCTIONS; i++)
        sp_buffer_printf(out, ",{\"nameStrindex\":%d,\"filenameStrindex\":%d}", WORDS + i,
                         i % 3 ? 16 : WORDS + i);
    sp_buffer_add_string(out, "],\"mappingTable\":[{},{\"filenameStrindex\":16}]");
    sp_buffer_add_string(out, ",\"locationTable\":[{}");
    for (int i = 0; i < FUNCTIONS; i++)
        sp_buffer_printf(out,
                         ",{\"mappingIndex\":1,\"lines\":[{\"functionIndex\":%d,\"line\":%u}]}",
                         i + 1, next_random(state, 500));
    sp_buffer_add_string(out, "],\"stackTable\":[{}");
    for (int i = 0; i < STACKS; i++) {
        sp_buffer_add_string(out, ",{\"locationIndices\":[");
        for (uint32_t k = next_random(state, 12); k-- > 0;)
            sp_buffer_printf(out, "%u,", next_random(state, FUNCTIONS) + 1);
        sp_buffer_printf(out, "%u]}", next_random(state, FUNCTIONS) + 1);
    }
    sp_buffer_add_string(out, "]");
}

/* Each third link has no trace id. */
static void add_links(sp_buffer *out, uint32_t *state)
{
    sp_buffer_add_string(out, ",\"linkTable\":[{}");
    for (int i = 0; i < LINKS; i++) {
        uint32_t span = next_random(state, SPANS + 5) + 1;
        sp_buffer_printf(out, ",{\"traceId\":\"%032x\",\"spanId\":\"%016x\"}",
                         i % 3 ? span / 10 + 1 : 0, span);
    }
    sp_buffer_add_string(out, "],\"attributeTable\":[{}");
    for (int i = 0; i < 9 * LINKS; i++) {
        unsigned text = i % 9 == 0 ? 8U : WORDS + next_random(state, FUNCTIONS);
        if (i % 9 == 3 || i % 9 == 4) /* the holder's ids */
            text = WORDS + FUNCTIONS + (i % 9 == 4 ? LINKS : 0) + next_random(state, LINKS);
        sp_buffer_printf(out, ",{\"keyStrindex\":%d,\"value\":{\"stringValueStrindex\":%u}}",
                         i % 9 == 0 ? FIRST_KEY : FIRST_KEY + 1 + i % 9, text);
    }
    sp_buffer_add_string(out, "]");
}

static void add_profile(sp_buffer *out, uint32_t *state, int type, int request)
{
    sp_buffer_printf(out,
                     "{\"sampleType\":{\"typeStrindex\":%d,\"unitStrindex\":%d},"
                     "\"timeUnixNano\":\"%d\",\"durationNano\":\"10\",\"samples\":[",
                     type, type == INUSE ? BYTES : NANOSECONDS, 1000 + 10 * request);
    for (int i = 0; i < SAMPLES; i++)
        sp_buffer_printf(out,
                         "%s{\"stackIndex\":%u,\"linkIndex\":%u,\"values\":[\"%lld\"],"
                         "\"attributeIndices\":[%u,%u,%u,%u]}",
                         i ? "," : "", next_random(state, STACKS + 1),
                         next_random(state, LINKS + 1),
                         (long long)next_random(state, 1000) + 1 + more_value,
                         next_random(state, 9 * LINKS) + 1, next_random(state, 9 * LINKS) + 1,
                         next_random(state, 9 * LINKS) + 1, next_random(state, 9 * LINKS) + 1);
    sp_buffer_add_string(out, "]}");
}

static void add_request(sp_buffer *out, int request)
{
    static const int types[] = {CPU, WALL, DELAY, INUSE};
    uint32_t state = (uint32_t)request + 7;
    sp_buffer_printf(out,
                     "{\"resourceProfiles\":[{\"resource\":{\"attributes\":[{\"key\":"
                     "\"service.name\",\"value\":{\"stringValue\":\"shop_%d\"}}]},"
                     "\"scopeProfiles\":[{\"profiles\":[",
                     request % 3);
    for (size_t i = 0; i < SP_ARRAY_LENGTH(types); i++) {
        sp_buffer_add_string(out, i ? "," : "");
        add_profile(out, &state, types[i], request);
    }
    sp_buffer_add_string(out, "]}]}],\"dictionary\":{");
    add_functions(out, &state);
    add_links(out, &state);
    sp_buffer_add_string(out, "}}\n");
}

static void read_recording(sp_input *input, int wrong_request)
{
    sp_buffer text = SP_BUFFER_INIT(64 << 20);
    *input = (sp_input){0};
    for (int i = 0; i < REQUESTS; i++) {
        if (i == REQUESTS / 2) /* spans after the first samples that belong to them */
            add_spans(&text);
        add_request(&text, i);
        if (i == wrong_request)
            sp_buffer_add_string(
                &text, "{\"resourceProfiles\":[{\"scopeProfiles\":[{\"profiles\":[{\"samples\":[{"
                       "\"stackIndex\":5,\"values\":[\"1\"]}]}]}]}]}\n");
    }
    assert_false(text.failed);
    assert_int_equal(sp_input_read_json(input, "path", text.data, text.length), 0);
    sp_buffer_deinit(&text);
}

/* ---- models ---- */

static int build(sp_model *model, const sp_input *input, const sp_model_options *options,
                 size_t parts)
{
    static const sp_model_link none;
    if (parts == 0) {
        static const sp_since never;
        return sp_model_build_as(model, input, &never, options);
    }
    *model = (sp_model){.input = input, .options = *options, .root_frames = options->by_thread};
    assert_int_equal(sp_model_string(model, ""), 0);
    assert_int_equal(sp_intern_put(&model->links, &none, sizeof none, NULL), 0);
    model->names.style = options->style;
    model->names.all_styles = options->all_styles;
    assert_true(!options->renames || sp_names_learn(&model->names, input));
    for (size_t i = 0; i < input->count; i++)
        if (input->documents[i].signal == SP_SIGNAL_PROFILES)
            assert_int_equal(sp_model_note_snapshots(model, &input->documents[i]), 0);
    int status = sp_model_add_in_parts(model, 3, parts);
    if (status == SP_TOOL_DONE)
        status = sp_model_link_spans(model);
    return status == SP_TOOL_DONE ? sp_model_count_spans(model) : status;
}

static void expect_equal_tables(const sp_intern *a, const sp_intern *b)
{
    assert_int_equal(a->count, b->count);
    for (uint32_t i = 0; i < a->count; i++) {
        assert_int_equal(a->entries[i].length, b->entries[i].length);
        if (a->entries[i].length)
            assert_memory_equal(a->entries[i].key, b->entries[i].key, a->entries[i].length);
    }
}

static void expect_equal_types(const sp_model *a, const sp_model *b)
{
    assert_int_equal(a->type_count, b->type_count);
    for (size_t i = 0; i < a->type_count; i++) {
        const sp_model_type *x = &a->types[i], *y = &b->types[i];
        assert_string_equal(x->name, y->name);
        assert_string_equal(x->unit, y->unit);
        assert_int_equal(x->profiles, y->profiles);
        assert_int_equal(x->samples, y->samples);
        assert_int_equal(x->period, y->period);
        assert_int_equal(x->has_waiting_samples, y->has_waiting_samples);
        assert_int_equal(x->has_ages, y->has_ages);
        assert_int_equal(x->has_locks, y->has_locks);
    }
}

static void expect_equal_functions(const sp_model *a, const sp_model *b)
{
    for (uint32_t i = 0; i < a->strings.count; i++) {
        sp_model_place x = sp_model_place_of(a, i), y = sp_model_place_of(b, i);
        sp_model_names m = sp_model_names_of(a, i), n = sp_model_names_of(b, i);
        assert_memory_equal(&x, &y, sizeof x);
        assert_memory_equal(&m, &n, sizeof m);
    }
}

static void expect_equal_profiles(const sp_model *a, const sp_model *b)
{
    assert_int_equal(a->profile_count, b->profile_count);
    for (size_t i = 0; i < a->profile_count; i++) {
        const sp_model_profile *x = &a->profiles[i], *y = &b->profiles[i];
        assert_int_equal(x->type, y->type);
        assert_string_equal(x->service, y->service);
        assert_ptr_equal(x->message, y->message);
        assert_int_equal(!x->sample_numbers, !y->sample_numbers);
        if (x->sample_numbers)
            assert_memory_equal(x->sample_numbers, y->sample_numbers,
                                x->message->n_samples * sizeof *x->sample_numbers);
    }
}

static void expect_equal_models(const sp_model *a, const sp_model *b)
{
    expect_equal_tables(&a->strings, &b->strings);
    expect_equal_tables(&a->links, &b->links);
    expect_equal_tables(&a->stacks, &b->stacks);
    expect_equal_tables(&a->locks, &b->locks);
    expect_equal_tables(&a->span_index, &b->span_index);
    expect_equal_types(a, b);
    expect_equal_functions(a, b);
    expect_equal_profiles(a, b);
    assert_int_equal(a->sample_index.count, b->sample_index.count);
    for (uint32_t i = 0; i < a->sample_index.count; i++)
        assert_memory_equal(&a->samples[i], &b->samples[i], sizeof a->samples[i]);
    for (uint32_t i = 0; i < a->span_index.count; i++) {
        assert_int_equal(a->spans[i].total_value, b->spans[i].total_value);
        assert_int_equal(a->spans[i].total_count, b->spans[i].total_count);
        assert_int_equal(a->spans[i].parent, b->spans[i].parent);
    }
}

static void expect_equal_in_parts(const sp_model_options *options)
{
    static const size_t counts[] = {1, 2, 3, 7, REQUESTS, 3 * REQUESTS};
    sp_input input;
    sp_model expected;
    read_recording(&input, -1);
    assert_int_equal(build(&expected, &input, options, 0), SP_TOOL_DONE);
    assert_int_equal(expected.type_count, 4);
    assert_true(expected.locks.count > 10 && expected.stacks.count > STACKS);
    for (size_t i = 0; i < SP_ARRAY_LENGTH(counts); i++) {
        sp_model model;
        assert_int_equal(build(&model, &input, options, counts[i]), SP_TOOL_DONE);
        expect_equal_models(&expected, &model);
        sp_model_deinit(&model);
    }
    sp_model_deinit(&expected);
    sp_input_deinit(&input);
}

static void parts_make_the_same_model(void **state)
{
    static const sp_model_options as_recorded;
    (void)state;
    expect_equal_in_parts(&as_recorded);
}

static void names_and_threads_are_the_same(void **state)
{
    static const sp_model_options options = {
        .by_thread = true, .renames = true, .all_styles = true, .style = SP_DEMANGLE_FOLDED};
    (void)state;
    expect_equal_in_parts(&options);
}

static void a_mistake_in_a_part_ends_the_reading(void **state)
{
    static const sp_model_options as_recorded;
    sp_input input;
    (void)state;
    for (int wrong = 0; wrong < REQUESTS; wrong += 13) {
        sp_model model;
        read_recording(&input, wrong);
        assert_int_equal(build(&model, &input, &as_recorded, 5), SP_TOOL_WRONG);
        sp_model_deinit(&model);
        sp_input_deinit(&input);
    }
}

/* Only the main thread may write messages, and threads that read parts fill sums. */
static void threads_that_fill_sums_write_nothing(void **state)
{
    static const sp_model_options as_recorded;
    sp_input input;
    sp_model model;
    uint64_t sum = INT64_MAX;
    (void)state;
    more_value = INT64_MAX - 1000;
    read_recording(&input, -1);
    more_value = 0;
    assert_int_equal(build(&model, &input, &as_recorded, REQUESTS), SP_TOOL_DONE);
    assert_int_equal(notes, 0);
    sp_sum_note();
    assert_int_equal(notes, 1);
    sp_sum_note();
    assert_int_equal(notes, 1);
    sp_sum_add(&sum, 1);
    sp_sum_note();
    assert_int_equal(notes, 2);
    sp_model_deinit(&model);
    sp_input_deinit(&input);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_make_the_same_model),
        cmocka_unit_test(names_and_threads_are_the_same),
        cmocka_unit_test(a_mistake_in_a_part_ends_the_reading),
        cmocka_unit_test(threads_that_fill_sums_write_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
