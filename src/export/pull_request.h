/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the HTTP requests of the pull endpoint's clients. Strict: everything except a GET of a
 * known path is refused with a status and a sentence. */
#ifndef SP_EXPORT_PULL_REQUEST_H
#define SP_EXPORT_PULL_REQUEST_H

#include "export/pull_box.h"

enum { SP_PULL_HEAD_BYTES = 4096, SP_PULL_MAX_SECONDS = 3600 };

typedef struct sp_pull_request {
    int status; /* 200, or the status of a refusal, which has a sentence */
    const char *sentence;
    sp_pull_kind kind;
    uint32_t seconds; /* 0: at once */
} sp_pull_request;

/* Whether the LENGTH bytes at HEAD, with a NUL after them, are a whole head, up to its empty line.
 */
bool sp_pull_head_is_whole(const char *head, size_t length);
/* Parse HEAD, which is whole. IS_LOOPBACK: the server listens on a loopback address only. Then a
 * Host with another name is refused: it is of a web page whose name was made to resolve to this
 * address (DNS rebinding). */
sp_pull_request sp_pull_request_parse(const char *head, size_t length, bool is_loopback);
/* The path of KIND below /debug/pprof/. */
const char *sp_pull_path(sp_pull_kind kind);

#endif
