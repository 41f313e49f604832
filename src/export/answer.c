/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the answers of receivers. They are not trusted: they are decoded with limits, and shown on
 * one line of printable UTF-8. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/env.h"
#include "core/hex.h"
#include "core/utf8.h"
#include "export/export_internal.h"
#include "proto/profiles_service.pb-c.h"
#include "proto/rpc_status.pb-c.h"
#include "proto/trace_service.pb-c.h"
#include "wire/unpack.h"

static bool is_of_type(const sp_answer *answer, const char *type)
{
    return answer->content_type && strncasecmp(answer->content_type, type, strlen(type)) == 0;
}

static bool is_protobuf(const sp_answer *answer)
{
    return is_of_type(answer, "application/x-protobuf");
}

static bool is_json(const sp_answer *answer)
{
    return is_of_type(answer, "application/json");
}

static sp_text_range text_of(const sp_answer *answer)
{
    const char *begin = answer->body;
    return (sp_text_range){begin, begin + answer->length};
}

/* Write to OUT the first line of TEXT (LENGTH bytes) that is not empty, with SECRETS masked. */
static void show_line(char out[SP_ANSWER_WORDS], const char *text, size_t length,
                      const sp_secrets *secrets)
{
    char masked[4 * SP_ANSWER_WORDS]; /* characters have 4 bytes at most */
    size_t first = 0, end;
    while (first < length && strchr(" \r\n", text[first]) && text[first])
        first++;
    for (end = first; end < length && text[end] != '\n' && text[end] != '\r'; end++)
        ;
    size_t bytes = sp_secrets_mask(secrets, masked, sizeof masked, text + first, end - first);
    sp_utf8_show(out, SP_ANSWER_WORDS, masked, bytes);
}

/* The same for VALUE, a JSON string. */
static void show_json(char out[SP_ANSWER_WORDS], sp_text_range value, const sp_secrets *secrets)
{
    char *text = malloc((size_t)(value.end - value.begin) + 1);
    if (text)
        show_line(out, text, sp_json_string(text, value), secrets);
    free(text);
}

static void show_protobuf(char out[SP_ANSWER_WORDS], const sp_answer *answer,
                          const sp_secrets *secrets)
{
    ProtobufCMessage *message =
        sp_otlp_unpack(&sp__rpc__status__descriptor, answer->body, answer->length);
    if (!message)
        return;
    const char *words = ((const Sp__Rpc__Status *)(const void *)message)->message;
    show_line(out, words, strlen(words), secrets);
    protobuf_c_message_free_unpacked(message, NULL);
}

void sp_answer_words(char out[SP_ANSWER_WORDS], const sp_answer *answer, const sp_secrets *secrets)
{
    out[0] = 0;
    if (!answer->length)
        return;
    sp_text_range message;
    if (is_protobuf(answer))
        show_protobuf(out, answer, secrets);
    else if (is_json(answer) && sp_json_member(text_of(answer), "message", &message))
        show_json(out, message, secrets);
    else
        show_line(out, answer->body, answer->length, secrets);
}

/* Decode TEXT to OUT, and return the length. A broken escape stays as it is. */
static size_t percent_decode(char *out, const char *text)
{
    size_t length = 0;
    for (uint8_t byte; *text; text++) {
        if (*text == '%' && text[1] && sp_hex_decode(&byte, text + 1, 1, true)) {
            out[length++] = (char)byte;
            text += 2;
        } else {
            out[length++] = *text;
        }
    }
    return length;
}

void sp_answer_grpc_words(char out[SP_ANSWER_WORDS], const char *message, const sp_secrets *secrets)
{
    char *decoded = message ? malloc(strlen(message) + 1) : NULL;
    out[0] = 0;
    if (decoded)
        show_line(out, decoded, percent_decode(decoded, message), secrets);
    free(decoded);
}

static void read_partial(int64_t rejected, const char *words, const sp_secrets *secrets,
                         uint64_t *out_rejected, char out[SP_ANSWER_WORDS])
{
    *out_rejected = rejected > 0 ? (uint64_t)rejected : 0;
    show_line(out, words, strlen(words), secrets);
}

/* {"partialSuccess": {"rejectedSpans": "1", "errorMessage": "…"}}; rejectedSpans may also be a
 * number. */
static bool read_json_partial(const sp_answer *answer, const sp_secrets *secrets,
                              sp_telemetry_signal signal, uint64_t *rejected,
                              char words[SP_ANSWER_WORDS])
{
    static const char *const counts[] = {"rejectedSpans", "rejectedProfiles"};
    sp_text_range partial, value;
    char number[24] = "";
    if (!sp_json_member(text_of(answer), "partialSuccess", &partial))
        return memchr(answer->body, '{', answer->length) != NULL;
    if (sp_json_member(partial, "errorMessage", &value))
        show_json(words, value, secrets);
    if (sp_json_member(partial, counts[signal], &value)) {
        bool quoted = *value.begin == '"';
        snprintf(number, sizeof number, "%.*s", (int)(value.end - value.begin) - 2 * quoted,
                 value.begin + quoted);
    }
    if (!sp_parse_u64(number, rejected) || *rejected > INT64_MAX)
        *rejected = 0;
    return true;
}

static bool read_protobuf_partial(const sp_answer *answer, const sp_secrets *secrets,
                                  sp_telemetry_signal signal, uint64_t *rejected,
                                  char words[SP_ANSWER_WORDS])
{
    const ProtobufCMessageDescriptor *type =
        signal == SP_TRACES ? &sp__collector__export_trace_service_response__descriptor
                            : &sp__collector__export_profiles_service_response__descriptor;
    ProtobufCMessage *message = sp_otlp_unpack(type, answer->body, answer->length);
    if (!message)
        return false;
    const void *any = message;
    if (signal == SP_TRACES) {
        const Sp__Collector__ExportTracePartialSuccess *partial =
            ((const Sp__Collector__ExportTraceServiceResponse *)any)->partial_success;
        if (partial)
            read_partial(partial->rejected_spans, partial->error_message, secrets, rejected, words);
    } else {
        const Sp__Collector__ExportProfilesPartialSuccess *partial =
            ((const Sp__Collector__ExportProfilesServiceResponse *)any)->partial_success;
        if (partial)
            read_partial(partial->rejected_profiles, partial->error_message, secrets, rejected,
                         words);
    }
    protobuf_c_message_free_unpacked(message, NULL);
    return true;
}

bool sp_answer_partial(const sp_answer *answer, const sp_secrets *secrets,
                       sp_telemetry_signal signal, uint64_t *rejected, char words[SP_ANSWER_WORDS])
{
    *rejected = 0;
    words[0] = 0;
    if (!answer->length)
        return true;
    if (is_json(answer))
        return read_json_partial(answer, secrets, signal, rejected, words);
    return is_protobuf(answer) && read_protobuf_partial(answer, secrets, signal, rejected, words);
}
