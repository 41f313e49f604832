/* SPDX-License-Identifier: Apache-2.0 */
/* The exporter thread: a loop around curl_multi_poll. In each round it takes what others ask for (profiles, a flush, the stop), encodes
 * a batch of spans if it is time, begins and ends transfers, and sleeps until something is due. Nothing in a round waits for a
 * receiver, so that a slow one holds up neither encoding nor files; a slow disk does hold up the rest.
 *
 * Whoever asks takes the lock, notes it, and calls curl_multi_wakeup, which is remembered when the thread is not asleep. */
#include <limits.h>

#include "export/internal.h"
#include "thread/thread.h"
#include "tracer/provider.h"

enum { POLL_FAILED_MS = 100 };

/* Profiles go on to their destination. */
static void dispatch(sp_exporter *exporter, sp_request *request)
{
    request->sequence = ++exporter->sequence;
    if (request->destination == SP_DESTINATION_HTTP) {
        sp_sender_add(&exporter->senders[SP_PROFILES], request);
        return;
    }
    sp_file *file = &exporter->files[SP_PROFILES];
    sp_batch_to_file(exporter, SP_PROFILES, &request->body, request->items);
    sp_allowance_give(&file->allowance, request->charged_bytes);
    sp_request_free(request);
}

/* A flush waits for its turn, lest it be put off for ever by others; only the stop does not. */
static bool begin_flush(sp_exporter *exporter)
{
    bool stop_is_new = exporter->stop && !exporter->stopping;
    if (exporter->flush_asked == exporter->flush_done || (exporter->flush_ticket && !stop_is_new))
        return false;
    exporter->flush_ticket = exporter->flush_asked;
    exporter->flush_goal = 0;
    exporter->stopping = exporter->stop;
    return true;
}

static void take_orders(sp_exporter *exporter)
{
    pthread_mutex_lock(&exporter->lock);
    sp_request *request = exporter->inbox;
    exporter->inbox = NULL;
    exporter->inbox_last = &exporter->inbox;
    bool flush = begin_flush(exporter);
    pthread_mutex_unlock(&exporter->lock);
    if (flush)
        exporter->flush_spans = sp_tracer_queued();
    for (int i = 0; i < 2 && exporter->stopping; i++)
        sp_sender_hurry(&exporter->senders[i]);
    for (sp_request *next; request; request = next) {
        next = request->next;
        dispatch(exporter, request);
    }
}

/* Returns whether transfers ended, so that the next ones may begin. */
static bool run_transfers(sp_exporter *exporter)
{
    int running, left;
    bool ended = false;
    curl_multi_perform(exporter->multi, &running);
    for (CURLMsg *message; (message = curl_multi_info_read(exporter->multi, &left));) {
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

/* Whether all that the flush under way waits for is delivered or dropped. Later requests of a sender do not matter. */
static bool flush_is_complete(sp_exporter *exporter)
{
    if (exporter->flush_spans)
        return false;
    if (exporter->flush_goal == 0)
        exporter->flush_goal = exporter->sequence + 1;
    for (int i = 0; i < 2; i++)
        if (exporter->config.http[i].enabled &&
            !sp_sender_is_past(&exporter->senders[i], exporter->flush_goal - 1))
            return false;
    return true;
}

/* Returns whether another flush waits for its turn. */
static bool finish_flush(sp_exporter *exporter)
{
    if (!exporter->flush_ticket || !flush_is_complete(exporter))
        return false;
    pthread_mutex_lock(&exporter->lock);
    exporter->flush_done = exporter->flush_ticket;
    bool more = exporter->flush_asked != exporter->flush_done;
    pthread_cond_broadcast(&exporter->progress);
    pthread_mutex_unlock(&exporter->lock);
    exporter->flush_ticket = 0;
    return more;
}

static void sleep_until(sp_exporter *exporter, uint64_t wake_ns)
{
    uint64_t now_ns = sp_clock_monotonic_ns();
    uint64_t ms = wake_ns > now_ns ? (wake_ns - now_ns + SP_NS_PER_MS - 1) / SP_NS_PER_MS : 0;
    if (curl_multi_poll(exporter->multi, NULL, 0, (int)sp_min_u64(ms, INT_MAX), NULL) != CURLM_OK) {
        struct timespec pause = sp_timespec_from_ns(POLL_FAILED_MS * SP_NS_PER_MS);
        nanosleep(&pause, NULL);
    }
}

/* One round. False when the thread shall end. */
static bool step(sp_exporter *exporter)
{
    take_orders(exporter);
    uint64_t now_ns = sp_clock_monotonic_ns();
    uint64_t wake_ns = sp_batch_step(exporter, now_ns);
    for (int i = 0; i < 2; i++)
        if (exporter->config.http[i].enabled)
            wake_ns = sp_min_u64(wake_ns, sp_sender_step(&exporter->senders[i], now_ns));
    bool again = run_transfers(exporter);
    again |= finish_flush(exporter);
    if (exporter->stopping) {
        bool late = sp_clock_monotonic_ns() >= exporter->stop_deadline_ns;
        if (!exporter->flush_ticket || (late && exporter->flush_spans == 0))
            return false;
        wake_ns = sp_min_u64(wake_ns, exporter->stop_deadline_ns);
    }
    if (!again)
        sleep_until(exporter, wake_ns);
    return true;
}

void *sp_export_loop(void *argument)
{
    sp_thread_self_internal();
    sp_exporter *exporter = argument;
    exporter->batch_due_ns =
        sp_clock_monotonic_ns() + exporter->config.batch_delay_ms * SP_NS_PER_MS;
    while (step(exporter))
        ;
    for (int i = 0; i < 2; i++)
        if (exporter->config.http[i].enabled)
            sp_sender_abandon(&exporter->senders[i]);
    sp_batch_abandon(exporter);
    return NULL;
}
