/* SPDX-License-Identifier: Apache-2.0 */
/* The tool's protobuf reader against protobuf-c: the same bytes become the same message. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "golden/random_message.h"
#include "core/buffer.h"
#include "proto/pprof.pb-c.h"
#include "proto/process_context.pb-c.h"
#include "proto/profiles_service.pb-c.h"
#include "proto/rpc_status.pb-c.h"
#include "proto/trace_service.pb-c.h"
#include "tool/read/wire.h"
#include "tool/read/wire_read.h"
#include "wire/json.h"

#define VALUE (&sp__common__any_value__descriptor)

static const ProtobufCMessageDescriptor *const types[] = {
    &sp__collector__export_trace_service_request__descriptor,
    &sp__collector__export_profiles_service_request__descriptor,
    &sp__pprof__profile__descriptor,
    &sp__process_context__process_context__descriptor,
    &sp__rpc__status__descriptor,
    VALUE,
};

static void add_packed(sp_buffer *out, const ProtobufCMessage *message)
{
    size_t bytes = protobuf_c_message_get_packed_size(message);
    assert_non_null(sp_buffer_reserve(out, bytes));
    out->length += protobuf_c_message_pack(message, out->data + out->length);
}

static void add_random(sp_buffer *out, const ProtobufCMessageDescriptor *type, uint64_t seed)
{
    random_source random = {.state = seed};
    ProtobufCMessage *message = random_message(&random, type, 0);
    add_packed(out, message);
    protobuf_c_message_free_unpacked(message, NULL);
}

/* The reader that needs no look takes the same, unless there are unknown fields. */
static void check_try_read(const ProtobufCMessageDescriptor *type, const sp_buffer *bytes,
                           const sp_wire_report *report, const sp_buffer *wanted)
{
    sp_arena memory = {0};
    sp_buffer got = SP_BUFFER_INIT(1 << 26);
    ProtobufCMessage *message;
    bool is_read = sp_wire_try_read(&memory, type, bytes->data, bytes->length, &message);
    assert_int_equal(is_read, report->unknown == 0);
    if (is_read) {
        add_packed(&got, message);
        assert_int_equal(got.length, wanted->length);
        assert_true(got.length == 0 || memcmp(got.data, wanted->data, got.length) == 0);
    }
    sp_buffer_deinit(&got);
    sp_arena_deinit(&memory);
}

/* BYTES, read by both, pack to the same. */
static void check_same(const ProtobufCMessageDescriptor *type, const sp_buffer *bytes)
{
    sp_arena memory = {0};
    sp_buffer wanted = SP_BUFFER_INIT(1 << 26), got = SP_BUFFER_INIT(1 << 26);
    ProtobufCMessage *unpacked = protobuf_c_message_unpack(type, NULL, bytes->length, bytes->data);
    sp_wire_report report = sp_wire_check(type, bytes->data, 0, SP_WIRE_TO_THE_END, bytes->length);
    assert_non_null(unpacked);
    assert_int_equal(report.result, SP_WIRE_FINE);
    ProtobufCMessage *read = sp_wire_read(&memory, type, bytes->data, bytes->length);
    assert_non_null(read);
    add_packed(&wanted, unpacked);
    add_packed(&got, read);
    check_try_read(type, bytes, &report, &wanted);
    assert_int_equal(got.length, wanted.length);
    if (got.length)
        assert_memory_equal(got.data, wanted.data, got.length);
    protobuf_c_message_free_unpacked(unpacked, NULL);
    sp_buffer_deinit(&wanted);
    sp_buffer_deinit(&got);
    sp_arena_deinit(&memory);
}

static void check_bytes(const ProtobufCMessageDescriptor *type, const char *bytes, size_t length)
{
    sp_buffer copy = SP_BUFFER_INIT(1 << 16);
    assert_true(sp_buffer_add(&copy, bytes, length));
    check_same(type, &copy);
    sp_buffer_deinit(&copy);
}

#define CHECK_BYTES(type, text) check_bytes(type, text, sizeof(text) - 1)

static void wire_read_random_messages_equal_protobuf_c(void **state)
{
    (void)state;
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        for (uint64_t seed = 1; seed <= 40; seed++) {
            sp_buffer bytes = SP_BUFFER_INIT(1 << 26);
            add_random(&bytes, types[t], seed);
            check_same(types[t], &bytes);
            sp_buffer_deinit(&bytes);
        }
}

static void wire_read_unknown_fields_are_kept(void **state)
{
    (void)state;
    CHECK_BYTES(VALUE, "\x98\x06\x96\x01"
                       "\xa2\x06\x03"
                       "abc"
                       "\xad\x06"
                       "1234"
                       "\xb1\x06"
                       "12345678");
}

/* Lists of numbers come packed, one by one, and mixed; the last of several numbers counts. */
static void wire_read_lists_take_both_forms(void **state)
{
    (void)state;
    const ProtobufCMessageDescriptor *sample = &sp__profiles__sample__descriptor;
    CHECK_BYTES(sample, "\x22\x03\x01\xac\x02"
                        "\x20\x07"
                        "\x22\x00"
                        "\x29"
                        "12345678"
                        "\x2a\x08"
                        "abcdefgh");
    CHECK_BYTES(sample, "\x08\x01\x08\x02");
}

static void check_becomes(const ProtobufCMessageDescriptor *type, const char *bytes, size_t length,
                          const char *wanted, size_t wanted_length)
{
    sp_arena memory = {0};
    sp_buffer got = SP_BUFFER_INIT(1 << 16);
    ProtobufCMessage *read = sp_wire_read(&memory, type, (const uint8_t *)bytes, length);
    assert_non_null(read);
    add_packed(&got, read);
    assert_int_equal(got.length, wanted_length);
    assert_memory_equal(got.data, wanted, wanted_length);
    sp_buffer_deinit(&got);
    sp_arena_deinit(&memory);
}

#define CHECK_BECOMES(type, text, wanted)                                                          \
    check_becomes(type, text, sizeof(text) - 1, wanted, sizeof(wanted) - 1)

/* A message that comes in parts is one, by protobuf's rules. protobuf-c loses the first part's
 * numbers. */
static void wire_read_messages_that_are_split_are_merged(void **state)
{
    (void)state;
#define DROPPED "\x10\x05"          /* the resource's dropped_attributes_count */
#define FIRST   "\x0a\x03\x0a\x01k" /* an attribute of it */
#define SECOND  "\x0a\x03\x0a\x01l"
#define SCHEMA  "\x1a\x01u"
    CHECK_BECOMES(&sp__trace__resource_spans__descriptor,
                  "\x0a\x02" DROPPED SCHEMA "\x0a\x05" FIRST "\x0a\x05" SECOND,
                  "\x0a\x0c" FIRST SECOND DROPPED SCHEMA);
}

/* A member of a oneof that comes twice in a row is merged, and forgotten when another one follows;
 * protobuf-c does only the latter. */
static void wire_read_a_oneof_begins_anew_after_another_member(void **state)
{
    (void)state;
#define ONE  "\x2a\x04\x0a\x02\x18\x01" /* arrayValue with the number 1 */
#define TWO  "\x2a\x04\x0a\x02\x18\x02"
#define NINE "\x18\x09"
    CHECK_BECOMES(VALUE, ONE TWO, "\x2a\x08\x0a\x02\x18\x01\x0a\x02\x18\x02");
    CHECK_BECOMES(VALUE, ONE NINE TWO, TWO);
    CHECK_BECOMES(VALUE, ONE TWO NINE, NINE);
}

/* An array of an array of …, each of which has an empty second part. */
static sp_buffer nested_parts(unsigned levels)
{
    sp_buffer inner = SP_BUFFER_INIT(1 << 20);
    for (unsigned i = 0; i < levels; i++) {
        sp_buffer outer = SP_BUFFER_INIT(1 << 20);
        uint8_t head[8] = {0x2a}; /* AnyValue.arrayValue: a list with one value, INNER */
        size_t list = inner.length + 3;
        head[1] = (uint8_t)(list | 128), head[2] = (uint8_t)(list >> 7);
        head[3] = 0x0a, head[4] = (uint8_t)(inner.length | 128),
        head[5] = (uint8_t)(inner.length >> 7);
        assert_true(sp_buffer_add(&outer, head, 6) &&
                    (!inner.length || sp_buffer_add(&outer, inner.data, inner.length)) &&
                    sp_buffer_add(&outer, "\x2a\x00", 2));
        sp_buffer_deinit(&inner);
        inner = outer;
    }
    return inner;
}

/* Each level was once read for each of its parts: 2^40 times the innermost. */
static void wire_read_parts_in_parts_take_no_more_than_their_bytes(void **state)
{
    (void)state;
    sp_arena memory = {0};
    sp_buffer bytes = nested_parts(40);
    sp_wire_report report = sp_wire_check(VALUE, bytes.data, 0, SP_WIRE_TO_THE_END, bytes.length);
    assert_int_equal(report.result, SP_WIRE_FINE);
    assert_non_null(sp_wire_read(&memory, VALUE, bytes.data, bytes.length));
    assert_in_range(memory.used_bytes, 40 * 64, report.memory_bytes + 16 * bytes.length);
    sp_buffer_deinit(&bytes);
    sp_arena_deinit(&memory);
}

static void wire_read_many_parts_are_joined_once(void **state)
{
    (void)state;
    enum { PARTS = 20000 };
    sp_arena memory = {0};
    sp_buffer bytes = SP_BUFFER_INIT(1 << 20);
    for (unsigned i = 0; i < PARTS; i++)
        assert_true(sp_buffer_add(&bytes, "\x0a\x00", 2)); /* ResourceSpans.resource */
    assert_non_null(
        sp_wire_read(&memory, &sp__trace__resource_spans__descriptor, bytes.data, bytes.length));
    assert_in_range(memory.used_bytes, 1, 4 * bytes.length);
    sp_buffer_deinit(&bytes);
    sp_arena_deinit(&memory);
}

static void check_refused(const ProtobufCMessageDescriptor *type, const void *bytes, size_t length)
{
    sp_arena memory = {0};
    ProtobufCMessage *message;
    assert_false(sp_wire_try_read(&memory, type, bytes, length, &message));
    sp_arena_deinit(&memory);
}

#define CHECK_REFUSED(type, text) check_refused(type, text, sizeof(text) - 1)

static void wire_read_without_a_look_refuses_what_is_no_message(void **state)
{
    (void)state;
    const ProtobufCMessageDescriptor *sample = &sp__profiles__sample__descriptor;
    CHECK_REFUSED(sample, "\x08");         /* cut after the tag */
    CHECK_REFUSED(sample, "\x22\x03\x01"); /* cut in a packed list */
    CHECK_REFUSED(sample, "\x08\x81");     /* cut in a number */
    CHECK_REFUSED(sample, "\x0d"
                          "1234");                /* stack_index as a fixed32 */
    CHECK_REFUSED(sample, "\x0b");                /* the begin of a group */
    CHECK_REFUSED(sample, "\x00\x00");            /* field 0 */
    CHECK_REFUSED(sample, "\x98\x06\x01");        /* field 99 */
    CHECK_REFUSED(VALUE, "\x2a\x04\x0a\x02\x18"); /* cut in the innermost of three */
    CHECK_REFUSED(VALUE,
                  "\x2a\x04\x0a\x02\x1d\x01"); /* the innermost has a field of another type */
    sp_buffer deep = nested_parts(SP_OTLP_MAX_DEPTH);
    check_refused(VALUE, deep.data, deep.length);
    sp_buffer_deinit(&deep);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wire_read_random_messages_equal_protobuf_c),
        cmocka_unit_test(wire_read_messages_that_are_split_are_merged),
        cmocka_unit_test(wire_read_unknown_fields_are_kept),
        cmocka_unit_test(wire_read_lists_take_both_forms),
        cmocka_unit_test(wire_read_without_a_look_refuses_what_is_no_message),
        cmocka_unit_test(wire_read_a_oneof_begins_anew_after_another_member),
        cmocka_unit_test(wire_read_parts_in_parts_take_no_more_than_their_bytes),
        cmocka_unit_test(wire_read_many_parts_are_joined_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
