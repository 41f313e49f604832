/* SPDX-License-Identifier: Apache-2.0 */
/* The rate that a budget allows: SPANPROF_CPU_BUDGET is the share of the application's CPU time
 * that ticks may take. A thread ticks once a period of its CPU time, so ticks take the share (cost
 * of a period) / (period), and the rate that the budget allows is share / (cost of a period). The
 * cost is that of an empty signal, measured at the start, plus the cycles that the handler counts;
 * ticks that lost their core in the middle are left out, because one of them takes as long as a
 * thousand others. Collector thread only, except tick_cost_ns. */
#ifndef SP_COLLECT_BUDGET_H
#define SP_COLLECT_BUDGET_H

#include "collect/drain.h"
#include "cpu/cpu_engine.h"

typedef struct sp_budget {
    double share; /* 0: no budget */
    uint64_t begun_ns,
        begun_cycles; /* two clocks at one moment; a second reading gives their ratio */
    uint64_t ticks, weights, cycles, costed; /* when the cost was last computed */
    _Atomic uint64_t tick_cost_ns;           /* as last measured; 0: not yet */
} sp_budget;

void sp_budget_begin(sp_budget *budget, double share);

/* The rate for the next window: REQUESTED_HZ, or less when ticks of the window that ends now cost
 * more than the budget. The rate changes only by a tenth or more, and only when there were enough
 * ticks. */
uint32_t sp_budget_rate(sp_budget *budget, const sp_engine_state *engine,
                        const sp_drain_totals *totals, uint32_t requested_hz);

#endif
