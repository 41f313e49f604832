/* SPDX-License-Identifier: Apache-2.0 */
/* What a client asks the pull endpoint for, from the bytes of an HTTP request. Strict: everything
 * except a GET of a known path is refused with a status and a sentence. */
#ifndef SP_EXPORT_PULL_REQUEST_H
#define SP_EXPORT_PULL_REQUEST_H

#include "export/pull_box.h"

enum { SP_PULL_HEAD_BYTES = 4096, SP_PULL_MAX_SECONDS = 3600 };

typedef struct sp_pull_request {
    int status; /* 200, or why not */
    const char *sentence;
    sp_pull_kind kind;
    uint32_t seconds; /* 0: at once */
} sp_pull_request;

/* Whether the LENGTH bytes at HEAD, a NUL behind them, are a whole head, up to its empty line. */
bool sp_pull_head_is_whole(const char *head, size_t length);
/* HEAD is whole. IS_LOOPBACK: only a loopback address is listened on. Then a Host of another name
 * is refused: it comes from a web page whose name was made to lead here (DNS rebinding). */
sp_pull_request sp_pull_request_parse(const char *head, size_t length, bool is_loopback);
/* The path of KIND below /debug/pprof/. */
const char *sp_pull_path(sp_pull_kind kind);

#endif
