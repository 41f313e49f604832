/* SPDX-License-Identifier: Apache-2.0 */
/* The W3C traceparent header (Trace Context level 2, section 3.2):
 *
 *     00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
 *     version trace id, 16 bytes           parent id, 8     flags      each in lower-case hex
 *
 * A higher version may have more behind the flags, separated by a dash; what it means is unknown, so it is ignored. */
#include <string.h>

#include "core/compiler.h"
#include "core/hex.h"

#include <spanprof/context.h>

enum { TRACE_ID_AT = 3, SPAN_ID_AT = 36, FLAGS_AT = 53, TRACEPARENT_LENGTH = 55 };

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static bool is_zero(const uint8_t *bytes, size_t count)
{
    uint8_t any = 0;
    for (size_t i = 0; i < count; i++)
        any |= bytes[i];
    return any == 0;
}

/* TEXT up to its last byte that is not blank. */
static size_t trimmed_length(const char *text)
{
    size_t length = strlen(text);
    while (length > 0 && is_blank(text[length - 1]))
        length--;
    return length;
}

static bool has_dashes(const char *text)
{
    return text[TRACE_ID_AT - 1] == '-' && text[SPAN_ID_AT - 1] == '-' && text[FLAGS_AT - 1] == '-';
}

/* Version 00 is exactly as long as it is; ff is forbidden; others may go on behind a dash. */
static bool is_version_good(const char *text, size_t length)
{
    uint8_t version;
    if (!sp_hex_decode(&version, text, 1, false) || version == 0xff)
        return false;
    return length == TRACEPARENT_LENGTH || (version != 0 && text[TRACEPARENT_LENGTH] == '-');
}

bool spanprof_context_extract(spanprof_context *out, const char *traceparent,
                              const char *tracestate)
{
    (void)tracestate; /* see context.h */
    if (!out)
        return false;
    memset(out, 0, sizeof *out);
    if (!traceparent)
        return false;
    while (is_blank(*traceparent))
        traceparent++;
    size_t length = trimmed_length(traceparent);
    spanprof_context read = {.remote = 1};
    if (length < TRACEPARENT_LENGTH || !is_version_good(traceparent, length) ||
        !has_dashes(traceparent) ||
        !sp_hex_decode(read.trace_id, traceparent + TRACE_ID_AT, sizeof read.trace_id, false) ||
        !sp_hex_decode(read.span_id, traceparent + SPAN_ID_AT, sizeof read.span_id, false) ||
        !sp_hex_decode(&read.trace_flags, traceparent + FLAGS_AT, 1, false))
        return false;
    if (is_zero(read.trace_id, sizeof read.trace_id) || is_zero(read.span_id, sizeof read.span_id))
        return false;
    read.trace_flags &= SPANPROF_TRACE_FLAG_SAMPLED | SPANPROF_TRACE_FLAG_RANDOM;
    *out = read;
    return true;
}

size_t spanprof_context_inject(const spanprof_context *context, char traceparent[56])
{
    if (!traceparent)
        return 0;
    traceparent[0] = 0;
    if (!context || is_zero(context->trace_id, sizeof context->trace_id) ||
        is_zero(context->span_id, sizeof context->span_id))
        return 0;
    uint8_t flags =
        context->trace_flags & (SPANPROF_TRACE_FLAG_SAMPLED | SPANPROF_TRACE_FLAG_RANDOM);
    memcpy(traceparent, "00-", 3);
    sp_hex_encode(traceparent + TRACE_ID_AT, context->trace_id, sizeof context->trace_id);
    traceparent[SPAN_ID_AT - 1] = '-';
    sp_hex_encode(traceparent + SPAN_ID_AT, context->span_id, sizeof context->span_id);
    traceparent[FLAGS_AT - 1] = '-';
    sp_hex_encode(traceparent + FLAGS_AT, &flags, 1);
    return TRACEPARENT_LENGTH;
}
