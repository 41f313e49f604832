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

/* LENGTH bytes of TEXT into OUT: control characters and what is not UTF-8 become '?', what does not fit is cut with "...". */
static void clean(char out[SP_ANSWER_WORDS], const char *text, size_t length)
{
    size_t used = 0, position = 0;
    while (position < length &&
           (text[position] == ' ' || text[position] == '\n' || text[position] == '\r'))
        position++;
    while (position < length && text[position] != '\n' && text[position] != '\r') {
        size_t bytes = sp_utf8_sequence(text + position, length - position);
        bool printable =
            bytes > 1 || (bytes == 1 && text[position] >= ' ' && text[position] != 0x7f);
        if (used + (printable ? bytes : 1) + sizeof "..." > SP_ANSWER_WORDS) {
            memcpy(out + used, "...", 3);
            used += 3;
            break;
        }
        if (printable)
            memcpy(out + used, text + position, bytes);
        else
            out[used] = '?';
        used += printable ? bytes : 1;
        position += bytes ? bytes : 1;
    }
    out[used] = 0;
}

void sp_answer_words(char out[SP_ANSWER_WORDS], const sp_answer *answer)
{
    out[0] = 0;
    if (!answer->length)
        return;
    if (!is_protobuf(answer)) {
        clean(out, answer->body, answer->length);
        return;
    }
    ProtobufCMessage *message =
        sp_otlp_unpack(&sp__rpc__status__descriptor, answer->body, answer->length);
    if (!message)
        return;
    const char *words = ((const Sp__Rpc__Status *)(const void *)message)->message;
    clean(out, words, strlen(words));
    protobuf_c_message_free_unpacked(message, NULL);
}

static void read_partial(int64_t rejected, const char *words, uint64_t *out_rejected,
                         char out[SP_ANSWER_WORDS])
{
    *out_rejected = rejected > 0 ? (uint64_t)rejected : 0;
    clean(out, words, strlen(words));
}

bool sp_answer_partial(const sp_answer *answer, sp_telemetry_signal signal, uint64_t *rejected,
                       char words[SP_ANSWER_WORDS])
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
            read_partial(partial->rejected_spans, partial->error_message, rejected, words);
    } else {
        const Sp__Collector__ExportProfilesPartialSuccess *partial =
            ((const Sp__Collector__ExportProfilesServiceResponse *)any)->partial_success;
        if (partial)
            read_partial(partial->rejected_profiles, partial->error_message, rejected, words);
    }
    protobuf_c_message_free_unpacked(message, NULL);
    return true;
}
