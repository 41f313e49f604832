/* SPDX-License-Identifier: Apache-2.0 */
/* The exporter thread. In each round it takes what others ask for (profiles, a flush, the stop),
 * encodes a batch of spans if it is time, begins and ends transfers, and sleeps until something is
 * due. Nothing in a round waits for a receiver, so that a slow one holds up neither encoding nor
 * files; a slow disk does hold up the rest.
 *
 * Whoever asks takes the lock, notes it, and rings the alarm, which is remembered when the thread
 * is not asleep. While transfers run the thread sleeps in curl_multi_poll, where no alarm is heard:
 * its own descriptor table has none that others could write to. So it looks up every now and then;
 * a request rarely takes that long. */

#include "context/thread.h"
#include "core/lock.h"
#include "core/worker.h"
#include "export/export_internal.h"
#include "export/transfers.h"
#include "trace/provider.h"

enum { POLL_MAX_MS = 50 };

/* Profiles go on to their destination. */
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

/* A flush waits for its turn, lest it be put off for ever by others; only the stop does not. */
static bool begin_flush(sp_exporter *exporter)
{
    bool stop_is_new = exporter->stop && !exporter->stopping;
    if (exporter->flush_asked == exporter->flush_done || (exporter->flush_ticket && !stop_is_new))
        return false;
    exporter->flush_ticket = exporter->flush_asked;
    exporter->flush_until_ns = exporter->flush_deadline_ns;
    exporter->flush_deadline_ns = 0;
    exporter->flush_goal = 0;
    exporter->stopping = exporter->stop;
    return true;
}

static void take_orders(sp_exporter *exporter)
{
    sp_lock_take(&exporter->lock);
    sp_request *request = exporter->inbox;
    exporter->inbox = NULL;
    exporter->inbox_last = &exporter->inbox;
    bool flush = begin_flush(exporter);
    sp_lock_give(&exporter->lock);
    if (flush)
        exporter->flush_spans = sp_tracer_queued();
    for (int i = 0; i < 2 && exporter->stopping; i++)
        sp_sender_hurry(&exporter->senders[i], exporter->stop_deadline_ns);
    for (sp_request *next; request; request = next) {
        next = request->next;
        dispatch(exporter, request);
    }
}

/* Whoever is done begins with the next request at once: a round may have a batch to encode, and if
 * only every second or third of them sent one then requests would pile up while the receiver waits
 * for them. Returns when a sender wants to be looked at. */
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

/* Returns when a file wants to be looked at. */
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

/* Whether nothing but the receiver's wish to be asked later holds up the flush under way. */
static bool is_late(const sp_exporter *exporter, int signal)
{
    return !exporter->stopping && exporter->config.http[signal].enabled &&
           sp_sender_is_late(&exporter->senders[signal], exporter->flush_until_ns) &&
           sp_file_is_past(&exporter->files[signal], exporter->flush_goal - 1);
}

/* Whether all that the flush under way waits for is delivered or dropped, or, which makes it LATE,
 * cannot be delivered in time. Later requests do not matter. */
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
static bool tell_flush(sp_exporter *exporter, bool late)
{
    sp_lock_take(&exporter->lock);
    if (late) {
        exporter->late_after = exporter->flush_done;
        exporter->late_last = exporter->flush_ticket;
    }
    exporter->flush_done = exporter->flush_ticket;
    bool more = exporter->flush_asked != exporter->flush_done;
    pthread_cond_broadcast(&exporter->progress);
    sp_lock_give(&exporter->lock);
    exporter->flush_ticket = 0;
    return more;
}

/* Returns whether another flush waits for its turn. */
static bool finish_flush(sp_exporter *exporter)
{
    bool late[2];
    if (!exporter->flush_ticket || !flush_is_over(exporter, late))
        return false;
    for (int i = 0; i < 2; i++)
        if (late[i])
            sp_sender_say_late(&exporter->senders[i], sp_clock_monotonic_ns());
    return tell_flush(exporter, late[0] || late[1]);
}

void sp_alarm_init(sp_alarm *alarm)
{
    sp_lock_init(&alarm->lock, SP_LOCK_ALARM);
    sp_condition_init(&alarm->ring);
    alarm->rung = false;
}

void sp_alarm_deinit(sp_alarm *alarm)
{
    pthread_cond_destroy(&alarm->ring);
    sp_lock_deinit(&alarm->lock);
}

void sp_alarm_ring(sp_alarm *alarm)
{
    sp_lock_take(&alarm->lock);
    alarm->rung = true;
    pthread_cond_signal(&alarm->ring);
    sp_lock_give(&alarm->lock);
}

static void wait_for_alarm(sp_alarm *alarm, uint64_t deadline_ns)
{
    struct timespec deadline = sp_timespec_from_ns(deadline_ns);
    sp_lock_take(&alarm->lock);
    while (!alarm->rung && sp_lock_wait_until(&alarm->lock, &alarm->ring, &deadline) == 0)
        ;
    alarm->rung = false;
    sp_lock_give(&alarm->lock);
}

/* Whether it has rung since the last look. */
static bool alarm_has_rung(sp_alarm *alarm)
{
    sp_lock_take(&alarm->lock);
    bool rung = alarm->rung;
    alarm->rung = false;
    sp_lock_give(&alarm->lock);
    return rung;
}

static void wait_for_transfers(sp_exporter *exporter, uint64_t deadline_ns)
{
    uint64_t now_ns = sp_clock_monotonic_ns();
    uint64_t ns = deadline_ns > now_ns ? deadline_ns - now_ns : 0;
    if (!alarm_has_rung(&exporter->alarm))
        sp_transfers_wait(exporter->multi, sp_min_u64(ns, POLL_MAX_MS * SP_NS_PER_MS));
}

static void sleep_until(sp_exporter *exporter, uint64_t wake_ns)
{
    if (exporter->senders[SP_TRACES].busy || exporter->senders[SP_PROFILES].busy)
        wait_for_transfers(exporter, wake_ns);
    else
        wait_for_alarm(&exporter->alarm, wake_ns);
}

/* One round. False when the thread shall end. */
static bool step(sp_exporter *exporter)
{
    take_orders(exporter);
    if (sp_export_is_abandoned(exporter))
        return false;
    uint64_t now_ns = sp_clock_monotonic_ns();
    uint64_t wake_ns = sp_batch_step(exporter, now_ns);
    wake_ns = sp_min_u64(wake_ns, step_transfers(exporter, now_ns));
    wake_ns = sp_min_u64(wake_ns, step_files(exporter, now_ns));
    bool again = finish_flush(exporter);
    again |= sp_batch_is_ready(exporter); /* a transfer has ended, for which spans waited */
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

static void tell_start(sp_exporter *exporter, bool started)
{
    sp_lock_take(&exporter->lock);
    exporter->told_start = true;
    exporter->started = started;
    pthread_cond_broadcast(&exporter->progress);
    sp_lock_give(&exporter->lock);
}

bool sp_export_is_abandoned(sp_exporter *exporter)
{
    sp_lock_take(&exporter->lock);
    bool abandoned = exporter->abandoned;
    sp_lock_give(&exporter->lock);
    return abandoned;
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

/* The last thing that the thread does with EXPORTER, unless it is the last that has to do with it.
 */
static void tell_end(sp_exporter *exporter)
{
    sp_lock_take(&exporter->lock);
    exporter->ended = true;
    bool abandoned = exporter->abandoned;
    pthread_cond_broadcast(&exporter->progress);
    sp_lock_give(&exporter->lock);
    if (abandoned)
        sp_export_free(exporter);
}

void *sp_export_loop(void *argument)
{
    /* By the thread itself: to name another one the C library opens a file, which a fork would hand
     * on. */
    pthread_setname_np(pthread_self(), "spanprof-export");
    sp_thread_self_internal();
    sp_exporter *exporter = argument;
    bool has_table = sp_descriptors_unshare();
    bool started = sp_export_open(exporter);
    for (int i = 0; i < 2 && !has_table; i++)
        sp_file_is_hosts(&exporter->files[i]);
    tell_start(exporter, started);
    if (started)
        run(exporter);
    sp_export_close(exporter); /* by nobody else: in another table the numbers are other files' */
    tell_end(exporter);
    return NULL;
}
