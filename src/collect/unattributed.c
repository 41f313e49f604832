/* SPDX-License-Identifier: Apache-2.0 */
/* Computes the CPU time that is in no sample: the CPU time of each thread, and of all threads of
 * the application outside pauses, less the weights of their samples. */
#include "alloc/block_samples.h"
#include "collect/drain.h"

/* CPU time that was used before this call does not count. */
void sp_drain_begin(sp_drain *drain)
{
    drain->cpu_last_ns = sp_engine_process_cpu_ns();
    drain->live_full = sp_alloc_live_full(); /* of earlier runs */
    for (uint32_t n = 0; n < sp_thread_slots(); n++) {
        sp_thread *thread = sp_thread_by_slot(n);
        sp_drain_slot *slot = sp_drain_slot_of(drain, thread);
        if (slot)
            sp_engine_thread_cpu_ns(thread, &slot->cpu_ns);
    }
}

/* Keep the SP_WINDOW_UNATTRIBUTED_MAX largest. */
static void keep_unattributed(sp_window *window, const sp_window_unattributed *unattributed)
{
    sp_window_unattributed *smallest = &window->unattributed_threads[0];
    if (window->unattributed_count < SP_WINDOW_UNATTRIBUTED_MAX) {
        window->unattributed_threads[window->unattributed_count++] = *unattributed;
        return;
    }
    for (uint32_t i = 1; i < window->unattributed_count; i++)
        if (window->unattributed_threads[i].unattributed_ns < smallest->unattributed_ns)
            smallest = &window->unattributed_threads[i];
    if (unattributed->unattributed_ns > smallest->unattributed_ns)
        *smallest = *unattributed;
}

/* Report the thread's CPU time without weights. A sum of up to two periods is carried over to the
 * next window, because its ticks may be pending. A larger sum is reported whole. */
static void settle_thread(sp_drain_slot *slot, sp_thread *thread, sp_window *window)
{
    uint64_t cpu_ns, period_ns = sp_engine_period_ns();
    if (thread->registered.internal || !sp_engine_thread_cpu_ns(thread, &cpu_ns))
        return;
    slot->carry_ns += (int64_t)(cpu_ns - slot->cpu_ns) -
                      (int64_t)((slot->weights - slot->weights_settled) * period_ns);
    slot->cpu_ns = cpu_ns;
    slot->weights_settled = slot->weights;
    if (slot->carry_ns <= (int64_t)(2 * period_ns))
        return;
    if (!slot->name_is_fresh)
        sp_drain_refresh_name(slot);
    keep_unattributed(window, &(sp_window_unattributed){slot->thread, (uint64_t)slot->carry_ns});
    slot->carry_ns = 0;
}

static void settle_threads(sp_drain *drain, sp_window *window)
{
    for (uint32_t n = 0; n < sp_thread_slots(); n++) {
        sp_thread *thread = sp_thread_by_slot(n);
        sp_drain_slot *slot = sp_load_acquire(&thread->registered.life) == SP_THREAD_LIVE
                                  ? sp_drain_slot_of(drain, thread)
                                  : NULL;
        if (!slot)
            continue;
        if (!drain->without_ticks)
            settle_thread(slot, thread, window);
        slot->name_is_fresh = false;
    }
}

/* The process's clock includes threads that were never found, and the last CPU time of threads that
 * have ended. */
void sp_drain_settle_unattributed(sp_drain *drain, sp_window *window)
{
    settle_threads(drain, window);
    if (drain->without_ticks)
        return;
    uint64_t cpu_ns = sp_engine_process_cpu_ns(), weights = sp_load_relaxed(&drain->totals.weights);
    drain->unattributed_carry_ns +=
        (int64_t)(cpu_ns - drain->cpu_last_ns) -
        (int64_t)((weights - drain->weights_last) * sp_engine_period_ns());
    drain->cpu_last_ns = cpu_ns;
    drain->weights_last = weights;
    window->unattributed_ns =
        drain->unattributed_carry_ns > 0 ? (uint64_t)drain->unattributed_carry_ns : 0;
    drain->unattributed_carry_ns -= (int64_t)window->unattributed_ns;
    sp_count_owned(&drain->totals.unattributed_ns, window->unattributed_ns);
}

int64_t sp_drain_ahead_ns(const sp_drain *drain)
{
    if (drain->without_ticks)
        return 0;
    uint64_t weights = sp_load_relaxed(&drain->totals.weights) - drain->weights_last;
    return (int64_t)(sp_engine_process_cpu_ns() - drain->cpu_last_ns) -
           (int64_t)(weights * sp_engine_period_ns());
}
