/* SPDX-License-Identifier: Apache-2.0 */
/* OTLP/JSON of both signals: what is read is written to a text that reads to the same; an error
 * says where. */
#include "fuzz/fuzz.h"

#include "wire/json.h"
#include "tool/read/input.h"
#include "tool/read/json_read.h"

static sp_buffer write_json(const ProtobufCMessage *message)
{
    sp_buffer text = SP_BUFFER_INIT(64 << 20);
    FUZZ_CHECK(sp_otlp_json_write(&text, message));
    return text;
}

static void check_round_trip(sp_arena *memory, const ProtobufCMessageDescriptor *type,
                             const ProtobufCMessage *message)
{
    sp_buffer first = write_json(message);
    ProtobufCMessage *again =
        sp_otlp_json_read(memory, type, (const char *)first.data, first.length, NULL);
    FUZZ_CHECK(again);
    sp_buffer second = write_json(again);
    FUZZ_CHECK(first.length == second.length && memcmp(first.data, second.data, first.length) == 0);
    sp_buffer_deinit(&first);
    sp_buffer_deinit(&second);
}

static void check_error(const sp_json_error *error, size_t length)
{
    FUZZ_CHECK(error->line >= 1 && error->position <= length);
    FUZZ_CHECK(error->text[0] && memchr(error->text, 0, sizeof error->text));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
    for (int signal = SP_SIGNAL_TRACES; signal <= SP_SIGNAL_PROFILES; signal++) {
        const ProtobufCMessageDescriptor *type = sp_signal_descriptor((sp_signal)signal);
        sp_json_error error;
        memset(&error, 0xaa, sizeof error);
        sp_arena memory = {0};
        ProtobufCMessage *message =
            sp_otlp_json_read(&memory, type, (const char *)data, length, &error);
        if (message)
            check_round_trip(&memory, type, message);
        else
            check_error(&error, length);
        sp_arena_deinit(&memory);
    }
    return 0;
}
