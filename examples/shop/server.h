/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP server: makes a span and an answer for each request. */
#ifndef SHOP_SERVER_H
#define SHOP_SERVER_H

#include <stdint.h>

typedef struct server server;

/* Listen on 127.0.0.1:PORT (0: a free port) with THREADS threads. After LAST_REQUEST requests (0:
 * never) the server sends SIGTERM to its own process. Returns NULL after a message when it cannot
 * listen, or without a message when memory is short. */
server *server_start(uint16_t port, unsigned threads, uint64_t last_request);
uint16_t server_port(const server *server);
/* Finish the current requests, and end the threads. Returns how many requests were answered. */
uint64_t server_stop(server *server);

#endif
