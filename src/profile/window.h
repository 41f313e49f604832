/* SPDX-License-Identifier: Apache-2.0 */
/* A window: what the collector aggregated between two exports, at most 10 s. Filled by aggregate.c,
 * read by builder.c. Collector thread only. */
#ifndef SP_PROFILE_WINDOW_H
#define SP_PROFILE_WINDOW_H

#include "call/own_values.h"
#include "core/arena.h"
#include "core/intern.h"
#include "context/ring_sig.h"
#include "unwind/module.h"
#include "unwind/walk_sig.h"
#include "wall/wait.h"

/* The place of a pc: key of `window.locations`. address is an ELF virtual address when module !=
 * NULL, else the runtime one. No padding: the key is compared bytewise. */
typedef struct sp_window_location {
    sp_module *module; /* acquired by the window; NULL: in no known module */
    uint64_t address;
} sp_window_location;

/* A link as aggregation keeps it: innermost span and local root. Key of `window.links`; number 0 is
 * all zero: no link. */
typedef struct sp_window_link {
    uint8_t trace_id[16];
    uint8_t span_id[8];
    uint8_t root_span_id[8]; /* zero: not known (then projections to the root use span_id) */
} sp_window_link;

/* Key of `window.threads`; name is filled up with zeros. tid 0: not known. */
typedef struct sp_window_thread {
    int64_t tid;
    char name[16];
} sp_window_thread;

/* Key of `samples.keys`: the identity of a sample. stack is a number of window.stacks, whose keys
 * are arrays of uint32_t location numbers, leaf first, SP_WINDOW_GAP among them where frames are
 * missing, then one uint32_t: the sp_walk_end. */
typedef struct sp_window_key {
    uint32_t stack;
    uint32_t link;
    uint32_t thread;
    uint32_t wait;       /* sp_window_wait; 0 for CPU time and calls; live blocks: sp_window_live;
                            waits for locks: SP_WINDOW_HOLDER and a number of holders */
    uint32_t attributes; /* a number of attribute_sets plus one; 0: none */
} sp_window_key;

/* first_time and last_time are numbers plus one of the window's times; 0: the sample has none. */
typedef struct sp_window_sample {
    uint64_t weight; /* CPU: periods; wall: nanoseconds; calls: bytes, or in the type's unit */
    uint64_t count;  /* of ticks, visits, or calls */
    uint32_t first_time, last_time;
} sp_window_sample;

/* The time of a tick. The times of a sample are a list from its first_time to its last_time; `next`
 * of the last one has no meaning. */
typedef struct sp_window_time {
    uint64_t time_ns; /* Unix */
    uint32_t periods; /* how many the tick counted */
    uint32_t next;    /* a number plus one */
} sp_window_time;

/* A window keeps the times of so many periods. A sample that has all of them fits into a request of
 * 2 MiB. */
enum { SP_WINDOW_TIMES_MAX = 200000 };

/* When one time cannot be kept, the samples of the whole window have none, because a profile has
 * the times of all its samples or of none. */
typedef struct sp_window_times {
    sp_window_time *entries;
    uint32_t count;
    size_t capacity;
    uint64_t periods; /* of the times that are kept */
    uint64_t lost;    /* of those that are not, because room or memory was short */
} sp_window_times;

/* Append FROM's times to those of INTO. FROM itself does not change. */
static inline void sp_window_times_append(const sp_window_times *times, sp_window_sample *into,
                                          const sp_window_sample *from)
{
    if (!from->first_time)
        return;
    if (into->first_time)
        times->entries[into->last_time - 1].next = from->first_time;
    else
        into->first_time = from->first_time;
    into->last_time = from->last_time;
}

/* What a sample waits for, in one number. */
static inline uint32_t sp_window_wait(sp_wait wait)
{
    return (uint32_t)wait.wait_class | (uint32_t)wait.descriptor << 8;
}

static inline sp_wait sp_window_wait_of(uint32_t number)
{
    return (sp_wait){.wait_class = (uint8_t)number, .descriptor = (uint8_t)(number >> 8)};
}

/* The sample of a live block has these instead of a wait: how old the block is at least, and
 * whether the span that allocated it, or the whole request, has ended. */
typedef enum sp_live_age {
    SP_LIVE_FRESH = 0, /* less than 10 s */
    SP_LIVE_10_S,
    SP_LIVE_1_MIN,
    SP_LIVE_10_MIN,
    SP_LIVE_1_H,
    SP_LIVE_AGES
} sp_live_age;

typedef enum sp_live_end {
    SP_LIVE_END_NONE = 0, /* the span lives, or it is not known */
    SP_LIVE_END_SPAN,     /* the span has ended, its local root has not */
    SP_LIVE_END_REQUEST,  /* the local root has ended, too */
} sp_live_end;

#define SP_WINDOW_LIVE UINT32_C(0x80000000)

static inline uint32_t sp_window_live(sp_live_age age, sp_live_end end)
{
    return SP_WINDOW_LIVE | (uint32_t)age | (uint32_t)end << 8;
}

/* The flag of a sample of a wait for a lock, a condition or a semaphore, which has a number of
 * window.holders instead of a wait. */
#define SP_WINDOW_HOLDER UINT32_C(0x40000000)

static inline uint32_t sp_window_holder_number(uint32_t wait)
{
    return wait & ~SP_WINDOW_HOLDER;
}

/* Which lock was waited for, and which span held it. Key of `window.holders`. */
typedef struct sp_window_holder {
    uint32_t link;  /* of window.links: its span; 0: none, or not known */
    uint32_t stack; /* of window.stacks, plus one: where it gave the lock back; 0: not known */
    uint32_t lock;  /* of window.locks, plus one; 0: not known */
} sp_window_holder;

/* How many ends of walks are counted: those before SP_WALK_FOLDED. */
enum { SP_WINDOW_ENDS = SP_WALK_FOLDED };

/* The samples of one kind, and their counts. */
typedef struct sp_window_samples {
    sp_intern keys; /* sp_window_key; number n has values[n] */
    sp_window_sample *values;
    size_t capacity;
    sp_window_times times;
    uint64_t count; /* of ticks, visits, or calls, that were aggregated */

    /* CPU: in periods, as the samples' values; wall: in visits; calls: in calls, as estimated. */
    uint64_t linked, none, unknown, boundary;
    uint64_t stacks_by_end[SP_WINDOW_ENDS]; /* sp_aggregate_stack_end */
    uint64_t stacks_by_frame_pointer; /* with frames found by frame pointer, whatever their end */
    uint64_t folded; /* put on a shorter stack because max_samples was reached; counted in no end */
} sp_window_samples;

/* The samples of a profile. The value of each is its weight times UNIT. */
typedef struct sp_window_part {
    const sp_window_samples *samples;
    uint64_t unit;
    bool of_spans; /* only those that have a link */
} sp_window_part;

enum { SP_WINDOW_WALL_PARTS = 2 };

/* Whether sample NUMBER of the part's samples belongs to it. */
bool sp_window_part_has(const sp_window_part *part, uint32_t number);

/* CPU time of a thread that is in no sample. */
typedef struct sp_window_unattributed {
    sp_window_thread thread;
    uint64_t unattributed_ns;
} sp_window_unattributed;

enum { SP_WINDOW_SETS_MAX = 2000, SP_WINDOW_LOCKS_MAX = 2000 };

#define SP_WINDOW_GAP (UINT32_MAX - 1) /* no location has this number */

enum { SP_WINDOW_UNATTRIBUTED_MAX = 32 };

/* The location of an address in the generation of sp_window_recorded. */
typedef struct sp_window_pc {
    uint64_t pc;
    uint32_t location; /* plus one; 0: a free entry */
} sp_window_pc;

/* capacity is 0 or a power of two. */
typedef struct sp_window_pcs {
    sp_window_pc *entries;
    uint32_t count, capacity;
} sp_window_pcs;

/* The window's numbers for the stacks and addresses of records, for one generation of the modules
 * (aggregate_stacks.c). */
typedef struct sp_window_recorded {
    sp_intern stacks;  /* as in their records; number n is stack numbers[n] of the window */
    uint32_t *numbers; /* SP_INTERN_FAILED: memory was short */
    size_t capacity;
    uint32_t generation;
    sp_window_pcs pcs;
} sp_window_recorded;

/* Wrong calls of the application, by kind (spanprof_stats explains each). */
typedef struct sp_window_misuse {
    uint64_t dead_span, dead_scope, foreign_scope, ended_parent, fiber;
} sp_window_misuse;

typedef struct sp_window {
    uint64_t start_time_ns; /* since the epoch; start < end */
    uint64_t end_time_ns;
    uint64_t period_ns;       /* of the CPU engine */
    uint64_t wall_period_ns;  /* 0: no wall engine runs */
    bool wall_of_all;         /* its samples are of all threads, not only of those with a span */
    uint64_t wall_on_core_ns; /* for which visits found its threads on a core */
    const char *engine;       /* borrowed; NULL: not known */
    const char *engine_reason;
    bool from_outside; /* another process took the samples */

    sp_intern locations;             /* sp_window_location */
    sp_intern links;                 /* sp_window_link */
    sp_intern threads;               /* sp_window_thread */
    sp_intern stacks;                /* uint32_t locations…, sp_walk_end */
    sp_intern attribute_sets;        /* entries of key number, length, bytes */
    sp_intern holders;               /* sp_window_holder */
    sp_intern locks;                 /* sp_window_location */
    uint32_t last_link, last_thread; /* of the last sample that was added */
    sp_window_recorded recorded;
    sp_window_samples cpu, wall; /* wall: what threads waited */
    /* The parts of wall time, set when the window has ended (sp_window_complete_wall): waits; and
     * CPU time plus the time that the host of a virtual machine took, which is steal_ns. */
    sp_window_part wall_parts[SP_WINDOW_WALL_PARTS];
    uint64_t steal_ns;
    sp_window_samples calls[SP_CALL_KINDS]; /* by kind */
    uint64_t alloc_bytes;                   /* there is a sample for each so many bytes */
    uint64_t lock_ns; /* the same for nanoseconds of waits for locks; 0: not known */
    const sp_value_type *value_types; /* by number; borrowed */

    /* Counts of the window itself. */
    uint64_t unattributed_ns; /* of the process */
    sp_window_unattributed
        unattributed_threads[SP_WINDOW_UNATTRIBUTED_MAX]; /* the threads that have most of it */
    uint32_t unattributed_count;
    uint64_t dropped_ring_full;
    uint64_t dropped_memory;
    uint64_t dropped_small_stack; /* ticks on a signal stack too small for a walk */
    uint64_t dropped_attributes;  /* samples without attributes, because there were too many sets */
    uint64_t dropped_visits;      /* for which the wall engine's ring, or memory, had no room */
    uint64_t dropped_calls;       /* for which the rings, or memory, had no room */
    uint64_t dropped_locks;       /* waits without their lock, because there were too many */
    uint64_t dropped_live;        /* blocks for which the table of live blocks had no place */
    sp_window_misuse misuse;
    uint64_t wall_unmoved, wall_discarded;
    uint64_t fp_by_call, fp_by_return, fp_not_found; /* sp_walk's, of visits */
} sp_window;

/* WINDOW has ended: set its wall_parts and steal_ns. STEAL (sp_steal_share) is how many seconds the
 * host took for each second of CPU time. The parts refer to WINDOW, so it must not move until it is
 * cleared. */
void sp_window_complete_wall(sp_window *window, double steal);

/* The lock of WAIT, a member of sp_window_key, as sp_window_holder has it; 0: none. */
static inline uint32_t sp_window_lock_of(const sp_window *window, uint32_t wait)
{
    if ((wait & SP_WINDOW_LIVE) || !(wait & SP_WINDOW_HOLDER))
        return 0;
    const sp_window_holder *holder = sp_intern_key(&window->holders, sp_window_holder_number(wait));
    return holder->lock;
}

/* How many samples WINDOW has, of all kinds. */
static inline uint32_t sp_window_sample_total(const sp_window *window)
{
    uint32_t total = window->cpu.keys.count + window->wall.keys.count;
    for (int kind = 0; kind < SP_CALL_KINDS; kind++)
        total += window->calls[kind].keys.count;
    return total;
}

#endif
