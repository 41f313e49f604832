/* SPDX-License-Identifier: Apache-2.0 */
/* What a span says of the URL that was asked for. OpenTelemetry semantic conventions, "URL" and
 * "Server".
 *
 * Threads: the worker's own.  Memory: texts are the request's. */
#ifndef NGX_HTTP_SPANPROF_URL_H
#define NGX_HTTP_SPANPROF_URL_H

#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

/* The path as it was sent, without its query. */
ngx_str_t ngx_http_spanprof_path(ngx_http_request_t *r);
/* The query as it was sent, but for the values of the keys that the conventions know as secrets.
 * Empty without a query, and when memory is short. */
ngx_str_t ngx_http_spanprof_query(ngx_http_request_t *r);
ngx_str_t ngx_http_spanprof_scheme(ngx_http_request_t *r);
/* The port beside the server's name in the request, or the scheme's own; 0 when it is no port. */
ngx_int_t ngx_http_spanprof_port(ngx_http_request_t *r);

#endif
