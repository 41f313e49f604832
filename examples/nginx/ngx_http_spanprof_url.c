/* SPDX-License-Identifier: Apache-2.0 */
#include "ngx_http_spanprof_url.h"

static const ngx_str_t redacted = ngx_string("REDACTED");

ngx_str_t ngx_http_spanprof_path(ngx_http_request_t *r)
{
    ngx_str_t path = r->unparsed_uri;
    u_char *query = ngx_strlchr(path.data, path.data + path.len, '?');

    if (query != NULL)
        path.len = (size_t)(query - path.data);
    return path;
}

/* The query as the client sent it, without what the configuration's rewrites add. */
static ngx_str_t sent_query(ngx_http_request_t *r)
{
    ngx_str_t query = r->unparsed_uri;
    size_t before = ngx_http_spanprof_path(r).len;

    if (before == query.len)
        return (ngx_str_t)ngx_null_string;
    query.data += before + 1;
    query.len -= before + 1;
    return query;
}

/* Whether KEY is of a secret. Keys are case-sensitive. */
static ngx_flag_t is_secret(const u_char *key, size_t length)
{
    static const ngx_str_t secrets[] = {ngx_string("AWSAccessKeyId"), ngx_string("Signature"),
                                        ngx_string("sig"), ngx_string("X-Goog-Signature")};

    for (size_t i = 0; i < sizeof(secrets) / sizeof(secrets[0]); i++)
        if (secrets[i].len == length && ngx_memcmp(secrets[i].data, key, length) == 0)
            return 1;
    return 0;
}

/* Copies QUERY to OUT, with `redacted` in place of the values of secrets. OUT has room for QUERY
 * and one `redacted` for each parameter. Returns the end of the copy. */
static u_char *redact(u_char *out, const ngx_str_t *query)
{
    u_char *end = query->data + query->len;

    for (u_char *next, *at = query->data; at < end; at = next) {
        u_char *stop = ngx_strlchr(at, end, '&');
        u_char *value = ngx_strlchr(at, stop == NULL ? end : stop, '=');

        next = stop == NULL ? end : stop + 1;
        if (value == NULL || !is_secret(at, (size_t)(value - at))) {
            out = ngx_cpymem(out, at, next - at);
            continue;
        }
        out = ngx_cpymem(out, at, value + 1 - at);
        out = ngx_cpymem(out, redacted.data, redacted.len);
        if (stop != NULL)
            *out++ = '&';
    }
    return out;
}

ngx_str_t ngx_http_spanprof_query(ngx_http_request_t *r)
{
    ngx_str_t query = sent_query(r), copy = ngx_null_string;
    size_t parameters = 1;

    for (size_t i = 0; i < query.len; i++)
        parameters += query.data[i] == '&';
    if (query.len > 0)
        copy.data = ngx_pnalloc(r->pool, query.len + parameters * redacted.len);
    if (copy.data != NULL)
        copy.len = (size_t)(redact(copy.data, &query) - copy.data);
    return copy;
}

ngx_str_t ngx_http_spanprof_scheme(ngx_http_request_t *r)
{
#if (NGX_HTTP_SSL)
    if (r->connection->ssl)
        return (ngx_str_t)ngx_string("https");
#endif
    return (ngx_str_t)ngx_string("http");
}

/* What follows ":" in NAME, which is a host, or a host with a port. The colons of an IPv6 address
 * are between brackets and do not count. */
static ngx_str_t port_behind(ngx_str_t name)
{
    u_char *end = name.data + name.len, *bracket = ngx_strlchr(name.data, end, ']');
    u_char *colon = ngx_strlchr(bracket == NULL ? name.data : bracket, end, ':');

    if (colon == NULL)
        return (ngx_str_t)ngx_null_string;
    return (ngx_str_t){(size_t)(end - colon - 1), colon + 1};
}

/* Host and port in a request line such as "GET http://host:80/ HTTP/1.1". Empty when the line has
 * only a path. */
static ngx_str_t asked_host(const ngx_str_t *line)
{
    u_char *end = line->data + line->len, *uri = ngx_strlchr(line->data, end, ' '), *host, *stop;

    while (uri != NULL && uri < end && *uri == ' ')
        uri++;
    host = uri == NULL || uri == end || *uri == '/' ? NULL : ngx_strlchr(uri, end, ':');
    if (host == NULL || end - host < 3 || host[1] != '/' || host[2] != '/')
        return (ngx_str_t)ngx_null_string;
    host += 3;
    for (stop = host; stop < end && *stop != '/' && *stop != '?' && *stop != ' '; stop++)
        ;
    return (ngx_str_t){(size_t)(stop - host), host};
}

/* The port that the client sent. If the request line has a host, the header Host is ignored. */
static ngx_str_t sent_port(ngx_http_request_t *r)
{
    ngx_str_t host = asked_host(&r->request_line);

    if (host.len > 0)
        return port_behind(host);
    return r->headers_in.host == NULL ? (ngx_str_t)ngx_null_string
                                      : port_behind(r->headers_in.host->value);
}

ngx_int_t ngx_http_spanprof_port(ngx_http_request_t *r)
{
    ngx_str_t sent = sent_port(r);
    ngx_int_t port = sent.len > 0 ? ngx_atoi(sent.data, sent.len)
                     : ngx_http_spanprof_scheme(r).len > sizeof("http") - 1 ? 443
                                                                            : 80;

    return port > 0 && port <= 65535 ? port : 0;
}
