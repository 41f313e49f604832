/* SPDX-License-Identifier: Apache-2.0 */
/* The transfers of senders (export_internal.h) in one curl_multi. Threads: the one that drives the
 * senders. */
#ifndef SP_EXPORT_TRANSFERS_H
#define SP_EXPORT_TRANSFERS_H

#include <stdint.h>

#include "export/network.h"

/* Continue all transfers as far as that is possible without waiting, and call sp_sender_finish for
 * those that ended. Returns whether any did, so that the next ones may begin. */
bool sp_transfers_run(CURLM *multi);
/* Wait until there is something to do, for NS nanoseconds at most (below 24 days). */
void sp_transfers_wait(CURLM *multi, uint64_t ns);

#endif
