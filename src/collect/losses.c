/* SPDX-License-Identifier: Apache-2.0 */
/* Warnings about losses and missing ticks that a user can do something about, once each. */
#include "collect/collector_run.h"
#include "core/clock.h"
#include "core/counted.h"
#include "core/log.h"
#include "cpu/cpu_engine.h"
#include "trace/provider.h"

void sp_collector_check_engine(sp_collector *collector, const sp_window *window)
{
    bool ticks_missing = window->cpu.count == 0 && window->unattributed_ns > SP_NS_PER_S / 10 &&
                         window->unattributed_ns > 20 * window->period_ns;
    if (ticks_missing && !collector->said_replaced &&
        !sp_engine_owns_signal(collector->config.engine_run)) {
        collector->said_replaced = true;
        sp_log_warn(
            "engine",
            "the handler of the sampling signal has been replaced by one that does not pass "
            "ticks on: nothing is sampled; SPANPROF_SIGNAL chooses another signal");
    }
    uint32_t repaired = sp_engine_repair(collector->config.engine_run);
    if (repaired && !collector->said_repaired) {
        collector->said_repaired = true;
        sp_log_warn("engine",
                    "the perf events of %s had been closed by the application, and were "
                    "opened again",
                    SP_COUNTED(repaired, "thread"));
    }
}

void sp_collector_warn_of_corruption(sp_collector *collector)
{
    if (collector->said_corrupt || !sp_load_relaxed(&collector->drain.totals.corrupt_rings))
        return;
    collector->said_corrupt = true;
    sp_log_warn(
        "engine",
        "a ring of samples is corrupt, maybe because the application wrote to memory that is "
        "not its own (AddressSanitizer finds that); what lay in the ring was skipped; "
        "further ones are counted only");
}

void sp_collector_warn_of_losses(sp_collector *collector)
{
    sp_drain_totals *totals = &collector->drain.totals;
    sp_tracer_counters spans;
    sp_tracer_counters_get(&spans);
    if (spans.dropped_queue_full > collector->spans_lost)
        sp_log_warn("tracer",
                    "%s dropped, the queue is full: a larger OTEL_BSP_MAX_QUEUE_SIZE keeps bursts",
                    SP_COUNTED(spans.dropped_queue_full - collector->spans_lost, "span"));
    collector->spans_lost = spans.dropped_queue_full;
    uint64_t unseen = sp_load_relaxed(&totals->unattributed_ns);
    if (sp_load_relaxed(&totals->dropped_ring_full) && !collector->said_ring_full) {
        collector->said_ring_full = true;
        sp_log_warn("engine",
                    "samples were dropped, for the collector's thread does not get to its work in "
                    "time; a lower SPANPROF_CPU_HZ or SPANPROF_MAX_DEPTH helps; further ones are "
                    "counted only");
    }
    if (collector->said_no_ticks || collector->said_replaced || sp_load_relaxed(&totals->ticks) ||
        unseen < 20 * sp_engine_period_ns() || unseen < SP_NS_PER_S / 2)
        return;
    collector->said_no_ticks = true;
    sp_log_warn(
        "engine",
        "the threads used %llu ms of CPU time and no tick arrived, so there are no samples: "
        "they probably block the signal of ticks; unblock it in them, or choose another "
        "one with SPANPROF_SIGNAL",
        (unsigned long long)(unseen / SP_NS_PER_MS));
}
