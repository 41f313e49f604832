/* SPDX-License-Identifier: Apache-2.0 */
/* Visits threads that wait, without a stop. What the kernel reports of a blocked thread is certain
 * if the thread did not run meanwhile; then the kernel's counts of its runs have not changed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attach/observer.h"
#include "attach/thread_list.h"
#include "wall/syscall_file.h"

enum { TRIES = 2 };

/* What the kernel has counted of a thread: time on a core, and how often it was put on one. */
typedef struct runs {
    uint64_t ran_ns, count;
} runs;

static bool read_runs(pid_t pid, pid_t tid, runs *out)
{
    char name[48], text[96];
    unsigned long long ran_ns, waited_ns, count;
    snprintf(name, sizeof name, "task/%d/schedstat", (int)tid);
    if (!sp_attach_read_proc(pid, name, text, sizeof text) ||
        sscanf(text, "%llu %llu %llu", &ran_ns, &waited_ns, &count) != 3)
        return false;
    *out = (runs){ran_ns, count};
    return count > 0; /* 0: this kernel does not count */
}

/* False: it runs, waits for a core, or has ended. */
static bool read_line(pid_t pid, pid_t tid, sp_syscall_line *out)
{
    char name[48], text[256];
    snprintf(name, sizeof name, "task/%d/syscall", (int)tid);
    return sp_attach_read_proc(pid, name, text, sizeof text) && sp_syscall_line_parse(text, out);
}

typedef struct visit {
    sp_attach_observer *observer;
    sp_attach_sample sample;
    sp_walk walk;
    bool is_certain; /* the thread did not run from the begin to the end */
} visit;

/* Returns whether the thread waits. */
static bool try_once(visit *v, pid_t tid)
{
    pid_t pid = v->observer->target->pid;
    sp_outside_context context;
    sp_syscall_line line;
    runs before, after;
    bool is_counted = read_runs(pid, tid, &before);
    if (!read_line(pid, tid, &line))
        return false;
    sp_outside_result result = sp_outside_thread_peek(v->observer->outside, tid, &context);
    v->walk = sp_attach_observer_begin_walk(v->observer);
    v->walk.registers = (sp_registers){.pc = line.pc, .sp = line.sp};
    sp_outside_walk(v->observer->copy, &v->walk);
    v->sample = (sp_attach_sample){.tid = tid,
                                   .generation = v->walk.generation,
                                   .walk = &v->walk,
                                   .leaf = SP_PC_SYSTEM_CALL | (uint32_t)line.number,
                                   .wait = sp_wait_of(line.number, line.arguments)};
    sp_attach_observer_link(v->observer, result, &context, &v->sample);
    v->is_certain = is_counted && read_runs(pid, tid, &after) && after.count == before.count &&
                    after.ran_ns == before.ran_ns;
    return true;
}

/* Drop the stack, and the span where the process publishes any: they may be of two different
 * moments. */
static void cut(visit *v)
{
    v->walk.count = v->walk.leaf_count = 0;
    v->walk.end = SP_WALK_WOKE;
    v->sample.generation = NULL;
    if (sp_attach_observer_has_records(v->observer)) {
        v->sample.result = SP_JOIN_UNKNOWN;
        memset(&v->sample.link, 0, sizeof v->sample.link);
    }
}

static void visit_thread(sp_attach_observer *observer, pid_t tid, uint64_t period_ns)
{
    visit v = {.observer = observer};
    for (int i = 0; i < TRIES && !v.is_certain; i++)
        if (!try_once(&v, tid))
            return;
    if (!v.is_certain)
        cut(&v);
    v.sample.weight = period_ns;
    sp_attach_samples_add(observer->samples, &v.sample, true);
}

void sp_attach_observer_visit(sp_attach_observer *observer, uint64_t period_ns)
{
    sp_attach_thread_list list = {0};
    sp_attach_thread_list_take(&list, observer->target->pid);
    for (size_t i = 0; i < list.count; i++)
        visit_thread(observer, list.tids[i], period_ns);
    free(list.tids);
}
