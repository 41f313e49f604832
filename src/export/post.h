/* SPDX-License-Identifier: Apache-2.0 */
/* Delivery of finished requests by the calling thread, for programs that have nothing else to do
 * meanwhile (`spanprof send`). Retries, headers, compression and messages are as in the exporter.
 * Threads: one. */
#ifndef SP_EXPORT_POST_H
#define SP_EXPORT_POST_H

#include "export/exporter.h"

typedef struct sp_post sp_post;

/* CONFIG is borrowed until the close. NULL when memory is short, or libcurl cannot be loaded, which
 * is logged. */
sp_post *sp_post_open(const sp_export_config *config);
void sp_post_close(sp_post *post);

/* Send BODY (taken), a request of SIGNAL with ITEMS spans or samples in the format of its target
 * (sp_http_target_format), and wait until it is delivered or given up; a failure is logged. Returns
 * whether it was delivered. False also when memory is short. */
bool sp_post_request(sp_post *post, sp_telemetry_signal signal, sp_buffer *body, uint64_t items);

/* Why the last request of SIGNAL was not delivered: the end of its last attempt, for a message. */
const char *sp_post_failure(const sp_post *post, sp_telemetry_signal signal);

const sp_export_counters *sp_post_counters(const sp_post *post);

#endif
