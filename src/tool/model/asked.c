/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/model/asked.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "core/counted.h"
#include "core/hex.h"
#include "tool/text/messages.h"

/* ---- ids ---- */

/* The user may give only the first digits of an id: at least SHORT_LEAST. A message about ambiguous
 * digits lists at most CANDIDATES_MOST ids. */
enum { SHORT_LEAST = 4, CANDIDATES_MOST = 8 };

/* The different ids that begin with `digits`. `count` may be larger than CANDIDATES_MOST. */
typedef struct candidates {
    const char *digits;
    size_t count, bytes; /* bytes: the length of an id, 8 for a span, 16 for a trace */
    const uint8_t *items[CANDIDATES_MOST];
    const char *names[CANDIDATES_MOST]; /* of a span with this id; NULL: the files have none */
} candidates;

static void take_candidate(candidates *list, const sp_model_link *id, const char *name)
{
    const uint8_t *bytes = list->bytes == 8 ? id->span_id : id->trace_id;
    char text[33] = "";
    sp_hex_encode(text, bytes, list->bytes);
    if (strncasecmp(text, list->digits, strlen(list->digits)) != 0)
        return;
    for (size_t i = 0; i < list->count && i < CANDIDATES_MOST; i++)
        if (memcmp(list->items[i], bytes, list->bytes) == 0)
            return;
    if (list->count < CANDIDATES_MOST) {
        list->items[list->count] = bytes;
        list->names[list->count] = name;
    }
    list->count++;
}

static int refuse_ambiguous(const candidates *list, const char *what, const char *text)
{
    char ids[CANDIDATES_MOST * 80] = "";
    size_t used = 0, shown = list->count < CANDIDATES_MOST ? list->count : CANDIDATES_MOST;
    for (size_t i = 0; i < shown; i++) {
        const char *name = list->names[i] ? list->names[i] : "";
        char id[33];
        sp_hex_encode(id, list->items[i], list->bytes);
        used += (size_t)snprintf(ids + used, sizeof ids - used, "%s%s%s%.30s%s", i ? ", " : "", id,
                                 *name ? " (" : "", name, *name ? ")" : "");
    }
    return sp_tool_no("%s is the beginning of several %s ids: %s%s; give more digits", text, what,
                      ids, list->count > shown ? ", …" : "");
}

/* Find the only id of MODEL that begins with DIGITS, and copy it to OUT. */
static int find_short(const char *what, const char *text, const char *digits, uint8_t *out,
                      size_t bytes, const sp_model *model)
{
    candidates list = {.digits = digits, .bytes = bytes};
    for (uint32_t i = 0; i < model->span_index.count; i++)
        take_candidate(&list, &model->spans[i].id, model->spans[i].name);
    for (uint32_t i = 1; i < model->links.count; i++)
        take_candidate(&list, sp_intern_key(&model->links, i), NULL);
    if (list.count == 0 && bytes == 16 && strlen(digits) == 16)
        return sp_tool_wrong("%s is no trace id of these files, and as long as a span id: ask with "
                             "--span %s",
                             text, text);
    if (list.count == 0)
        return sp_tool_no("no %s id in the files begins with %s; `spanprof spans` lists them", what,
                          text);
    if (list.count > 1)
        return refuse_ambiguous(&list, what, text);
    memcpy(out, list.items[0], bytes);
    return SP_TOOL_DONE;
}

static bool is_short(const char *digits, size_t bytes)
{
    size_t length = strlen(digits);
    return length >= SHORT_LEAST && length < 2 * bytes &&
           strspn(digits, "0123456789abcdefABCDEF") == length;
}

/* Parse TEXT, an id of COUNT bytes or the first digits of one. "0x" may precede the digits, because
 * some tracers print ids this way. */
static int parse_id(const char *what, const char *text, uint8_t *out, size_t count,
                    const sp_model *model)
{
    const char *digits = strncmp(text, "0x", 2) == 0 ? text + 2 : text;
    uint8_t longer[16];
    if (count == 8 && strlen(digits) == 32 && sp_hex_decode(longer, digits, 16, true))
        return sp_tool_wrong("%s is a trace id, not a span id: ask with --trace %s", text, text);
    if (is_short(digits, count))
        return find_short(what, text, digits, out, count, model);
    if (strlen(digits) != 2 * count || !sp_hex_decode(out, digits, count, true))
        return sp_tool_wrong("%s is no %s id: its %zu hex digits are needed, as `spanprof spans` "
                             "shows them, or the first of them, %d at least",
                             text, what, 2 * count, SHORT_LEAST);
    for (size_t i = 0; i < count; i++)
        if (out[i])
            return SP_TOOL_DONE;
    return sp_tool_wrong("%s is no %s id: it is all zero", text, what);
}

int sp_asked_parse(sp_asked *asked, const sp_model *model, const sp_text_list *spans,
                   const sp_text_list *traces)
{
    int status = SP_TOOL_DONE;
    *asked = (sp_asked){.span_count = 0};
    for (size_t i = 0; status == SP_TOOL_DONE && i < spans->count; i++) {
        sp_asked_span *span = &asked->spans[asked->span_count++];
        span->span = SP_MODEL_NONE;
        status = parse_id("span", spans->items[i], span->id, sizeof span->id, model);
    }
    for (size_t i = 0; status == SP_TOOL_DONE && i < traces->count; i++)
        status =
            parse_id("trace", traces->items[i], asked->traces[asked->trace_count++], 16, model);
    return status;
}

bool sp_asked_takes_trace(const sp_asked *asked, const uint8_t trace_id[16])
{
    for (uint32_t i = 0; i < asked->trace_count; i++)
        if (memcmp(asked->traces[i], trace_id, 16) == 0)
            return true;
    return asked->trace_count == 0;
}

/* ---- the spans that have the ids ---- */

#define SPAN_TEXT_LENGTH 17
static const char *span_text(char out[SPAN_TEXT_LENGTH], const sp_asked_span *span)
{
    sp_hex_encode(out, span->id, sizeof span->id);
    return out;
}

/* Find the span that has the id. By chance, spans of two traces may have the same id; then the user
 * has to name the trace. */
static int find_span(const sp_asked *asked, sp_asked_span *of, const sp_model *model)
{
    char text[SPAN_TEXT_LENGTH];
    for (uint32_t i = 0; i < model->span_index.count; i++) {
        const sp_model_link *id = &model->spans[i].id;
        if (memcmp(id->span_id, of->id, sizeof id->span_id) != 0 ||
            !sp_asked_takes_trace(asked, id->trace_id))
            continue;
        if (of->span != SP_MODEL_NONE)
            return sp_tool_no("span id %s is in more than one trace; say which with --trace",
                              span_text(text, of));
        of->span = i;
    }
    return SP_TOOL_DONE;
}

/* Check that only one trace has the id of OF, a span that the files do not have. Only the links of
 * its samples name its trace. If there are no samples either, a note says that the answer is about
 * the other spans. */
static int find_trace(const sp_asked *asked, const sp_asked_span *of, const sp_model *model)
{
    const sp_model_link *first = NULL;
    char text[SPAN_TEXT_LENGTH];
    for (uint32_t i = 1; i < model->links.count; i++) {
        const sp_model_link *link = sp_intern_key(&model->links, i);
        if (memcmp(link->span_id, of->id, sizeof link->span_id) != 0 ||
            !sp_asked_takes_trace(asked, link->trace_id))
            continue;
        if (first) {
            char one[33], other[33];
            sp_hex_encode(one, first->trace_id, 16);
            sp_hex_encode(other, link->trace_id, 16);
            return sp_tool_no("span id %s is in more than one trace, of which the files have the "
                              "samples only; say which with --trace: %s, %s",
                              span_text(text, of), one, other);
        }
        first = link;
    }
    if (!first && asked->span_count > 1)
        sp_tool_note("no span %s in the files: the answer is that of the others",
                     span_text(text, of));
    return SP_TOOL_DONE;
}

int sp_asked_find(sp_asked *asked, const sp_model *model)
{
    int status = SP_TOOL_DONE;
    for (uint32_t i = 0; status == SP_TOOL_DONE && i < asked->span_count; i++) {
        sp_asked_span *span = &asked->spans[i];
        status = find_span(asked, span, model);
        if (status == SP_TOOL_DONE && span->span == SP_MODEL_NONE)
            status = find_trace(asked, span, model);
    }
    return status;
}

void sp_asked_mark(const sp_asked *asked, bool *marked)
{
    for (uint32_t i = 0; i < asked->span_count; i++)
        if (asked->spans[i].span != SP_MODEL_NONE)
            marked[asked->spans[i].span] = true;
}

uint32_t sp_asked_mark_descendants(const sp_model *model, bool *marked)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < model->span_index.count; i++) {
        uint32_t span = model->span_order[i], parent = model->spans[span].parent;
        if (parent == SP_MODEL_NONE || marked[span] || !marked[parent])
            continue;
        marked[span] = true;
        count++;
    }
    return count;
}

/* ---- the answer when no id is found ---- */

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return b && (!a || b < a) ? b : a;
}

/* When the recording begins; 0: unknown. */
static uint64_t first_ns(const sp_model *model)
{
    uint64_t first = 0;
    for (uint32_t i = 0; i < model->span_index.count; i++)
        first = earlier(first, model->spans[i].start_ns);
    for (size_t i = 0; i < model->profile_count; i++)
        first = earlier(first, model->profiles[i].message->time_unix_nano);
    return first;
}

/* " at 2023-11-14 22:13:21 UTC", in the time zone of the user. "": unknown. */
static const char *begin_text(char *out, size_t size, uint64_t ns)
{
    time_t seconds = (time_t)(ns / 1000000000);
    struct tm day;
    if (!ns || !localtime_r(&seconds, &day) ||
        strftime(out, size, " at %Y-%m-%d %H:%M:%S %Z", &day) == 0)
        *out = 0;
    return out;
}

/* "this file" or "any of these 2 files". */
static const char *files_text(char *out, size_t size, const sp_model *model)
{
    size_t count = 0;
    for (size_t i = 0; i < model->input->count; i++)
        count += model->input->documents[i].number == 1;
    if (count == 1)
        snprintf(out, size, "this file");
    else
        snprintf(out, size, "any of these %zu files", count);
    return out;
}

/* What was not found, such as "span … is not" or "none of these 3 traces is". */
static const char *what_text(char *out, size_t size, const sp_asked *asked)
{
    bool is_span = asked->span_count > 0;
    uint32_t count = is_span ? asked->span_count : asked->trace_count;
    char span[SPAN_TEXT_LENGTH], trace[33];
    span_text(span, &asked->spans[0]);
    sp_hex_encode(trace, asked->traces[0], 16);
    if (count > 1)
        snprintf(out, size, "none of these %u %ss is", count, is_span ? "span" : "trace");
    else if (!is_span)
        snprintf(out, size, "trace %s is not", trace);
    else if (asked->trace_count)
        snprintf(out, size, "span %s of trace %s is not", span, trace);
    else
        snprintf(out, size, "span %s is not", span);
    return out;
}

int sp_asked_absent(const sp_asked *asked, const sp_model *model)
{
    char what[128], files[64], begin[64];
    const char *service = sp_model_service(model);
    return sp_tool_no("%s in %s, recorded%s%.100s%s; an earlier run is kept as PREFIX.1, and "
                      "another prefix has other spans; `spanprof spans` lists these",
                      what_text(what, sizeof what, asked), files_text(files, sizeof files, model),
                      *service ? " by " : "", service,
                      begin_text(begin, sizeof begin, first_ns(model)));
}
