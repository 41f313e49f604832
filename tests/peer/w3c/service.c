/* SPDX-License-Identifier: Apache-2.0 */
/* The service that the W3C trace context harness talks to: it takes a POST with a JSON list of
 * {url, arguments}, and posts each arguments to its url, with the headers of a client span under
 * the request's span. Prints its port and ends when standard input does. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <curl/curl.h>
#include <jansson.h>
#include <microhttpd.h>
#include <spanprof/spanprof.h>

typedef struct text {
    char *bytes;
    size_t length;
} text;

static bool append(text *to, const char *bytes, size_t length)
{
    char *longer = realloc(to->bytes, to->length + length + 1);
    if (!longer)
        return false;
    memcpy(longer + to->length, bytes, length);
    to->bytes = longer;
    to->length += length;
    longer[to->length] = 0;
    return true;
}

/* --- the request's headers -------------------------------------------------------------------- */

typedef struct search {
    const char *name;
    uint32_t left; /* headers of that name to pass over */
    spanprof_header_value *value;
    bool found;
} search;

static enum MHD_Result look(void *user, enum MHD_ValueKind kind, const char *name,
                            const char *value)
{
    search *s = user;
    (void)kind;
    if (strcasecmp(name, s->name) != 0 || s->left-- > 0)
        return MHD_YES;
    *s->value = (spanprof_header_value){value ? value : "", value ? strlen(value) : 0};
    s->found = true;
    return MHD_NO;
}

static bool get_header(void *user, const char *name, uint32_t index, spanprof_header_value *value)
{
    search s = {.name = name, .left = index, .value = value};
    MHD_get_connection_values(user, MHD_HEADER_KIND, look, &s);
    return s.found;
}

/* --- calling back ----------------------------------------------------------------------------- */

static void set_header(void *user, const char *name, const char *value)
{
    struct curl_slist **list = user;
    char line[16384];
    snprintf(line, sizeof line, "%s: %s", name, value);
    *list = curl_slist_append(*list, line);
}

static size_t swallow(char *bytes, size_t size, size_t count, void *user)
{
    (void)bytes, (void)user;
    return size * count;
}

static void post(const char *url, const char *body)
{
    CURL *curl = curl_easy_init();
    struct curl_slist *headers = curl_slist_append(NULL, "Content-Type: application/json");
    spanprof_propagation_inject(NULL, set_header, &headers);
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, swallow);
    curl_easy_setopt(curl, CURLOPT_PROXY, "");
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT, 10L);
    CURLcode code = curl_easy_perform(curl);
    if (code != CURLE_OK)
        fprintf(stderr, "w3c_service: %s: %s\n", url, curl_easy_strerror(code));
    curl_slist_free_all(headers);
    curl_easy_cleanup(curl);
}

static void call_back(const json_t *action)
{
    const char *url = json_string_value(json_object_get(action, "url"));
    json_t *arguments = json_object_get(action, "arguments");
    char *body = arguments ? json_dumps(arguments, JSON_ENCODE_ANY) : NULL;
    if (url) {
        spanprof_span_options options = SPANPROF_SPAN_OPTIONS_INIT;
        options.kind = SPANPROF_SPAN_KIND_CLIENT;
        spanprof_span span = spanprof_span_start(NULL, "POST", &options);
        spanprof_scope scope = spanprof_span_attach(span);
        post(url, body ? body : "[]");
        spanprof_scope_detach(&scope);
        spanprof_span_end(span);
    }
    free(body);
}

/* --- the server ------------------------------------------------------------------------------- */

static void serve(struct MHD_Connection *connection, const text *body)
{
    spanprof_context remote;
    spanprof_propagation_extract(&remote, get_header, connection);
    spanprof_span_options options = SPANPROF_SPAN_OPTIONS_INIT;
    options.kind = SPANPROF_SPAN_KIND_SERVER;
    options.parent = &remote;
    spanprof_span span = spanprof_span_start(NULL, "POST /test", &options);
    spanprof_scope scope = spanprof_span_attach(span);
    json_t *actions = json_loadb(body->bytes ? body->bytes : "", body->length, 0, NULL), *action;
    size_t i;
    json_array_foreach(actions, i, action) call_back(action);
    json_decref(actions);
    spanprof_scope_detach(&scope);
    spanprof_span_end(span);
}

static enum MHD_Result answer(struct MHD_Connection *connection)
{
    struct MHD_Response *response =
        MHD_create_response_from_buffer(4, "null", MHD_RESPMEM_PERSISTENT);
    MHD_add_response_header(response, "Content-Type", "application/json");
    enum MHD_Result result = MHD_queue_response(connection, MHD_HTTP_OK, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result on_request(void *user, struct MHD_Connection *connection, const char *path,
                                  const char *method, const char *version, const char *bytes,
                                  size_t *length, void **state)
{
    (void)user, (void)path, (void)method, (void)version;
    text *body = *state;
    if (!body) {
        *state = calloc(1, sizeof(text));
        return *state ? MHD_YES : MHD_NO;
    }
    if (*length) {
        bool kept = append(body, bytes, *length);
        *length = 0;
        return kept ? MHD_YES : MHD_NO;
    }
    serve(connection, body);
    return answer(connection);
}

static void on_end(void *user, struct MHD_Connection *connection, void **state,
                   enum MHD_RequestTerminationCode code)
{
    (void)user, (void)connection, (void)code;
    text *body = *state;
    if (body)
        free(body->bytes);
    free(body);
}

int main(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    spanprof_options options = SPANPROF_OPTIONS_INIT;
    options.exporter = "none";
    curl_global_init(CURL_GLOBAL_DEFAULT);
    if (spanprof_start(&options, NULL) != SPANPROF_OK)
        return fprintf(stderr, "w3c_service: spanprof does not start\n"), 1;
    struct MHD_Daemon *daemon = MHD_start_daemon(
        MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD, 0, NULL, NULL, on_request,
        NULL, MHD_OPTION_SOCK_ADDR, &address, MHD_OPTION_NOTIFY_COMPLETED, on_end, NULL,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)256 << 10, MHD_OPTION_END);
    if (!daemon)
        return fprintf(stderr, "w3c_service: the server does not start\n"), 1;
    printf("%u\n", (unsigned)MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT)->port);
    fflush(stdout);
    while (getchar() != EOF)
        ;
    MHD_stop_daemon(daemon);
    spanprof_stop(0);
    curl_global_cleanup();
    return 0;
}
