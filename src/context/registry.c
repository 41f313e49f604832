/* SPDX-License-Identifier: Apache-2.0 */
/* The registry of threads. A thread makes its state at its first attach, or the collector makes it
 * when a scan of /proc/self/task finds a thread without one; such a thread adopts the state when it
 * attaches later.
 *
 * One lock guards life, tid and the table by tid. It is held for a few instructions and never while
 * calling out, and no handler takes it. Order: only the locks after SP_LOCK_REGISTRY in core/lock.h
 * may be taken while it is held. */
#include "context/thread.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "context/context_slot.h"
#include "context/self.h"
#include "context/switch_recorder.h"
#include "core/at_fork.h"
#include "core/cancel.h"
#include "core/clock.h"
#include "core/lock.h"
#include "core/slot_table.h"

static sp_slot_init init_state;

/* The SDK has a few threads of its own: a collector, an exporter, others; more when a stop has
 * abandoned one. */
enum { BUCKETS = 1024, INTERNAL_MAX = 16, REAP_LEAST = 32 };

sp_thread_counters sp_thread_counts;
sp_thread *sp_thread_states;
_Atomic uintptr_t sp_thread_states_bytes;
_Thread_local sp_thread *sp_self;
/* The variable that readers outside the process read (OTEP 4947). Another SDK may have put its
 * record there: then it stays. */
SPANPROF_API _Thread_local void *otel_thread_ctx_v1;

static struct {
    sp_lock lock;
    sp_slot_table slots;
    uint32_t exited; /* threads, since exited slots were last reaped */
    bool collected;  /* a collector frees the slots of exited threads */
    uint32_t scan;
    _Atomic bool is_scanned;        /* a scan is under way */
    _Atomic nlink_t scanned_links;  /* of /proc/self/task, before the last scan */
    _Atomic uint32_t ended;         /* threads, ever */
    _Atomic uint32_t scanned_ended; /* the same, before the last scan */
    sp_thread *buckets[BUCKETS];
    _Atomic(sp_thread *) internal[INTERNAL_MAX];
    pthread_key_t exit_key;
    bool have_key;
    _Atomic(sp_thread_hook) registered;
    _Atomic(sp_thread_hook) exiting;
} registry = {.lock = SP_LOCK_AT(SP_LOCK_REGISTRY),
              .slots = SP_SLOT_TABLE(sp_thread, registered.next_free, SP_THREADS_MAX, init_state)};

void *sp_context_slot_own(void)
{
    return &otel_thread_ctx_v1;
}

void sp_threads_set_hook(sp_thread_hook registered, sp_thread_hook exiting)
{
    sp_store_release(&registry.registered, registered);
    sp_store_release(&registry.exiting, exiting);
}

sp_thread *sp_thread_by_slot(uint32_t slot)
{
    return sp_slot_was_taken(&registry.slots, slot + 1) ? &sp_thread_states[slot] : NULL;
}

uint32_t sp_thread_slots(void)
{
    return sp_slots_ever_taken(&registry.slots);
}

static sp_thread **bucket_of(pid_t tid)
{
    return &registry.buckets[(uint32_t)tid % BUCKETS];
}

static sp_thread *find_locked(pid_t tid)
{
    sp_thread *thread = *bucket_of(tid);
    while (thread && thread->registered.tid != tid)
        thread = thread->registered.next_in_bucket;
    return thread;
}

static void forget_tid_locked(sp_thread *thread)
{
    for (sp_thread **link = bucket_of(thread->registered.tid); *link;
         link = &(*link)->registered.next_in_bucket)
        if (*link == thread) {
            *link = thread->registered.next_in_bucket;
            return;
        }
}

static void run_exit(void *state);

/* The first state is made: from now on a destructor runs when a thread ends. */
static void begin_states(sp_thread *first)
{
    registry.have_key = pthread_key_create(&registry.exit_key, run_exit) == 0;
    sp_thread_states = first;
}

static void init_state(void *slot, uint32_t number)
{
    sp_thread *thread = slot;
    if (number == 1)
        begin_states(thread);
    thread->slot = number - 1;
    thread->signature = SP_THREAD_SIGNATURE;
    thread->own_scopes.owner = number;
    sp_store_relaxed(&thread->own_scopes.chunks[0], thread->own_scopes.first);
    sp_context_take_chain(thread, &thread->own_scopes);
    sp_store_release(&sp_thread_states_bytes, number * sizeof(sp_thread));
}

static void free_locked(sp_thread *thread)
{
    sp_store_release(&thread->registered.life, SP_THREAD_FREE);
    sp_slot_give(&registry.slots, thread);
}

void sp_threads_set_collected(bool collected)
{
    sp_lock_take(&registry.lock);
    registry.collected = collected;
    sp_lock_give(&registry.lock);
}

/* While the SDK does not run, no collector frees the slots of threads that attached and ended. They
 * are freed here once as many threads have ended as half of all slots. */
static void reap_exited_locked(void)
{
    uint64_t ignored;
    if (registry.collected || registry.exited < REAP_LEAST ||
        registry.exited < sp_thread_slots() / 2)
        return;
    registry.exited = 0;
    for (uint32_t slot = 0; slot < sp_thread_slots(); slot++) {
        sp_thread *thread = &sp_thread_states[slot];
        if (sp_load_relaxed(&thread->registered.life) == SP_THREAD_EXITED &&
            !sp_clock_thread_cpu_ns(thread->registered.tid, &ignored))
            free_locked(thread);
    }
}

static sp_thread *take_slot_locked(void)
{
    if (!registry.slots.free_list)
        reap_exited_locked();
    return sp_slot_take(&registry.slots);
}

void sp_thread_reset_ticks(sp_thread *thread)
{
    sp_store_relaxed(&thread->tick.ticks, 0);
    sp_store_relaxed(&thread->tick.weights, 0);
    sp_store_relaxed(&thread->tick.dropped_ring_full, 0);
    sp_store_relaxed(&thread->tick.dropped_small_stack, 0);
    sp_store_relaxed(&thread->tick.tick_cycles, 0);
    sp_store_relaxed(&thread->tick.costed_ticks, 0);
    sp_store_relaxed(&thread->tick.ring.tail, sp_load_relaxed(&thread->tick.ring.head));
    thread->tick.last_recorded = 1;
    thread->tick.owed_periods = 0;
}

/* The thread has ended. If it ran a fiber last, the fiber keeps its scopes. */
static void forget_scopes(sp_thread *thread)
{
    sp_fiber_abandon(thread);
    thread->own_scopes.depth = thread->owned.depth;
    sp_context_forget_scopes(&thread->own_scopes);
    thread->owned.depth = 0;
}

/* Take a slot for thread TID. It starts with no context, and with a switch number that the slot
 * never had. */
static sp_thread *create_locked(pid_t tid)
{
    sp_thread *thread = take_slot_locked();
    if (!thread)
        return NULL;
    sp_cpu_time_abandon(thread); /* while the slot still names its previous thread */
    sp_switch_recorder_abandon(thread);
    sp_slot_open(&thread->registered.generation);
    thread->registered.tid = tid;
    forget_scopes(thread);
    sp_store_relaxed(&thread->owned.posts_seen, sp_load_relaxed(&thread->owned.posts));
    sp_store_relaxed(&thread->published.record.tail, 0);
    sp_store_relaxed(&thread->published.record.trace_id[0], 0);
    sp_store_relaxed(&thread->published.record.trace_id[1], 0);
    sp_store_relaxed(&thread->published.record.span_id, 0);
    sp_store_relaxed(&thread->published.local_root_span_id, 0);
    sp_store_relaxed(&thread->published.remote, 0);
    sp_store_relaxed(&thread->owned.ended_span_id, 0);
    thread->owned.attributes_of = thread->owned.no_attributes_of = 0;
    sp_store_relaxed(&thread->published.switch_number,
                     (sp_load_relaxed(&thread->published.switch_number) | 1) + 1);
    sp_store_relaxed(&thread->tick.stack_low, 0);
    sp_store_relaxed(&thread->tick.stack_high, 0);
    sp_store_relaxed(&thread->tick.seen_sp, 0);
    sp_store_relaxed(&thread->tick.proven_tp, 0);
    sp_store_relaxed(&thread->tick.context_slot, 0);
    sp_store_relaxed(&thread->tick.context_tp, 0);
    sp_thread_reset_ticks(thread);
    thread->registered.internal = thread->registered.adopted = 0;
    thread->registered.scan = registry.scan;
    thread->registered.next_in_bucket = *bucket_of(tid);
    *bucket_of(tid) = thread;
    sp_store_release(&thread->registered.life, SP_THREAD_LIVE);
    return thread;
}

static void call_hook(_Atomic(sp_thread_hook) *slot, sp_thread *thread)
{
    sp_thread_hook hook = sp_load_acquire(slot);
    if (hook)
        hook(thread);
}

/* The library, or the plugin that contains it, must never be unloaded, because the signal handler
 * may stay installed, and ending threads run the destructor. No lock of the SDK is held here,
 * because the loader takes its own. */
static void pin_library(void)
{
    static atomic_flag pinned = ATOMIC_FLAG_INIT;
    Dl_info info;
    if (!atomic_flag_test_and_set(&pinned) && dladdr(&registry, &info) && info.dli_fname)
        dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
}

static void list_internal_locked(sp_thread *thread)
{
    int free_place = -1;
    for (int i = 0; i < INTERNAL_MAX; i++) {
        sp_thread *other = sp_load_relaxed(&registry.internal[i]);
        if (other == thread)
            return;
        if (!other || sp_load_relaxed(&other->registered.life) != SP_THREAD_LIVE ||
            !other->registered.internal)
            free_place = i;
    }
    if (free_place >= 0)
        sp_store_release(&registry.internal[free_place], thread);
}

static sp_thread *create_self(bool internal)
{
    SP_UNCANCELLED;
    pid_t tid = (pid_t)syscall(SYS_gettid);
    sp_lock_take(&registry.lock);
    sp_thread *thread = sp_thread_states ? find_locked(tid) : NULL;
    if (!thread)
        thread = create_locked(tid);
    if (thread) {
        thread->registered.adopted = 1;
        thread->registered.internal = internal;
        if (internal)
            list_internal_locked(thread);
    }
    sp_lock_give(&registry.lock);
    if (!thread)
        return NULL;
    pin_library();
    sp_self = thread;
    if (!otel_thread_ctx_v1)
        otel_thread_ctx_v1 = &thread->published.record;
    sp_context_slot_set(thread, sp_context_slot_own());
    if (registry.have_key)
        pthread_setspecific(registry.exit_key, thread);
    /* A scan may have found one of the SDK's own threads, and armed it, before that thread was
     * marked as internal. */
    call_hook(internal ? &registry.exiting : &registry.registered, thread);
    return thread;
}

sp_thread *sp_thread_self_create(void)
{
    sp_thread *thread = create_self(false);
    if (!thread)
        sp_count(&sp_thread_counts.failed_attaches, 1);
    return thread;
}

sp_thread *sp_thread_try_find(pid_t tid)
{
    if (!sp_thread_states || !sp_lock_try(&registry.lock))
        return NULL;
    sp_thread *thread = find_locked(tid);
    sp_lock_give(&registry.lock);
    return thread;
}

sp_thread *sp_thread_self_find(void)
{
    sp_thread *thread = sp_self_get();
    return thread || !sp_thread_states ? thread : sp_thread_try_find((pid_t)syscall(SYS_gettid));
}

sp_thread *sp_thread_find(pid_t tid)
{
    sp_lock_take(&registry.lock);
    sp_thread *thread = sp_thread_states ? find_locked(tid) : NULL;
    sp_lock_give(&registry.lock);
    return thread;
}

void sp_thread_self_internal(void)
{
    create_self(true);
}

/* The destructor of a thread's state. If the thread attaches again, in a later destructor, it gets
 * a new state. */
static void run_exit(void *state)
{
    SP_UNCANCELLED;
    sp_thread *thread = state;
    call_hook(&registry.exiting, thread);
    if (otel_thread_ctx_v1 == &thread->published.record)
        otel_thread_ctx_v1 = NULL;
    sp_self = NULL;
    sp_cpu_time_leave(thread);
    sp_switch_recorder_exit(thread);
    if (sp_fiber_abandon(thread))
        sp_count(&sp_thread_counts.misuse_fiber, 1);
    forget_scopes(thread);
    sp_lock_take(&registry.lock);
    forget_tid_locked(thread);
    sp_store_release(&thread->registered.life, SP_THREAD_EXITED);
    registry.exited++;
    sp_count(&registry.ended, 1);
    sp_lock_give(&registry.lock);
}

/* Register thread TID, which is in /proc/self/task. Returns its state if this call made it. */
static sp_thread *scan_tid(pid_t tid, uint32_t scan)
{
    sp_lock_take(&registry.lock);
    sp_thread *thread = sp_thread_states ? find_locked(tid) : NULL;
    bool created = !thread;
    if (!thread)
        thread = create_locked(tid);
    if (thread)
        thread->registered.scan = scan;
    sp_lock_give(&registry.lock);
    if (thread && !sp_load_relaxed(&thread->tick.context_tp))
        sp_context_slot_find(thread, tid);
    if (!thread || !created)
        return NULL;
    call_hook(&registry.registered, thread);
    return thread;
}

/* Mark the threads that scan SCAN did not find. The listing may omit a living thread while others
 * start and end, so a thread counts as gone only when its CPU clock is gone, too. */
static void mark_gone(uint32_t scan)
{
    for (uint32_t slot = 0; slot < sp_thread_slots(); slot++) {
        sp_thread *thread = &sp_thread_states[slot];
        uint64_t ignored;
        if (sp_load_acquire(&thread->registered.life) != SP_THREAD_LIVE ||
            thread->registered.scan == scan ||
            sp_clock_thread_cpu_ns(thread->registered.tid, &ignored))
            continue;
        call_hook(&registry.exiting, thread);
        sp_lock_take(&registry.lock);
        if (sp_load_relaxed(&thread->registered.life) == SP_THREAD_LIVE) {
            forget_tid_locked(thread);
            sp_store_release(&thread->registered.life, SP_THREAD_EXITED);
            sp_count(&registry.ended, 1);
        }
        sp_lock_give(&registry.lock);
    }
}

/* The number of threads plus 2: a directory has a link for each of its subdirectories, and two of
 * its own. */
static nlink_t task_links(void)
{
    struct stat status;
    return stat("/proc/self/task", &status) == 0 ? status.st_nlink : 0;
}

bool sp_threads_have_changed(void)
{
    return task_links() != sp_load_relaxed(&registry.scanned_links) ||
           sp_load_relaxed(&registry.ended) != sp_load_relaxed(&registry.scanned_ended);
}

/* Links and ended threads are read before the listing, so that threads which begin or end during it
 * are a reason for another scan. */
static bool scan_tasks(sp_thread_finder *found, void *user)
{
    DIR *directory = opendir("/proc/self/task");
    if (!directory)
        return false;
    sp_store_relaxed(&registry.scanned_ended, sp_load_relaxed(&registry.ended));
    sp_store_relaxed(&registry.scanned_links, task_links());
    sp_lock_take(&registry.lock);
    uint32_t scan = ++registry.scan;
    sp_lock_give(&registry.lock);
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        pid_t tid = (pid_t)atoi(entry->d_name);
        sp_thread *made = tid > 0 ? scan_tid(tid, scan) : NULL;
        if (made && found)
            found(user, made);
    }
    closedir(directory);
    mark_gone(scan);
    return true;
}

bool sp_threads_scan_for(sp_thread_finder *found, void *user)
{
    if (atomic_exchange_explicit(&registry.is_scanned, true, memory_order_acquire))
        return true;
    bool can_read = scan_tasks(found, user);
    int error = errno;
    sp_store_release(&registry.is_scanned, false);
    errno = error;
    return can_read;
}

bool sp_threads_scan(void)
{
    return sp_threads_scan_for(NULL, NULL);
}

/* The first thread stays as a zombie after pthread_exit, until the last has ended. */
static bool first_thread_has_ended(void)
{
    char path[64], text[256];
    snprintf(path, sizeof path, "/proc/%d/task/%d/stat", (int)getpid(), (int)getpid());
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    text[length > 0 ? length : 0] = 0;
    const char *state = strrchr(text, ')'); /* "PID (name) S …" */
    return state && (state[2] == 'Z' || state[2] == 'X');
}

bool sp_threads_all_ended(void)
{
    for (uint32_t slot = 0; slot < sp_thread_slots(); slot++) {
        sp_thread *thread = &sp_thread_states[slot];
        if (sp_load_acquire(&thread->registered.life) == SP_THREAD_LIVE &&
            !thread->registered.internal && thread->registered.tid != getpid())
            return false;
    }
    return first_thread_has_ended();
}

uint64_t sp_threads_application_cpu_ns(void)
{
    uint64_t own = 0, cpu_ns;
    for (int i = 0; i < INTERNAL_MAX; i++) {
        sp_thread *thread = sp_load_acquire(&registry.internal[i]);
        if (thread && sp_load_acquire(&thread->registered.life) == SP_THREAD_LIVE &&
            thread->registered.internal && sp_clock_thread_cpu_ns(thread->registered.tid, &cpu_ns))
            own += cpu_ns;
    }
    uint64_t all = sp_clock_process_cpu_ns();
    return all > own ? all - own : 0;
}

bool sp_thread_take_free_ring(sp_thread *thread, sp_ring *out)
{
    sp_lock_take(&registry.lock);
    bool is_free = sp_load_relaxed(&thread->registered.life) == SP_THREAD_FREE;
    if (is_free) {
        *out = thread->tick.ring;
        memset(&thread->tick.ring, 0, sizeof thread->tick.ring);
    }
    sp_lock_give(&registry.lock);
    return is_free;
}

void sp_thread_free(sp_thread *thread)
{
    sp_lock_take(&registry.lock);
    free_locked(thread);
    sp_lock_give(&registry.lock);
}

static void fork_prepare(void)
{
    sp_lock_take(&registry.lock);
}

static void fork_parent(void)
{
    sp_lock_give(&registry.lock);
}

/* All other threads are gone, and timers with them. The rings keep their memory; their contents
 * were the parent's. */
static void fork_child(void)
{
    memset(registry.buckets, 0, sizeof registry.buckets);
    registry.slots.free_list = 0;
    registry.exited = 0;
    registry.collected = false;
    /* A thread that scans exists only in the parent. */
    sp_store_relaxed(&registry.is_scanned, false);
    for (uint32_t slot = 0; slot < sp_thread_slots(); slot++) {
        sp_thread *thread = &sp_thread_states[slot];
        sp_store_relaxed(&thread->tick.armed, 0);
        sp_store_relaxed(&thread->tick.hazard, NULL);
        sp_store_relaxed(&thread->tick.ring.tail, sp_load_relaxed(&thread->tick.ring.head));
        if (thread == sp_self) {
            thread->registered.tid = (pid_t)syscall(SYS_gettid);
            thread->tick.last_recorded = 1;
            thread->registered.next_in_bucket = NULL;
            *bucket_of(thread->registered.tid) = thread;
        } else {
            sp_store_relaxed(&thread->registered.life, SP_THREAD_FREE);
            sp_slot_give(&registry.slots, thread);
        }
    }
    sp_lock_give(&registry.lock);
}

SP_AT_FORK(SP_LOCK_REGISTRY, fork_prepare, fork_parent, fork_child);
