/* SPDX-License-Identifier: Apache-2.0 */
/* A Retry-After header: at most the longest wait, and none for a moment that is over. */
#include "fuzz/fuzz.h"

#include <time.h>

#include "export/export_internal.h"

static const uint64_t NOW_S = 1700000000;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
    char *text = fuzz_string(data, length);
    uint64_t wait = UINT64_MAX;
    bool good = sp_retry_after_ns(text, NOW_S * SP_NS_PER_S, &wait);
    FUZZ_CHECK(good || wait == UINT64_MAX);
    FUZZ_CHECK(!good || wait <= SP_RETRY_AFTER_MAX_S * SP_NS_PER_S);
    bool digits = *text && text[strspn(text, "0123456789")] == 0;
    time_t date = digits ? -1 : curl_getdate(text, NULL);
    if (good && !digits && date < (time_t)NOW_S)
        FUZZ_CHECK(wait == 0);
    if (good && digits && strlen(text) < 10) {
        uint64_t asked = strtoul(text, NULL, 10);
        FUZZ_CHECK(wait == sp_min_u64(asked, SP_RETRY_AFTER_MAX_S) * SP_NS_PER_S);
    }
    free(text);
    return 0;
}
