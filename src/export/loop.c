/* SPDX-License-Identifier: Apache-2.0 */
/* The exporter thread. In each round it takes the orders of other threads (profiles, a flush, the
 * stop), encodes a batch of spans if it is time, begins and ends transfers, and sleeps until
 * something is due. Nothing in a round waits for a receiver, so that a slow one holds up neither
 * encoding nor files; a slow disk does hold up the rest.
 *
 * Other threads give orders through the worker (docs/design/worker.md). While transfers run the
 * thread sleeps in curl_multi_poll, where no wake arrives: others cannot write to a descriptor in
 * its own table. So it checks for orders every POLL_MAX_MS; a transfer rarely takes longer. */

#include "context/thread.h"
#include "core/lock.h"
#include "core/worker.h"
#include "export/export_internal.h"
#include "export/transfers.h"
#include "trace/provider.h"

enum { POLL_MAX_MS = 50 };

/* Pass profiles on to their destination. */
static void dispatch(sp_exporter *exporter, sp_request *request)
{
    if (request->destination == SP_DESTINATION_HTTP) {
        request->sequence = ++exporter->sequence;
        sp_sender_add(&exporter->senders[SP_PROFILES], request);
        return;
    }
    sp_allowance_give(&exporter->files[SP_PROFILES].allowance, request->charged_bytes);
    sp_batch_to_file(exporter, SP_PROFILES, &request->body, request->items);
    sp_request_free(request);
}

/* Add ORDERS to those that wait for their turn. Returns whether there were any. */
static bool note_orders(sp_exporter *exporter, sp_worker_orders orders)
{
    exporter->next_ticket = orders.flush_ticket;
    exporter->next_until_ns = sp_max_u64(exporter->next_until_ns, orders.flush_until_ns);
    exporter->ending = orders.ending;
    return orders.any;
}

static bool flush_waits(const sp_exporter *exporter)
{
    return exporter->next_ticket != exporter->flush_ticket;
}

/* Begin the flush that waits, when none is under way: later flushes must not put off an earlier one
 * for ever. Only the stop begins at once. */
static void begin_flush(sp_exporter *exporter)
{
    bool stop_is_new = exporter->ending && !exporter->stopping;
    if (!flush_waits(exporter) || (exporter->is_flushing && !stop_is_new))
        return;
    if (stop_is_new)
        exporter->next_until_ns = sp_max_u64(exporter->next_until_ns, exporter->stop_deadline_ns);
    exporter->flush_ticket = exporter->next_ticket;
    exporter->flush_until_ns = exporter->next_until_ns;
    exporter->next_until_ns = 0;
    exporter->flush_goal = 0;
    exporter->is_flushing = true;
    exporter->stopping = exporter->ending;
    exporter->flush_spans = sp_tracer_queued();
}

static sp_request *take_inbox(sp_exporter *exporter)
{
    sp_lock_take(&exporter->worker.lock);
    sp_request *request = exporter->inbox;
    exporter->inbox = NULL;
    exporter->inbox_last = &exporter->inbox;
    sp_lock_give(&exporter->worker.lock);
    return request;
}

/* Orders are taken before the inbox, so a profile that was submitted before a flush belongs to it.
 */
static void follow_orders(sp_exporter *exporter)
{
    note_orders(exporter, sp_worker_take_orders(&exporter->worker));
    sp_request *request = take_inbox(exporter);
    begin_flush(exporter);
    for (int i = 0; i < 2 && exporter->stopping; i++)
        sp_sender_hurry(&exporter->senders[i], exporter->stop_deadline_ns);
    for (sp_request *next; request; request = next) {
        next = request->next;
        dispatch(exporter, request);
    }
}

/* Step the senders until no transfer ends any more, so that a sender that is done begins its next
 * request in the same round. A round may have a batch to encode: with one request in every second
 * or third round, requests would pile up although the receiver is idle. Returns when to step a
 * sender again. */
static uint64_t step_transfers(sp_exporter *exporter, uint64_t now_ns)
{
    uint64_t wake_ns;
    do {
        wake_ns = UINT64_MAX;
        for (int i = 0; i < 2; i++)
            if (exporter->config.http[i].enabled)
                wake_ns = sp_min_u64(wake_ns, sp_sender_step(&exporter->senders[i], now_ns));
    } while (exporter->multi && sp_transfers_run(exporter->multi));
    return wake_ns;
}

/* Returns when to step a file again. */
static uint64_t step_files(sp_exporter *exporter, uint64_t now_ns)
{
    uint64_t wake_ns = UINT64_MAX;
    for (int i = 0; i < 2; i++)
        wake_ns = sp_min_u64(wake_ns, sp_file_step(&exporter->files[i], now_ns));
    return wake_ns;
}

static bool is_past(const sp_exporter *exporter, int signal)
{
    uint64_t sequence = exporter->flush_goal - 1;
    return (!exporter->config.http[signal].enabled ||
            sp_sender_is_past(&exporter->senders[signal], sequence, exporter->flush_until_ns)) &&
           sp_file_is_past(&exporter->files[signal], sequence);
}

/* Whether the flush under way waits only because the receiver asked for a later attempt. */
static bool is_late(const sp_exporter *exporter, int signal)
{
    return !exporter->stopping && exporter->config.http[signal].enabled &&
           sp_sender_is_late(&exporter->senders[signal], exporter->flush_until_ns) &&
           sp_file_is_past(&exporter->files[signal], exporter->flush_goal - 1);
}

/* Whether everything that the flush under way waits for is delivered, dropped or kept in the spool,
 * or cannot be delivered in time, which makes it LATE. Later requests do not matter. */
static bool flush_is_over(sp_exporter *exporter, bool late[2])
{
    if (exporter->flush_spans)
        return false;
    if (exporter->flush_goal == 0)
        exporter->flush_goal = exporter->sequence + 1;
    bool over = true;
    for (int i = 0; i < 2; i++) {
        bool past = is_past(exporter, i);
        late[i] = !past && is_late(exporter, i);
        over &= past || late[i];
    }
    return over;
}

/* Returns whether another flush waits for its turn. */
static bool finish_flush(sp_exporter *exporter)
{
    bool late[2];
    if (!exporter->is_flushing || !flush_is_over(exporter, late))
        return false;
    for (int i = 0; i < 2; i++)
        if (late[i])
            sp_sender_say_late(&exporter->senders[i], sp_clock_monotonic_ns());
    exporter->is_flushing = false;
    if (late[0] || late[1])
        sp_worker_give_up_flush(&exporter->worker, exporter->flush_ticket);
    else
        sp_worker_publish_flushed(&exporter->worker, exporter->flush_ticket);
    return flush_waits(exporter);
}

static void wait_for_transfers(sp_exporter *exporter, uint64_t deadline_ns)
{
    uint64_t now_ns = sp_clock_monotonic_ns();
    uint64_t ns = deadline_ns > now_ns ? deadline_ns - now_ns : 0;
    if (!note_orders(exporter, sp_worker_take_orders(&exporter->worker)))
        sp_transfers_wait(exporter->multi, sp_min_u64(ns, POLL_MAX_MS * SP_NS_PER_MS));
}

static void sleep_until(sp_exporter *exporter, uint64_t wake_ns)
{
    if (exporter->senders[SP_TRACES].busy || exporter->senders[SP_PROFILES].busy)
        wait_for_transfers(exporter, wake_ns);
    else
        note_orders(exporter, sp_worker_wait(&exporter->worker, wake_ns));
}

/* One round. False when the thread shall end. */
static bool step(sp_exporter *exporter)
{
    follow_orders(exporter);
    if (sp_worker_is_abandoned(&exporter->worker))
        return false;
    uint64_t now_ns = sp_clock_monotonic_ns();
    uint64_t wake_ns = sp_batch_step(exporter, now_ns);
    wake_ns = sp_min_u64(wake_ns, step_transfers(exporter, now_ns));
    wake_ns = sp_min_u64(wake_ns, step_files(exporter, now_ns));
    bool again = finish_flush(exporter);
    again |= sp_batch_is_ready(exporter); /* spans waited for a transfer, which has ended */
    if (exporter->stopping) {
        bool late = sp_clock_monotonic_ns() >= exporter->stop_deadline_ns;
        if (!exporter->is_flushing || (late && exporter->flush_spans == 0))
            return false;
        wake_ns = sp_min_u64(wake_ns, exporter->stop_deadline_ns);
    }
    if (!again)
        sleep_until(exporter, wake_ns);
    return true;
}

static void run(sp_exporter *exporter)
{
    exporter->batch_due_ns =
        sp_clock_monotonic_ns() + exporter->config.batch_delay_ms * SP_NS_PER_MS;
    while (step(exporter))
        ;
    for (int i = 0; i < 2; i++) {
        if (exporter->config.http[i].enabled)
            sp_sender_abandon(&exporter->senders[i]);
        sp_file_abandon(&exporter->files[i]);
    }
    sp_batch_abandon(exporter);
}

void sp_export_loop(void *owner)
{
    sp_exporter *exporter = owner;
    sp_thread_self_internal();
    bool has_table = sp_descriptors_unshare();
    bool started = sp_export_open(exporter);
    for (int i = 0; i < 2 && !has_table; i++)
        sp_file_is_hosts(&exporter->files[i]);
    sp_worker_publish_ready(&exporter->worker, started);
    if (started)
        run(exporter);
    sp_export_close(exporter); /* on this thread: in another table the numbers are other files */
}
