/* SPDX-License-Identifier: Apache-2.0 */
/* The headers of a request, one a line: t is a traceparent, s a tracestate, b a baggage, and what
 * follows the letter is the value. What is extracted and injected again is within the limits,
 * cannot end a header, and is extracted as the same. */
#include "fuzz/fuzz.h"

#include <spanprof/propagation.h>
#include "trace/propagators.h"

enum { LINES = 64 };

typedef struct request {
    uint32_t count;
    char kinds[LINES];
    spanprof_header_value values[LINES];
} request;

/* Each value in a block of its own, without a NUL. */
static void read_request(request *out, const uint8_t *data, size_t length)
{
    out->count = 0;
    while (length > 0 && out->count < LINES) {
        const uint8_t *end = memchr(data, '\n', length);
        size_t line = end ? (size_t)(end - data) : length;
        if (line > 0) {
            char *copy = malloc(line);
            FUZZ_CHECK(copy);
            memcpy(copy, data + 1, line - 1);
            out->kinds[out->count] = (char)data[0];
            out->values[out->count++] = (spanprof_header_value){copy, line - 1};
        }
        line += end != NULL;
        data += line;
        length -= line;
    }
}

static bool get(void *user, const char *name, uint32_t index, spanprof_header_value *value)
{
    const request *r = user;
    char kind = strcmp(name, "traceparent") == 0 ? 't' : name[0] == 't' ? 's' : 'b';
    for (uint32_t i = 0; i < r->count; i++)
        if (r->kinds[i] == kind && index-- == 0) {
            *value = r->values[i];
            return true;
        }
    return false;
}

/* What an inject wrote: "" for none. */
typedef struct written {
    char traceparent[56];
    char tracestate[SP_TRACE_STATE_BYTES + 1];
    char baggage[SP_BAGGAGE_BYTES + 1];
} written;

static void keep(char *to, size_t room, const char *value)
{
    FUZZ_CHECK(*value && strlen(value) < room && !*to);
    for (const char *c = value; *c; c++)
        FUZZ_CHECK((*c >= ' ' && *c <= '~') || *c == '\t');
    strcpy(to, value);
}

static void set(void *user, const char *name, const char *value)
{
    written *w = user;
    if (strcmp(name, "traceparent") == 0)
        keep(w->traceparent, sizeof w->traceparent, value);
    else if (strcmp(name, "tracestate") == 0)
        keep(w->tracestate, sizeof w->tracestate, value);
    else
        keep(w->baggage, sizeof w->baggage, value);
}

static uint32_t members_of(const char *list)
{
    uint32_t count = *list != 0;
    for (; *list; list++)
        count += *list == ',';
    return count;
}

static void inject(const spanprof_context *context, written *out)
{
    memset(out, 0, sizeof *out);
    uint32_t headers = spanprof_propagation_inject(context, set, out);
    FUZZ_CHECK(headers ==
               (uint32_t)(*out->traceparent != 0) + (*out->tracestate != 0) + (*out->baggage != 0));
    FUZZ_CHECK(members_of(out->tracestate) <= SP_TRACE_STATE_MEMBERS);
    FUZZ_CHECK(members_of(out->baggage) <= SP_BAGGAGE_MEMBERS);
    FUZZ_CHECK(*out->traceparent || !*out->tracestate);
}

static void check_round_trip(const spanprof_context *context, bool valid)
{
    static written first, second; /* too large for a stack */
    inject(context, &first);
    FUZZ_CHECK(valid == (strlen(first.traceparent) == 55));
    request again = {.count = 3,
                     .kinds = {'t', 's', 'b'},
                     .values = {{first.traceparent, strlen(first.traceparent)},
                                {first.tracestate, strlen(first.tracestate)},
                                {first.baggage, strlen(first.baggage)}}};
    spanprof_context back;
    FUZZ_CHECK(spanprof_propagation_extract(&back, get, &again) == valid);
    FUZZ_CHECK(memcmp(&back, context, offsetof(spanprof_context, carrier)) == 0);
    inject(&back, &second);
    FUZZ_CHECK(memcmp(&first, &second, sizeof first) == 0);
}

/* The only valid traceparent among the headers, by itself: the same ids. */
static void check_ids(const request *r, const spanprof_context *context, bool valid)
{
    spanprof_context alone;
    const spanprof_header_value *only = NULL;
    uint32_t count = 0;
    for (uint32_t i = 0; i < r->count; i++)
        if (r->kinds[i] == 't') {
            only = &r->values[i];
            count++;
        }
    bool good = count == 1 && sp_traceparent_read(&alone, only->data, only->length);
    FUZZ_CHECK(good == valid);
    if (!good)
        alone = (spanprof_context){0};
    FUZZ_CHECK(memcmp(&alone, context, offsetof(spanprof_context, carrier)) == 0);
}

typedef struct checking {
    spanprof_context *context;
    int left;
} checking;

/* Each key that is shown can be asked for, gives the same, and is gone once it is removed. Three
 * are enough of an input. */
static bool check_entry(void *user, const char *key, const char *value, const char *metadata)
{
    checking *c = user;
    spanprof_context *context = c->context, without;
    static char buffer[3 * SP_BAGGAGE_BYTES + 1];
    size_t size = sizeof buffer;
    (void)metadata;
    FUZZ_CHECK(spanprof_baggage_get(context, key, buffer, &size) == SPANPROF_OK);
    FUZZ_CHECK(size == strlen(value) + 1 && strcmp(buffer, value) == 0);
    FUZZ_CHECK(spanprof_baggage_remove(&without, context, key) == SPANPROF_OK);
    FUZZ_CHECK(spanprof_baggage_get(&without, key, NULL, &size) == SPANPROF_ERROR_NOT_FOUND);
    return --c->left > 0;
}

/* Any bytes are a value; they come back as they were where they are UTF-8. */
static void check_set(spanprof_context *context, const uint8_t *data, size_t length)
{
    char *text = fuzz_string(data, length);
    spanprof_context with;
    size_t size = 0;
    if (spanprof_baggage_set(&with, context, "fuzz", text, NULL) == SPANPROF_OK) {
        FUZZ_CHECK(spanprof_baggage_get(&with, "fuzz", NULL, &size) == SPANPROF_OK);
        FUZZ_CHECK(size > strlen(text));
    }
    spanprof_status status = spanprof_baggage_set(&with, context, text, "value", NULL);
    FUZZ_CHECK(status != SPANPROF_OK ||
               spanprof_baggage_get(&with, text, NULL, &size) == SPANPROF_OK);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
    request r;
    read_request(&r, data, length);
    spanprof_context context;
    memset(&context, 0xaa, sizeof context);
    bool valid = spanprof_propagation_extract(&context, get, &r);
    check_ids(&r, &context, valid);
    check_round_trip(&context, valid);
    checking entries = {&context, 3};
    FUZZ_CHECK(spanprof_baggage_each(&context, check_entry, &entries) == SPANPROF_OK);
    check_set(&context, data, length);
    while (r.count)
        free((char *)(uintptr_t)r.values[--r.count].data);
    return 0;
}
