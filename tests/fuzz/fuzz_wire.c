/* SPDX-License-Identifier: Apache-2.0 */
/* Protobuf of both signals: what looks fine takes the memory that was foretold, what is unpacked
 * packs to the same again, and the command's reader reads what protobuf-c unpacks. */
#include "fuzz/fuzz.h"

#include "wire/unpack.h"
#include "tool/read/input.h"
#include "tool/read/wire.h"
#include "tool/read/wire_read.h"

static uint64_t live_bytes;

/* Each block has its size in front. */
static void *count_alloc(void *user, size_t bytes)
{
    (void)user;
    size_t *block = malloc(bytes + 16);
    FUZZ_CHECK(block);
    *block = bytes;
    live_bytes += bytes;
    return (char *)block + 16;
}

static void count_free(void *user, void *memory)
{
    (void)user;
    if (!memory)
        return;
    size_t *block = (size_t *)(void *)((char *)memory - 16);
    live_bytes -= *block;
    free(block);
}

/* The estimate is what keeps a small file from taking all memory: it may be too low by some factor,
 * not by any. */
static void check_estimate(const sp_wire_report *report, const ProtobufCMessageDescriptor *type,
                           const uint8_t *data, size_t length)
{
    ProtobufCAllocator allocator = {.alloc = count_alloc, .free = count_free};
    ProtobufCMessage *message = protobuf_c_message_unpack(type, &allocator, length, data);
    FUZZ_CHECK(live_bytes <= report->memory_bytes + 4 * length);
    if (message)
        protobuf_c_message_free_unpacked(message, &allocator);
    FUZZ_CHECK(live_bytes == 0);
}

static uint8_t *pack(const ProtobufCMessage *message, size_t *length)
{
    *length = protobuf_c_message_get_packed_size(message);
    uint8_t *bytes = malloc(*length ? *length : 1);
    FUZZ_CHECK(bytes && protobuf_c_message_pack(message, bytes) == *length);
    return bytes;
}

static void check_unpacked(const ProtobufCMessageDescriptor *type, ProtobufCMessage *message)
{
    size_t first_length, second_length;
    uint8_t *first = pack(message, &first_length);
    ProtobufCMessage *again = sp_otlp_unpack(type, first, first_length);
    FUZZ_CHECK(again);
    uint8_t *second = pack(again, &second_length);
    FUZZ_CHECK(first_length == second_length && memcmp(first, second, first_length) == 0);
    free(first);
    free(second);
    protobuf_c_message_free_unpacked(again, NULL);
}

/* Whatever looks fine is read, and what protobuf-c packs is read as the same. */
static void check_read(const ProtobufCMessageDescriptor *type, const uint8_t *data, size_t length,
                       const ProtobufCMessage *unpacked)
{
    sp_arena memory = {0};
    FUZZ_CHECK(sp_wire_read(&memory, type, data, length));
    if (unpacked) {
        size_t wanted_length, got_length;
        uint8_t *wanted = pack(unpacked, &wanted_length);
        const ProtobufCMessage *read = sp_wire_read(&memory, type, wanted, wanted_length);
        FUZZ_CHECK(read);
        uint8_t *got = pack(read, &got_length);
        FUZZ_CHECK(got_length == wanted_length && memcmp(got, wanted, got_length) == 0);
        free(wanted);
        free(got);
    }
    sp_arena_deinit(&memory);
}

/* The reader that needs no look refuses what the look finds. */
static void check_try_read(const sp_wire_report *report, const ProtobufCMessageDescriptor *type,
                           const uint8_t *data, size_t length)
{
    sp_arena memory = {0};
    ProtobufCMessage *message;
    bool is_read = sp_wire_try_read(&memory, type, data, length, &message);
    FUZZ_CHECK(is_read == (report->result == SP_WIRE_FINE && report->unknown == 0));
    FUZZ_CHECK(!is_read || message);
    sp_arena_deinit(&memory);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
    for (int signal = SP_SIGNAL_TRACES; signal <= SP_SIGNAL_PROFILES; signal++) {
        const ProtobufCMessageDescriptor *type = sp_signal_descriptor((sp_signal)signal);
        sp_wire_report report = sp_wire_check(type, data, 0, SP_WIRE_TO_THE_END, length);
        FUZZ_CHECK(report.position <= length);
        FUZZ_CHECK(report.result != SP_WIRE_BAD || report.problem);
        check_try_read(&report, type, data, length);
        if (report.result == SP_WIRE_FINE)
            check_estimate(&report, type, data, length);
        ProtobufCMessage *message = sp_otlp_unpack(type, data, length);
        if (report.result == SP_WIRE_FINE)
            check_read(type, data, length, message);
        if (!message)
            continue;
        check_unpacked(type, message);
        protobuf_c_message_free_unpacked(message, NULL);
    }
    return 0;
}
