/* SPDX-License-Identifier: Apache-2.0 */
/* A receiver of gRPC on 127.0.0.1, without TLS, that answers each call in one way. It speaks as
 * much of HTTP/2 as short calls need. */
#ifndef TESTS_FAULT_GRPC_RECEIVER_H
#define TESTS_FAULT_GRPC_RECEIVER_H

/* In the trailers; an answer with a status other than "0" is nothing but trailers. Texts are
 * shorter than 127 bytes. */
typedef struct grpc_answer {
    const char *status;
    const char *message; /* percent-encoded; NULL: none */
    const char *details; /* base64; NULL: none */
} grpc_answer;

typedef struct grpc_receiver grpc_receiver;

/* ANSWER is borrowed until grpc_receiver_stop. */
grpc_receiver *grpc_receiver_start(const grpc_answer *answer);
unsigned grpc_receiver_port(const grpc_receiver *receiver);
void grpc_receiver_stop(grpc_receiver *receiver);

#endif
