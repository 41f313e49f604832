/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of HTTP/2 have 9 bytes in front: length (3), type, flags, stream (4). Headers are written
 * as literals (RFC 7541, 6.2.2), so that nothing has to be remembered. */
#include "fault/grpc_receiver.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CONNECTIONS = 16, ROOM = 1 << 17, HEAD = 9, GREETING = 24 };
enum { DATA = 0, HEADERS = 1, SETTINGS = 4, PING = 6 };
enum { ACK = 1, END_STREAM = 1, END_HEADERS = 4 };

typedef struct connection {
    int fd; /* -1: the place is free */
    bool is_greeted;
    size_t length;
    uint8_t data[ROOM];
} connection;

struct grpc_receiver {
    const grpc_answer *answer;
    int listener;
    unsigned port;
    int end; /* an eventfd: the thread shall end */
    pthread_t thread;
    connection connections[CONNECTIONS];
};

/* ---- frames ---- */

static void send_frame(int fd, uint8_t type, uint8_t flags, const uint8_t stream[4],
                       const uint8_t *content, size_t length)
{
    uint8_t frame[HEAD + 512] = {0, (uint8_t)(length >> 8), (uint8_t)length, type, flags};
    memcpy(frame + 5, stream, 4);
    if (length)
        memcpy(frame + HEAD, content, length);
    for (size_t sent = 0; sent < HEAD + length;) {
        ssize_t count = send(fd, frame + sent, HEAD + length - sent, MSG_NOSIGNAL);
        if (count < 0 && errno != EINTR)
            return; /* the client has gone */
        sent += count > 0 ? (size_t)count : 0;
    }
}

static size_t put_text(uint8_t *out, const char *text)
{
    size_t length = strlen(text);
    out[0] = (uint8_t)length;
    memcpy(out + 1, text, length);
    return 1 + length;
}

static size_t put_header(uint8_t *out, const char *name, const char *value)
{
    if (!value)
        return 0;
    out[0] = 0; /* a literal with a name of its own */
    size_t length = 1 + put_text(out + 1, name);
    return length + put_text(out + length, value);
}

static void answer_call(const grpc_answer *answer, int fd, const uint8_t stream[4])
{
    static const uint8_t empty_message[5] = {0};
    uint8_t block[512] = {0x88}; /* :status 200 */
    size_t length = 1 + put_header(block + 1, "content-type", "application/grpc");
    if (strcmp(answer->status, "0") == 0) {
        send_frame(fd, HEADERS, END_HEADERS, stream, block, length);
        send_frame(fd, DATA, 0, stream, empty_message, sizeof empty_message);
        length = 0;
    }
    length += put_header(block + length, "grpc-status", answer->status);
    length += put_header(block + length, "grpc-message", answer->message);
    length += put_header(block + length, "grpc-status-details-bin", answer->details);
    send_frame(fd, HEADERS, END_HEADERS | END_STREAM, stream, block, length);
}

static void take_frame(const grpc_answer *answer, int fd, const uint8_t *frame, size_t length)
{
    uint8_t type = frame[3], flags = frame[4];
    const uint8_t *stream = frame + 5;
    if ((type == SETTINGS || type == PING) && !(flags & ACK))
        send_frame(fd, type, ACK, stream, frame + HEAD, type == PING ? length : 0);
    else if ((type == HEADERS || type == DATA) && flags & END_STREAM)
        answer_call(answer, fd, stream);
}

/* ---- connections ---- */

static void take_frames(const grpc_answer *answer, connection *c)
{
    static const uint8_t no_stream[4];
    size_t at = 0;
    if (!c->is_greeted && c->length >= GREETING) {
        send_frame(c->fd, SETTINGS, 0, no_stream, NULL, 0);
        c->is_greeted = true;
        at = GREETING;
    }
    while (c->is_greeted && c->length - at >= HEAD) {
        const uint8_t *frame = c->data + at;
        size_t length = (size_t)frame[0] << 16 | (size_t)frame[1] << 8 | frame[2];
        if (c->length - at < HEAD + length)
            break;
        take_frame(answer, c->fd, frame, length);
        at += HEAD + length;
    }
    memmove(c->data, c->data + at, c->length - at);
    c->length -= at;
}

static void read_some(const grpc_answer *answer, connection *c)
{
    ssize_t got = recv(c->fd, c->data + c->length, ROOM - c->length, 0);
    if (got <= 0) {
        close(c->fd);
        c->fd = -1;
        return;
    }
    c->length += (size_t)got;
    take_frames(answer, c);
}

static void take_connection(grpc_receiver *receiver)
{
    int fd = accept4(receiver->listener, NULL, NULL, SOCK_CLOEXEC), on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on); /* an answer is several frames */
    for (int i = 0; i < CONNECTIONS && fd >= 0; i++) {
        connection *c = &receiver->connections[i];
        if (c->fd >= 0)
            continue;
        c->fd = fd;
        c->length = 0;
        c->is_greeted = false;
        return;
    }
    if (fd >= 0)
        close(fd);
}

static void *serve(void *of)
{
    grpc_receiver *receiver = of;
    for (;;) {
        struct pollfd fds[CONNECTIONS + 2] = {{.fd = receiver->listener, .events = POLLIN}};
        for (int i = 0; i < CONNECTIONS; i++)
            fds[i + 1] = (struct pollfd){.fd = receiver->connections[i].fd, .events = POLLIN};
        fds[CONNECTIONS + 1] = (struct pollfd){.fd = receiver->end, .events = POLLIN};
        poll(fds, CONNECTIONS + 2, -1);
        if (fds[CONNECTIONS + 1].revents)
            return NULL;
        for (int i = 0; i < CONNECTIONS; i++)
            if (fds[i + 1].revents)
                read_some(receiver->answer, &receiver->connections[i]);
        if (fds[0].revents)
            take_connection(receiver);
    }
}

grpc_receiver *grpc_receiver_start(const grpc_answer *answer)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    grpc_receiver *receiver = calloc(1, sizeof *receiver);
    receiver->answer = answer;
    receiver->end = eventfd(0, EFD_CLOEXEC);
    receiver->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    for (int i = 0; i < CONNECTIONS; i++)
        receiver->connections[i].fd = -1;
    if (bind(receiver->listener, (struct sockaddr *)&address, length) != 0 ||
        listen(receiver->listener, CONNECTIONS) != 0 ||
        getsockname(receiver->listener, (struct sockaddr *)&address, &length) != 0 ||
        pthread_create(&receiver->thread, NULL, serve, receiver) != 0)
        abort();
    receiver->port = ntohs(address.sin_port);
    return receiver;
}

unsigned grpc_receiver_port(const grpc_receiver *receiver)
{
    return receiver->port;
}

void grpc_receiver_stop(grpc_receiver *receiver)
{
    eventfd_write(receiver->end, 1);
    pthread_join(receiver->thread, NULL);
    for (int i = 0; i < CONNECTIONS; i++)
        if (receiver->connections[i].fd >= 0)
            close(receiver->connections[i].fd);
    close(receiver->listener);
    close(receiver->end);
    free(receiver);
}
