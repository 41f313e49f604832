/* SPDX-License-Identifier: Apache-2.0 */
/* The encoders' output against the bytes in NAME.hex and the text in NAME.json of this folder. To
 * make them anew after a wanted change: test_otlp --write DIR, then annotate.py (its first lines
 * say how); read the difference before you commit it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/hex.h"
#include "golden/golden_data.h"

static sp_buffer encode(bool traces, sp_otlp_format format)
{
    sp_buffer out = SP_BUFFER_INIT(1 << 20);
    bool done = traces
                    ? sp_otlp_encode_traces(&out, format, &golden_resource, golden_spans,
                                            LENGTH_OF(golden_spans))
                    : sp_otlp_encode_profiles(&out, format, &golden_resource, &golden_profile_data);
    if (!done) {
        fprintf(stderr, "encoding failed\n");
        abort();
    }
    return out;
}

static sp_buffer read_file(const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", GOLDEN_DIR, name);
    FILE *file = fopen(path, "r");
    if (!file)
        fail_msg("cannot open %s", path);
    sp_buffer text = SP_BUFFER_INIT(1 << 20);
    int c;
    while ((c = fgetc(file)) != EOF)
        sp_buffer_add_char(&text, (char)c);
    fclose(file);
    return text;
}

/* The bytes of a .hex file: pairs of digits; # starts a comment. */
static sp_buffer parse_hex(const sp_buffer *text)
{
    sp_buffer bytes = SP_BUFFER_INIT(1 << 20);
    const char *c = (const char *)text->data;
    while (*c) {
        uint8_t byte;
        if (*c == '#') {
            c += strcspn(c, "\n");
        } else if (strchr(" \n", *c)) {
            c++;
        } else {
            assert_true(sp_hex_decode(&byte, c, 1, false));
            sp_buffer_add(&bytes, &byte, 1);
            c += 2;
        }
    }
    return bytes;
}

static void check_same(const sp_buffer *got, const sp_buffer *wanted)
{
    size_t shorter = got->length < wanted->length ? got->length : wanted->length;
    for (size_t i = 0; i < shorter; i++) {
        if (got->data[i] != wanted->data[i])
            fail_msg("byte %zu is %02x, wanted %02x", i, got->data[i], wanted->data[i]);
    }
    assert_int_equal(got->length, wanted->length);
}

static void check_protobuf(bool traces, const char *name)
{
    sp_buffer got = encode(traces, SP_OTLP_PROTOBUF);
    sp_buffer text = read_file(name);
    sp_buffer wanted = parse_hex(&text);
    check_same(&got, &wanted);
    sp_buffer_deinit(&got);
    sp_buffer_deinit(&text);
    sp_buffer_deinit(&wanted);
}

/* The file is laid out for people; spaces and newlines outside strings do not count. */
static void squeeze(sp_buffer *text)
{
    size_t to = 0;
    bool in_string = false;
    for (size_t i = 0; i < text->length; i++) {
        char c = (char)text->data[i];
        if (c == '"' && (i == 0 || text->data[i - 1] != '\\'))
            in_string = !in_string;
        if (in_string || (c != ' ' && c != '\n'))
            text->data[to++] = (uint8_t)c;
    }
    text->length = to;
}

static void check_json(bool traces, const char *name)
{
    sp_buffer got = encode(traces, SP_OTLP_JSON);
    sp_buffer wanted = read_file(name);
    assert_null(memchr(got.data, '\n', got.length));
    squeeze(&wanted);
    check_same(&got, &wanted);
    sp_buffer_deinit(&got);
    sp_buffer_deinit(&wanted);
}

static void golden_traces_protobuf_has_the_written_bytes(void **state)
{
    (void)state;
    check_protobuf(true, "traces.hex");
}

static void golden_profiles_protobuf_has_the_written_bytes(void **state)
{
    (void)state;
    check_protobuf(false, "profiles.hex");
}

static void golden_traces_json_has_the_written_text(void **state)
{
    (void)state;
    check_json(true, "traces.json");
}

static void golden_profiles_json_has_the_written_text(void **state)
{
    (void)state;
    check_json(false, "profiles.json");
}

static void write_one(const char *folder, const char *name, bool traces, sp_otlp_format format)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    sp_buffer bytes = encode(traces, format);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(bytes.data, 1, bytes.length, file) != bytes.length || fclose(file) != 0) {
        perror(path);
        exit(1);
    }
    sp_buffer_deinit(&bytes);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--write") == 0) {
        write_one(argv[2], "traces.bin", true, SP_OTLP_PROTOBUF);
        write_one(argv[2], "profiles.bin", false, SP_OTLP_PROTOBUF);
        write_one(argv[2], "traces.json", true, SP_OTLP_JSON);
        write_one(argv[2], "profiles.json", false, SP_OTLP_JSON);
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_traces_protobuf_has_the_written_bytes),
        cmocka_unit_test(golden_profiles_protobuf_has_the_written_bytes),
        cmocka_unit_test(golden_traces_json_has_the_written_text),
        cmocka_unit_test(golden_profiles_json_has_the_written_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
