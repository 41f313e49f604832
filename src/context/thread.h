/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a thread: its active context with the switch number, its scopes, its sample ring. It
 * is found by attach and detach through a thread-local pointer, by a tick through the pointer that
 * the timer's signal carries, by the collector through its slot.
 *
 * States live in a table of slots (core/slot_table.h), which is never unmapped, so a late signal or
 * a stale scope at worst reads the state of a later thread. It is detected, because serials and
 * switch numbers of a slot only ever grow, over all its threads.
 *
 * | operation                                | owner thread | handler on it | collector | other threads |
 * | attach, detach (publishes)               |     yes      |               |           |               |
 * | read the active context                  |     yes      |      yes      |           |               |
 * | post a foreign detach                    |              |               |           |      yes      |
 * | push to the ring                         |              |      yes      |           |               |
 * | pop from the ring                        |              |               |    yes    |               |
 * | register, adopt, retire a state (a lock) |     yes      |               |    yes    |               |
 */
#ifndef SP_CONTEXT_THREAD_H
#define SP_CONTEXT_THREAD_H

#include <stdatomic.h>
#include <sys/types.h>
#include <time.h>

#include <spanprof/context.h>
#include "context/cpu_time.h"
#include "context/ring_sig.h"
#include "core/atomic.h"
#include "core/compiler.h"

/* The record of OTEP 4947 as outside readers see it, at the address that otel_thread_ctx_v1 holds:
 * 28 bytes, and attributes. It is written in words. `tail` is one word: valid (0 or 1), trace
 * flags, and the 16-bit size of the attributes after it. An attribute is a key number
 * (sample_keys.h), a length, and as many bytes. A thread without attributes never touches memory
 * beyond the first cache line. */
enum { SP_ATTRIBUTE_WORDS = (640 - 28) / 4, SP_ATTRIBUTE_BYTES_MAX = 4 * SP_ATTRIBUTE_WORDS };

typedef struct sp_context_record {
    _Atomic uint64_t trace_id[2]; /* network order bytes */
    _Atomic uint64_t span_id;
    _Atomic uint32_t tail;
    _Atomic uint32_t attributes[SP_ATTRIBUTE_WORDS]; /* attrs-data */
} sp_context_record;

_Static_assert(offsetof(sp_context_record, span_id) == 16 &&
                   offsetof(sp_context_record, tail) == 24 &&
                   offsetof(sp_context_record, attributes) == 28 &&
                   sizeof(sp_context_record) == 640,
               "the layout of OTEP 4947");

/* One attached scope. serial is 0 when the scope was detached out of order. A detach by another
 * thread writes the serial of the scope into `posted`. The owner compares the two, so a late post
 * has no effect. */
typedef struct sp_scope_entry {
    _Atomic uint64_t serial;
    _Atomic uint64_t posted;
    spanprof_context context;
} sp_scope_entry;

/* Scopes nest in chunks that never move: 16 in the chain itself, then 16, 32, 64, … */
enum { SP_SCOPE_FIRST = 16, SP_SCOPE_CHUNKS = 20 };

/* The scopes of a thread, or of a fiber. While a thread runs the chain, depth and next_serial are
 * in the thread, where attach and detach use them, and the values here are out of date. */
typedef struct sp_scope_chain {
    sp_scope_entry first[SP_SCOPE_FIRST];
    _Atomic(sp_scope_entry *) chunks[SP_SCOPE_CHUNKS]; /* chunk 0 is `first` */
    uint32_t owner; /* the number in its scopes: a thread's slot + 1, or SP_THREADS_MAX + a fiber's
                       slot + 1 */
    uint32_t depth;
    uint64_t next_serial;
    _Atomic uint64_t posts; /* incremented by each detach of its scopes by another thread */
    uint64_t posts_seen;    /* by the thread that ran it */
} sp_scope_chain;

typedef enum sp_thread_life {
    SP_THREAD_FREE = 0,
    SP_THREAD_LIVE = 1,
    SP_THREAD_EXITED = 2, /* its destructor ran, or it is no more in /proc/self/task; the collector
                             frees it once drained */
} sp_thread_life;

typedef struct sp_thread sp_thread;

/* The context in another tracer's record at the last tick that read it
 * (src/context/foreign_record_sig.h); all zero for no span. */
typedef struct sp_foreign_context {
    uint64_t trace_id[2];
    uint64_t span_id;
    uint32_t tail; /* valid and flags */
} sp_foreign_context;

/* "spanprof", as a word in memory: this library recognizes by it the record of another copy of
 * itself, whose spans are not its own. */
#define SP_THREAD_SIGNATURE UINT64_C(0x666f72706e617073)

/* What a switch writes and a tick reads, in one cache line. Written by the owner thread alone, or,
 * before the thread uses the state, by the thread that makes it. Invariant: while switch_number is
 * even and the same before and after a read, what was read between belongs together. The number is
 * odd while a switch is under way, and only ever grows. */
typedef struct sp_thread_published {
    _Alignas(SP_CACHE_LINE) _Atomic uint64_t switch_number;
    _Atomic uint64_t local_root_span_id;
    _Atomic uint64_t remote; /* 1: the context is not of a span of this process */
    sp_context_record record;
} sp_thread_published;

/* Written by the owner thread: its scopes, the attributes of its carriers, and its fiber. Other
 * threads only read atomic members; only `posts` is written by them. Invariants: depth scopes of
 * the chain are attached, and the active context is that of scope depth - 1. posts_seen <= posts.
 * owner is 0, or names `chain`. attributes_of is 0, or the record's area holds attribute_bytes of
 * that carrier. */
typedef struct sp_thread_owned {
    _Alignas(SP_CACHE_LINE) uint32_t depth;
    uint32_t owner; /* the chain's; 0: unknown which chain runs (sp_context_take_chain) */
    uint64_t next_serial;
    _Atomic uint64_t posts;      /* incremented by each detach of its scopes by another thread */
    _Atomic uint64_t posts_seen; /* by the owner; while it lags, ticks are unknown */
    sp_scope_chain *chain;       /* own_scopes, or that of the fiber that the thread runs */
    struct sp_fiber *fiber;      /* that fiber; NULL: none */
    /* Carriers as words. Entries of the table never change, so facts about a handle stay true. */
    uint64_t attributes_of; /* its attributes are in the record's area, also while the tail has size
                               0; 0: none */
    uint64_t no_attributes_of; /* the last one that had no attributes */
    uint32_t attribute_bytes;
    _Atomic(struct sp_switch_ring *) switches; /* NULL: it never recorded a switch */
    /* The stack of the fiber that the thread runs (on_fiber), or ran last; equal: not known. A tick
     * detects by it that stack and context are not of the same fiber
     * (src/unwind/fiber_stack_sig.h). */
    _Atomic uint32_t on_fiber;
    _Atomic uint64_t fiber_low, fiber_high;
    /* The thread ended this span while it was active on it, and has attached nothing since; 0:
     * none, or the collector has counted it (src/collect/forgotten.c).
     */
    _Atomic uint64_t ended_span_id;
} sp_thread_owned;

/* Written by the handler on this thread. While `armed` is 0 and `hazard` NULL, no tick runs and
 * others may change it (src/cpu/arming.c); the ring is then the registry's or the engine's. The
 * collector pops from the ring, and only it replaces one. Invariants: the counts only grow between
 * two resets (sp_thread_reset_ticks). last_recorded is 1, or the switch number of the last interval
 * in the ring. */
typedef struct sp_thread_tick {
    _Alignas(SP_CACHE_LINE) _Atomic uint32_t armed; /* 0: ticks do nothing */
    uint64_t last_recorded; /* switch number of the last interval in the ring; 1: none */
    uint32_t owed_periods;  /* periods that later ticks take over (handler_sig.c) */
    _Atomic(const struct sp_generation *)
        hazard; /* the generation that a tick is using; NULL: no tick runs */
    _Atomic uint64_t stack_low,
        stack_high;                    /* memory that may be read unguarded; equal: none known */
    _Atomic uint64_t seen_sp, seen_tp; /* of a tick on a thread whose stack is not known yet */
    _Atomic uint64_t
        proven_tp; /* thread pointer that the kernel has confirmed to be this thread's */
    _Atomic uint64_t context_tp;          /* its thread pointer; 0: not known */
    _Atomic uint64_t context_slot;        /* address of its otel_thread_ctx_v1; 0: not known yet */
    sp_foreign_context foreign;           /* while no context of this SDK is active */
    uint64_t foreign_switches;            /* changes of `foreign`, counted in twos; only grows */
    _Atomic uint64_t event_period_ns;     /* for its perf event, to be set by the next tick */
    _Atomic uint64_t event_period_set_ns; /* that its perf event has */
    _Atomic uint64_t
        first_moment_ns; /* timer engine: the random moment of the first tick; 0: it is over */
    _Atomic uint64_t ticks;
    _Atomic uint64_t weights;
    _Atomic uint64_t dropped_ring_full;
    _Atomic uint64_t dropped_small_stack;
    _Atomic uint64_t tick_cycles;  /* spent in ticks, when that is measured */
    _Atomic uint64_t costed_ticks; /* the ticks that tick_cycles is the sum of */
    sp_ring ring;
} sp_thread_tick;

/* Changed under the registry's lock; atomic members may be read without it. Invariants: life goes
 * from FREE to LIVE to EXITED to FREE. generation changes with each thread that the slot serves,
 * and stays after that thread's end. A state that is not FREE is in the bucket of its tid, and one
 * that is FREE and was used is in the list of free slots (core/slot_table.h). */
typedef struct sp_thread_registered {
    _Alignas(SP_CACHE_LINE) _Atomic uint32_t life; /* sp_thread_life */
    _Atomic uint32_t generation;                   /* of the slot: sp_slot_open */
    _Atomic pid_t tid;
    _Atomic uint32_t internal; /* a thread of the SDK, never sampled */
    uint32_t adopted;          /* the thread itself uses the state, and its destructor will run */
    _Atomic uint32_t scan;     /* number of the last scan that found it */
    uint32_t next_free;        /* number of the next free slot */
    sp_thread *next_in_bucket; /* of the table by tid */
} sp_thread_registered;

/* Each part begins a cache line of its own, because another thread writes it. Engines keep their
 * own data of a thread in arrays by slot (src/cpu/cpu_threads_sig.h). */
struct sp_thread {
    _Alignas(SP_CACHE_LINE) uint32_t slot; /* constant */
    uint64_t before_signature[6];
    uint64_t
        signature; /* SP_THREAD_SIGNATURE, at the same distance from the record in every version */

    sp_thread_published published;
    sp_thread_owned owned;
    sp_thread_tick tick;
    sp_thread_registered registered;

    _Alignas(SP_CACHE_LINE) sp_cpu_interval cpu; /* only while CPU time is counted */

    sp_scope_chain own_scopes;
};

/* What a switch writes shares one cache line (docs/design/span-context.md), with the first 12 bytes
 * of attributes. */
_Static_assert(offsetof(sp_thread, published) % SP_CACHE_LINE == 0 &&
                   offsetof(sp_thread_published, switch_number) == 0 &&
                   offsetof(sp_thread_published, record) + offsetof(sp_context_record, attributes) +
                           12 ==
                       SP_CACHE_LINE,
               "one line");
_Static_assert(offsetof(sp_thread, published.record) - offsetof(sp_thread, signature) == 32,
               "where other copies look for it");

typedef struct sp_thread_counters {
    _Atomic uint64_t misuse_dead_scope;
    _Atomic uint64_t misuse_foreign_scope;
    _Atomic uint64_t failed_attaches;
    _Atomic uint64_t misuse_fiber;
    _Atomic uint64_t misuse_ended_parent;
} sp_thread_counters;

extern sp_thread_counters sp_thread_counts;

/* --- registry.c ------------------------------------------------------------------------------- */

enum { SP_THREADS_MAX = 32768 };

/* Called with no lock held. `registered`: a state was made by a scan, or made or adopted by its
 * thread. `exiting`: the thread has ended, or is one of the SDK's own. Set by the engine while it
 * runs. */
typedef void (*sp_thread_hook)(sp_thread *thread);
void sp_threads_set_hook(sp_thread_hook registered, sp_thread_hook exiting);

/* The state of the calling thread, made when it has none; NULL when memory or slots are short. Not
 * in handlers. */
sp_thread *sp_thread_self_create(void);
/* The state that the calling thread has: its own, or the one that a scan made for it. NULL: none,
 * or the registry's lock was taken. No lock is waited for, nothing is allocated. */
sp_thread *sp_thread_self_find(void);
/* The state of thread TID, which may end any time. NULL: none, or the registry's lock was taken. No
 * lock is waited for, nothing is allocated. */
sp_thread *sp_thread_try_find(pid_t tid);
/* The state of thread TID, which may end any time; NULL: none. Collector. */
sp_thread *sp_thread_find(pid_t tid);
/* Mark the calling thread, one of the SDK's own, as never to be sampled. */
void sp_thread_self_internal(void);
/* The state in SLOT, whatever its life; NULL for a slot that was never used. Any thread. */
sp_thread *sp_thread_by_slot(uint32_t slot);
/* How many slots have ever been used: the bound for a loop over sp_thread_by_slot. */
uint32_t sp_thread_slots(void);
/* All states, NULL until the first is made, and the bytes of those that were ever used. Whether
 * POINTER is one of these states, because the value in a signal may be anything. */
extern sp_thread *sp_thread_states;
extern _Atomic uintptr_t sp_thread_states_bytes;
SP_SIGSAFE static inline bool sp_thread_is_state(const void *pointer)
{
    uintptr_t offset = (uintptr_t)pointer - (uintptr_t)sp_thread_states;
    return offset < sp_load_relaxed(&sp_thread_states_bytes) && offset % sizeof(sp_thread) == 0;
}

/* Compare with /proc/self/task: make states for threads that have none, mark those gone as exited.
 * Nothing is done while another thread scans. Returns false when the directory cannot be read.
 * Collector, wall profiler. */
bool sp_threads_scan(void);
/* The same. FOUND is called for each state that is made, with no lock held. */
typedef void sp_thread_finder(void *user, sp_thread *thread);
bool sp_threads_scan_for(sp_thread_finder *found, void *user);
/* After a scan: whether only threads of the SDK are left, so that the process lives on because of
 * them. */
bool sp_threads_all_ended(void);
/* Whether threads have begun since the last scan: their number has changed, or known ones have
 * ended, so that others may have taken their place. The end of a thread that never attached is not
 * known before the next scan. One system call. */
bool sp_threads_have_changed(void);
/* CPU time of the process, ended threads included, less that of the SDK's living threads. */
uint64_t sp_threads_application_cpu_ns(void);
/* Reset counts, ring and interval log, for a slot's next thread, or for the next run of the engine.
 * No tick may be under way. */
void sp_thread_reset_ticks(sp_thread *thread);
/* Whether a collector drains exited threads and frees their slots; else they are freed when slots
 * run short. Setup. */
void sp_threads_set_collected(bool collected);
/* Free the slot of an exited thread; its ring stays with the slot. Collector. */
void sp_thread_free(sp_thread *thread);
/* Move the ring of a slot into *OUT if the slot is free; false, and nothing moved, if it is not. No
 * thread uses the ring of a free slot. */
bool sp_thread_take_free_ring(sp_thread *thread, sp_ring *out);

/* Fork: the registry registers its own fork handlers, which also run while the SDK does not. The
 * child has one state, its own thread's. */

/* --- context.c -------------------------------------------------------------------------------- */

/* spanprof_context_attach of a context in words in memory order. They are passed in registers,
 * because passing it through memory takes half as long again. FLAGS are trace_flags, remote and
 * reserved0; CARRIER is the carrier. */
spanprof_scope sp_context_attach_words(uint64_t trace_high, uint64_t trace_low, uint64_t span,
                                       uint64_t local_root, uint64_t flags, uint64_t carrier);
/* The active context of this thread: never NULL, all zero for none, valid until this thread's next
 * switch. */
const spanprof_context *sp_context_current_borrow(void);
/* Remove the scopes of THREAD, the calling one, that other threads have detached, from its chain.
 * What is published stays as it is: samples are unknown until the thread's next switch. */
void sp_context_drop_posted(sp_thread *thread);
/* Write the attributes of CARRIER into WORDS, with zeros up to the end of the last word, and return
 * their bytes; 0 when there are none, or the entry is gone. On a thread that switches: no lock, no
 * allocation. */
typedef uint32_t sp_attribute_source(uint64_t carrier, uint32_t words[SP_ATTRIBUTE_WORDS]);
/* From now on contexts may have attributes. Any thread; always the same SOURCE. */
void sp_context_set_attribute_source(sp_attribute_source *source);
/* Make every scope of CHAIN, which does not run, dead: a caller that still holds one must not reach
 * the next owner of its slot. */
void sp_context_forget_scopes(sp_scope_chain *chain);
/* Take the dead scopes off the top of CHAIN, whose thread a fork caught in the middle of a detach.
 */
void sp_context_drop_dead(sp_scope_chain *chain);
/* Make THREAD use the chain TO. Its previous chain stays as it is. NULL: it is unknown which chain
 * runs; until it takes another chain, its samples are unknown and it cannot attach. THREAD is the
 * calling thread, or has ended. Publishes nothing. */
void sp_context_take_chain(sp_thread *thread, sp_scope_chain *to);
/* The same for the calling thread. It also activates the context of TO, as a switch. */
void sp_context_switch_chain(sp_thread *thread, sp_scope_chain *to);

/* --- fiber.c ---------------------------------------------------------------------------------- */

/* The chain of the fiber in SLOT, and the thread that runs it, NULL if it is suspended. NULL for a
 * slot that was never used. Any thread. */
sp_scope_chain *sp_fiber_chain(uint32_t slot);
sp_thread *sp_fiber_runner(uint32_t slot);
/* THREAD ends, or has ended: suspend the fiber that it ran, if any, and give the thread its own
 * chain. Returns whether it ran one. */
bool sp_fiber_abandon(sp_thread *thread);

#endif
