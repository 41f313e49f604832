/* SPDX-License-Identifier: Apache-2.0 */
/* gRPC over libcurl's HTTP/2: how a body frames a message, and what the status of a call means. The
 * format is from gRPC's PROTOCOL-HTTP2.md; OTLP's specification says after which status to try
 * again. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/base64.h"
#include "core/env.h"
#include "core/path.h"
#include "export/export_internal.h"
#include "proto/rpc_status.pb-c.h"
#include "wire/unpack.h"

/* The prefix of each message: whether it is compressed (1 byte), and its length (4 bytes, the
 * highest first). */
enum { PREFIX_BYTES = 5 };

/* Longer details of a status are not read: no server uses that many bytes for all headers of a
 * message. */
enum { DETAILS_MAX_BYTES = 65536 };

bool sp_grpc_frame(sp_buffer *body, bool gzip)
{
    size_t length = body->length;
    if (length > UINT32_MAX)
        return false;
    body->maximum = length + PREFIX_BYTES;
    if (!sp_buffer_reserve(body, PREFIX_BYTES))
        return false;
    memmove(body->data + PREFIX_BYTES, body->data, length);
    body->data[0] = gzip;
    for (int i = 1; i < PREFIX_BYTES; i++)
        body->data[i] = (uint8_t)(length >> 8 * (PREFIX_BYTES - 1 - i));
    body->length += PREFIX_BYTES;
    return true;
}

static bool unpack(sp_answer *answer, sp_buffer *room)
{
    sp_buffer_clear(room);
    if (!sp_gunzip(room, answer->body, answer->length))
        return false;
    answer->body = room->data;
    answer->length = room->length;
    return true;
}

bool sp_grpc_unframe(sp_answer *answer, sp_buffer *room)
{
    const uint8_t *bytes = answer->body;
    size_t length = 0;
    if (answer->length == 0)
        return true;
    if (answer->length < PREFIX_BYTES || bytes[0] > 1)
        return false;
    for (int i = 1; i < PREFIX_BYTES; i++)
        length = length << 8 | bytes[i];
    if (length != answer->length - PREFIX_BYTES)
        return false;
    answer->body = bytes + PREFIX_BYTES;
    answer->length = length;
    return bytes[0] == 0 || unpack(answer, room);
}

/* ---- The status ---- */

const char *sp_grpc_status_name(uint32_t code)
{
    static const char *const names[] = {"OK",
                                        "CANCELLED",
                                        "UNKNOWN",
                                        "INVALID_ARGUMENT",
                                        "DEADLINE_EXCEEDED",
                                        "NOT_FOUND",
                                        "ALREADY_EXISTS",
                                        "PERMISSION_DENIED",
                                        "RESOURCE_EXHAUSTED",
                                        "FAILED_PRECONDITION",
                                        "ABORTED",
                                        "OUT_OF_RANGE",
                                        "UNIMPLEMENTED",
                                        "INTERNAL",
                                        "UNAVAILABLE",
                                        "DATA_LOSS",
                                        "UNAUTHENTICATED"};
    return code < SP_ARRAY_LENGTH(names) ? names[code] : "no known status";
}

/* The value of NAME in the trailers, or in the headers of an answer that has nothing else. NULL:
 * none. */
static const char *header_of(CURL *easy, const char *name)
{
    struct curl_header *header;
    const unsigned anywhere = CURLH_HEADER | CURLH_TRAILER;
    if (curl_easy_header(easy, name, 0, anywhere, -1, &header) != CURLHE_OK)
        return NULL;
    return header->value;
}

static bool is_retry_info(const Sp__Rpc__Any *any)
{
    static const char type[] = "google.rpc.RetryInfo";
    return strcmp(sp_path_base(any->type_url), type) == 0;
}

/* Read the delay that ANY, a RetryInfo, asks for. False when it cannot be decoded. */
static bool read_delay(const Sp__Rpc__Any *any, uint64_t *wait_ns)
{
    ProtobufCMessage *message =
        sp_otlp_unpack(&sp__rpc__retry_info__descriptor, any->value.data, any->value.len);
    if (!message)
        return false;
    const Sp__Rpc__Duration *delay =
        ((const Sp__Rpc__RetryInfo *)(const void *)message)->retry_delay;
    *wait_ns = 0;
    if (delay && delay->seconds >= 0 && delay->nanos >= 0)
        *wait_ns = sp_min_u64((uint64_t)delay->seconds, SP_RETRY_AFTER_MAX_S) * SP_NS_PER_S +
                   (uint64_t)delay->nanos;
    *wait_ns = sp_min_u64(*wait_ns, SP_RETRY_AFTER_MAX_S * SP_NS_PER_S);
    protobuf_c_message_free_unpacked(message, NULL);
    return true;
}

static bool read_status(const uint8_t *bytes, size_t count, uint64_t *wait_ns)
{
    bool found = false;
    ProtobufCMessage *message = sp_otlp_unpack(&sp__rpc__status__descriptor, bytes, count);
    if (!message)
        return false;
    const Sp__Rpc__Status *status = (const void *)message;
    for (size_t i = 0; i < status->n_details && !found; i++)
        found = is_retry_info(status->details[i]) && read_delay(status->details[i], wait_ns);
    protobuf_c_message_free_unpacked(message, NULL);
    return found;
}

bool sp_grpc_retry_info(const char *details, uint64_t *wait_ns)
{
    size_t count, length = strlen(details);
    if (length > DETAILS_MAX_BYTES)
        return false;
    uint8_t *bytes = malloc(length + 1);
    bool found = bytes && sp_base64_decode(bytes, &count, details, length) &&
                 read_status(bytes, count, wait_ns);
    free(bytes);
    return found;
}

bool sp_grpc_is_answer(CURL *easy)
{
    static const char own[] = "application/grpc";
    char *type = NULL;
    curl_easy_getinfo(easy, CURLINFO_CONTENT_TYPE, &type);
    return type && strncasecmp(type, own, sizeof own - 1) == 0;
}

bool sp_grpc_broke_off(CURL *easy)
{
    return sp_grpc_is_answer(easy) && !header_of(easy, "grpc-status");
}

bool sp_grpc_status_of(CURL *easy, sp_grpc_status *out)
{
    uint64_t code;
    const char *text = header_of(easy, "grpc-status");
    *out = (sp_grpc_status){0};
    if (!text || !sp_parse_u64(text, &code) || code > UINT32_MAX)
        return false;
    out->code = (uint32_t)code;
    out->message = header_of(easy, "grpc-message");
    const char *details = header_of(easy, "grpc-status-details-bin");
    out->has_retry_info = details && sp_grpc_retry_info(details, &out->wait_ns);
    return true;
}
