/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the moments of rounds, and the threads that each round visits.
 *
 * In each cell of one period there is one round, at a random moment (core/cells.h), and a visit
 * stands for a period. When there are more threads than a round may visit, each has the same chance
 * to be among those visited, and a visit stands for so much more. Neither choice depends on a
 * thread's state, so the sums are unbiased. A thread that begins is visited from the next round on:
 * the rounds look for new threads themselves. */
#include <sys/random.h>

#include <spanprof/context.h>
#include "context/foreign_record_sig.h"
#include "core/clock.h"
#include "wall/wall_run.h"

/* Rounds may use one part in SHARE of a core. */
enum { SHARE = 33, VISITS_MIN = 16, AHEAD = 12 };

enum { ROUNDS_PER_CHECK = 16 };

/* Uniformly distributed in [0, 1). */
static double draw(void)
{
    sp_wall.random ^= sp_wall.random << 13;
    sp_wall.random ^= sp_wall.random >> 7;
    sp_wall.random ^= sp_wall.random << 17;
    return (double)(sp_wall.random >> 11) * 0x1p-53;
}

static void seed(void)
{
    if (getrandom(&sp_wall.random, sizeof sp_wall.random, GRND_NONBLOCK) != sizeof sp_wall.random)
        sp_wall.random = sp_clock_monotonic_ns();
    sp_wall.random |= 1;
}

/* --- a round ---------------------------------------------------------------------------------- */

/* Whether a sample of the thread at this moment would be linked to a span of this tracer. */
static bool has_own_span(const sp_thread *thread)
{
    uint32_t tail = sp_load_relaxed(&thread->published.record.tail);
    return (tail & 1) && (tail >> 8 & SPANPROF_TRACE_FLAG_SAMPLED) &&
           !sp_load_relaxed(&thread->published.remote);
}

/* The same for a span of another tracer. While none has been found in the process, only some rounds
 * check. */
static bool has_foreign_span(const sp_thread *thread)
{
    sp_foreign_context context;
    bool checks = sp_load_relaxed(&sp_context_is_shared) || sp_wall.rounds % ROUNDS_PER_CHECK == 0;
    return checks && !sp_foreign_is_hidden(thread) &&
           sp_foreign_peek(thread, &context) == SP_FOREIGN_ACTIVE &&
           (context.tail >> 8 & SPANPROF_TRACE_FLAG_SAMPLED);
}

static bool is_wanted(uint32_t slot)
{
    const sp_thread *thread = sp_thread_states + slot;
    return sp_wall.config.all_threads || has_own_span(thread) || has_foreign_span(thread);
}

/* How many threads a round may visit, at the recent cost of a visit. */
static uint32_t visits_allowed(uint64_t period_ns)
{
    double visits = (double)period_ns / SHARE / sp_wall.visit_cost_ns;
    return visits < VISITS_MIN       ? VISITS_MIN
           : visits > SP_THREADS_MAX ? SP_THREADS_MAX
                                     : (uint32_t)visits;
}

static void update_cost(uint64_t cpu_ns, uint32_t visits)
{
    if (visits > 0)
        sp_wall.visit_cost_ns += ((double)cpu_ns / visits - sp_wall.visit_cost_ns) / 8;
    sp_lock_take(&sp_wall.lock);
    sp_wall.state.cpu_ns += cpu_ns;
    sp_lock_give(&sp_wall.lock);
}

static void visit_one(uint32_t slot, uint64_t weight_ns)
{
    sp_lock_take(&sp_wall.lock);
    sp_wall_visit_slot(slot, weight_ns);
    sp_lock_give(&sp_wall.lock);
}

/* With many threads, the data of a visit is not in the cache: prefetch it. */
static void prefetch_slot(uint32_t slot)
{
    const sp_thread *thread = sp_thread_by_slot(slot);
    const sp_wall_place *page = sp_wall.places.pages[slot / SP_WALL_PAGE];
    __builtin_prefetch(&thread->owned.posts);
    __builtin_prefetch((const void *)&thread->registered.life);
    if (page)
        __builtin_prefetch(&page[slot % SP_WALL_PAGE], 1);
}

static void read_newest_generation(void)
{
    const sp_generation *generation =
        sp_generation_enter(sp_wall.visitor.modules, sp_wall.visitor.hazard);
    sp_wall.newest = generation->number;
    sp_generation_leave(sp_wall.visitor.hazard);
}

/* Which of the wanted threads a round visits: every STEPth one. */
typedef struct choice {
    double step, next;
    uint32_t wanted, visits; /* until now */
    uint64_t weight_ns;      /* of a visit */
} choice;

static void visit_if_chosen(choice *choice, uint32_t slot)
{
    if (!is_wanted(slot) || choice->wanted++ != (uint32_t)choice->next)
        return;
    visit_one(slot, choice->weight_ns);
    choice->next += choice->step;
    choice->visits++;
}

/* Visit every STEPth wanted thread, starting at a random one, so each has the same chance. A thread
 * is checked only at its turn, so a span that begins during the round is found as often as one that
 * ends during it. States are far apart in memory, so only one cache line of each is read here, and
 * it is prefetched; the visit checks the rest. */
static void visit_known(choice *choice)
{
    uint32_t slots = sp_thread_slots();
    for (uint32_t slot = 0; slot < slots; slot++) {
        const sp_thread *ahead = sp_thread_states + slot + AHEAD;
        /* Past the last slot this is harmless. */
        __builtin_prefetch(&ahead[AHEAD].published.switch_number);
        if (slot + AHEAD < slots && (sp_wall.config.all_threads || has_own_span(ahead)))
            prefetch_slot(slot + AHEAD);
        visit_if_chosen(choice, slot);
    }
}

static void visit_found(void *user, sp_thread *thread)
{
    visit_if_chosen(user, thread->slot);
}

/* Whether there may be threads that are not known yet and whose visits could be linked to a span.
 * Threads with spans of this library are known from their first attach. A round that has visited
 * all known threads has seen which of them have ended. */
static bool may_find_threads(const choice *choice)
{
    if (!sp_wall.config.all_threads && !sp_load_relaxed(&sp_context_is_shared))
        return false;
    bool visited_all = sp_wall.config.all_threads && choice->step <= 1 && sp_wall.block.cells == 1;
    return !visited_all || sp_wall.found_gone || sp_threads_have_changed();
}

/* The collector looks for new threads, too, but some threads do not live until it does, and their
 * time would be missing. So the round looks for them itself, after its other visits. */
static void visit_new(choice *choice)
{
    if (!sp_wall_block_takes_new(&sp_wall.block) || !may_find_threads(choice))
        return;
    uint64_t begin_ns = sp_clock_own_cpu_ns();
    sp_threads_scan_for(visit_found, choice);
    sp_wall_block_scanned(&sp_wall.block, sp_clock_own_cpu_ns() - begin_ns);
}

static void run_round(const sp_wall_round *round)
{
    uint64_t begin_ns = sp_clock_own_cpu_ns();
    uint32_t allowed = visits_allowed(round->period_ns);
    choice choice = {.step = sp_wall.wanted > allowed ? (double)sp_wall.wanted / allowed : 1};
    choice.next = draw() * choice.step;
    choice.weight_ns = (uint64_t)((double)(round->cells * round->period_ns) * choice.step + 0.5);
    read_newest_generation();
    sp_wall.late_ns = sp_clock_monotonic_ns() - round->moment_ns;
    sp_wall.found_gone = false;
    sp_wall_block_enter(&sp_wall.block, round->cells, round->period_ns, draw());
    visit_known(&choice);
    visit_new(&choice);
    sp_wall.wanted = choice.wanted;
    sp_wall.rounds++;
    sp_wall_resolve_doubts(round);
    update_cost(sp_clock_own_cpu_ns() - begin_ns, choice.visits);
}

/* --- time ------------------------------------------------------------------------------------- */

static void begin_cells(void)
{
    sp_wall.cells = (sp_cells){.begin_ns = sp_clock_monotonic_ns()};
}

/* If the wait for the round ends early, begin_cells starts the cells again. */
static void choose_round(sp_wall_round *round)
{
    uint64_t period_ns = SP_NS_PER_S / sp_wall.config.hz;
    sp_cells_moment moment =
        sp_cells_choose(&sp_wall.cells, sp_clock_monotonic_ns(), period_ns, draw());
    *round = (sp_wall_round){.period_ns = period_ns, .moment_ns = moment.ns, .cells = moment.cells};
}

/* Returns the time of the round; UINT64_MAX while the profiler is paused. */
static uint64_t plan_round(sp_wall_round *round)
{
    sp_lock_take(&sp_wall.lock);
    bool is_planned = !sp_wall.paused;
    if (is_planned)
        choose_round(round);
    sp_lock_give(&sp_wall.lock);
    return is_planned ? round->moment_ns : UINT64_MAX;
}

void sp_wall_run_rounds(void)
{
    sp_worker_orders orders = {0};
    seed();
    begin_cells();
    while (!orders.ending) {
        sp_wall_round round;
        orders = sp_worker_wait(&sp_wall.worker, plan_round(&round));
        if (orders.any) /* the end, a pause or its end, another rate */
            begin_cells();
        else
            run_round(&round);
    }
}
