/* SPDX-License-Identifier: Apache-2.0 */
#include "export/pull_request.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "core/env.h"

#define FOLDER "/debug/pprof/"
#define PATHS  "profile, heap, allocs, mutex, block below " FOLDER

/* seconds 0: the request is answered at once. */
static const struct {
    const char *path;
    uint32_t seconds; /* if the request does not give a number */
} kinds[SP_PULL_KINDS] = {[SP_PULL_CPU] = {"profile", 30},
                          [SP_PULL_HEAP] = {"heap", 0},
                          [SP_PULL_ALLOCATIONS] = {"allocs", 10},
                          [SP_PULL_CONTENTIONS] = {"mutex", 10},
                          [SP_PULL_WAITS] = {"block", 10}};

typedef struct piece {
    const char *text;
    size_t length;
} piece;

const char *sp_pull_path(sp_pull_kind kind)
{
    return kinds[kind].path;
}

bool sp_pull_head_is_whole(const char *head, size_t length)
{
    return memmem(head, length, "\r\n\r\n", 4) || memmem(head, length, "\n\n", 2);
}

static sp_pull_request refuse(int status, const char *sentence)
{
    return (sp_pull_request){.status = status, .sentence = sentence};
}

static bool is_text(piece text, const char *wanted)
{
    return text.length == strlen(wanted) && memcmp(text.text, wanted, text.length) == 0;
}

/* Cut *REST at the first C: returns the text before it, and *REST becomes the text after it.
 * Without a C all of *REST is returned. */
static piece cut(piece *rest, char c)
{
    const char *end = memchr(rest->text, c, rest->length);
    piece first = {rest->text, end ? (size_t)(end - rest->text) : rest->length};
    size_t used = first.length + (end != NULL);
    *rest = (piece){rest->text + used, rest->length - used};
    return first;
}

static piece next_line(piece *rest)
{
    piece line = cut(rest, '\n');
    if (line.length && line.text[line.length - 1] == '\r')
        line.length--;
    return line;
}

/* ---- headers ---- */

static bool is_of_a_name(char c)
{
    return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') ||
           (c && strchr("!#$%&'*+-.^_`|~", c));
}

/* Whether each line up to the empty one begins with a header's name and a colon. A name with a
 * blank after it, or a line that continues the line before, is a header for some programs and not
 * for others. */
static bool headers_have_names(piece rest)
{
    for (piece line; (line = next_line(&rest)).length;) {
        bool has_colon = memchr(line.text, ':', line.length);
        piece name = cut(&line, ':');
        for (size_t i = 0; i < name.length; i++)
            if (!is_of_a_name(name.text[i]))
                return false;
        if (!has_colon || name.length == 0)
            return false;
    }
    return true;
}

static piece without_blanks(piece text)
{
    while (text.length && strchr(" \t", *text.text))
        text = (piece){text.text + 1, text.length - 1};
    while (text.length && strchr(" \t", text.text[text.length - 1]))
        text.length--;
    return text;
}

static bool consists_of(piece text, const char *characters)
{
    for (size_t i = 0; i < text.length; i++)
        if (!strchr(characters, text.text[i]))
            return false;
    return text.length > 0;
}

/* Whether HOST is an address or localhost, with or without a port. */
static bool is_own_name(piece host)
{
    if (host.length && *host.text == '[') {
        piece address = cut(&host, ']');
        return consists_of((piece){address.text + 1, address.length - 1},
                           "0123456789abcdefABCDEF:.");
    }
    piece name = cut(&host, ':');
    return consists_of(name, "0123456789.") ||
           (name.length == 9 && strncasecmp(name.text, "localhost", 9) == 0);
}

static bool hosts_are_own(piece rest)
{
    while (rest.length) {
        piece line = next_line(&rest), key = cut(&line, ':');
        if (key.length == 4 && strncasecmp(key.text, "Host", 4) == 0 &&
            !is_own_name(without_blanks(line)))
            return false;
    }
    return true;
}

/* ---- the target ---- */

static bool read_seconds(piece text, uint32_t *out)
{
    char digits[8];
    uint64_t number;
    if (text.length >= sizeof digits)
        return false;
    memcpy(digits, text.text, text.length);
    digits[text.length] = 0;
    if (!sp_parse_u64(digits, &number) || number == 0 || number > SP_PULL_MAX_SECONDS)
        return false;
    *out = (uint32_t)number;
    return true;
}

/* Unknown parameters have no effect, as in Go. */
static sp_pull_request read_query(sp_pull_request request, piece query)
{
    while (query.length) {
        piece value = cut(&query, '&'), key = cut(&value, '=');
        if (!is_text(key, "seconds"))
            continue;
        if (request.kind == SP_PULL_HEAP)
            return refuse(400, "heap is what is allocated now: leave out seconds");
        if (!read_seconds(value, &request.seconds))
            return refuse(400, "seconds is a number from 1 to 3600");
    }
    return request;
}

static sp_pull_request read_target(piece target)
{
    piece path = cut(&target, '?');
    size_t folder = strlen(FOLDER);
    if (path.length >= folder && memcmp(path.text, FOLDER, folder) == 0) {
        piece name = {path.text + folder, path.length - folder};
        for (int kind = 0; kind < SP_PULL_KINDS; kind++)
            if (is_text(name, kinds[kind].path))
                return read_query((sp_pull_request){.status = 200,
                                                    .kind = (sp_pull_kind)kind,
                                                    .seconds = kinds[kind].seconds},
                                  target);
    }
    return refuse(404, "there are " PATHS);
}

sp_pull_request sp_pull_request_parse(const char *head, size_t length, bool is_loopback)
{
    piece rest = {head, length};
    piece line = next_line(&rest);
    piece method = cut(&line, ' '), target = cut(&line, ' ');
    bool is_http = line.length == 8 && memcmp(line.text, "HTTP/1.", 7) == 0 &&
                   (line.text[7] == '0' || line.text[7] == '1');
    if (!is_http || memchr(head, 0, length))
        return refuse(400, "this is no request of HTTP/1.0 or HTTP/1.1");
    if (!headers_have_names(rest))
        return refuse(400, "a header is a name, a colon right behind it, and a value");
    if (!is_text(method, "GET"))
        return refuse(405, "only GET is answered");
    if (is_loopback && !hosts_are_own(rest))
        return refuse(403, "Host has to be an address or localhost");
    return read_target(target);
}
