/* SPDX-License-Identifier: Apache-2.0 */
/* A receiver of OTLP over HTTP that swallows what it gets: every POST is answered with 200 and
 * nothing. It counts requests, their bytes, and the spans in them, for which it looks at three
 * levels of lengths and at nothing else.
 *
 * usage: receiver [stuck]
 * It says on which port of 127.0.0.1 it listens, then answers each line of its input with the three
 * counts, and ends with its input. "stuck": connections are taken and nothing is ever read from
 * them. */
#include <arpa/inet.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <microhttpd.h>

enum { CONNECTION_BYTES = 1024 * 1024, BODY_BYTES = 64 * 1024 };

static struct MHD_Response *nothing;
static _Atomic uint64_t requests, bytes, spans;

/* What has come of a request. */
typedef struct body {
    uint8_t *data;
    size_t length, room;
} body;

/* --- counting --------------------------------------------------------------------------------- */

/* The number at *AT, which moves behind it; END ends the data. */
static uint64_t read_varint(const uint8_t **at, const uint8_t *end)
{
    uint64_t value = 0;
    for (int shift = 0; *at < end && shift < 64; shift += 7) {
        uint8_t byte = *(*at)++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            break;
    }
    return value;
}

/* How far a field of TYPE reaches at AT. */
static size_t field_length(unsigned type, const uint8_t **at, const uint8_t *end)
{
    switch (type) {
    case 0:
        read_varint(at, end);
        return 0;
    case 1:
        return 8;
    case 2:
        return (size_t)read_varint(at, end);
    default:
        return 4;
    }
}

/* Level 0 is the request, 1 its ResourceSpans, 2 their ScopeSpans. */
static uint64_t count_spans(const uint8_t *at, const uint8_t *end, int level)
{
    static const unsigned numbers[] = {1, 2, 2};
    uint64_t count = 0;
    while (at < end) {
        uint64_t tag = read_varint(&at, end);
        size_t length = field_length(tag & 7, &at, end);
        if (length > (size_t)(end - at))
            break;
        if (tag == (numbers[level] << 3 | 2))
            count += level == 2 ? 1 : count_spans(at, at + length, level + 1);
        at += length;
    }
    return count;
}

/* --- HTTP ------------------------------------------------------------------------------------- */

static enum MHD_Result take(body *body, const char *data, size_t length)
{
    if (body->length + length > body->room) {
        body->room = 2 * (body->length + length);
        uint8_t *longer = realloc(body->data, body->room);
        if (!longer)
            return MHD_NO;
        body->data = longer;
    }
    memcpy(body->data + body->length, data, length);
    body->length += length;
    return MHD_YES;
}

static enum MHD_Result answer(void *user, struct MHD_Connection *connection, const char *url,
                              const char *method, const char *version, const char *data,
                              size_t *length, void **request)
{
    (void)user, (void)method, (void)version;
    body *got = *request;
    if (!got) {
        got = *request = calloc(1, sizeof *got);
        if (!got || !(got->data = malloc(got->room = BODY_BYTES)))
            return MHD_NO;
        return MHD_YES;
    }
    if (*length) {
        enum MHD_Result result = take(got, data, *length);
        *length = 0;
        return result;
    }
    requests++;
    bytes += got->length;
    if (strcmp(url, "/v1/traces") == 0)
        spans += count_spans(got->data, got->data + got->length, 0);
    return MHD_queue_response(connection, MHD_HTTP_OK, nothing);
}

static void forget(void *user, struct MHD_Connection *connection, void **request,
                   enum MHD_RequestTerminationCode code)
{
    (void)user, (void)connection, (void)code;
    body *got = *request;
    if (got)
        free(got->data);
    free(got);
}

static int listen_somewhere(unsigned *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, size) != 0 || listen(fd, 64) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &size) != 0)
        return -1;
    *port = ntohs(address.sin_port);
    return fd;
}

int main(int argc, char **argv)
{
    bool stuck = argc == 2 && strcmp(argv[1], "stuck") == 0;
    unsigned port;
    int fd = listen_somewhere(&port); /* the kernel itself takes connections */
    nothing = MHD_create_response_from_buffer(0, "", MHD_RESPMEM_PERSISTENT);
    if (fd < 0 ||
        (!stuck && !MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD, 0, NULL, NULL, answer, NULL,
                                     MHD_OPTION_LISTEN_SOCKET, fd,
                                     MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES,
                                     MHD_OPTION_NOTIFY_COMPLETED, forget, NULL, MHD_OPTION_END)))
        return perror("receiver"), 1;
    printf("%u\n", port);
    char line[16];
    while (fflush(stdout), fgets(line, sizeof line, stdin))
        printf("%llu %llu %llu\n", (unsigned long long)requests, (unsigned long long)bytes,
               (unsigned long long)spans);
    return 0;
}
