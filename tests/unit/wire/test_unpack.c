/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "golden/golden_data.h"
#include "wire/json.h"
#include "wire/unpack.h"
#include "proto/profiles_service.pb-c.h"

#define PROFILES (&sp__collector__export_profiles_service_request__descriptor)
#define VALUE    (&sp__common__any_value__descriptor)

static size_t put_varint(uint8_t *at, size_t value)
{
    size_t count = 0;
    for (; value > 127; value >>= 7)
        at[count++] = (uint8_t)(value | 128);
    at[count++] = (uint8_t)value;
    return count;
}

/* LEVELS messages in each other, AnyValue and ArrayValue in turns, built from the inside at the end
 * of a large buffer. */
static uint8_t *nested(size_t levels, size_t *length, uint8_t **memory)
{
    size_t size = levels * 8 + 16;
    uint8_t *start = malloc(size), *at = start + size;
    for (size_t level = levels; level > 1; level--) {
        uint8_t head[12] = {
            level % 2 ? 0x0a /* ArrayValue.values */ : 0x2a /* AnyValue.array_value */};
        size_t bytes = 1 + put_varint(head + 1, (size_t)(start + size - at));
        at -= bytes;
        memcpy(at, head, bytes);
    }
    *memory = start;
    *length = (size_t)(start + size - at);
    return at;
}

static void unpack_nesting_up_to_the_limit_is_read(void **state)
{
    (void)state;
    uint8_t *memory;
    size_t length;
    uint8_t *bytes = nested(SP_OTLP_MAX_DEPTH, &length, &memory);
    ProtobufCMessage *message = sp_otlp_unpack(VALUE, bytes, length);
    assert_non_null(message);
    sp_buffer json = SP_BUFFER_INIT(1 << 20);
    assert_true(sp_otlp_json_write(&json, message));
    sp_buffer_deinit(&json);
    protobuf_c_message_free_unpacked(message, NULL);
    free(memory);
}

static void unpack_deeper_nesting_is_refused(void **state)
{
    (void)state;
    static const size_t levels[] = {SP_OTLP_MAX_DEPTH + 1, 1000, 500000};
    for (size_t i = 0; i < 3; i++) {
        uint8_t *memory;
        size_t length;
        uint8_t *bytes = nested(levels[i], &length, &memory);
        assert_null(sp_otlp_unpack(VALUE, bytes, length));
        free(memory);
    }
}

static void unpack_empty_bytes_are_the_empty_message(void **state)
{
    (void)state;
    ProtobufCMessage *message = sp_otlp_unpack(PROFILES, "", 0);
    assert_non_null(message);
    assert_int_equal(protobuf_c_message_get_packed_size(message), 0);
    protobuf_c_message_free_unpacked(message, NULL);
}

static void unpack_unknown_fields_of_every_wire_type_are_skipped(void **state)
{
    (void)state;
    /* Fields 1000 to 1003 as varint, 64 bits, bytes, 32 bits; then int_value 5. */
    static const uint8_t bytes[] = {0xc0, 0x3e, 0x05, 0xc9, 0x3e, 1,    2,    3,    4,
                                    5,    6,    7,    8,    0xd2, 0x3e, 0x02, 0xff, 0xff,
                                    0xdd, 0x3e, 1,    2,    3,    4,    0x18, 0x05};
    Sp__Common__AnyValue *value = (void *)sp_otlp_unpack(VALUE, bytes, sizeof bytes);
    assert_non_null(value);
    assert_int_equal(value->int_value, 5);
    protobuf_c_message_free_unpacked(&value->base, NULL);
}

/* Cut and damaged bytes: a message or NULL, never more; the sanitizers watch. */
static void unpack_damaged_bytes_never_crash(void **state)
{
    (void)state;
    sp_buffer out = SP_BUFFER_INIT(1 << 20);
    assert_true(
        sp_otlp_encode_profiles(&out, SP_OTLP_PROTOBUF, &golden_resource, &golden_profile_data));
    size_t refused = 0;
    for (size_t i = 0; i < out.length; i++) {
        uint8_t *cut = malloc(i + 1);
        memcpy(cut, out.data, i);
        ProtobufCMessage *message = sp_otlp_unpack(PROFILES, cut, i);
        refused += message == NULL;
        protobuf_c_message_free_unpacked(message, NULL);
        free(cut);
        for (unsigned flip = 1; flip < 256; flip <<= 1) {
            out.data[i] ^= (uint8_t)flip;
            message = sp_otlp_unpack(PROFILES, out.data, out.length);
            protobuf_c_message_free_unpacked(message, NULL);
            out.data[i] ^= (uint8_t)flip;
        }
    }
    assert_int_equal(refused,
                     out.length - 2); /* only the cuts between two outermost fields are messages */
    sp_buffer_deinit(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unpack_nesting_up_to_the_limit_is_read),
        cmocka_unit_test(unpack_deeper_nesting_is_refused),
        cmocka_unit_test(unpack_empty_bytes_are_the_empty_message),
        cmocka_unit_test(unpack_unknown_fields_of_every_wire_type_are_skipped),
        cmocka_unit_test(unpack_damaged_bytes_never_crash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
