/* SPDX-License-Identifier: Apache-2.0 */
#include "export/transfers.h"

#include "export/export_internal.h"

enum { PERFORMS_MAX = 64 };

/* Continue the transfers as far as the sockets allow without waiting, because a batch may be
 * encoded before the next round. One perform sends 64 KiB. */
static void perform(CURLM *multi)
{
    int running = 0, ready = 1;
    for (int i = 0; i < PERFORMS_MAX && ready; i++) {
        curl_multi_perform(multi, &running);
        if (!running || curl_multi_poll(multi, NULL, 0, 0, &ready) != CURLM_OK)
            return;
    }
}

bool sp_transfers_run(CURLM *multi)
{
    int left;
    bool ended = false;
    perform(multi);
    for (CURLMsg *message; (message = curl_multi_info_read(multi, &left));) {
        if (message->msg != CURLMSG_DONE)
            continue;
        char *sender = NULL;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &sender);
        sp_sender_finish((sp_sender *)(void *)sender, message->data.result,
                         sp_clock_monotonic_ns());
        ended = true;
    }
    return ended;
}

void sp_transfers_wait(CURLM *multi, uint64_t ns)
{
    enum { POLL_FAILED_MS = 100 };
    uint64_t ms = (ns + SP_NS_PER_MS - 1) / SP_NS_PER_MS;
    if (curl_multi_poll(multi, NULL, 0, (int)ms, NULL) == CURLM_OK)
        return;
    struct timespec pause = sp_timespec_from_ns(POLL_FAILED_MS * SP_NS_PER_MS);
    nanosleep(&pause, NULL);
}
