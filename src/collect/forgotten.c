/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/forgotten.h"

#include "core/atomic.h"
#include "core/log.h"

/* The span that THREAD has ended and that is still its active context, and its switch number. 0:
 * there is none, a switch is under way, or a detach by another thread is pending. */
static uint64_t active_ended_span(sp_thread *thread, uint64_t *number)
{
    *number = sp_load_acquire(&thread->published.switch_number);
    uint64_t ended = sp_load_relaxed(&thread->owned.ended_span_id);
    bool is_active = ended == sp_load_relaxed(&thread->published.record.span_id);
    bool is_posted =
        sp_load_relaxed(&thread->owned.posts) != sp_load_relaxed(&thread->owned.posts_seen);
    return *number % 2 == 0 && is_active && !is_posted ? ended : 0;
}

bool sp_forgotten_look(sp_forgotten *seen, sp_thread *thread, uint64_t now_ns)
{
    uint64_t number, span = active_ended_span(thread, &number);
    if (!span || !seen->since_ns || seen->switch_number != number) {
        *seen = (sp_forgotten){.switch_number = number, .since_ns = span ? now_ns : 0};
        return false;
    }
    if (now_ns - seen->since_ns < SP_FORGOTTEN_AFTER_NS)
        return false;
    seen->since_ns = 0;
    /* Cleared, so that the thread itself does not count it again. */
    return atomic_compare_exchange_strong_explicit(&thread->owned.ended_span_id, &span, 0,
                                                   memory_order_relaxed, memory_order_relaxed);
}

void sp_forgotten_note(const char *name, int tid)
{
    if (atomic_fetch_add(&sp_thread_counts.misuse_ended_parent, 1) == 0)
        sp_log_warn("context",
                    "thread %s (%d) has gone on for a second under a span that it had ended: was "
                    "its scope detached? Each spanprof_span_attach or spanprof_context_attach "
                    "needs a spanprof_scope_detach, else what comes next counts for the wrong "
                    "request. (misuse_ended_parent counts them; said once)",
                    *name ? name : "without a name", tid);
}
