/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP: turns requests into spans and answers. */
#ifndef SHOP_SERVER_H
#define SHOP_SERVER_H

#include <stdint.h>

typedef struct server server;

/* Listen on 127.0.0.1:PORT (0: a free one) with THREADS threads. After LAST_REQUEST requests (0:
 * never) the process is sent SIGTERM. Returns NULL when that failed, and why was printed. */
server *server_start(uint16_t port, unsigned threads, uint64_t last_request);
uint16_t server_port(const server *server);
/* Finish the requests under way, end the threads. Returns how many requests were answered. */
uint64_t server_stop(server *server);

#endif
