/* SPDX-License-Identifier: Apache-2.0 */
/* A traceparent header: never a wrong id. */
#include "fuzz/fuzz.h"

#include <spanprof/context.h>

enum {
    IDS_AT = 3,
    IDS_LENGTH = 49
}; /* "TRACE ID-SPAN ID" in a header that has no blanks before it */

static void check_accepted(const spanprof_context *read, const char *text)
{
    static const spanprof_context none;
    FUZZ_CHECK(memcmp(read->trace_id, none.trace_id, 16) != 0);
    FUZZ_CHECK(memcmp(read->span_id, none.span_id, 8) != 0);
    FUZZ_CHECK(memcmp(read->local_root_span_id, none.span_id, 8) == 0);
    FUZZ_CHECK(read->remote == 1);
    char written[56];
    FUZZ_CHECK(spanprof_context_inject(read, written) == 55 && strlen(written) == 55);
    text += strspn(text, " \t");
    FUZZ_CHECK(memcmp(written + IDS_AT, text + IDS_AT, IDS_LENGTH) == 0);
    spanprof_context again;
    FUZZ_CHECK(spanprof_context_extract(&again, written, NULL));
    FUZZ_CHECK(memcmp(&again, read, sizeof again) == 0);
}

/* The other way round: what is written for any valid context is read back. */
static void check_injected(const uint8_t *data, size_t length)
{
    spanprof_context context = {.remote = 1}, back;
    if (length < 25)
        return;
    memcpy(context.trace_id, data, 16);
    memcpy(context.span_id, data + 16, 8);
    context.trace_flags = data[24] & (SPANPROF_TRACE_FLAG_SAMPLED | SPANPROF_TRACE_FLAG_RANDOM);
    char written[56];
    if (spanprof_context_inject(&context, written) == 0)
        return;
    FUZZ_CHECK(spanprof_context_extract(&back, written, NULL));
    FUZZ_CHECK(memcmp(&back, &context, sizeof back) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
    char *text = fuzz_string(data, length);
    spanprof_context read, none;
    memset(&none, 0, sizeof none);
    memset(&read, 0xaa, sizeof read);
    if (spanprof_context_extract(&read, text, NULL))
        check_accepted(&read, text);
    else
        FUZZ_CHECK(memcmp(&read, &none, sizeof read) == 0);
    free(text);
    check_injected(data, length);
    return 0;
}
