/* SPDX-License-Identifier: Apache-2.0 */
#include "attach/observer.h"

#include <string.h>

#include "attach/images.h"
#include "core/clock.h"

enum { SAMPLED = 1 };

/* ---- what the process has mapped ---- */

static const sp_generation *current(const sp_attach_observer *observer)
{
    return sp_modules_generation(observer->modules, sp_modules_newest_number(observer->modules));
}

static bool is_same(const sp_loader_snapshot *snapshot, const sp_generation *generation)
{
    for (size_t i = 0; i < snapshot->image_count; i++)
        if (!snapshot->images[i].known)
            return false;
    return snapshot->image_count == generation->module_count;
}

/* Read the modules again. When the process has ended, or its map cannot be read, the known ones
 * stay. */
static void refresh_modules(sp_attach_observer *observer)
{
    sp_loader_snapshot snapshot;
    if (!sp_attach_images_take(&snapshot, observer->target->pid, current(observer)))
        return;
    if (snapshot.image_count > 0 && !is_same(&snapshot, current(observer)) &&
        sp_modules_replace(observer->modules, &snapshot)) {
        sp_modules_reclaim(observer->modules, UINT32_MAX);
        sp_outside_refresh(observer->outside);
    }
    sp_loader_snapshot_deinit(&snapshot);
}

void sp_attach_observer_refresh(sp_attach_observer *observer)
{
    uint64_t now_ns = sp_clock_monotonic_ns();
    if (!observer->modules_are_old && now_ns - observer->refreshed_ns < SP_NS_PER_S)
        return;
    refresh_modules(observer);
    observer->modules_are_old = false;
    observer->refreshed_ns = now_ns;
}

bool sp_attach_observer_init(sp_attach_observer *observer, const sp_attach_target *target)
{
    sp_loader_snapshot snapshot;
    *observer = (sp_attach_observer){.target = target, .refreshed_ns = sp_clock_monotonic_ns()};
    observer->copy = sp_stack_copy_create_for(target->pid);
    if (sp_attach_images_take(&snapshot, target->pid, NULL)) {
        observer->modules = sp_modules_create_from(&snapshot);
        sp_loader_snapshot_deinit(&snapshot);
    }
    sp_outside_open(target->pid, &observer->outside);
    sp_wait_set_process(target->pid);
    if (observer->copy && observer->modules && observer->outside)
        return true;
    sp_attach_observer_deinit(observer);
    return false;
}

void sp_attach_observer_deinit(sp_attach_observer *observer)
{
    sp_outside_close(observer->outside);
    sp_modules_destroy(observer->modules);
    sp_stack_copy_destroy(observer->copy);
    *observer = (sp_attach_observer){0};
}

bool sp_attach_observer_has_records(const sp_attach_observer *observer)
{
    uint32_t count;
    sp_outside_slots(observer->outside, &count);
    return count > 0;
}

/* ---- spans ---- */

static void belong_to_process(const sp_attach_observer *observer, sp_attach_sample *sample)
{
    sample->result = observer->of_process.result;
    sample->link = observer->of_process.link;
}

/* When the context could not be read, the thread may work for any span, so the result is unknown.
 */
void sp_attach_observer_link(const sp_attach_observer *observer, sp_outside_result result,
                             const sp_outside_context *context, sp_attach_sample *sample)
{
    static const uint8_t zero[8];
    if (result == SP_OUTSIDE_NONE || result == SP_OUTSIDE_MISSING) {
        belong_to_process(observer, sample);
        return;
    }
    sample->result = result == SP_OUTSIDE_OK ? SP_JOIN_NONE : SP_JOIN_UNKNOWN;
    if (result != SP_OUTSIDE_OK || !(context->trace_flags & SAMPLED) ||
        memcmp(context->span_id, zero, sizeof zero) == 0)
        return;
    sample->result = SP_JOIN_LINKED;
    memcpy(sample->link.trace_id, context->trace_id, sizeof context->trace_id);
    memcpy(sample->link.span_id, context->span_id, sizeof context->span_id);
}

/* ---- stacks ---- */

sp_walk sp_attach_observer_begin_walk(sp_attach_observer *observer)
{
    return (sp_walk){
        .generation = current(observer), .pcs = observer->pcs, .max_depth = SP_ATTACH_DEPTH};
}

typedef struct look {
    sp_attach_observer *observer;
    sp_walk walk;
    bool in_call;
} look;

/* Called while the thread is stopped. */
static void walk_stopped(void *user, const sp_outside_registers *registers)
{
    look *look = user;
    look->in_call = registers->in_call;
    look->walk.registers = (sp_registers){.pc = registers->pc,
                                          .sp = registers->sp,
                                          .fp = registers->fp,
                                          .base = registers->base,
                                          .has_fp = true,
                                          .has_base = true};
#if defined(__aarch64__)
    look->walk.registers.link = registers->link;
    look->walk.registers.has_link = true;
#endif
    sp_outside_walk_registers(look->observer->copy, &look->walk);
}

static sp_attach_sample begin_sample(const sp_attach_tick *tick, const sp_walk *walk)
{
    return (sp_attach_sample){
        .tid = tick->tid, .weight = tick->periods, .generation = walk->generation, .walk = walk};
}

/* Add a sample with the stack that the kernel copied at the tick. IS_OF_PROCESS: it belongs to the
 * span of the process; else its span is unknown. */
static void put_dump(sp_attach_observer *observer, const sp_attach_tick *tick, bool is_of_process)
{
    sp_walk walk = sp_attach_observer_begin_walk(observer);
    sp_attach_sample sample = begin_sample(tick, &walk);
    walk.registers = tick->registers;
    if (walk.registers.pc)
        sp_outside_walk_dump(observer->copy, &walk, tick->stack, tick->stack_bytes);
    else
        sample.walk = NULL;
    sample.result = SP_JOIN_UNKNOWN;
    if (is_of_process)
        belong_to_process(observer, &sample);
    sp_attach_samples_add(observer->samples, &sample, false);
}

/* Add a sample with span and stack of one moment, soon after the tick. A thread that computed at
 * the tick and is in a system call by now has moved on: then the stack of the tick is used, and its
 * span is unknown. */
static void put_look(sp_attach_observer *observer, const sp_attach_tick *tick)
{
    sp_outside_context context;
    look look = {.observer = observer, .walk = sp_attach_observer_begin_walk(observer)};
    sp_attach_sample sample = begin_sample(tick, &look.walk);
    uint64_t before_ns = sp_clock_monotonic_ns();
    sp_outside_result result =
        sp_outside_thread_look(observer->outside, tick->tid, walk_stopped, &look, &context);
    uint64_t stop_ns = sp_clock_monotonic_ns() - before_ns;
    observer->stop_ns += stop_ns;
    observer->stops++;
    if (stop_ns > observer->longest_stop_ns)
        observer->longest_stop_ns = stop_ns;
    bool is_seen = result == SP_OUTSIDE_OK || result == SP_OUTSIDE_NONE;
    if (tick->has_stack && (!is_seen || (look.in_call && !tick->was_in_kernel))) {
        put_dump(observer, tick, false);
        return;
    }
    if (!is_seen)
        return;
    sp_attach_observer_link(observer, result, &context, &sample);
    sp_attach_samples_add(observer->samples, &sample, false);
}

void sp_attach_observer_tick(sp_attach_observer *observer, const sp_attach_tick *tick)
{
    sp_attach_observer_refresh(observer);
    if (tick->has_stack && !sp_attach_observer_has_records(observer))
        put_dump(observer, tick, true);
    else
        put_look(observer, tick);
}
