/* SPDX-License-Identifier: Apache-2.0 */
/* A receiver on 127.0.0.1 that behaves as a script says, one step for each request of a path, and
 * remembers what it was sent. The last step of a script repeats. A path without a script is
 * answered with 200. */
#ifndef TESTS_FAULT_SCRIPTED_SERVER_H
#define TESTS_FAULT_SCRIPTED_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum step_kind {
    STEP_ANSWER = 0,   /* status, headers, body */
    STEP_HANG,         /* reads the request, never answers */
    STEP_HANG_IN_BODY, /* promises a body of 100 bytes, sends `body`, and no more */
    STEP_RESET,
    STEP_CLOSE,
    STEP_RAW,           /* `body` is all that is sent, then the connection is closed */
    STEP_ENDLESS,       /* status 200 and a body that never ends */
    STEP_RESET_IN_BODY, /* promises a body of 100 bytes, sends `body`, and resets the connection */
    STEP_DRIP,          /* an answer of 100,000 bytes, one every 20 ms */
} step_kind;

typedef struct server_step {
    step_kind kind;
    int status;          /* 0: 200 */
    const char *headers; /* each with \r\n; NULL: none. Content-Type is application/x-protobuf
                            unless given here */
    const void *body;
    size_t body_length;
} server_step;

typedef struct server_request {
    char *head; /* request line and headers */
    uint8_t *body;
    size_t body_length; /* as it came; a NUL is behind it */
    uint64_t time_ns;   /* monotonic */
} server_request;

enum { SERVER_REQUESTS = 64 };

typedef struct scripted_server scripted_server;

scripted_server *server_start(void);
/* In two steps: before the second, connections are refused, and the port is not another's. */
scripted_server *server_bind(void);
void server_listen(scripted_server *server);
/* Reset the first COUNT connections as soon as the head of a request has come; its body is not
 * read, and no step is taken. Before the first request. */
void server_reset_in_requests(scripted_server *server, unsigned count);
/* How many of these are left. */
unsigned server_resets_left(scripted_server *server);
/* COUNT steps for requests whose path is PATH; borrowed until server_stop. Before the first
 * request. */
void server_script(scripted_server *server, const char *path, const server_step *steps,
                   size_t count);
unsigned server_port(const scripted_server *server);
/* How many requests for PATH came. */
size_t server_count(scripted_server *server, const char *path);
/* Request number INDEX of PATH, valid until server_stop. */
const server_request *server_get(scripted_server *server, const char *path, size_t index);
/* Block until COUNT requests for PATH came. */
void server_wait(scripted_server *server, const char *path, size_t count);
void server_stop(scripted_server *server);

#endif
