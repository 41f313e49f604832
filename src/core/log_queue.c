/* SPDX-License-Identifier: Apache-2.0 */
#include "core/log_queue.h"

#include <errno.h>
#include <stdio.h>

#include "core/at_fork.h"
#include "core/clock.h"
#include "core/lock.h"
#include "core/log.h"
#include "core/worker.h"

static struct {
    sp_lock lock;
    pthread_cond_t changed;
    bool begun;
    uint32_t ticket;    /* of the last thread */
    bool has_thread;    /* a thread takes lines, with the ticket `ticket` */
    bool is_delivering; /* that thread is delivering a line */
    uint32_t left;      /* threads that were asked to end and still deliver a line */
    uint64_t dropped;   /* lost lines that are not reported yet */
    uint32_t first, count;
    sp_log_line lines[SP_LOG_QUEUE_LINES];
} queue;

/* Called while the library is loaded, and in a forked child. In the child, another thread of the
 * parent may have held the lock, and the parent delivers the lines that wait. */
static void begin_anew(void)
{
    sp_lock_init(&queue.lock, SP_LOCK_LOG);
    sp_condition_init(&queue.changed);
    queue.has_thread = queue.is_delivering = false;
    queue.left = 0;
    queue.dropped = queue.first = queue.count = 0;
}

/* The child's handler runs before all others, because those may log. */
SP_AT_FORK(SP_LOCK_LOG, NULL, NULL, begin_anew);

__attribute__((constructor(SP_FORK_FIRST))) static void prepare(void)
{
    begin_anew();
}

void sp_log_queue_set_begun(bool begun)
{
    sp_lock_take(&queue.lock);
    queue.begun = begun;
    sp_lock_give(&queue.lock);
}

static void add(spanprof_log_level level, const char *text)
{
    if (queue.count == SP_LOG_QUEUE_LINES) {
        queue.dropped++;
        return;
    }
    sp_log_line *line = &queue.lines[(queue.first + queue.count++) % SP_LOG_QUEUE_LINES];
    line->level = level;
    snprintf(line->text, sizeof line->text, "%s", text);
    pthread_cond_broadcast(&queue.changed);
}

bool sp_log_queue_push(spanprof_log_level level, const char *text)
{
    sp_lock_take(&queue.lock);
    bool is_queued = queue.begun || queue.has_thread;
    if (is_queued)
        add(level, text);
    sp_lock_give(&queue.lock);
    return is_queued;
}

/* The static functions from here on are called with the lock held. */
static bool is_empty(void)
{
    return queue.count == 0 && queue.dropped == 0;
}

static void report_dropped(sp_log_line *out)
{
    out->level = SPANPROF_LOG_WARN;
    snprintf(
        out->text, sizeof out->text,
        "log: %llu messages were dropped, because those before them took too long to be written",
        (unsigned long long)queue.dropped);
    queue.dropped = 0;
}

static void remove_first(sp_log_line *out)
{
    if (queue.count == 0) {
        report_dropped(out);
        return;
    }
    *out = queue.lines[queue.first];
    queue.first = (queue.first + 1) % SP_LOG_QUEUE_LINES;
    queue.count--;
}

static bool is_of(uint32_t ticket)
{
    return queue.has_thread && queue.ticket == ticket;
}

uint32_t sp_log_queue_open(void)
{
    sp_lock_take(&queue.lock);
    uint32_t ticket = ++queue.ticket;
    queue.has_thread = true;
    sp_lock_give(&queue.lock);
    return ticket;
}

/* The thread with TICKET has delivered LINE. */
static void end_delivery(uint32_t ticket, const sp_log_line *line)
{
    if (line->level == SPANPROF_LOG_DEFAULT)
        return; /* its first call: nothing was delivered */
    if (is_of(ticket))
        queue.is_delivering = false;
    else
        queue.left--;
    pthread_cond_broadcast(&queue.changed);
}

bool sp_log_queue_take(uint32_t ticket, sp_log_line *out)
{
    sp_lock_take(&queue.lock);
    end_delivery(ticket, out);
    while (is_of(ticket) && is_empty())
        sp_lock_wait(&queue.lock, &queue.changed);
    bool goes_on = is_of(ticket);
    if (goes_on) {
        remove_first(out);
        queue.is_delivering = true;
    }
    sp_lock_give(&queue.lock);
    return goes_on;
}

bool sp_log_queue_close(void)
{
    sp_lock_take(&queue.lock);
    bool is_idle = !queue.is_delivering;
    queue.left += queue.is_delivering;
    queue.has_thread = queue.is_delivering = false;
    pthread_cond_broadcast(&queue.changed);
    sp_lock_give(&queue.lock);
    return is_idle;
}

/* --- settling --------------------------------------------------------------------------------- */

static void wait_for_thread(const struct timespec *until)
{
    while (queue.has_thread && (queue.is_delivering || !is_empty()))
        if (sp_lock_wait_until(&queue.lock, &queue.changed, until) == ETIMEDOUT)
            return;
}

/* Deliver lines on this thread, but not while another thread is inside the host's function: this
 * thread might be blocked there, too. */
static void deliver_here(void)
{
    while (!queue.has_thread && !queue.left && !is_empty()) {
        sp_log_line line;
        remove_first(&line);
        sp_lock_give(&queue.lock);
        sp_log_deliver(line.level, line.text);
        sp_lock_take(&queue.lock);
    }
}

void sp_log_settle(uint64_t deadline_ns)
{
    uint64_t now_ns = sp_clock_monotonic_ns();
    uint64_t least_ns = now_ns + SP_LOG_SETTLE_MIN_MS * SP_NS_PER_MS;
    uint64_t most_ns = now_ns + SP_LOG_SETTLE_MAX_MS * SP_NS_PER_MS;
    struct timespec until =
        sp_timespec_from_ns(sp_max_u64(least_ns, sp_min_u64(most_ns, deadline_ns)));
    sp_lock_take(&queue.lock);
    wait_for_thread(&until);
    deliver_here();
    sp_lock_give(&queue.lock);
}
