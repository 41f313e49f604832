/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/budget.h"

#include "core/clock.h"
#include "core/cycles_sig.h"
#include "core/log.h"

enum { TICKS_ENOUGH = 20 };

void sp_budget_begin(sp_budget *budget, double share)
{
    *budget = (sp_budget){
        .share = share, .begun_ns = sp_clock_monotonic_ns(), .begun_cycles = sp_cycles()};
}

static double ns_per_cycle(const sp_budget *budget)
{
    uint64_t cycles = sp_cycles() - budget->begun_cycles;
    return cycles ? (double)(sp_clock_monotonic_ns() - budget->begun_ns) / (double)cycles : 0;
}

/* The cost of one period. A tick may count several periods. */
static double period_cost_ns(const sp_budget *budget, uint64_t ticks, uint64_t weights)
{
    double tick_ns = (double)sp_load_relaxed(&budget->tick_cost_ns);
    return tick_ns * (double)ticks / (double)weights;
}

static uint32_t allowed_hz(double share, double cost_ns, uint32_t requested_hz)
{
    double hz = share * (double)SP_NS_PER_S / cost_ns;
    if (hz >= (double)requested_hz)
        return requested_hz;
    return hz < 1 ? 1 : (uint32_t)hz;
}

static bool is_near(uint32_t a, uint32_t b)
{
    uint32_t larger = a > b ? a : b, smaller = a > b ? b : a;
    return larger - smaller < larger / 10;
}

uint32_t sp_budget_rate(sp_budget *budget, const sp_engine_state *engine,
                        const sp_drain_totals *totals, uint32_t requested_hz)
{
    if (budget->share == 0)
        return requested_hz;
    uint64_t ticks = sp_load_relaxed(&totals->ticks) - budget->ticks,
             weights = sp_load_relaxed(&totals->weights) - budget->weights,
             cycles = sp_load_relaxed(&totals->tick_cycles) - budget->cycles,
             costed = sp_load_relaxed(&totals->costed_ticks) - budget->costed;
    if (costed < TICKS_ENOUGH || weights == 0)
        return engine->cpu_hz < requested_hz ? engine->cpu_hz : requested_hz;
    budget->ticks += ticks;
    budget->weights += weights;
    budget->cycles += cycles;
    budget->costed += costed;
    sp_store_relaxed(&budget->tick_cost_ns,
                     engine->signal_cost_ns +
                         (uint64_t)((double)cycles * ns_per_cycle(budget) / (double)costed));
    uint32_t hz = allowed_hz(budget->share, period_cost_ns(budget, ticks, weights), requested_hz);
    if (hz != requested_hz && is_near(hz, engine->cpu_hz))
        return engine->cpu_hz;
    if (hz != engine->cpu_hz)
        sp_log_info("engine", "a tick costs %llu ns: the rate goes from %u to %u Hz",
                    (unsigned long long)sp_load_relaxed(&budget->tick_cost_ns), engine->cpu_hz, hz);
    return hz;
}
