/* SPDX-License-Identifier: Apache-2.0 */
#include "fault/scripted_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/clock.h"

enum { CONNECTIONS = 256, PATHS = 2, HEAD_MAX_BYTES = 65536, BODY_MAX_BYTES = 8 << 20 };

typedef struct path_script {
    const char *path;
    const server_step *steps;
    size_t step_count;
    server_request requests[SERVER_REQUESTS];
    size_t request_count;
} path_script;

struct scripted_server {
    int listener;
    int stop_pipe[2]; /* readable once the server stops */
    unsigned port;
    bool listens;
    pthread_t acceptor;   /* once it listens */
    pthread_mutex_t lock; /* guards paths and connections */
    pthread_cond_t came;
    path_script paths[PATHS];
    unsigned resets; /* connections that are still to be reset in their first request */
    pthread_t connections[CONNECTIONS];
    size_t connection_count;
};

typedef struct connection {
    scripted_server *server;
    int fd;
} connection;

/* False when the server stops or the peer is gone. */
static bool wait_readable(connection *c)
{
    struct pollfd fds[] = {{.fd = c->fd, .events = POLLIN},
                           {.fd = c->server->stop_pipe[0], .events = POLLIN}};
    return poll(fds, 2, -1) > 0 && !fds[1].revents;
}

static bool read_some(connection *c, uint8_t *out, size_t room, size_t *length)
{
    if (!wait_readable(c))
        return false;
    ssize_t got = recv(c->fd, out + *length, room - *length, 0);
    if (got <= 0)
        return false;
    *length += (size_t)got;
    return true;
}

static bool send_all(connection *c, const void *data, size_t length)
{
    const char *at = data;
    while (length) {
        struct pollfd fds[] = {{.fd = c->fd, .events = POLLOUT},
                               {.fd = c->server->stop_pipe[0], .events = POLLIN}};
        if (poll(fds, 2, -1) <= 0 || fds[1].revents)
            return false;
        ssize_t sent = send(c->fd, at, length, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0)
            return false;
        at += sent;
        length -= (size_t)sent;
    }
    return true;
}

static void reset_at_close(connection *c)
{
    struct linger now = {.l_onoff = 1};
    setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
}

static bool is_to_be_reset(scripted_server *server)
{
    pthread_mutex_lock(&server->lock);
    bool found = server->resets > 0;
    server->resets -= found;
    pthread_mutex_unlock(&server->lock);
    return found;
}

/* Read one request; false when the connection ended. */
static bool read_request(connection *c, server_request *out)
{
    /* Room for the head, and for the body once its length is known: a sanitizer marks all of it. */
    uint8_t *data = calloc(1, HEAD_MAX_BYTES + 1);
    size_t length = 0;
    char *end;
    while (!(end = strstr((char *)data, "\r\n\r\n")))
        if (length >= HEAD_MAX_BYTES || !read_some(c, data, HEAD_MAX_BYTES, &length))
            goto gone;
    if (is_to_be_reset(c->server)) {
        reset_at_close(c);
        goto gone;
    }
    const char *field = strcasestr((char *)data, "\r\nContent-Length:");
    size_t head = (size_t)(end + 4 - (char *)data);
    size_t body = field && field < end ? strtoul(field + 17, NULL, 10) : 0;
    if (body > BODY_MAX_BYTES)
        goto gone;
    if (head + body > HEAD_MAX_BYTES)
        data = realloc(data, head + body + 1);
    while (length < head + body)
        if (!read_some(c, data, head + body, &length))
            goto gone;
    *out = (server_request){.head = strndup((char *)data, head),
                            .body = malloc(body + 1),
                            .body_length = body,
                            .time_ns = sp_clock_monotonic_ns()};
    memcpy(out->body, data + head, body);
    out->body[body] = 0;
    free(data);
    return true;
gone:
    free(data);
    return false;
}

static path_script *find_path(scripted_server *server, const char *path, size_t length)
{
    for (int i = 0; i < PATHS; i++) {
        path_script *script = &server->paths[i];
        if (script->path && strlen(script->path) == length &&
            memcmp(script->path, path, length) == 0)
            return script;
    }
    return NULL;
}

/* Remember REQUEST (taken) and return the step for it. */
static server_step note_request(scripted_server *server, server_request *request)
{
    server_step step = {0};
    const char *path = strchr(request->head, ' ') + 1;
    pthread_mutex_lock(&server->lock);
    path_script *script = find_path(server, path, strcspn(path, " "));
    if (script && script->request_count < SERVER_REQUESTS) {
        size_t index = script->request_count++;
        script->requests[index] = *request;
        if (script->step_count)
            step = script->steps[index < script->step_count ? index : script->step_count - 1];
    } else {
        free(request->head);
        free(request->body);
    }
    pthread_cond_broadcast(&server->came);
    pthread_mutex_unlock(&server->lock);
    return step;
}

static bool answer(connection *c, const server_step *step, size_t promised)
{
    char head[2048];
    const char *headers = step->headers ? step->headers : "";
    const char *type =
        strcasestr(headers, "Content-Type:") ? "" : "Content-Type: application/x-protobuf\r\n";
    int length =
        snprintf(head, sizeof head, "HTTP/1.1 %d Scripted\r\n%s%sContent-Length: %zu\r\n\r\n",
                 step->status ? step->status : 200, type, headers, promised);
    return send_all(c, head, (size_t)length) && send_all(c, step->body, step->body_length);
}

static void answer_endlessly(connection *c)
{
    static const char head[] = "HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\n\r\n";
    static const char zeros[65536];
    if (!send_all(c, head, sizeof head - 1))
        return;
    while (send_all(c, zeros, sizeof zeros))
        ;
}

static void drip(connection *c)
{
    enum { BYTES = 100000, PAUSE_MS = 20 };
    static const char head[] = "HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\n"
                               "Content-Length: 100000\r\n\r\n";
    struct pollfd stop = {.fd = c->server->stop_pipe[0], .events = POLLIN};
    bool going = send_all(c, head, sizeof head - 1);
    for (int i = 0; i < BYTES && going; i++)
        going = poll(&stop, 1, PAUSE_MS) == 0 && send_all(c, "", 1);
}

static void wait_for_end(connection *c)
{
    uint8_t byte[1];
    size_t length = 0;
    read_some(c, byte, 1, &length);
}

/* Returns whether the connection goes on. */
static bool play(connection *c, const server_step *step)
{
    switch (step->kind) {
    case STEP_ANSWER:
        return answer(c, step, step->body_length);
    case STEP_HANG:
        wait_for_end(c);
        return false;
    case STEP_HANG_IN_BODY:
        if (answer(c, step, 100))
            wait_for_end(c);
        return false;
    case STEP_RESET:
        reset_at_close(c);
        return false;
    case STEP_RESET_IN_BODY:
        answer(c, step, 100);
        reset_at_close(c);
        return false;
    case STEP_DRIP:
        drip(c);
        return false;
    case STEP_RAW:
        send_all(c, step->body, step->body_length);
        return false;
    case STEP_ENDLESS:
        answer_endlessly(c);
        return false;
    case STEP_CLOSE:
        break;
    }
    return false;
}

static void *serve(void *argument)
{
    connection c = *(connection *)argument;
    free(argument);
    server_request request;
    bool going = true;
    while (going && read_request(&c, &request)) {
        server_step step = note_request(c.server, &request);
        going = play(&c, &step);
    }
    close(c.fd);
    return NULL;
}

static void *accept_connections(void *argument)
{
    scripted_server *server = argument;
    for (;;) {
        connection c = {.server = server, .fd = server->listener};
        if (!wait_readable(&c))
            return NULL;
        c.fd = accept4(server->listener, NULL, NULL, SOCK_CLOEXEC);
        if (c.fd < 0)
            continue;
        connection *own = malloc(sizeof *own);
        *own = c;
        pthread_mutex_lock(&server->lock);
        assert_true(server->connection_count < CONNECTIONS);
        pthread_create(&server->connections[server->connection_count++], NULL, serve, own);
        pthread_mutex_unlock(&server->lock);
    }
}

scripted_server *server_bind(void)
{
    scripted_server *server = calloc(1, sizeof *server);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    server->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(server->listener, (struct sockaddr *)&address, sizeof address), 0);
    getsockname(server->listener, (struct sockaddr *)&address, &length);
    server->port = ntohs(address.sin_port);
    server->paths[0].path = "/v1/traces";
    server->paths[1].path = "/v1development/profiles";
    assert_int_equal(pipe2(server->stop_pipe, O_CLOEXEC), 0);
    pthread_mutex_init(&server->lock, NULL);
    pthread_cond_init(&server->came, NULL);
    return server;
}

void server_listen(scripted_server *server)
{
    assert_int_equal(listen(server->listener, 64), 0);
    pthread_create(&server->acceptor, NULL, accept_connections, server);
    server->listens = true;
}

scripted_server *server_start(void)
{
    scripted_server *server = server_bind();
    server_listen(server);
    return server;
}

static path_script *path_of(scripted_server *server, const char *path)
{
    path_script *script = find_path(server, path, strlen(path));
    assert_non_null(script);
    return script;
}

void server_script(scripted_server *server, const char *path, const server_step *steps,
                   size_t count)
{
    pthread_mutex_lock(&server->lock);
    path_script *script = path_of(server, path);
    script->steps = steps;
    script->step_count = count;
    pthread_mutex_unlock(&server->lock);
}

void server_reset_in_requests(scripted_server *server, unsigned count)
{
    pthread_mutex_lock(&server->lock);
    server->resets = count;
    pthread_mutex_unlock(&server->lock);
}

unsigned server_resets_left(scripted_server *server)
{
    pthread_mutex_lock(&server->lock);
    unsigned left = server->resets;
    pthread_mutex_unlock(&server->lock);
    return left;
}

unsigned server_port(const scripted_server *server)
{
    return server->port;
}

size_t server_count(scripted_server *server, const char *path)
{
    pthread_mutex_lock(&server->lock);
    size_t count = path_of(server, path)->request_count;
    pthread_mutex_unlock(&server->lock);
    return count;
}

const server_request *server_get(scripted_server *server, const char *path, size_t index)
{
    assert_true(index < server_count(server, path));
    return &path_of(server, path)->requests[index];
}

void server_wait(scripted_server *server, const char *path, size_t count)
{
    pthread_mutex_lock(&server->lock);
    while (path_of(server, path)->request_count < count)
        pthread_cond_wait(&server->came, &server->lock);
    pthread_mutex_unlock(&server->lock);
}

void server_stop(scripted_server *server)
{
    close(server->stop_pipe[1]); /* makes the other end readable, for everybody and for good */
    if (server->listens)
        pthread_join(server->acceptor, NULL);
    for (size_t i = 0; i < server->connection_count; i++)
        pthread_join(server->connections[i], NULL);
    close(server->stop_pipe[0]);
    close(server->listener);
    for (int i = 0; i < PATHS; i++)
        for (size_t j = 0; j < server->paths[i].request_count; j++) {
            free(server->paths[i].requests[j].head);
            free(server->paths[i].requests[j].body);
        }
    pthread_cond_destroy(&server->came);
    pthread_mutex_destroy(&server->lock);
    free(server);
}
