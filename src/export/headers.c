/* SPDX-License-Identifier: Apache-2.0 */
/* Headers for the receiver, as OTEL_EXPORTER_OTLP_HEADERS lists them: "key=value,key=value",
 * percent-encoded as in W3C baggage. Values are usually secrets, so no message shows any part of an
 * entry. Characters that baggage requires to be encoded are accepted as they are ("Bearer abc" has
 * a space), except those that could end a header and begin another one. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/hex.h"
#include "core/log.h"
#include "export/export_internal.h"

/* Headers that the exporter sets itself; a second one would break the request. */
static const char *const own_headers[] = {"Content-Type",
                                          "Content-Encoding",
                                          "Content-Length",
                                          "Transfer-Encoding",
                                          "Expect",
                                          "Connection",
                                          "TE"};

static sp_text_range trim(sp_text_range range)
{
    while (range.begin < range.end && (*range.begin == ' ' || *range.begin == '\t'))
        range.begin++;
    while (range.end > range.begin && (range.end[-1] == ' ' || range.end[-1] == '\t'))
        range.end--;
    return range;
}

/* RFC 9110: token. */
static bool is_token(const char *text)
{
    static const char allowed[] =
        "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    return *text && text[strspn(text, allowed)] == 0;
}

/* Percent-decode RANGE into OUT, which has room for it and a NUL. False when an escape is broken,
 * or decodes to NUL. */
static bool decode(char *out, sp_text_range range)
{
    for (const char *c = range.begin; c < range.end; c++) {
        uint8_t byte = (uint8_t)*c;
        if (*c == '%') {
            if (range.end - c < 3 || !sp_hex_decode(&byte, c + 1, 1, true))
                return false;
            c += 2;
        }
        *out++ = (char)byte;
        if (byte == 0)
            return false; /* a NUL would end the value early */
    }
    *out = 0;
    return true;
}

static bool has_control(const char *text)
{
    for (; *text; text++)
        if (((unsigned char)*text < ' ' && *text != '\t') || *text == 0x7f)
            return true;
    return false;
}

static bool is_own(const char *name)
{
    for (size_t i = 0; i < SP_ARRAY_LENGTH(own_headers); i++)
        if (strcasecmp(own_headers[i], name) == 0)
            return true;
    return false;
}

/* Why the header cannot be sent, or NULL. */
static const char *judge(bool decoded, const char *name, const char *value)
{
    if (!decoded)
        return "has a broken percent escape";
    if (!is_token(name))
        return "has a name that HTTP does not allow";
    if (has_control(value))
        return "has a control character in its value";
    return is_own(name) ? "is a header that the exporter sets itself" : NULL;
}

/* A header with an empty value is written with a semicolon, because "name:" makes libcurl remove a
 * header. */
static bool append(struct curl_slist **list, const char *name, const char *value)
{
    char *line = NULL;
    if (asprintf(&line, *value ? "%s: %s" : "%s;%s", name, value) < 0)
        return false;
    struct curl_slist *longer = curl_slist_append(*list, line);
    free(line);
    if (longer)
        *list = longer;
    return longer != NULL;
}

/* Append the header of ENTRY; LIST is NULL: only check it. *FAULT: why it cannot be sent, and was
 * left out; NULL: it can. False when memory is short. */
static bool add_entry(struct curl_slist **list, sp_text_range entry, const char **fault)
{
    const char *equals = memchr(entry.begin, '=', (size_t)(entry.end - entry.begin));
    if (!equals) {
        *fault = "is not key=value";
        return true;
    }
    sp_text_range key = trim((sp_text_range){entry.begin, equals});
    sp_text_range content = trim((sp_text_range){equals + 1, entry.end});
    char *name = calloc(1, (size_t)(entry.end - entry.begin) + 2);
    if (!name)
        return false;
    char *value = name + (key.end - key.begin) + 1;
    bool decoded = decode(name, key) && decode(value, content);
    *fault = judge(decoded, name, value);
    bool done = *fault || !list || append(list, name, value);
    free(name);
    return done;
}

/* Whether LINE, which append wrote, is the header called NAME. */
static bool is_called(const char *line, const char *name)
{
    size_t length = strlen(name);
    return strncasecmp(line, name, length) == 0 && (line[length] == ':' || line[length] == ';');
}

/* Remove all headers called NAME from LIST, or with KEEP all except the last. Returns whether one
 * stayed. The first entry of LIST is not examined, so LIST stays the head. */
static bool keep_last(struct curl_slist *list, const char *name, bool keep)
{
    size_t count = 0;
    for (const struct curl_slist *at = list->next; at; at = at->next)
        count += is_called(at->data, name);
    while (list->next) {
        struct curl_slist *next = list->next;
        if (!is_called(next->data, name) || (keep && count == 1)) {
            list = next;
            continue;
        }
        list->next = next->next;
        next->next = NULL;
        curl_slist_free_all(next);
        count--;
    }
    return count > 0;
}

bool sp_headers_set_version(struct curl_slist *list, sp_telemetry_signal signal)
{
    static const char name[] = "OTLP-Profiles-Development-Version";
    bool is_there = keep_last(list, name, signal == SP_PROFILES);
    return signal != SP_PROFILES || is_there || append(&list, name, "1");
}

/* The entry at *TEXT, which may be empty; *TEXT is then after it. */
static sp_text_range next_entry(const char **text)
{
    const char *begin = *text, *end = begin + strcspn(begin, ",");
    *text = end + (*end == ',');
    return trim((sp_text_range){begin, end});
}

bool sp_headers_parse(struct curl_slist **list, const char *text, const char *name)
{
    if (!sp_network_load()) /* a warning was logged, and the exporter will not start */
        return false;
    for (unsigned position = 1; *text; position++) {
        sp_text_range entry = next_entry(&text);
        const char *fault = NULL;
        if (entry.begin < entry.end && !add_entry(list, entry, &fault))
            return false;
        if (fault && name)
            sp_log_warn("config", "%s: entry %u %s: left out", name, position, fault);
    }
    return true;
}

const char *sp_headers_fault(const char *text, unsigned *position)
{
    const char *fault = NULL;
    for (*position = 1; *text; ++*position) {
        sp_text_range entry = next_entry(&text);
        if (entry.begin < entry.end && add_entry(NULL, entry, &fault) && fault)
            return fault;
    }
    return NULL;
}
