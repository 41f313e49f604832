/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that answers requests for profiles (docs/design/pull.md): HTTP/1.0 on one address, one
 * request at a time. It reaches the collector only through the box (pull_box.h). */
#ifndef SP_EXPORT_PULL_SERVER_H
#define SP_EXPORT_PULL_SERVER_H

#include <netinet/in.h>

#include "export/pull_request.h"

typedef struct sp_pull_server sp_pull_server;

/* An address to listen on. */
typedef struct sp_pull_address {
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } of;
    socklen_t length;
    bool is_loopback;
    char text[64]; /* as it was given */
} sp_pull_address;

/* TEXT is ADDRESS:PORT, [ADDRESS]:PORT, localhost:PORT or :PORT, which is 127.0.0.1. False when it
 * is none of these. */
bool sp_pull_address_parse(sp_pull_address *out, const char *text);

typedef struct sp_pull_config {
    sp_pull_address address;
    uint32_t kinds;      /* bit k: profiles of kind k are recorded */
    uint32_t request_ms; /* the most that a client may take for its request; and for the answer */
    uint32_t window_ms;  /* the most that the collector may take after the last second */
    bool is_inherited;   /* a parent process may have the port */
} sp_pull_config;

/* NULL, after a message, when the address cannot be listened on, or memory or threads are short. */
sp_pull_server *sp_pull_server_start(const sp_pull_config *config);
/* The port that it listens on. */
uint16_t sp_pull_server_port(const sp_pull_server *server);
/* Call it in a forked child: when the thread has no descriptor table of its own, the child has
 * copies of its sockets, which are closed. The child must not use SERVER otherwise. */
void sp_pull_server_after_fork(const sp_pull_server *server);
/* End it, also while clients are connected. A thread that has not ended by the monotonic
 * DEADLINE_NS (it checks twenty times a second) ends later by itself, and does not touch memory
 * that others use. */
void sp_pull_server_stop(sp_pull_server *server, uint64_t deadline_ns);

#endif
