/* SPDX-License-Identifier: Apache-2.0 */
/* Collapsed stacks that go a long way come out as they went in: through OTLP, through pprof, and
 * through both. All in one process, so that thousands of inputs take seconds:
 * unit_tool_ways COUNT (300). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/draw/flame.h"
#include "tool/model/merge.h"
#include "tool/model/selected.h"
#include "tool/text/messages.h"
#include "wire/gzip.h"
#include "tool/read/wire_read.h"

enum { MAX_BYTES = 1 << 20, MOST_STACKS = 40, MOST_FRAMES = 12 };

static unsigned long input_count = 300;
static uint64_t state = 1;

/* splitmix64. */
static uint64_t random_below(uint64_t limit)
{
    uint64_t z = state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (z ^ z >> 31) % limit;
}

/* ---- made inputs: as `flame --format folded` writes them ---- */

static void add_frame(sp_buffer *line)
{
    static const char *const parts[] = {"main",       "work",     "ns::f<int, 3>",
                                        "operator()", "\xc3\xa9", "\xe6\x97\xa5",
                                        "+0x1f",      "[folded]", "a b",
                                        "#",          "5",        "-",
                                        "\"",         "\\x",      "&",
                                        "libc.so.6",  "trace_id"};
    for (uint64_t i = 0, count = 1 + random_below(3); i < count; i++)
        sp_buffer_add_string(line, parts[random_below(SP_ARRAY_LENGTH(parts))]);
}

/* A line that begins with # is a comment, and one stack has one line. */
static bool is_usable(const char *line, char *const *lines, size_t count)
{
    const char *end = strrchr(line, ' ');
    for (size_t i = 0; i < count; i++)
        if (strncmp(line, lines[i], (size_t)(end - line) + 1) == 0 &&
            strrchr(lines[i], ' ') == lines[i] + (end - line))
            return false;
    return line[0] != '#';
}

static char *make_line(void)
{
    static const uint64_t limits[] = {10, 1000, UINT64_C(1) << 32, UINT64_C(1) << 53};
    sp_buffer line = SP_BUFFER_INIT(MAX_BYTES);
    for (uint64_t i = 0, count = 1 + random_below(MOST_FRAMES); i < count; i++) {
        if (i)
            sp_buffer_add_char(&line, ';');
        add_frame(&line);
    }
    sp_buffer_printf(&line, " %llu", 1 + (unsigned long long)random_below(limits[random_below(4)]));
    return (char *)line.data;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void make_input(sp_buffer *out)
{
    char *lines[MOST_STACKS];
    size_t count = 0, wanted = 1 + (size_t)random_below(MOST_STACKS);
    while (count < wanted) {
        lines[count] = make_line();
        if (is_usable(lines[count], lines, count))
            count++;
        else
            free(lines[count]);
    }
    qsort(lines, count, sizeof *lines, by_text);
    for (size_t i = 0; i < count; i++) {
        sp_buffer_printf(out, "%s\n", lines[i]);
        free(lines[i]);
    }
}

/* ---- ways ---- */

static void read_collapsed(sp_input *input, const sp_buffer *text)
{
    assert_int_equal(sp_input_read_collapsed(input, "made", text->data, text->length),
                     SP_TOOL_DONE);
}

/* A model of INPUT with all its samples selected. */
static void select_all(sp_model *model, sp_selection *selection, const sp_input *input)
{
    sp_select_options options = {0};
    assert_int_equal(sp_model_build(model, input), SP_TOOL_DONE);
    assert_int_equal(sp_select(selection, model, &options), SP_TOOL_DONE);
}

/* FROM as bytes of OTLP, read into TO. */
static void through_otlp(sp_input *from, sp_input *to)
{
    sp_arena memory = {0};
    ProtobufCMessage *merged = sp_merge(&memory, from, SP_SIGNAL_PROFILES);
    assert_non_null(merged);
    size_t length = protobuf_c_message_get_packed_size(merged);
    uint8_t *bytes = malloc(length);
    protobuf_c_message_pack(merged, bytes);
    ProtobufCMessage *read = sp_wire_read(&to->memory, merged->descriptor, bytes, length);
    assert_int_equal(sp_input_add(to, "otlp", SP_SIGNAL_PROFILES, length, read), SP_TOOL_DONE);
    free(bytes);
    sp_arena_deinit(&memory);
    sp_input_deinit(from);
}

static void through_pprof(sp_input *from, sp_input *to)
{
    sp_model model = {0};
    sp_selection selection = {0};
    sp_buffer zipped = SP_BUFFER_INIT(MAX_BYTES), bytes = SP_BUFFER_INIT(16 * MAX_BYTES);
    select_all(&model, &selection, from);
    assert_int_equal(sp_selected_pprof(&zipped, &selection, 1), SP_TOOL_DONE);
    assert_true(sp_gunzip(&bytes, zipped.data, zipped.length));
    assert_int_equal(sp_input_is_pprof(bytes.data, bytes.length), SP_INPUT_LIKE);
    assert_int_equal(sp_input_read_pprof(to, "pprof", bytes.data, bytes.length), SP_TOOL_DONE);
    sp_buffer_deinit(&zipped);
    sp_buffer_deinit(&bytes);
    sp_selection_deinit(&selection);
    sp_model_deinit(&model);
    sp_input_deinit(from);
}

static void check_text(sp_input *input, const sp_buffer *wanted)
{
    sp_model model = {0};
    sp_selection selection = {0};
    sp_buffer text = SP_BUFFER_INIT(MAX_BYTES);
    select_all(&model, &selection, input);
    assert_true(sp_flame_folded(&text, &selection, false));
    assert_string_equal((char *)text.data, (char *)wanted->data);
    sp_buffer_deinit(&text);
    sp_selection_deinit(&selection);
    sp_model_deinit(&model);
    sp_input_deinit(input);
}

static void go_ways(const sp_buffer *text)
{
    sp_input inputs[6] = {0};
    read_collapsed(&inputs[0], text);
    through_otlp(&inputs[0], &inputs[1]);
    check_text(&inputs[1], text);
    read_collapsed(&inputs[2], text);
    through_pprof(&inputs[2], &inputs[3]);
    through_otlp(&inputs[3], &inputs[4]);
    through_pprof(&inputs[4], &inputs[5]);
    check_text(&inputs[5], text);
}

static void ways_through_otlp_and_pprof_change_no_stack(void **unused)
{
    (void)unused;
    for (unsigned long i = 0; i < input_count; i++) {
        sp_buffer text = SP_BUFFER_INIT(MAX_BYTES);
        make_input(&text);
        go_ways(&text);
        sp_buffer_deinit(&text);
    }
    print_message("%lu inputs\n", input_count);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ways_through_otlp_and_pprof_change_no_stack),
    };
    if (argc > 1)
        input_count = strtoul(argv[1], NULL, 10);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
