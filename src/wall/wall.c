/* SPDX-License-Identifier: Apache-2.0 */
/* The wall sampler's thread.
 *
 * Time is cut into cells of one period. In each cell there is one round, at a moment that is chosen
 * evenly at random: so every moment has the same chance of being seen, and a visit stands for a
 * period. When there are more threads than a round may visit, each has the same chance to be among
 * those visited, and a visit stands for so much more. Nothing about a thread enters into either
 * choice: that is all that an unbiased sum needs.
 *
 * wall.lock is held for a visit, not for a round: fork and the collector wait for microseconds.
 * Order: the collector's lock before it, the registry's after. */
#include "wall/wall.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <spanprof/context.h>
#include "context/foreign_record_sig.h"
#include "context/self.h"
#include "core/clock.h"
#include "core/lock.h"
#include "core/log.h"
#include "core/syscall_sig.h"
#include "core/worker.h"
#include "wall/wall_places.h"

/* One part in SHARE of a core is what rounds may take. */
enum { SHARE = 33, VISITS_MIN = 16, FIRST_COST_NS = 8000, AHEAD = 12 };

enum { SLICE_NS = 100000 };

/* Rounds that are not late find a core for the asking, or take one. */
enum { LATE_NS = 20000, DOUBTS_OF_BLOCKED = 64 };

enum { LOOKS_AROUND = 16 };

enum { PROBES = 200, PROBE_US = 500, RING_BYTES = 512 * 1024 };

typedef struct wall_round {
    uint64_t period_ns;
    uint64_t moment_ns; /* that was chosen */
    uint64_t cells; /* that it stands for: more than one when rounds, or the machine, were late */
} wall_round;

/* A thread that has either waited all the time from the round's moment on, or had the core that we
 * got. */
typedef struct doubtful {
    uint32_t slot;
    pid_t tid;
    uint64_t used_ns; /* of the CPU since it was seen waiting before */
    uint64_t weight_ns;
} doubtful;

static struct {
    sp_lock lock;
    pthread_cond_t changed; /* on the monotonic clock: stopping, pause, rate, probed */
    pthread_t thread;
    bool has_thread; /* thread and changed are there */
    bool probed, stopping, paused;
    bool restarts; /* cells are to begin anew */
    bool said_failure;
    sp_wall_config config;
    sp_wall_state state;
    pid_t starter, tid;
    uint32_t held_generation; /* UINT32_MAX: none, also where no run ever was */

    /* The thread's. */
    sp_visitor visitor;
    sp_visit visit;
    uint32_t newest;  /* generation at the begin of the round */
    uint64_t late_ns; /* from the round's moment to its begin */
    uint64_t random;
    uint64_t cell, cells_begin_ns;
    double visit_cost_ns;
    uint32_t wanted; /* threads, in the last round */
    uint32_t rounds;
    doubtful *doubtful;
    uint32_t doubtful_count;

    sp_wall_places places;
    sp_ring ring;
} wall = {.lock = SP_LOCK_AT(SP_LOCK_WALL),
          .held_generation = UINT32_MAX,
          .visitor = {.files = {.tasks = -1}}};

/* Even, in [0, 1). */
static double draw(void)
{
    wall.random ^= wall.random << 13;
    wall.random ^= wall.random >> 7;
    wall.random ^= wall.random << 17;
    return (double)(wall.random >> 11) * 0x1p-53;
}

static void seed(void)
{
    if (getrandom(&wall.random, sizeof wall.random, GRND_NONBLOCK) != sizeof wall.random)
        wall.random = sp_clock_monotonic_ns();
    wall.random |= 1;
}

/* --- one thread ------------------------------------------------------------------------------- */

/* The thread goes on, or is another: what its place weighs goes to the collector. */
static void leave_place(sp_wall_place *place)
{
    place->is_still = false;
    const sp_visit_record *record = sp_wall_place_take(place);
    if (!record)
        return;
    void *room = sp_ring_reserve(&wall.ring, record->header.size);
    if (!room) {
        wall.state.dropped += record->visits;
        return;
    }
    memcpy(room, record, record->header.size);
    sp_ring_commit(&wall.ring, record->header.size);
}

static bool is_older(const sp_wall_place *place, uint32_t generation)
{
    return place->modules != 0 && place->modules != generation;
}

static bool has_stayed(const sp_wall_place *place, const sp_thread *thread, pid_t tid)
{
    uint64_t cpu_ns;
    return place->is_still && !is_older(place, wall.newest) &&
           (uint32_t)sp_load_acquire(&thread->switch_number) == place->number &&
           sp_load_acquire(&thread->posts) == sp_load_relaxed(&thread->posts_seen) &&
           sp_clock_thread_cpu_ns(tid, &cpu_ns) && cpu_ns == place->cpu_ns &&
           sp_visit_is_same_context(thread, sp_visit_interval(place->record));
}

static void say_failure(pid_t tid)
{
    wall.state.failed++;
    if (!wall.said_failure)
        sp_log_warn("sampler",
                    "thread %d cannot be looked at (/proc/self/task/%d/syscall: %s): its waits are "
                    "missing from wall time; further ones are counted only",
                    (int)tid, (int)tid, strerror(errno));
    wall.said_failure = true;
}

/* A thread that ends has given up its memory, and then its files belong to root, as if the process
 * were not dumpable. errno is what a visit failed with. */
static bool is_ending(const sp_thread *thread)
{
    int error = errno;
    bool is_ended = sp_load_acquire(&thread->life) != SP_THREAD_LIVE;
    is_ended |= error == EACCES && prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 1;
    errno = error;
    return is_ended;
}

static void weigh(sp_wall_place *place, uint64_t weight_ns)
{
    wall.state.visits++;
    sp_wall_place_stay(place, weight_ns);
}

/* Whether it is not known yet if the thread had our core at the round's moment. One that waits for
 * a core may have lost it to us. One that is blocked may have had it until then: the later a round
 * comes, the more often it is just that by which it could come. */
static bool is_doubtful(const sp_wall_place *place)
{
    if (place->record->wait_class == SP_WAIT_RUNNABLE)
        return place->is_still;
    return wall.late_ns > LATE_NS && wall.doubtful_count < DOUBTS_OF_BLOCKED;
}

static void keep_visit(sp_wall_place *place, uint32_t slot, uint64_t weight_ns)
{
    uint64_t used_ns = wall.visit.cpu_ns - place->cpu_ns;
    if (!sp_wall_place_put(place, &wall.visit)) {
        wall.state.visits++;
        wall.state.dropped++;
    } else if (is_doubtful(place)) {
        wall.doubtful[wall.doubtful_count++] =
            (doubtful){slot, place->record->tid, used_ns, weight_ns};
    } else {
        weigh(place, weight_ns);
    }
}

/* A thread that was stopped (SIGSTOP, a debugger) goes on in restart_syscall, and the kernel tells
 * no more which call that is. It is the one that it was in before, under the same switch number at
 * the same place; what the thread waited for in between is a core. */
static void recall_call(const sp_wall_place *place)
{
    sp_visit_record *now = (sp_visit_record *)(void *)wall.visit.record;
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
    switch (sp_visit_thread(&wall.visit, thread, tid, &place->file, &wall.visitor)) {
    case SP_VISIT_WAITS:
        recall_call(place);
        keep_visit(place, thread->slot, weight_ns);
        break;
    case SP_VISIT_FAILED:
        if (!is_ending(thread))
            say_failure(tid);
        break;
    case SP_VISIT_ON_CPU:
        wall.state.on_core_ns += weight_ns;
        break;
    case SP_VISIT_GONE:
        break;
    }
}

/* Life is looked at again afterwards: a slot that got another thread meanwhile was visited as
 * nobody. */
static void visit_slot(uint32_t slot, uint64_t weight_ns)
{
    sp_thread *thread = sp_thread_by_slot(slot);
    sp_wall_place *place = sp_wall_place_of(&wall.places, slot, true);
    if (sp_load_acquire(&thread->life) != SP_THREAD_LIVE || /* pairs with create_locked */
        sp_load_relaxed(&thread->internal))
        return;
    uint32_t generation = sp_load_relaxed(&thread->generation);
    pid_t tid = sp_load_relaxed(&thread->tid);
    if (!place) {
        wall.state.dropped++;
        return;
    }
    if (place->generation != generation) {
        leave_place(place);
        sp_syscall_file_close(&wall.visitor.files, &place->file);
        place->generation = generation;
    }
    if (has_stayed(place, thread, tid)) {
        wall.state.unmoved++;
        weigh(place, weight_ns);
    } else {
        visit_anew(place, thread, tid, weight_ns);
    }
}

/* When thread TID was last on a core, by that core's own clock (/proc/self/task/TID/sched:
 * se.exec_start, in ms); 0 when it is not told. */
static uint64_t last_ran_ns(pid_t tid)
{
    char text[256];
    unsigned long long ms, ns;
    int fd = sp_syscall_files_open_other(&wall.visitor.files, tid, "sched");
    ssize_t length = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    text[length > 0 ? length : 0] = 0;
    const char *at = strstr(text, "se.exec_start");
    bool told = at && sscanf(at, "se.exec_start : %llu.%6llu", &ms, &ns) == 2;
    return told ? ms * SP_NS_PER_MS + ns : 0;
}

/* Which of the doubtful had a core at MOMENT_NS, and was to give it up before we came: of those
 * that have run from then on, which takes as much CPU time, the first to end; their count when none
 * has. Our own clock is read so that the kernel notes that we run now. */
static uint32_t find_giver(uint64_t moment_ns)
{
    uint32_t giver = wall.doubtful_count;
    sp_clock_own_cpu_ns();
    uint64_t since_ns = sp_clock_monotonic_ns() - moment_ns, now_ns = last_ran_ns(wall.tid);
    uint64_t first_ns = wall.late_ns + 1;
    for (uint32_t n = 0; now_ns != 0 && n < wall.doubtful_count; n++) {
        const doubtful *doubt = &wall.doubtful[n];
        uint64_t until_ns = last_ran_ns(doubt->tid) + since_ns - now_ns; /* from the moment on */
        if (until_ns < first_ns && until_ns <= doubt->used_ns) {
            giver = n;
            first_ns = until_ns;
        }
    }
    return giver;
}

/* The giver was on its core at the round's moment. It waits for the core now, as long as we have
 * it, which no moment ever falls in: that is the one wait that is known without being seen. */
static void settle_giver(sp_wall_place *place, uint64_t weight_ns, const wall_round *round)
{
    uint64_t took_ns = sp_clock_monotonic_ns() - round->moment_ns - wall.late_ns;
    double stands_for = (double)weight_ns / (double)(round->cells * round->period_ns); /* threads */
    wall.state.on_core_ns += weight_ns;
    if (place->record->wait_class == SP_WAIT_RUNNABLE)
        weigh(place, (uint64_t)((double)took_ns * stands_for));
    place->is_still = false;
}

/* To run the sampler needs a core, and where all are taken it takes that of a thread which would
 * have run: this one, and no other, looks as if it waited for a core as long as we look. It is the
 * one that ran until we came. Where the kernel does not tell (it was built without SCHED_DEBUG),
 * all count as waiting. */
static void resolve_doubts(const wall_round *round)
{
    uint32_t giver = wall.doubtful_count > 0 ? find_giver(round->moment_ns) : 0;
    sp_lock_take(&wall.lock);
    for (uint32_t n = 0; n < wall.doubtful_count; n++) {
        sp_wall_place *place = sp_wall_place_of(&wall.places, wall.doubtful[n].slot, false);
        if (n == giver)
            settle_giver(place, wall.doubtful[n].weight_ns, round);
        else
            weigh(place, wall.doubtful[n].weight_ns);
    }
    sp_lock_give(&wall.lock);
    wall.doubtful_count = 0;
}

/* --- a round ---------------------------------------------------------------------------------- */

/* Whether a sample of the thread's now would be linked, to a span that we know of. */
static bool has_own_span(const sp_thread *thread)
{
    uint32_t tail = sp_load_relaxed(&thread->record.tail);
    return (tail & 1) && (tail >> 8 & SPANPROF_TRACE_FLAG_SAMPLED) &&
           !sp_load_relaxed(&thread->remote);
}

/* To another tracer's. While none is known to be here, only some rounds look for one. */
static bool has_foreign_span(const sp_thread *thread)
{
    sp_foreign_context context;
    bool looks = sp_load_relaxed(&sp_context_is_shared) || wall.rounds % LOOKS_AROUND == 0;
    return looks && !sp_foreign_is_hidden(thread) &&
           sp_foreign_peek(thread, &context) == SP_FOREIGN_ACTIVE &&
           (context.tail >> 8 & SPANPROF_TRACE_FLAG_SAMPLED);
}

static bool is_wanted(uint32_t slot)
{
    const sp_thread *thread = sp_thread_states + slot;
    return wall.config.all_threads || has_own_span(thread) || has_foreign_span(thread);
}

/* How many threads a round may visit at what visits cost lately. */
static uint32_t visits_allowed(uint64_t period_ns)
{
    double visits = (double)period_ns / SHARE / wall.visit_cost_ns;
    return visits < VISITS_MIN       ? VISITS_MIN
           : visits > SP_THREADS_MAX ? SP_THREADS_MAX
                                     : (uint32_t)visits;
}

static void learn_cost(uint64_t cpu_ns, uint32_t visits)
{
    if (visits > 0)
        wall.visit_cost_ns += ((double)cpu_ns / visits - wall.visit_cost_ns) / 8;
    sp_lock_take(&wall.lock);
    wall.state.cpu_ns += cpu_ns;
    sp_lock_give(&wall.lock);
}

static void visit_one(uint32_t slot, uint64_t weight_ns)
{
    sp_lock_take(&wall.lock);
    visit_slot(slot, weight_ns);
    sp_lock_give(&wall.lock);
}

/* With many threads none of what a visit reads is in the cache. */
static void ask_ahead(uint32_t slot)
{
    const sp_thread *thread = sp_thread_by_slot(slot);
    const sp_wall_place *page = wall.places.pages[slot / SP_WALL_PAGE];
    __builtin_prefetch(&thread->posts);
    __builtin_prefetch((const void *)&thread->life);
    if (page)
        __builtin_prefetch(&page[slot % SP_WALL_PAGE], 1);
}

static void learn_newest_generation(void)
{
    const sp_generation *generation =
        sp_generation_enter(wall.visitor.modules, wall.visitor.hazard);
    wall.newest = generation->number;
    sp_generation_leave(wall.visitor.hazard);
}

/* Every STEPth thread that is wanted, from a random one on: each has the same chance. Whether it is
 * wanted is looked at when it is its turn, not before, so a span that begins while others are
 * visited is seen as often as one that ends then. States are far apart in memory, so of each one
 * line is read, and asked for ahead; what else speaks against a visit is seen there. */
static uint32_t visit_each(double step, uint64_t weight_ns)
{
    double next = draw() * step;
    uint32_t visits = 0, wanted = 0, slots = sp_thread_slots();
    for (uint32_t slot = 0; slot < slots; slot++) {
        const sp_thread *ahead = sp_thread_states + slot + AHEAD;
        __builtin_prefetch(&ahead[AHEAD].switch_number); /* behind the last: no harm */
        if (slot + AHEAD < slots && (wall.config.all_threads || has_own_span(ahead)))
            ask_ahead(slot + AHEAD);
        if (!is_wanted(slot) || wanted++ != (uint32_t)next)
            continue;
        visit_one(slot, weight_ns);
        next += step;
        visits++;
    }
    wall.wanted = wanted;
    return visits;
}

static void run_round(const wall_round *round)
{
    uint64_t begin_ns = sp_clock_own_cpu_ns();
    uint32_t allowed = visits_allowed(round->period_ns);
    double step = wall.wanted > allowed ? (double)wall.wanted / allowed : 1;
    uint64_t weight_ns = (uint64_t)((double)(round->cells * round->period_ns) * step + 0.5);
    learn_newest_generation();
    wall.late_ns = sp_clock_monotonic_ns() - round->moment_ns;
    uint32_t visits = visit_each(step, weight_ns);
    wall.rounds++;
    resolve_doubts(round);
    learn_cost(sp_clock_own_cpu_ns() - begin_ns, visits);
}

/* --- time ------------------------------------------------------------------------------------- */

static bool is_disturbed(void)
{
    return wall.stopping || wall.paused || wall.restarts;
}

/* With the lock held, until TIME_NS. False when something else is to be done first. */
static bool sleep_until(uint64_t time_ns)
{
    struct timespec until = sp_timespec_from_ns(time_ns);
    while (!is_disturbed())
        if (sp_lock_wait_until(&wall.lock, &wall.changed, &until) == ETIMEDOUT)
            return !is_disturbed();
    return false;
}

static void begin_cells(void)
{
    wall.restarts = false;
    wall.cell = 0;
    wall.cells_begin_ns = sp_clock_monotonic_ns();
}

/* With the lock held, for the moment of the next cell's round. */
static bool wait_for_round(wall_round *round)
{
    uint64_t period_ns = SP_NS_PER_S / wall.config.hz;
    uint64_t now_cell = (sp_clock_monotonic_ns() - wall.cells_begin_ns) / period_ns;
    uint64_t cell = now_cell > wall.cell ? now_cell : wall.cell;
    uint64_t moment_ns = cell * period_ns + (uint64_t)(draw() * (double)period_ns);
    if (!sleep_until(wall.cells_begin_ns + moment_ns))
        return false;
    *round = (wall_round){.period_ns = period_ns,
                          .moment_ns = wall.cells_begin_ns + moment_ns,
                          .cells = cell + 1 - wall.cell};
    wall.cell = cell + 1;
    return true;
}

static void run_rounds(void)
{
    wall_round round;
    sp_lock_take(&wall.lock);
    begin_cells();
    while (!wall.stopping) {
        if (wall.paused) {
            sp_lock_wait(&wall.lock, &wall.changed);
            wall.restarts = true;
        } else if (wall.restarts) {
            begin_cells();
        } else if (wait_for_round(&round)) {
            sp_lock_give(&wall.lock);
            run_round(&round);
            sp_lock_take(&wall.lock);
        }
    }
    sp_lock_give(&wall.lock);
}

/* --- life ------------------------------------------------------------------------------------- */

static void set_reason(int error)
{
    if ((error == EACCES || error == EPERM) && prctl(PR_GET_DUMPABLE) != 1)
        strcpy(wall.state.reason,
               "the files of its threads in /proc belong to root, for the process "
               "is not dumpable (prctl(2), PR_SET_DUMPABLE)");
    else if (error == ENOENT)
        strcpy(wall.state.reason,
               "there is no /proc/self/task/TID/syscall: /proc is not mounted, or "
               "the kernel was built without it");
    else
        snprintf(wall.state.reason, sizeof wall.state.reason,
                 "/proc/self/task/TID/syscall cannot be read: %s", strerror(error));
}

/* The thread that starts us waits meanwhile, so it can be looked at. Where it is never seen to
 * wait, because the machine is busy, it is enough that its file can be read. */
static bool look_at_starter(void)
{
    sp_syscall_line line;
    sp_syscall_file file = {0};
    sp_syscall_state state = SP_SYSCALL_RUNNING;
    for (int n = 0; n < PROBES && state == SP_SYSCALL_RUNNING; n++) {
        if (n > 0)
            usleep(PROBE_US);
        state = sp_syscall_file_read(&wall.visitor.files, &file, wall.starter, &line);
    }
    int error = state == SP_SYSCALL_GONE ? ENOENT : errno;
    sp_syscall_file_close(&wall.visitor.files, &file);
    errno = error;
    return state == SP_SYSCALL_RUNNING || state == SP_SYSCALL_BLOCKED;
}

static bool prepare(void)
{
    sp_thread *self = sp_self;
    errno = ENOMEM;
    if (!self)
        return false;
    wall.visitor.hazard = &self->hazard;
    wall.visitor.copy = sp_stack_copy_create();
    wall.wanted = sp_thread_slots();
    wall.doubtful = calloc(SP_THREADS_MAX, sizeof *wall.doubtful);
    return wall.visitor.copy && wall.doubtful && sp_ring_init(&wall.ring, RING_BYTES) &&
           sp_syscall_files_open(&wall.visitor.files) && look_at_starter();
}

/* Rounds that come later the longer others have the cores would see threads too often just as they
 * begin to wait. So the sampler asks to be woken on time, and to come first: from Linux 6.12 on
 * that is what a short slice does. Where it is refused, nothing is lost. */
static void come_on_time(void)
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

static void *run(void *unused)
{
    pthread_setname_np(pthread_self(), "spanprof-wall");
    wall.tid = (pid_t)sp_syscall6(SYS_gettid, 0, 0, 0, 0, 0, 0);
    come_on_time();
    sp_thread_self_internal();
    seed();
    bool works = prepare();
    int error = errno;
    sp_lock_take(&wall.lock);
    if (!works)
        set_reason(error);
    wall.state.running = works;
    wall.probed = true;
    pthread_cond_broadcast(&wall.changed);
    sp_lock_give(&wall.lock);
    if (works)
        run_rounds();
    return unused;
}

/* With the lock held: a pause or a change of rate by another thread finds all of it or nothing. */
static bool start_thread(void)
{
    sp_condition_init(&wall.changed);
    int error = sp_worker_thread_create(&wall.thread, run, NULL);
    wall.has_thread = error == 0;
    if (error)
        pthread_cond_destroy(&wall.changed);
    errno = error;
    return wall.has_thread;
}

static void forget_last_run(void)
{
    wall.probed = wall.stopping = wall.paused = wall.restarts = wall.said_failure = false;
    wall.state = (sp_wall_state){0};
    wall.held_generation = UINT32_MAX;
    wall.visit_cost_ns = FIRST_COST_NS;
    wall.doubtful_count = 0;
}

static bool wait_for_probe(void)
{
    sp_lock_take(&wall.lock);
    while (!wall.probed)
        sp_lock_wait(&wall.lock, &wall.changed);
    bool works = wall.state.running;
    sp_lock_give(&wall.lock);
    return works;
}

static bool begin_run(const sp_wall_config *config)
{
    sp_lock_take(&wall.lock);
    forget_last_run();
    wall.config = *config;
    wall.state.hz = config->hz;
    wall.visitor = (sp_visitor){.modules = config->modules,
                                .max_depth = config->max_depth,
                                .with_attributes = config->with_attributes,
                                .files = {.tasks = -1}};
    wall.held_generation = 0; /* none has been settled: all are held */
    wall.starter = (pid_t)sp_syscall6(SYS_gettid, 0, 0, 0, 0, 0, 0);
    bool has_thread = start_thread();
    if (!has_thread)
        snprintf(wall.state.reason, sizeof wall.state.reason, "no thread can be made: %s",
                 strerror(errno));
    sp_lock_give(&wall.lock);
    return has_thread;
}

bool sp_wall_start(const sp_wall_config *config)
{
    if (begin_run(config) && wait_for_probe())
        return true;
    sp_log_warn("sampler", "no wall time: %s; CPU sampling goes on", wall.state.reason);
    sp_wall_stop();
    sp_wall_free();
    return false;
}

/* The condition is destroyed when no other thread can find it any more. */
void sp_wall_stop(void)
{
    sp_lock_take(&wall.lock);
    bool had_thread = wall.has_thread;
    wall.stopping = true;
    wall.state.running = false;
    if (had_thread)
        pthread_cond_broadcast(&wall.changed);
    sp_lock_give(&wall.lock);
    if (!had_thread)
        return;
    pthread_join(wall.thread, NULL);
    sp_lock_take(&wall.lock);
    wall.has_thread = false;
    sp_lock_give(&wall.lock);
    pthread_cond_destroy(&wall.changed);
}

void sp_wall_free(void)
{
    sp_lock_take(&wall.lock);
    sp_syscall_files_close(&wall.visitor.files);
    sp_stack_copy_destroy(wall.visitor.copy);
    wall.visitor.copy = NULL;
    sp_wall_places_deinit(&wall.places);
    sp_ring_deinit(&wall.ring);
    free(wall.doubtful);
    wall.doubtful = NULL;
    wall.held_generation = UINT32_MAX;
    sp_lock_give(&wall.lock);
}

static void change(void (*set)(uint32_t), uint32_t value)
{
    sp_lock_take(&wall.lock);
    if (wall.has_thread) {
        set(value);
        pthread_cond_broadcast(&wall.changed);
    }
    sp_lock_give(&wall.lock);
}

static void set_paused(uint32_t paused)
{
    wall.paused = paused;
}

static void set_hz(uint32_t hz)
{
    wall.restarts |= hz != wall.config.hz;
    wall.config.hz = wall.state.hz = hz;
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

/* --- the collector's -------------------------------------------------------------------------- */

sp_ring *sp_wall_ring(void)
{
    return &wall.ring;
}

static void settle_place(sp_wall_place *place, sp_wall_taker *take, void *user, uint32_t newest)
{
    const sp_visit_record *record = sp_wall_place_take(place);
    if (record)
        take(user, record);
    if (is_older(place, newest))
        place->is_still = false;
}

void sp_wall_settle_slot(uint32_t slot, sp_wall_taker *take, void *user, uint32_t newest)
{
    sp_lock_take(&wall.lock);
    sp_wall_place *place = sp_wall_place_of(&wall.places, slot, false);
    if (place)
        settle_place(place, take, user, newest);
    sp_lock_give(&wall.lock);
}

void sp_wall_settle(sp_wall_taker *take, void *user, uint32_t newest)
{
    for (uint32_t slot = 0; slot < sp_thread_slots(); slot++)
        sp_wall_settle_slot(slot, take, user, newest);
    sp_lock_take(&wall.lock);
    if (wall.held_generation != UINT32_MAX)
        wall.held_generation = newest;
    sp_lock_give(&wall.lock);
}

uint32_t sp_wall_held_generation(void)
{
    sp_lock_take(&wall.lock);
    uint32_t held = wall.held_generation;
    sp_lock_give(&wall.lock);
    return held;
}

void sp_wall_state_get(sp_wall_state *out)
{
    sp_lock_take(&wall.lock);
    *out = wall.state;
    out->discarded = wall.visitor.discarded;
    out->fp = wall.visitor.fp;
    sp_lock_give(&wall.lock);
}

/* --- fork ------------------------------------------------------------------------------------- */

void sp_wall_fork_prepare(void)
{
    sp_lock_take(&wall.lock);
}

void sp_wall_fork_parent(void)
{
    sp_lock_give(&wall.lock);
}

void sp_wall_fork_child(void)
{
    wall.has_thread = false;
    wall.state = (sp_wall_state){0};
    sp_lock_give(&wall.lock);
    sp_wall_free();
}
