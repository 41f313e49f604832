/* SPDX-License-Identifier: Apache-2.0 */
#include "export/export_internal.h"

#include "core/env.h"

static const uint64_t FIRST_WAIT_NS = SP_NS_PER_S;
static const uint64_t LONGEST_WAIT_NS = 5 * SP_NS_PER_S;

bool sp_retry_http(long code)
{
    return code == 429 || code == 502 || code == 503 || code == 504;
}

bool sp_retry_grpc(uint32_t code, bool has_retry_info)
{
    enum {
        CANCELLED = 1,
        DEADLINE_EXCEEDED = 4,
        ABORTED = 10,
        OUT_OF_RANGE = 11,
        UNAVAILABLE = 14,
        DATA_LOSS = 15
    };
    static const uint32_t again = 1u << CANCELLED | 1u << DEADLINE_EXCEEDED | 1u << ABORTED |
                                  1u << OUT_OF_RANGE | 1u << UNAVAILABLE | 1u << DATA_LOSS;
    if (code == SP_GRPC_RESOURCE_EXHAUSTED)
        return has_retry_info;
    return code < 32 && (again >> code & 1);
}

bool sp_retry_curl(CURLcode code)
{
    switch (code) {
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_PARTIAL_FILE:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
        return true;
    default:
        return false;
    }
}

uint64_t sp_retry_backoff_ns(uint32_t failed, uint32_t random)
{
    uint64_t wait = FIRST_WAIT_NS;
    for (uint32_t i = 1; i < failed && wait < LONGEST_WAIT_NS; i++)
        wait += wait / 2;
    wait = sp_min_u64(wait, LONGEST_WAIT_NS);
    /* The random part spreads the attempts of many processes that lost their receiver at the same
     * moment. */
    return wait / 2 + ((wait / 2) >> 16) * (random >> 16);
}

bool sp_retry_after_ns(const char *text, uint64_t now_ns, uint64_t *out_ns)
{
    uint64_t seconds;
    if (!sp_parse_u64(text, &seconds)) {
        time_t date = sp_network_load() ? curl_getdate(text, NULL) : -1;
        if (date == -1)
            return false;
        uint64_t now_s = now_ns / SP_NS_PER_S;
        seconds = date > 0 && (uint64_t)date > now_s ? (uint64_t)date - now_s : 0;
    }
    *out_ns = sp_min_u64(seconds, SP_RETRY_AFTER_MAX_S) * SP_NS_PER_S;
    return true;
}
