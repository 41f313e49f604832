/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of the rate, pauses, and CPU clocks that leave out pauses. */
#include "core/clock.h"
#include "core/lock.h"
#include "cpu/engine.h"

bool sp_engine_hold_ticks(uint32_t run)
{
    bool quiet = false;
    sp_lock_take(&sp_run.lock);
    if (sp_run_is_current_locked(run)) {
        sp_run.held = true;
        quiet = sp_disarm_all_locked();
    }
    sp_lock_give(&sp_run.lock);
    return quiet;
}

void sp_engine_resume_ticks(uint32_t run, uint32_t cpu_hz)
{
    sp_lock_take(&sp_run.lock);
    if (sp_run_is_current_locked(run)) {
        if (cpu_hz != sp_run.config.cpu_hz) {
            sp_engine_set_rate(cpu_hz);
            sp_for_each_thread(sp_drop_misfit_ring_locked);
        }
        sp_run.held = false;
        sp_for_each_thread(sp_arm_locked);
    }
    sp_lock_give(&sp_run.lock);
}

/* The excluded time of THREAD. It is reset when it is that of an earlier thread in the slot. */
static int64_t *excluded_ns(const sp_thread *thread)
{
    sp_cpu_thread *known = sp_cpu_thread_of(thread);
    uint32_t generation = sp_load_relaxed(&thread->registered.generation);
    if (known->excluded_of != generation) {
        known->excluded_cpu_ns = 0;
        known->excluded_of = generation;
    }
    return &known->excluded_cpu_ns;
}

/* CPU time in a pause is excluded: the clock's value is subtracted from excluded_cpu_ns at the
 * begin of the pause and added at its end. For a thread that was made in the pause, all of its time
 * is added. */
static void exclude(sp_thread *thread, int64_t sign)
{
    uint64_t cpu_ns;
    if (sp_load_acquire(&thread->registered.life) == SP_THREAD_LIVE &&
        sp_clock_thread_cpu_ns(thread->registered.tid, &cpu_ns))
        *excluded_ns(thread) += sign * (int64_t)cpu_ns;
}

static void exclude_from(sp_thread *thread)
{
    exclude(thread, -1);
}

static void exclude_until(sp_thread *thread)
{
    exclude(thread, 1);
}

spanprof_status sp_engine_pause(void)
{
    sp_lock_take(&sp_run.pausing);
    sp_lock_take(&sp_run.lock);
    bool running = sp_run.running;
    if (running && !sp_run.paused) {
        sp_run.paused = true;
        sp_disarm_all_locked();
        sp_run.excluded_cpu_ns -= (int64_t)sp_threads_application_cpu_ns();
        sp_for_each_thread(exclude_from);
    }
    sp_lock_give(&sp_run.lock);
    sp_lock_give(&sp_run.pausing);
    return running ? SPANPROF_OK : SPANPROF_ERROR_NOT_STARTED;
}

spanprof_status sp_engine_resume(void)
{
    sp_lock_take(&sp_run.pausing);
    sp_lock_take(&sp_run.lock);
    bool running = sp_run.running;
    if (running && sp_run.paused) {
        sp_run.excluded_cpu_ns += (int64_t)sp_threads_application_cpu_ns();
        sp_for_each_thread(exclude_until);
        sp_run.paused = false;
        sp_for_each_thread(sp_arm_locked);
    }
    sp_lock_give(&sp_run.lock);
    sp_lock_give(&sp_run.pausing);
    return running ? SPANPROF_OK : SPANPROF_ERROR_NOT_STARTED;
}

static uint64_t not_below_zero(int64_t value)
{
    return value > 0 ? (uint64_t)value : 0;
}

uint64_t sp_engine_process_cpu_ns(void)
{
    sp_lock_take(&sp_run.pausing); /* while a pause begins or ends, the sums are incomplete */
    sp_lock_take(&sp_run.lock);
    int64_t clock = sp_run.paused ? 0 : (int64_t)sp_threads_application_cpu_ns();
    uint64_t cpu_ns = not_below_zero(clock - sp_run.excluded_cpu_ns);
    sp_lock_give(&sp_run.lock);
    sp_lock_give(&sp_run.pausing);
    return cpu_ns;
}

bool sp_engine_thread_cpu_ns(sp_thread *thread, uint64_t *out)
{
    uint64_t clock = 0;
    sp_lock_take(&sp_run.pausing);
    sp_lock_take(&sp_run.lock);
    bool alive = sp_load_acquire(&thread->registered.life) == SP_THREAD_LIVE &&
                 (sp_run.paused || sp_clock_thread_cpu_ns(thread->registered.tid, &clock));
    *out = not_below_zero((int64_t)clock - *excluded_ns(thread));
    sp_lock_give(&sp_run.lock);
    sp_lock_give(&sp_run.pausing);
    return alive;
}
