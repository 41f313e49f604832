/* SPDX-License-Identifier: Apache-2.0 */
/* What a receiver answered. All of it is somebody else's bytes: it is decoded with limits, and shown on one line of printable
 * UTF-8. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "core/utf8.h"
#include "export/internal.h"
#include "otlp/unpack.h"
#include "proto/profiles_service.pb-c.h"
#include "proto/rpc_status.pb-c.h"
#include "proto/trace_service.pb-c.h"

static bool is_protobuf(const sp_answer *answer)
{
    static const char type[] = "application/x-protobuf";
    return answer->content_type && strncasecmp(answer->content_type, type, sizeof type - 1) == 0;
}

/* The first line of TEXT, of LENGTH bytes, that is not empty. */
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

void sp_answer_words(char out[SP_ANSWER_WORDS], const sp_answer *answer, const sp_secrets *secrets)
{
    out[0] = 0;
    if (!answer->length)
        return;
    if (!is_protobuf(answer)) {
        show_line(out, answer->body, answer->length, secrets);
        return;
    }
    ProtobufCMessage *message =
        sp_otlp_unpack(&sp__rpc__status__descriptor, answer->body, answer->length);
    if (!message)
        return;
    const char *words = ((const Sp__Rpc__Status *)(const void *)message)->message;
    show_line(out, words, strlen(words), secrets);
    protobuf_c_message_free_unpacked(message, NULL);
}

static void read_partial(int64_t rejected, const char *words, const sp_secrets *secrets,
                         uint64_t *out_rejected, char out[SP_ANSWER_WORDS])
{
    *out_rejected = rejected > 0 ? (uint64_t)rejected : 0;
    show_line(out, words, strlen(words), secrets);
}

bool sp_answer_partial(const sp_answer *answer, const sp_secrets *secrets,
                       sp_telemetry_signal signal, uint64_t *rejected, char words[SP_ANSWER_WORDS])
{
    *rejected = 0;
    words[0] = 0;
    if (!answer->length)
        return true;
    if (!is_protobuf(answer))
        return false;
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
