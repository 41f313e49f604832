/* SPDX-License-Identifier: Apache-2.0 */
/* Finds out which of the threads that wait for a core lost it to the profiler itself. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "wall/wall_run.h"

/* A round later than LATE_NS had to wait for a core. */
enum { LATE_NS = 20000, MOST_DOUBTS_WITH_BLOCKED = 64 };

/* Whether the thread may have had the profiler's core at the round's moment. A runnable thread may
 * have lost that core to the profiler, unless it ran during the visit. A thread that is blocked
 * may have run on it until it blocked: a round is often late until some thread blocks and its core
 * becomes free. A blocked thread is checked only while the round has fewer than
 * MOST_DOUBTS_WITH_BLOCKED doubts of both kinds. */
bool sp_wall_is_doubtful(const sp_wall_place *place)
{
    if (place->record->wait_class == SP_WAIT_RUNNABLE)
        return place->is_still;
    return sp_wall.late_ns > LATE_NS && sp_wall.doubtful_count < MOST_DOUBTS_WITH_BLOCKED;
}

/* When thread TID was last on a core, by that core's own clock (/proc/self/task/TID/sched:
 * se.exec_start, in ms); 0 when the kernel does not report it. */
static uint64_t last_ran_ns(pid_t tid)
{
    char text[256];
    unsigned long long ms, ns;
    int fd = sp_syscall_files_open_other(&sp_wall.visitor.files, tid, "sched");
    ssize_t length = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    text[length > 0 ? length : 0] = 0;
    const char *at = strstr(text, "se.exec_start");
    bool reported = at && sscanf(at, "se.exec_start : %llu.%6llu", &ms, &ns) == 2;
    return reported ? ms * SP_NS_PER_MS + ns : 0;
}

/* Find the thread that was running at MOMENT_NS and was descheduled before this visit. A candidate
 * ran from MOMENT_NS until it stopped, so it has used at least the CPU time between the two; the
 * candidate that stopped first is the one. Returns doubtful_count when there is none. The profiler
 * reads its CPU clock first, so that the kernel updates se.exec_start of the profiler's thread. */
static uint32_t find_previous_owner(uint64_t moment_ns)
{
    uint32_t previous_owner = sp_wall.doubtful_count;
    sp_clock_own_cpu_ns();
    uint64_t since_ns = sp_clock_monotonic_ns() - moment_ns, now_ns = last_ran_ns(sp_wall.tid);
    uint64_t first_ns = sp_wall.late_ns + 1;
    for (uint32_t n = 0; now_ns != 0 && n < sp_wall.doubtful_count; n++) {
        const sp_doubtful *doubt = &sp_wall.doubtful[n];
        uint64_t until_ns = last_ran_ns(doubt->tid) + since_ns - now_ns; /* from the moment on */
        if (until_ns < first_ns && until_ns <= doubt->used_ns) {
            previous_owner = n;
            first_ns = until_ns;
        }
    }
    return previous_owner;
}

/* The previous owner was running at the round's moment, so this round counts as CPU time. If it is
 * runnable, it waits for its core as long as the profiler has it. No round finds that wait, because
 * the moment of a round is before the profiler runs; so the time that the profiler took is added
 * here. */
static void settle_previous_owner(sp_wall_place *place, uint64_t weight_ns,
                                  const sp_wall_round *round)
{
    uint64_t took_ns = sp_clock_monotonic_ns() - round->moment_ns - sp_wall.late_ns;
    double stands_for = (double)weight_ns / (double)(round->cells * round->period_ns);
    sp_wall.state.on_core_ns += weight_ns;
    if (place->record->wait_class == SP_WAIT_RUNNABLE)
        sp_wall_weigh(place, (uint64_t)((double)took_ns * stands_for));
    place->is_still = false;
}

/* The profiler needs a core itself. When all are busy it takes the core of one thread, and that
 * thread is runnable because of the visit, or has blocked just before it. It is the thread that ran
 * until the round began. A kernel without SCHED_DEBUG does not say which one that is; then all
 * count as waiting. */
void sp_wall_resolve_doubts(const sp_wall_round *round)
{
    uint32_t previous_owner =
        sp_wall.doubtful_count > 0 ? find_previous_owner(round->moment_ns) : 0;
    sp_lock_take(&sp_wall.lock);
    for (uint32_t n = 0; n < sp_wall.doubtful_count; n++) {
        sp_wall_place *place = sp_wall_place_of(&sp_wall.places, sp_wall.doubtful[n].slot, false);
        if (n == previous_owner)
            settle_previous_owner(place, sp_wall.doubtful[n].weight_ns, round);
        else
            sp_wall_weigh(place, sp_wall.doubtful[n].weight_ns);
    }
    sp_lock_give(&sp_wall.lock);
    sp_wall.doubtful_count = 0;
}
