/* SPDX-License-Identifier: Apache-2.0 */
/* URLs of receivers, by the rules of the OTLP exporter specification: a general endpoint is a base
 * below which each signal has its path; a signal's own endpoint gets no path of ours. A URL without
 * a scheme ("host:port") gets http://. What the characters alone show is checked here, and libcurl
 * judges the rest. URLs are joined as text, so that libcurl does not rewrite them; only a fragment
 * ("#…") is dropped. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/compiler.h"
#include "core/utf8.h"
#include "export/export_internal.h"

static const char plain_scheme[] = "http://";
static const char *const paths[] = {[SP_ENDPOINT_OF_TRACES] = "v1/traces",
                                    [SP_ENDPOINT_OF_PROFILES] = "v1development/profiles",
                                    [SP_ENDPOINT_OF_STABLE_PROFILES] = "v1/profiles"};
static const char *const services[] = {
    "opentelemetry.proto.collector.trace.v1.TraceService/Export",
    "opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export"};

/* Where the path of URL begins or would begin. */
static const char *path_of(const char *url)
{
    const char *scheme = strstr(url, "://");
    const char *authority = scheme ? scheme + 3 : url;
    return authority + strcspn(authority, "/?#");
}

static const char *why_not(CURLUcode code)
{
    switch (code) {
    case CURLUE_BAD_PORT_NUMBER:
        return "has a port that is no number from 1 to 65535";
    case CURLUE_NO_HOST:
        return "names no host";
    case CURLUE_OUT_OF_MEMORY:
        return "could not be read for want of memory";
    default:
        return "is no URL";
    }
}

/* SCHEME, or "" when TEXT has a scheme already. */
static const char *missing(const char *scheme, const char *text)
{
    return strstr(text, "://") ? "" : scheme;
}

/* A fault that the characters of TEXT alone show, or NULL. libcurl takes "http:///path" for the
 * host "path", and a missing port number for the default one. Texts such as "/path" and "mailto:"
 * are mistakes, and neither a host nor a host with a port. */
static const char *fault_of_text(const char *text)
{
    bool bare = *missing(plain_scheme, text);
    const char *authority = bare ? text : strstr(text, "://") + 3;
    size_t length = strcspn(authority, "/?#");
    if (!bare && strncasecmp(text, "http://", 7) != 0 && strncasecmp(text, "https://", 8) != 0)
        return "begins with neither http:// nor https://";
    for (const char *c = text; *c; c++)
        if ((unsigned char)*c <= ' ' || *c == 0x7f)
            return "has a space or control character in it";
    if (length == 0)
        return why_not(CURLUE_NO_HOST);
    return bare && authority[length - 1] == ':' ? why_not(CURLUE_BAD_PORT_NUMBER) : NULL;
}

static CURLUcode parse(const char *text)
{
    char *whole = NULL;
    CURLUcode code = CURLUE_OUT_OF_MEMORY;
    CURLU *url = curl_url();
    if (url && asprintf(&whole, "%s%s", missing(plain_scheme, text), text) >= 0) {
        code = curl_url_set(url, CURLUPART_URL, whole, 0);
        free(whole);
    }
    curl_url_cleanup(url);
    return code;
}

sp_endpoint_kind sp_endpoint_check(const char *text, const char **why)
{
    sp_endpoint_kind kind = *missing(plain_scheme, text) ? SP_ENDPOINT_BARE : SP_ENDPOINT_GOOD;
    *why = fault_of_text(text);
    if (*why)
        return SP_ENDPOINT_BAD;
    *why = "has no scheme: write http:// or https:// in front of it";
    if (!sp_network_load()) /* a warning was logged, and the exporter will not start */
        return SP_ENDPOINT_GOOD;
    CURLUcode code = parse(text);
    if (code == CURLUE_OK)
        return kind;
    *why = why_not(code);
    return SP_ENDPOINT_BAD;
}

static char *join(const char *base, const char *scheme, const char *added)
{
    const char *path = path_of(base);
    const char *rest = path + strcspn(path, "?#");
    size_t length = (size_t)(rest - base);
    bool slash = rest > path && rest[-1] == '/';
    const char *query = *rest == '?' ? rest : "";
    char *url = NULL;
    if (asprintf(&url, "%s%.*s%s%s%.*s", missing(scheme, base), (int)length, base, slash ? "" : "/",
                 added, (int)strcspn(query, "#"), query) < 0)
        return NULL;
    return url;
}

char *sp_endpoint_from_base(const char *base, const char *scheme, sp_telemetry_signal signal)
{
    return join(base, scheme, paths[signal]);
}

char *sp_endpoint_stable_profiles(const char *base)
{
    return join(base, plain_scheme, paths[SP_ENDPOINT_OF_STABLE_PROFILES]);
}

/* The begin of PATH in TEXT, whose first LENGTH characters end in PATH; NULL: they do not. */
static char *find_at_end(char *text, size_t length, const char *path)
{
    size_t own = strlen(path);
    char *begin = length > own ? text + length - own : NULL;
    return begin && begin[-1] == '/' && memcmp(begin, path, own) == 0 ? begin : NULL;
}

sp_endpoint_path sp_endpoint_cut_path(char *url)
{
    char *path = url + (path_of(url) - url), *rest = path + strcspn(path, "?#");
    size_t length = (size_t)(rest - path);
    while (length > 1 && path[length - 1] == '/')
        length--;
    for (size_t i = 0; i < SP_ARRAY_LENGTH(paths); i++) {
        char *begin = find_at_end(path, length, paths[i]);
        if (!begin)
            continue;
        memmove(begin, rest, strlen(rest) + 1);
        return (sp_endpoint_path)i;
    }
    return SP_ENDPOINT_OF_BOTH;
}

char *sp_endpoint_verbatim(const char *url, const char *scheme)
{
    const char *path = path_of(url);
    char *out = NULL;
    if (asprintf(&out, "%s%.*s%s%s", missing(scheme, url), (int)(path - url), url,
                 *path == '/' ? "" : "/", path) < 0)
        return NULL;
    return out;
}

const char *sp_endpoint_missing_path(const char *url, sp_telemetry_signal signal)
{
    return *path_of(url) == '/' ? NULL : paths[signal];
}

char *sp_endpoint_grpc(const char *url, const char *scheme, sp_telemetry_signal signal)
{
    char *out = NULL;
    if (asprintf(&out, "%s%.*s/%s", missing(scheme, url), (int)(path_of(url) - url), url,
                 services[signal]) < 0)
        return NULL;
    return out;
}

char *sp_endpoint_shown(const char *text)
{
    /* A password may contain any character, so everything up to the last @ may be a password. In a
     * URL that libcurl has understood a question mark begins the query, which may contain an @,
     * too. */
    const char *why, *scheme = strstr(text, "://");
    const char *authority = scheme ? scheme + 3 : text;
    bool good = sp_endpoint_check(text, &why) == SP_ENDPOINT_GOOD && sp_network_is_loaded();
    const char *at = memrchr(authority, '@', good ? strcspn(authority, "?") : strlen(authority));
    const char *rest = at ? at : authority;
    size_t rest_length = strcspn(rest, "?");
    char *out = NULL;
    if (asprintf(&out, "%.*s%s%.*s%s", (int)(authority - text), text, at ? "***" : "",
                 (int)rest_length, rest, rest[rest_length] ? "?***" : "") < 0)
        return NULL;
    sp_utf8_show(out, strlen(out) + 1, out, strlen(out));
    return out;
}

static bool has_port(const char *url, const char *port)
{
    const char *host = strstr(url, "://");
    const char *end = host ? strchr(host + 3, '/') : NULL;
    size_t length = strlen(port), own = host && !end ? strlen(host + 3) : 0;
    if (end)
        own = (size_t)(end - host - 3);
    return own > length && memcmp(host + 3 + own - length, port, length) == 0;
}

const char *sp_endpoint_port_advice(const char *url, bool is_grpc)
{
    if (!is_grpc && has_port(url, ":4317"))
        return ": 4317 is mostly the port for gRPC, and 4318 that for HTTP";
    if (is_grpc && has_port(url, ":4318"))
        return ": 4318 is mostly the port for HTTP, and 4317 that for gRPC";
    return "";
}
