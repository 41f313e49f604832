/* SPDX-License-Identifier: Apache-2.0 */
/* The thread has its own table of descriptors (own_descriptors.c), so that the host neither closes
 * its sockets nor passes them on to programs and children. Therefore no other thread can wake it,
 * and it checks twenty times a second whether it shall end. No wait is longer, and sockets do not
 * block, so a client cannot hold the thread up.
 *
 * Several connections may be open before their requests are whole, so a client that sends nothing
 * does not delay others. Requests are answered one after the other, because the box has one order.
 */
#include "export/pull_server.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "context/thread.h"
#include "core/atomic.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/worker.h"
#include "export/export_internal.h"

enum { CHECK_MS = 50, CLIENTS = 8, WAITING_CLIENTS = 8, HEAD_OF_ANSWER = 512 };

/* A connection. */
typedef struct pull_client {
    _Atomic int fd;       /* -1: the place is free */
    uint64_t deadline_ns; /* its request must be whole by then */
    size_t length;        /* of the request's head that was received */
    char head[SP_PULL_HEAD_BYTES + 1];
} pull_client;

struct sp_pull_server {
    sp_worker worker;
    sp_pull_config config;
    int listener;
    uint16_t port;
    bool has_table; /* the thread has its own table of descriptors */
    pull_client clients[CLIENTS];
};

/* ---- waiting ---- */

static bool shall_end(sp_pull_server *server)
{
    return sp_worker_is_abandoned(&server->worker) || sp_worker_take_orders(&server->worker).ending;
}

/* Wait until EVENTS happen at FD. False when DEADLINE_NS has passed, or the thread shall end. */
static bool wait_for(sp_pull_server *server, int fd, short events, uint64_t deadline_ns)
{
    struct pollfd one = {.fd = fd, .events = events};
    while (!shall_end(server) && sp_clock_monotonic_ns() < deadline_ns)
        if (poll(&one, 1, CHECK_MS) > 0)
            return true;
    return false;
}

static uint64_t deadline_in_ms(uint32_t ms)
{
    return sp_deadline_after(sp_clock_monotonic_ns(), ms * (uint64_t)SP_NS_PER_MS);
}

/* ---- one client ---- */

static bool send_all(sp_pull_server *server, int client, const void *data, size_t length)
{
    const char *next = data;
    uint64_t deadline_ns = deadline_in_ms(server->config.request_ms);
    while (length) {
        ssize_t sent = send(client, next, length, MSG_NOSIGNAL);
        if (sent < 0 && errno != EAGAIN && errno != EINTR)
            return false;
        if (sent > 0) {
            next += sent;
            length -= (size_t)sent;
            deadline_ns = deadline_in_ms(server->config.request_ms);
        } else if (!wait_for(server, client, POLLOUT, deadline_ns)) {
            return false;
        }
    }
    return true;
}

static void send_answer(sp_pull_server *server, int client, int status, const char *type,
                        const void *body, size_t length)
{
    char head[HEAD_OF_ANSWER];
    int head_length = snprintf(head, sizeof head,
                               "HTTP/1.0 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
                               "X-Content-Type-Options: nosniff\r\nCache-Control: no-store\r\n"
                               "%sConnection: close\r\n\r\n",
                               status, status == 200 ? "OK" : "Refused", type, length,
                               status == 405 ? "Allow: GET\r\n" : "");
    if (send_all(server, client, head, (size_t)head_length))
        send_all(server, client, body, length);
}

static void send_sentence(sp_pull_server *server, int client, int status, const char *sentence)
{
    char text[HEAD_OF_ANSWER];
    int length = snprintf(text, sizeof text, "spanprof: %s\n", sentence);
    send_answer(server, client, status, "text/plain; charset=utf-8", text, (size_t)length);
}

/* A close by the client is visible only as the end of its data. A client that has only shut down
 * its sending side looks the same, and is dropped as well, as Go's server does. */
static bool is_gone(int client)
{
    struct pollfd one = {.fd = client, .events = POLLRDHUP};
    return poll(&one, 1, 0) > 0 && (one.revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL));
}

/* Order the profile, and wait for its pprof in OUT. False: *SENTENCE says why; NULL: the client is
 * gone, or the thread shall end. */
static bool collect(sp_pull_server *server, int client, const sp_pull_request *request,
                    sp_buffer *out, const char **sentence)
{
    uint64_t number = sp_pull_begin(request->kind, request->seconds == 0);
    uint64_t finish_ns = deadline_in_ms(request->seconds * 1000);
    uint64_t deadline_ns =
        sp_deadline_after(finish_ns, server->config.window_ms * (uint64_t)SP_NS_PER_MS);
    sp_pull_state state = SP_PULL_WAITING;
    while (!shall_end(server) && !is_gone(client) && sp_clock_monotonic_ns() < deadline_ns) {
        if (sp_clock_monotonic_ns() >= finish_ns)
            sp_pull_finish(number);
        state = sp_pull_take(number, out);
        if (state != SP_PULL_WAITING)
            break;
        poll(NULL, 0, CHECK_MS);
    }
    sp_pull_cancel(number);
    *sentence = state == SP_PULL_FAILED ? "memory is short, or the SDK stops"
                : sp_clock_monotonic_ns() >= deadline_ns
                    ? "the window has not ended in time: names are still being looked up"
                    : NULL;
    return state == SP_PULL_DONE;
}

static void answer_profile(sp_pull_server *server, int client, const sp_pull_request *request)
{
    sp_buffer pprof = SP_BUFFER_INIT(SP_PULL_MAX_BYTES);
    sp_gzip gzip = {0};
    const char *sentence = NULL;
    bool done = collect(server, client, request, &pprof, &sentence);
    if (done && sp_gzip_body(&gzip, &pprof))
        send_answer(server, client, 200, "application/octet-stream", pprof.data, pprof.length);
    else if (done)
        send_sentence(server, client, 503, "memory is short");
    else if (sentence)
        send_sentence(server, client, 503, sentence);
    sp_gzip_deinit(&gzip);
    sp_buffer_deinit(&pprof);
}

static void say_not_recorded(sp_pull_server *server, int client, sp_pull_kind kind)
{
    static const char *const words[SP_PULL_KINDS] = {
        [SP_PULL_CPU] = "cpu",          [SP_PULL_HEAP] = "heap",  [SP_PULL_ALLOCATIONS] = "alloc",
        [SP_PULL_CONTENTIONS] = "lock", [SP_PULL_WAITS] = "lock",
    };
    char sentence[128];
    snprintf(sentence, sizeof sentence, "%s is not recorded: start with %s in SPANPROF_PROFILES",
             sp_pull_path(kind), words[kind]);
    send_sentence(server, client, 404, sentence);
}

static void answer(sp_pull_server *server, int client, const char *head, size_t length)
{
    sp_pull_request request =
        sp_pull_request_parse(head, length, server->config.address.is_loopback);
    if (request.status != 200)
        send_sentence(server, client, request.status, request.sentence);
    else if (!(server->config.kinds & 1u << request.kind))
        say_not_recorded(server, client, request.kind);
    else
        answer_profile(server, client, &request);
}

/* Read what the client has sent before the close: unread data would make the close a reset, and the
 * client would lose the answer. */
static void close_client(int client)
{
    char rest[512];
    shutdown(client, SHUT_WR);
    for (int i = 0; i < 128 && recv(client, rest, sizeof rest, 0) > 0; i++)
        ;
    close(client);
}

/* ---- the clients ---- */

typedef enum head_state { HEAD_IN_PARTS, HEAD_WHOLE, HEAD_BAD } head_state;

/* Receive what CLIENT has sent so far. HEAD_BAD: the head is too long, or its end does not arrive
 * in time. */
static head_state receive_head(pull_client *client)
{
    int fd = sp_load_relaxed(&client->fd);
    while (client->length < SP_PULL_HEAD_BYTES) {
        ssize_t got =
            recv(fd, client->head + client->length, SP_PULL_HEAD_BYTES - client->length, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && errno == EAGAIN)
            return sp_clock_monotonic_ns() < client->deadline_ns ? HEAD_IN_PARTS : HEAD_BAD;
        if (got <= 0)
            return HEAD_BAD;
        client->length += (size_t)got;
        client->head[client->length] = 0;
        if (sp_pull_head_is_whole(client->head, client->length))
            return HEAD_WHOLE;
    }
    return HEAD_BAD;
}

static void forget_client(pull_client *client)
{
    int fd = sp_load_relaxed(&client->fd);
    sp_store_relaxed(&client->fd, -1);
    close_client(fd);
}

static void give_up_client(sp_pull_server *server, pull_client *client)
{
    send_sentence(server, sp_load_relaxed(&client->fd), 400,
                  "no whole request came in time, within 4096 bytes");
    forget_client(client);
}

static void serve(sp_pull_server *server, pull_client *client)
{
    head_state state = receive_head(client);
    if (state == HEAD_BAD) {
        give_up_client(server, client);
    } else if (state == HEAD_WHOLE) {
        answer(server, sp_load_relaxed(&client->fd), client->head, client->length);
        forget_client(client);
    }
}

/* A free place. When there is none, the client that has taken longest for its request is dropped.
 */
static pull_client *make_place(sp_pull_server *server)
{
    pull_client *oldest = &server->clients[0];
    for (int i = 0; i < CLIENTS; i++) {
        pull_client *client = &server->clients[i];
        if (sp_load_relaxed(&client->fd) < 0)
            return client;
        if (client->deadline_ns < oldest->deadline_ns)
            oldest = client;
    }
    give_up_client(server, oldest);
    return oldest;
}

static void take_client(sp_pull_server *server)
{
    int fd = accept4(server->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
        poll(NULL, 0, CHECK_MS); /* it may fail repeatedly, because memory is short */
        return;
    }
    pull_client *client = make_place(server);
    client->length = 0;
    client->deadline_ns = deadline_in_ms(server->config.request_ms);
    sp_store_relaxed(&client->fd, fd);
}

/* One round: wait until a client connects or sends, and answer whole requests. */
static void serve_all(sp_pull_server *server)
{
    struct pollfd fds[CLIENTS + 1] = {{.fd = server->listener, .events = POLLIN}};
    for (int i = 0; i < CLIENTS; i++)
        fds[i + 1] =
            (struct pollfd){.fd = sp_load_relaxed(&server->clients[i].fd), .events = POLLIN};
    poll(fds, CLIENTS + 1, CHECK_MS);
    for (int i = 0; i < CLIENTS && !shall_end(server); i++)
        if (fds[i + 1].fd >= 0)
            serve(server, &server->clients[i]);
    if (fds[0].revents && !shall_end(server))
        take_client(server);
}

/* ---- the thread ---- */

static int try_listen(sp_pull_server *server)
{
    const sp_pull_address *address = &server->config.address;
    sp_pull_address bound = {.length = sizeof bound.of};
    int on = 1,
        fd = socket(address->of.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, &address->of.any, address->length) == 0 && listen(fd, WAITING_CLIENTS) == 0 &&
        getsockname(fd, &bound.of.any, &bound.length) == 0) {
        server->port =
            ntohs(bound.of.any.sa_family == AF_INET ? bound.of.v4.sin_port : bound.of.v6.sin6_port);
        return fd;
    }
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}

static void say_listening(const sp_pull_server *server)
{
    const sp_pull_address *address = &server->config.address;
    if (!address->is_loopback)
        sp_log_warn("pull",
                    "SPANPROF_PULL=%s: everybody who reaches this address can read profiles; "
                    "127.0.0.1 is for this machine only",
                    address->text);
    sp_log_info("pull", "profiles can be pulled from port %u, below /debug/pprof/", server->port);
}

static void say_not_listening(const sp_pull_server *server, int error)
{
    const char *address = server->config.address.text;
    if (server->config.is_inherited && error == EADDRINUSE)
        sp_log_info("pull",
                    "SPANPROF_PULL=%s: a process that this one comes from has the port: no "
                    "profile can be pulled from this one",
                    address);
    else
        sp_log_warn("pull",
                    "SPANPROF_PULL=%s: %s: no profile can be pulled, and all else goes on; give "
                    "another port, or end what has this one",
                    address, strerror(error));
}

/* Report the result of listening. sp_pull_server_start waits for this, and its caller then reads
 * what was written before. */
static void report_start(sp_pull_server *server)
{
    if (server->listener < 0)
        say_not_listening(server, errno);
    else
        say_listening(server);
    sp_worker_publish_ready(&server->worker, server->listener >= 0);
}

static void run(void *owner)
{
    sp_pull_server *server = owner;
    sp_thread_self_internal();
    server->has_table = sp_descriptors_unshare();
    server->listener = try_listen(server);
    report_start(server);
    while (server->listener >= 0 && !shall_end(server))
        serve_all(server);
    for (int i = 0; i < CLIENTS; i++)
        if (sp_load_relaxed(&server->clients[i].fd) >= 0)
            forget_client(&server->clients[i]);
    if (server->listener >= 0)
        close(server->listener);
}

static void destroy(void *owner)
{
    sp_pull_server *server = owner;
    sp_worker_deinit(&server->worker);
    free(server);
}

static const sp_worker_role role = {.name = "spanprof-pull", .run = run, .destroy = destroy};

static sp_pull_server *give_up(sp_pull_server *server, const char *why)
{
    sp_log_warn("pull", "the thread for SPANPROF_PULL: %s: no profile can be pulled", why);
    if (server)
        destroy(server);
    return NULL;
}

sp_pull_server *sp_pull_server_start(const sp_pull_config *config)
{
    sp_pull_server *server = calloc(1, sizeof *server);
    if (!server)
        return give_up(NULL, strerror(ENOMEM));
    server->config = *config;
    server->listener = -1;
    for (int i = 0; i < CLIENTS; i++)
        sp_store_relaxed(&server->clients[i].fd, -1);
    sp_worker_init(&server->worker, SP_LOCK_PULL_SERVER);
    int error = sp_worker_start(&server->worker, &role, server);
    if (error)
        return give_up(server, strerror(error));
    if (sp_worker_wait_until_ready(&server->worker))
        return server;
    sp_pull_server_stop(server, UINT64_MAX);
    return NULL;
}

uint16_t sp_pull_server_port(const sp_pull_server *server)
{
    return server->port;
}

void sp_pull_server_after_fork(const sp_pull_server *server)
{
    if (!server || server->has_table)
        return;
    close(server->listener);
    for (int i = 0; i < CLIENTS; i++) {
        int client = sp_load_relaxed(&server->clients[i].fd);
        if (client >= 0)
            close(client);
    }
}

void sp_pull_server_stop(sp_pull_server *server, uint64_t deadline_ns)
{
    sp_worker_end(&server->worker, deadline_ns);
    if (sp_worker_release(&server->worker))
        destroy(server);
}
