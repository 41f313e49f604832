/* SPDX-License-Identifier: Apache-2.0 */
/* What a receiver answers, read in every way in which it may be read: what is shown of it is one
 * line of printable UTF-8. */
#include "fuzz/fuzz.h"

#include "core/utf8.h"
#include "export/export_internal.h"

static void check_words(const char words[SP_ANSWER_WORDS])
{
    size_t length = strnlen(words, SP_ANSWER_WORDS);
    FUZZ_CHECK(length < SP_ANSWER_WORDS && sp_utf8_valid(words, length));
    for (size_t i = 0; i < length; i++)
        FUZZ_CHECK((unsigned char)words[i] >= ' ' && words[i] != 0x7f);
}

/* As a call of gRPC ends: the input is the body, or what headers say. */
static void check_grpc(const uint8_t *data, size_t length)
{
    static const sp_secrets none;
    sp_answer answer = {.body = data, .length = length};
    sp_buffer room = SP_BUFFER_INIT(65536);
    char words[SP_ANSWER_WORDS], *text = strndup((const char *)data, length);
    uint64_t wait_ns = 0;
    if (sp_grpc_unframe(&answer, &room))
        FUZZ_CHECK(answer.length <= 65536 || answer.length < length);
    sp_answer_grpc_words(words, text, &none);
    check_words(words);
    if (sp_grpc_retry_info(text, &wait_ns))
        FUZZ_CHECK(wait_ns <= SP_RETRY_AFTER_MAX_S * SP_NS_PER_S);
    sp_buffer_deinit(&room);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
    check_grpc(data, length);
    static const sp_secrets none;
    static const char *const types[] = {"application/x-protobuf", "application/json", "text/plain",
                                        NULL};
    for (size_t i = 0; i < SP_ARRAY_LENGTH(types); i++) {
        sp_answer answer = {.content_type = types[i], .body = data, .length = length};
        char words[SP_ANSWER_WORDS];
        memset(words, 'x', sizeof words);
        sp_answer_words(words, &answer, &none);
        check_words(words);
        for (int signal = SP_TRACES; signal <= SP_PROFILES; signal++) {
            uint64_t rejected = UINT64_MAX;
            memset(words, 'x', sizeof words);
            sp_answer_partial(&answer, &none, (sp_telemetry_signal)signal, &rejected, words);
            FUZZ_CHECK(rejected <= INT64_MAX);
            check_words(words);
        }
    }
    return 0;
}
