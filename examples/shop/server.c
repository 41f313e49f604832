/* SPDX-License-Identifier: Apache-2.0 */
#include "server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <spanprof/spanprof.h>

#include "compress.h"
#include "render.h"
#include "routes.h"

struct server {
    struct MHD_Daemon *daemon;
    spanprof_tracer *tracer;
    uint64_t last_request;
    atomic_uint_fast64_t requests;
};

static const char *header(struct MHD_Connection *connection, const char *name)
{
    return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

/* Start the span of a request. If the caller sent a trace context, the span continues that trace.
 */
static spanprof_span start_span(const server *server, struct MHD_Connection *connection,
                                const route *route, const char *method, const char *path)
{
    spanprof_attribute attributes[] = {
        {.key = "http.request.method", .value.string_value = method},
        {.key = "url.path", .value.string_value = path},
    };
    spanprof_span_options options = SPANPROF_SPAN_OPTIONS_INIT;
    options.kind = SPANPROF_SPAN_KIND_SERVER;
    options.attributes = attributes;
    options.attribute_count = sizeof attributes / sizeof attributes[0];
    spanprof_context caller;
    const char *traceparent = header(connection, "traceparent");
    if (traceparent &&
        spanprof_context_extract(&caller, traceparent, header(connection, "tracestate")))
        options.parent = &caller;
    return spanprof_span_start(server->tracer, route ? route_span_name(route) : method, &options);
}

static int make_answer(struct MHD_Connection *connection, const route *route, const char *method,
                       page *out)
{
    if (strcmp(method, MHD_HTTP_METHOD_GET) != 0) {
        render_message(out, "Only GET is understood here.");
        return 405;
    }
    if (!route) {
        render_message(out, "There is no such page.");
        return 404;
    }
    const char *parameter = route_parameter(route);
    const char *value = NULL;
    if (parameter)
        value = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, parameter);
    return route_answer(route, value, out);
}

/* Compress OUT if the caller accepts gzip. Returns whether OUT is compressed now. */
static bool compress_answer(struct MHD_Connection *connection, page *out)
{
    const char *accepted = header(connection, MHD_HTTP_HEADER_ACCEPT_ENCODING);
    bool compressed = false;
    if (accepted && strstr(accepted, "gzip")) {
        SPANPROF_SPAN("compress") {
            compressed = compress_page(out);
        }
    }
    return compressed;
}

/* Send the text of OUT. The HTTP server takes the text and frees it. */
static enum MHD_Result send_answer(struct MHD_Connection *connection, int status, bool compressed,
                                   page *out)
{
    struct MHD_Response *response =
        MHD_create_response_from_buffer(out->length, out->text, MHD_RESPMEM_MUST_FREE);
    if (!response) {
        page_deinit(out);
        return MHD_NO;
    }
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, "text/html; charset=utf-8");
    if (compressed)
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_ENCODING, "gzip");
    enum MHD_Result result = MHD_queue_response(connection, (unsigned)status, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result serve(server *server, struct MHD_Connection *connection, const char *path,
                             const char *method)
{
    const route *route = route_find(path);
    spanprof_span span = start_span(server, connection, route, method, path);
    spanprof_scope scope = spanprof_span_attach(span);

    page out = {0};
    int status = make_answer(connection, route, method, &out);
    bool compressed = !out.failed && compress_answer(connection, &out);
    if (out.failed) {
        page_deinit(&out);
        status = 500;
    }
    enum MHD_Result result = send_answer(connection, status, compressed, &out);

    spanprof_span_set_int(span, "http.response.status_code", status);
    if (status >= 500)
        spanprof_span_set_status(span, SPANPROF_SPAN_STATUS_ERROR, NULL);
    spanprof_scope_detach(&scope);
    spanprof_span_end(span);
    return result;
}

/* libmicrohttpd calls this at least twice for each request: after the headers, with each piece of a
 * body, and at the end. */
static enum MHD_Result on_request(void *user, struct MHD_Connection *connection, const char *path,
                                  const char *method, const char *version, const char *body,
                                  size_t *body_length, void **state)
{
    static char headers_seen;
    server *server = user;
    (void)version;
    (void)body;
    if (!*state) {
        *state = &headers_seen;
        return MHD_YES;
    }
    if (*body_length) {
        *body_length = 0;
        return MHD_YES;
    }
    enum MHD_Result result = serve(server, connection, path, method);
    if (atomic_fetch_add(&server->requests, 1) + 1 == server->last_request)
        kill(getpid(), SIGTERM);
    return result;
}

server *server_start(uint16_t port, unsigned threads, uint64_t last_request)
{
    server *server = calloc(1, sizeof *server);
    if (!server)
        return NULL;
    server->tracer = spanprof_tracer_get("shop.http", SPANPROF_VERSION);
    server->last_request = last_request;
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    unsigned flags = MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_EPOLL;
    errno = 0;
    server->daemon =
        MHD_start_daemon(flags, port, NULL, NULL, on_request, server, MHD_OPTION_SOCK_ADDR,
                         &address, MHD_OPTION_THREAD_POOL_SIZE, threads, MHD_OPTION_END);
    if (!server->daemon) {
        fprintf(stderr, "shop: cannot listen on 127.0.0.1:%u: %s\n", port,
                errno ? strerror(errno) : "try another --port");
        free(server);
        return NULL;
    }
    return server;
}

uint16_t server_port(const server *server)
{
    const union MHD_DaemonInfo *info =
        MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_BIND_PORT);
    return info ? info->port : 0;
}

uint64_t server_stop(server *server)
{
    MHD_stop_daemon(server->daemon);
    uint64_t requests = atomic_load(&server->requests);
    free(server);
    return requests;
}
