/* SPDX-License-Identifier: Apache-2.0 */
/* Visits one thread: checks whether it is still where it was, else finds what it waits for. */
#include <errno.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "core/clock.h"
#include "core/log.h"
#include "wall/wall_run.h"

/* The thread has continued, or the slot has another thread: push the record into the ring. */
static void leave_place(sp_wall_place *place)
{
    place->is_still = false;
    const sp_visit_record *record = sp_wall_place_take(place);
    if (!record)
        return;
    void *room = sp_ring_reserve(&sp_wall.ring, record->header.size);
    if (!room) {
        sp_wall.state.dropped += record->visits;
        return;
    }
    memcpy(room, record, record->header.size);
    sp_ring_commit(&sp_wall.ring, record->header.size);
}

bool sp_wall_is_older(const sp_wall_place *place, uint32_t generation)
{
    return place->modules != 0 && place->modules != generation;
}

/* Whether the thread has not run since its last visit, and has the same context: then the record of
 * that visit is still true. */
static bool has_stayed(const sp_wall_place *place, const sp_thread *thread, pid_t tid)
{
    uint64_t cpu_ns;
    return place->is_still && !sp_wall_is_older(place, sp_wall.newest) &&
           (uint32_t)sp_load_acquire(&thread->published.switch_number) == place->number &&
           sp_load_acquire(&thread->owned.posts) == sp_load_relaxed(&thread->owned.posts_seen) &&
           sp_clock_thread_cpu_ns(tid, &cpu_ns) && cpu_ns == place->cpu_ns &&
           sp_visit_is_same_context(thread, sp_visit_interval(place->record));
}

static void log_failure(pid_t tid)
{
    sp_wall.state.failed++;
    if (!sp_wall.logged_failure)
        sp_log_warn("wall",
                    "thread %d cannot be looked at (/proc/self/task/%d/syscall: %s): its waits are "
                    "missing from wall time; further ones are counted only",
                    (int)tid, (int)tid, strerror(errno));
    sp_wall.logged_failure = true;
}

/* A thread that is ending has released its memory. Its files in /proc then belong to root, as if
 * the process were not dumpable. errno is the error of the visit. */
static bool is_ending(const sp_thread *thread)
{
    int error = errno;
    bool is_ended = sp_load_acquire(&thread->registered.life) != SP_THREAD_LIVE;
    is_ended |= error == EACCES && prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 1;
    errno = error;
    return is_ended;
}

void sp_wall_weigh(sp_wall_place *place, uint64_t weight_ns)
{
    sp_wall.state.visits++;
    sp_wall_place_stay(place, weight_ns);
}

static void keep_visit(sp_wall_place *place, uint32_t slot, uint64_t weight_ns)
{
    uint64_t used_ns = sp_wall.visit.cpu_ns - place->cpu_ns;
    if (!sp_wall_place_put(place, &sp_wall.visit)) {
        sp_wall.state.visits++;
        sp_wall.state.dropped++;
    } else if (sp_wall_is_doubtful(place)) {
        sp_wall.doubtful[sp_wall.doubtful_count++] =
            (sp_doubtful){slot, place->record->tid, used_ns, weight_ns};
    } else {
        sp_wall_weigh(place, weight_ns);
    }
}

/* A thread that was stopped (SIGSTOP, a debugger) continues in restart_syscall, and the kernel does
 * not show which call it restarts. So the thread's last call is remembered while its switch number
 * stays the same, also by visits that find the thread waiting for a core. It is the restarted one
 * if it was made at the same pc. */
static void recall_call(const sp_wall_place *place)
{
    sp_visit_record *now = (sp_visit_record *)(void *)sp_wall.visit.record;
    const sp_visit_record *before = place->record;
    sp_sample_record *sample = sp_visit_sample(now);
    if (before && before->generation == now->generation &&
        sp_visit_sample(before)->number == sample->number)
        now->call = before->call;
    if (sample->count < 2) /* runnable, or it woke: no place is known */
        return;
    if (sample->pcs[0] != (SP_PC_SYSTEM_CALL | SYS_restart_syscall)) {
        now->call = (sp_visit_call){.pc = sample->pcs[1],
                                    .number = (uint32_t)sample->pcs[0],
                                    .wait_class = now->wait_class,
                                    .descriptor = now->descriptor};
    } else if (now->call.pc == sample->pcs[1]) {
        sample->pcs[0] = SP_PC_SYSTEM_CALL | now->call.number;
        now->wait_class = now->call.wait_class;
        now->descriptor = now->call.descriptor;
    }
}

static void visit_anew(sp_wall_place *place, sp_thread *thread, pid_t tid, uint64_t weight_ns)
{
    leave_place(place);
    switch (sp_visit_thread(&sp_wall.visit, thread, tid, &place->file, &sp_wall.visitor)) {
    case SP_VISIT_WAITS:
        recall_call(place);
        keep_visit(place, thread->slot, weight_ns);
        break;
    case SP_VISIT_FAILED:
        if (!is_ending(thread))
            log_failure(tid);
        break;
    case SP_VISIT_ON_CPU:
        sp_wall.state.on_core_ns += weight_ns;
        break;
    case SP_VISIT_GONE:
        sp_wall.found_gone = true;
        break;
    }
}

/* The life of the slot is read first: a slot that is not live is not visited. */
void sp_wall_visit_slot(uint32_t slot, uint64_t weight_ns)
{
    sp_thread *thread = sp_thread_by_slot(slot);
    sp_wall_place *place = sp_wall_place_of(&sp_wall.places, slot, true);
    if (sp_load_acquire(&thread->registered.life) !=
            SP_THREAD_LIVE || /* pairs with create_locked */
        sp_load_relaxed(&thread->registered.internal))
        return;
    uint32_t generation = sp_load_relaxed(&thread->registered.generation);
    pid_t tid = sp_load_relaxed(&thread->registered.tid);
    if (!place) {
        sp_wall.state.dropped++;
        return;
    }
    bool is_new = place->generation != generation;
    double part = sp_wall_block_part(&sp_wall.block, is_new, &place->first_block);
    if (part == 0)
        return;
    weight_ns = (uint64_t)((double)weight_ns * part + 0.5);
    if (is_new) {
        leave_place(place);
        sp_syscall_file_close(&sp_wall.visitor.files, &place->file);
        place->generation = generation;
    }
    if (has_stayed(place, thread, tid)) {
        sp_wall.state.unmoved++;
        sp_wall_weigh(place, weight_ns);
    } else {
        visit_anew(place, thread, tid, weight_ns);
    }
}
