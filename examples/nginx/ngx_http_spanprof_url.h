/* SPDX-License-Identifier: Apache-2.0 */
/* A span's attributes of the requested URL, as in OpenTelemetry's semantic conventions, "URL" and
 * "Server".
 *
 * Threads: the worker's only thread.  Memory: texts live as long as the request. */
#ifndef NGX_HTTP_SPANPROF_URL_H
#define NGX_HTTP_SPANPROF_URL_H

#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

/* The path as the client sent it, without the query. */
ngx_str_t ngx_http_spanprof_path(ngx_http_request_t *r);
/* The query as the client sent it, with REDACTED in place of each value that is secret by the
 * conventions. Empty without a query, and when memory is short. */
ngx_str_t ngx_http_spanprof_query(ngx_http_request_t *r);
ngx_str_t ngx_http_spanprof_scheme(ngx_http_request_t *r);
/* The port that the request names after the host, or the default port of the scheme; 0 when the
 * request's port is not valid. */
ngx_int_t ngx_http_spanprof_port(ngx_http_request_t *r);

#endif
