/* SPDX-License-Identifier: Apache-2.0 */
/* The wall profiler's thread: start, end, pause, rate, fork. */
#include "wall/wall.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "context/self.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/syscall_sig.h"
#include "core/worker.h"
#include "wall/wall_run.h"

enum { FIRST_COST_NS = 8000, SLICE_NS = 100000 };

enum { PROBES = 200, PROBE_US = 500, RING_BYTES = 512 * 1024 };

sp_wall_run sp_wall = {.lock = SP_LOCK_AT(SP_LOCK_WALL),
                       .held_generation = UINT32_MAX,
                       .visitor = {.files = {.tasks = -1}}};

static void set_reason(int error)
{
    if ((error == EACCES || error == EPERM) && prctl(PR_GET_DUMPABLE) != 1)
        strcpy(sp_wall.state.reason,
               "the files of its threads in /proc belong to root, for the process "
               "is not dumpable (prctl(2), PR_SET_DUMPABLE)");
    else if (error == ENOENT)
        strcpy(sp_wall.state.reason,
               "there is no /proc/self/task/TID/syscall: /proc is not mounted, or "
               "the kernel was built without it");
    else
        snprintf(sp_wall.state.reason, sizeof sp_wall.state.reason,
                 "/proc/self/task/TID/syscall cannot be read: %s", strerror(error));
}

/* Test whether the files can be read. The thread that called start waits for this one, so its file
 * should show that. On a busy machine, each try may find that thread running; then it is enough
 * that its file can be read. */
static bool probe_starter(void)
{
    sp_syscall_line line;
    sp_syscall_file file = {0};
    sp_syscall_state state = SP_SYSCALL_RUNNING;
    for (int n = 0; n < PROBES && state == SP_SYSCALL_RUNNING; n++) {
        if (n > 0)
            usleep(PROBE_US);
        state = sp_syscall_file_read(&sp_wall.visitor.files, &file, sp_wall.starter, &line);
    }
    int error = state == SP_SYSCALL_GONE ? ENOENT : errno;
    sp_syscall_file_close(&sp_wall.visitor.files, &file);
    errno = error;
    return state == SP_SYSCALL_RUNNING || state == SP_SYSCALL_BLOCKED;
}

static bool prepare(void)
{
    sp_thread *self = sp_self;
    errno = ENOMEM;
    if (!self)
        return false;
    sp_wall.visitor.hazard = &self->tick.hazard;
    sp_wall.visitor.copy = sp_stack_copy_create();
    sp_wall.wanted = sp_thread_slots();
    sp_wall.doubtful = calloc(SP_THREADS_MAX, sizeof *sp_wall.doubtful);
    return sp_wall.visitor.copy && sp_wall.doubtful && sp_ring_init(&sp_wall.ring, RING_BYTES) &&
           sp_syscall_files_open(&sp_wall.visitor.files) && probe_starter();
}

/* A round that starts late, because other threads have the cores, finds threads too often just
 * after they began to wait. So the thread asks for exact wake-ups, and for a short time slice,
 * which gives it priority from Linux 6.12 on. When the kernel refuses, the profiler works as
 * before. */
static void request_short_slice(void)
{
    const struct {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime_ns, deadline_ns, period_ns;
    } attributes = {
        .size = sizeof attributes, .nice = getpriority(PRIO_PROCESS, 0), .runtime_ns = SLICE_NS};
    prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
    if (sched_getscheduler(0) == SCHED_OTHER)
        syscall(SYS_sched_setattr, 0, &attributes, 0);
}

static void run(void *unused)
{
    (void)unused;
    sp_wall.tid = (pid_t)sp_syscall6(SYS_gettid, 0, 0, 0, 0, 0, 0);
    request_short_slice();
    sp_thread_self_internal();
    bool works = prepare();
    int error = errno;
    sp_lock_take(&sp_wall.lock);
    if (!works)
        set_reason(error);
    sp_wall.state.running = works;
    sp_lock_give(&sp_wall.lock);
    sp_worker_publish_ready(&sp_wall.worker, works);
    if (works)
        sp_wall_run_rounds();
}

/* Its rounds take microseconds, so stop waits for its end without a deadline. */
static const sp_worker_role role = {.name = "spanprof-wall", .run = run};

/* With the lock held, so that a pause or a change of rate by another thread never finds a
 * half-started worker. */
static bool start_thread(void)
{
    sp_worker_init(&sp_wall.worker, SP_LOCK_WALL_WORKER);
    int error = sp_worker_start(&sp_wall.worker, &role, NULL);
    sp_wall.has_worker = error == 0;
    if (error)
        sp_worker_deinit(&sp_wall.worker);
    errno = error;
    return sp_wall.has_worker;
}

static void forget_last_run(void)
{
    sp_wall.paused = sp_wall.logged_failure = false;
    sp_wall.state = (sp_wall_state){0};
    sp_wall.held_generation = UINT32_MAX;
    sp_wall.visit_cost_ns = FIRST_COST_NS;
    sp_wall.doubtful_count = 0;
    sp_wall.block = (sp_wall_block){0};
}

static bool begin_run(const sp_wall_config *config)
{
    sp_lock_take(&sp_wall.lock);
    forget_last_run();
    sp_wall.config = *config;
    sp_wall.state.hz = config->hz;
    sp_wall.visitor = (sp_visitor){.modules = config->modules,
                                   .max_depth = config->max_depth,
                                   .with_attributes = config->with_attributes,
                                   .files = {.tasks = -1}};
    sp_wall.held_generation = 0; /* nothing has been settled yet, so all generations are held */
    sp_wall.starter = (pid_t)sp_syscall6(SYS_gettid, 0, 0, 0, 0, 0, 0);
    bool has_worker = start_thread();
    if (!has_worker)
        snprintf(sp_wall.state.reason, sizeof sp_wall.state.reason, "no thread can be made: %s",
                 strerror(errno));
    sp_lock_give(&sp_wall.lock);
    return has_worker;
}

bool sp_wall_start(const sp_wall_config *config)
{
    if (begin_run(config) && sp_worker_wait_until_ready(&sp_wall.worker))
        return true;
    sp_log_warn("wall", "no wall time: %s; CPU sampling goes on", sp_wall.state.reason);
    sp_wall_stop();
    sp_wall_free();
    return false;
}

/* The worker is deinitialized when no other thread can find it any more. */
void sp_wall_stop(void)
{
    sp_lock_take(&sp_wall.lock);
    bool had_worker = sp_wall.has_worker;
    sp_wall.state.running = false;
    sp_lock_give(&sp_wall.lock);
    if (!had_worker)
        return;
    sp_worker_end(&sp_wall.worker, UINT64_MAX);
    sp_worker_release(&sp_wall.worker);
    sp_lock_take(&sp_wall.lock);
    sp_wall.has_worker = false;
    sp_lock_give(&sp_wall.lock);
    sp_worker_deinit(&sp_wall.worker);
}

void sp_wall_free(void)
{
    sp_lock_take(&sp_wall.lock);
    sp_syscall_files_close(&sp_wall.visitor.files);
    sp_stack_copy_destroy(sp_wall.visitor.copy);
    sp_wall.visitor.copy = NULL;
    sp_wall_places_deinit(&sp_wall.places);
    sp_ring_deinit(&sp_wall.ring);
    free(sp_wall.doubtful);
    sp_wall.doubtful = NULL;
    sp_wall.held_generation = UINT32_MAX;
    sp_lock_give(&sp_wall.lock);
}

/* Call SET with VALUE. It returns whether that changes anything. The wake, with the lock held, ends
 * the wait for a round that was planned before. */
static void change(bool (*set)(uint32_t), uint32_t value)
{
    sp_lock_take(&sp_wall.lock);
    if (sp_wall.has_worker && set(value))
        sp_worker_wake(&sp_wall.worker);
    sp_lock_give(&sp_wall.lock);
}

static bool set_paused(uint32_t paused)
{
    bool changes = paused != sp_wall.paused;
    sp_wall.paused = paused;
    return changes;
}

static bool set_hz(uint32_t hz)
{
    bool changes = hz != sp_wall.config.hz;
    sp_wall.config.hz = sp_wall.state.hz = hz;
    return changes;
}

void sp_wall_pause(void)
{
    change(set_paused, true);
}

void sp_wall_resume(void)
{
    change(set_paused, false);
}

void sp_wall_set_rate(uint32_t hz)
{
    change(set_hz, hz);
}

/* --- fork ------------------------------------------------------------------------------------- */

void sp_wall_fork_prepare(void)
{
    sp_lock_take(&sp_wall.lock);
}

void sp_wall_fork_parent(void)
{
    sp_lock_give(&sp_wall.lock);
}

void sp_wall_fork_child(void)
{
    sp_wall.has_worker = false; /* the worker exists only in the parent */
    sp_wall.state = (sp_wall_state){0};
    sp_lock_give(&sp_wall.lock);
    sp_wall_free();
}
