/* SPDX-License-Identifier: Apache-2.0 */
/* The W3C traceparent header (Trace Context level 2, section 3.2):
 *
 *     00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
 *     version trace id, 16 bytes           parent id, 8     flags      each in lower-case hex
 *
 * A higher version may have more fields after the flags, separated by a dash. Their meaning is
 * unknown, so they are ignored. */
#include <string.h>

#include "core/compiler.h"
#include "core/hex.h"
#include "core/word.h"
#include "trace/propagators.h"

enum {
    TRACE_ID_AT = 3,
    TRACE_ID_HALF = 16, /* digits */
    SPAN_ID_AT = 36,
    FLAGS_AT = 53,
    TRACEPARENT_LENGTH = 55,
    KNOWN_FLAGS = SPANPROF_TRACE_FLAG_SAMPLED | SPANPROF_TRACE_FLAG_RANDOM
};

static inline bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static inline bool has_dashes(const char *text)
{
    return text[TRACE_ID_AT - 1] == '-' && text[SPAN_ID_AT - 1] == '-' && text[FLAGS_AT - 1] == '-';
}

/* Version 00 has exactly this length; ff is forbidden; others may continue after a dash. */
static inline bool is_version_good(const char *text, size_t length)
{
    if (SP_LIKELY(text[0] == '0' && text[1] == '0'))
        return length == TRACEPARENT_LENGTH;
    uint8_t version;
    if (!sp_hex_decode(&version, text, 1, false) || version == 0xff)
        return false;
    return length == TRACEPARENT_LENGTH || text[TRACEPARENT_LENGTH] == '-';
}

/* The ids are moved in words: a vector that was just written in words, or the other way round, is
 * slow to read. */
bool sp_traceparent_read(spanprof_context *out, const char *text, size_t length)
{
    *out = (spanprof_context){0};
    while (length > 0 && is_blank(*text))
        text++, length--;
    while (length > 0 && is_blank(text[length - 1]))
        length--;
    if (length < TRACEPARENT_LENGTH || !is_version_good(text, length) || !has_dashes(text))
        return false;
    uint64_t trace_high, trace_low, span;
    uint8_t flags;
    bool good = sp_hex_decode16(&trace_high, text + TRACE_ID_AT);
    good &= sp_hex_decode16(&trace_low, text + TRACE_ID_AT + TRACE_ID_HALF);
    good &= sp_hex_decode16(&span, text + SPAN_ID_AT);
    if (!good || !sp_hex_decode(&flags, text + FLAGS_AT, 1, false) ||
        (trace_high | trace_low) == 0 || span == 0)
        return false;
    sp_word_store(out->trace_id, 0, trace_high);
    sp_word_store(out->trace_id, 1, trace_low);
    sp_word_store(out->span_id, 0, span);
    out->trace_flags = flags & KNOWN_FLAGS;
    out->remote = 1;
    return true;
}

size_t spanprof_context_inject(const spanprof_context *context, char traceparent[56])
{
    if (!traceparent)
        return 0;
    traceparent[0] = 0;
    if (!context)
        return 0;
    uint64_t trace_high = sp_word_load(context->trace_id, 0),
             trace_low = sp_word_load(context->trace_id, 1);
    uint64_t span = sp_word_load(context->span_id, 0);
    if ((trace_high | trace_low) == 0 || span == 0)
        return 0;
    memcpy(traceparent, "00-", 3);
    sp_hex_encode16(traceparent + TRACE_ID_AT, trace_high);
    sp_hex_encode16(traceparent + TRACE_ID_AT + TRACE_ID_HALF, trace_low);
    sp_hex_encode16(traceparent + SPAN_ID_AT, span);
    traceparent[SPAN_ID_AT - 1] = traceparent[FLAGS_AT - 1] = '-';
    traceparent[FLAGS_AT] = '0';
    traceparent[FLAGS_AT + 1] = (char)('0' + (context->trace_flags & KNOWN_FLAGS));
    traceparent[TRACEPARENT_LENGTH] = 0;
    return TRACEPARENT_LENGTH;
}
