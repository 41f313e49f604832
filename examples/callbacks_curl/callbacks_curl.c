/* SPDX-License-Identifier: Apache-2.0 */
/* libcurl's multi interface: many transfers at once on one thread. What carries the context: the
 * user pointer of a transfer's callbacks points to the span, and each callback attaches the span
 * while it runs. The request names the span to the server in a traceparent header.
 *
 *     ./callbacks_curl [TRANSFERS] */
#include <spanprof/spanprof.h>

#include <arpa/inet.h>
#include <curl/curl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "work.h"

enum { OPEN = 32, BODY_BYTES = 64 * 1024 };

typedef struct transfer {
    spanprof_span span;
    unsigned number;
    struct curl_slist *headers;
} transfer;

/* The server: answers every connection with BODY_BYTES. */
static void *serve(void *listener)
{
    static char answer[100 + BODY_BYTES], request[4096];
    int length = sprintf(
        answer, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n", BODY_BYTES);
    for (int fd; (fd = accept(*(int *)listener, NULL, NULL)) >= 0; close(fd))
        for (ssize_t left = length + BODY_BYTES, n = read(fd, request, sizeof request);
             n > 0 && left > 0; left -= n)
            n = write(fd, answer + length + BODY_BYTES - left, (size_t)left);
    return NULL;
}

static size_t on_body(char *data, size_t size, size_t count, void *user)
{
    (void)data;
    transfer *t = user;
    spanprof_scope scope = spanprof_span_attach(t->span);
    work(t->number);
    spanprof_scope_detach(&scope);
    return size * count;
}

static void start(CURLM *multi, unsigned number, const char *url)
{
    transfer *t = calloc(1, sizeof *t);
    CURL *easy = curl_easy_init();
    char header[80] = "traceparent: ";
    t->number = number;
    t->span = spanprof_span_start(NULL, "GET", NULL); /* not attached: many transfers run at once */
    spanprof_span_set_int(t->span, "request.number", number);
    spanprof_context context = spanprof_span_context(t->span);
    spanprof_context_inject(&context, header + strlen(header));
    t->headers = curl_slist_append(NULL, header);
    curl_easy_setopt(easy, CURLOPT_URL, url);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, t->headers);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, t);
    curl_easy_setopt(easy, CURLOPT_PRIVATE, t);
    curl_multi_add_handle(multi, easy);
}

static void finish(CURLM *multi, CURL *easy)
{
    transfer *t;
    curl_easy_getinfo(easy, CURLINFO_PRIVATE, &t);
    spanprof_span_end(t->span);
    curl_multi_remove_handle(multi, easy);
    curl_easy_cleanup(easy);
    curl_slist_free_all(t->headers);
    free(t);
}

static unsigned finish_done(CURLM *multi)
{
    unsigned ended = 0;
    CURLMsg *message;
    for (int left; (message = curl_multi_info_read(multi, &left)) != NULL; ended++)
        finish(multi, message->easy_handle);
    return ended;
}

int main(int argc, char **argv)
{
    unsigned wanted = argc > 1 ? (unsigned)atoi(argv[1]) : 100, started = 0, ended = 0;
    if (spanprof_start(NULL, NULL) != SPANPROF_OK)
        fprintf(stderr, "callbacks_curl: running without spans\n");
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    pthread_t server;
    char url[64];
    if (bind(listener, (struct sockaddr *)&address, length) != 0 || listen(listener, OPEN) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &length) != 0 ||
        pthread_create(&server, NULL, serve, &listener) != 0)
        return perror("callbacks_curl: the server"), 1;
    snprintf(url, sizeof url, "http://127.0.0.1:%d/", ntohs(address.sin_port));

    CURLM *multi = curl_multi_init();
    while (ended < wanted) {
        for (; started < wanted && started - ended < OPEN; started++)
            start(multi, started, url);
        int running;
        curl_multi_perform(multi, &running);
        ended += finish_done(multi);
        if (running)
            curl_multi_poll(multi, NULL, 0, 100, NULL);
    }
    curl_multi_cleanup(multi);
    shutdown(listener, SHUT_RDWR);
    pthread_join(server, NULL);
    spanprof_stop(UINT64_C(5000000000));
    return 0;
}
