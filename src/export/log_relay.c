/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that delivers the messages of all others (core/log_queue.h). It has the host's
 * descriptors. On the exporter thread, which has other ones, the number of the host's log file
 * would be another file or a connection, and a copy of the host's standard error would keep that
 * open. */
#include "context/thread.h"
#include "core/log.h"
#include "core/log_queue.h"
#include "core/worker.h"
#include "export/export_internal.h"

static void *deliver(void *argument)
{
    uint32_t ticket = (uint32_t)(uintptr_t)argument;
    pthread_setname_np(pthread_self(), "spanprof-log");
    sp_thread_self_internal();
    sp_log_line line = {0};
    while (sp_log_queue_take(ticket, &line))
        sp_log_deliver(line.level, line.text);
    return NULL;
}

int sp_log_relay_start(sp_log_relay *relay)
{
    uintptr_t ticket = sp_log_queue_open();
    int error = sp_worker_thread_create(&relay->thread, SP_WORKER_KEEPS_FAULTS, deliver,
                                        (void *)ticket); // NOLINT(performance-no-int-to-ptr)
    relay->running = !error;
    if (error)
        sp_log_queue_close();
    return error;
}

void sp_log_relay_stop(sp_log_relay *relay, uint64_t deadline_ns)
{
    if (!relay->running)
        return;
    relay->running = false;
    sp_log_settle(deadline_ns);
    if (sp_log_queue_close())
        pthread_join(relay->thread, NULL);
    else
        pthread_detach(relay->thread); /* it ends when the host's function returns */
}
