/* SPDX-License-Identifier: Apache-2.0 */
/* A request to the pull endpoint. What is understood is a kind with seconds in their bounds; all
 * else has a sentence. */
#include "fuzz/fuzz.h"

#include "export/pull_request.h"

static void check(const char *head, size_t length, bool is_loopback)
{
    sp_pull_request request = sp_pull_request_parse(head, length, is_loopback);
    if (request.status == 200) {
        FUZZ_CHECK(request.kind < SP_PULL_KINDS && request.seconds <= SP_PULL_MAX_SECONDS);
        FUZZ_CHECK((request.seconds == 0) == (request.kind == SP_PULL_HEAP));
        FUZZ_CHECK(strncmp(head, "GET /debug/pprof/", 17) == 0);
    } else {
        FUZZ_CHECK(request.status >= 400 && request.status <= 405 && request.sentence);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
    char *head = malloc(length + 1);
    FUZZ_CHECK(head);
    if (length)
        memcpy(head, data, length);
    head[length] = 0;
    if (sp_pull_head_is_whole(head, length)) {
        check(head, length, true);
        check(head, length, false);
    }
    free(head);
    return 0;
}
