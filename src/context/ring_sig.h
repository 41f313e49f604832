/* SPDX-License-Identifier: Apache-2.0 */
/* A ring of records from one producer, the ticks of one thread or the wall profiler, to one
 * consumer, the collector. A full ring drops new records; nothing is ever overwritten. A record
 * never wraps: the rest of the ring is skipped when it does not fit before the end.
 *
 * The producer reserves room for the largest record, writes in place, and commits what it used. An
 * uncommitted record is invisible to the consumer. head is written by the producer (release; pairs
 * with the consumer's acquire: the records below it are whole), tail by the consumer (release;
 * pairs with the producer's acquire: the memory below it may be written again). Both only grow. */
#ifndef SP_CONTEXT_RING_SIG_H
#define SP_CONTEXT_RING_SIG_H

#include "core/atomic.h"
#include "core/compiler.h"

typedef enum sp_record_kind {
    SP_RECORD_SKIP = 0,     /* to the end of the ring */
    SP_RECORD_INTERVAL = 1, /* sp_interval_record */
    SP_RECORD_SAMPLE = 2,   /* sp_sample_record */
    SP_RECORD_VISIT = 3,    /* sp_visit_record, with an interval and a sample in it */
    SP_RECORD_CALL = 4,     /* sp_call_record, likewise */
} sp_record_kind;

/* Every record begins so; size counts the header and is a multiple of 8. */
typedef struct sp_record {
    uint32_t size;
    uint32_t kind;
} sp_record;

/* From switch NUMBER on, this context was active. Ids are words in memory order (network order
 * bytes). Its attributes follow, as in the record of the thread (thread.h), with zeros up to a
 * multiple of 8 bytes. */
typedef struct sp_interval_record {
    sp_record header;
    uint64_t number; /* even */
    uint64_t trace_id[2];
    uint64_t span_id;
    uint64_t local_root_span_id;
    uint32_t trace_flags;
    uint32_t remote;
    uint32_t attribute_bytes;
    uint32_t reserved;
    uint32_t attributes[];
} sp_interval_record;

enum { SP_INTERVAL_BYTES_MAX = sizeof(sp_interval_record) + (640 - 28 + 7) / 8 * 8 };

/* A tick. When number is odd, or flagged, the context is unknown; else it is that of the interval
 * with the same number. */
typedef struct sp_sample_record {
    sp_record header;
    uint64_t number;
    uint32_t periods;
    uint32_t generation;       /* of the modules; 0: none */
    uint16_t count;            /* of pcs */
    uint16_t leaf_count;       /* less than count: frames are missing after this many pcs */
    uint16_t by_frame_pointer; /* of the callers; the others by tables */
    uint8_t end;               /* sp_walk_end */
    uint8_t unknown;           /* 1: the context was not certain (docs/design/words.md) */
    uint64_t pcs[]; /* leaf first; then, where times are recorded, one word: the time of the tick */
} sp_sample_record;

/* The time of the tick in Unix nanoseconds; 0: not recorded. */
static inline uint64_t sp_sample_time_ns(const sp_sample_record *sample)
{
    uint64_t without = sizeof *sample + sample->count * sizeof sample->pcs[0];
    return sample->header.size > without ? sample->pcs[sample->count] : 0;
}

/* Markers in pcs: addresses that no code can have, because they are not canonical. The first two
 * precede the leaf of visits. The lower half of the first is the number of the system call that the
 * thread waits in, or UINT32_MAX when the thread is in the kernel, but in no system call. The third
 * replaces the signal trampoline, to which a signal handler returns (walk_sig.h). */
#define SP_PC_SYSTEM_CALL    UINT64_C(0x5379730000000000)
#define SP_PC_RUNNABLE       UINT64_C(0x52756e0000000000)
#define SP_PC_SIGNAL_HANDLER UINT64_C(0x5369670000000000)

SP_SIGSAFE static inline bool sp_pc_is_marker(uint64_t pc)
{
    return pc >> 32 == SP_PC_SYSTEM_CALL >> 32 || pc == SP_PC_RUNNABLE ||
           pc == SP_PC_SIGNAL_HANDLER;
}

/* The system call at PC, and what it waits for (wall/wait.h). pc 0: none is known. */
typedef struct sp_visit_call {
    uint64_t pc;
    uint32_t number;
    uint8_t wait_class;
    uint8_t descriptor;
    uint16_t reserved;
} sp_visit_call;

/* Visits of a thread that waited (src/wall/wall.h), written by the wall profiler. In the same
 * record follow an sp_interval_record (the context) and an sp_sample_record (the stack), whose
 * periods are 0. */
typedef struct sp_visit_record {
    sp_record header;
    uint32_t slot;       /* of the thread */
    uint32_t generation; /* of the slot */
    int64_t tid;
    uint64_t weight_ns; /* of all visits */
    uint32_t visits;
    uint8_t wait_class; /* wall/wait.h */
    uint8_t descriptor;
    uint16_t reserved;
    sp_visit_call call; /* the thread's last one under this switch number; for the wall profiler */
} sp_visit_record;

static inline sp_interval_record *sp_visit_interval(const sp_visit_record *visit)
{
    return (sp_interval_record *)(uintptr_t)(visit + 1); // NOLINT(performance-no-int-to-ptr)
}

static inline sp_sample_record *sp_visit_sample(const sp_visit_record *visit)
{
    sp_interval_record *interval = sp_visit_interval(visit);
    return (sp_sample_record *)(void *)((uint8_t *)interval + interval->header.size);
}

/* The kinds of sampled calls: of sp_call_record, and of profiles. A kind of the application's own
 * values is SP_CALL_VALUES plus the number of its type. */
typedef enum sp_call_kind {
    SP_CALL_ALLOC = 0, /* blocks that were allocated */
    SP_CALL_HEAP = 1,  /* blocks that are still allocated */
    SP_CALL_LOCK = 2,  /* waits for locks */
    SP_CALL_CONDITION = 3,
    SP_CALL_SEMAPHORE = 4,
    SP_CALL_VALUES = 5,
} sp_call_kind;

enum { SP_VALUE_TYPES_MAX = 16, SP_CALL_KINDS = SP_CALL_VALUES + SP_VALUE_TYPES_MAX };

/* The span under which another thread held a lock; ids are in memory order, all zero for none. */
typedef struct sp_call_holder {
    uint64_t trace_id[2];
    uint64_t span_id;
} sp_call_holder;

/* The maximum number of addresses that are kept of that thread's stack. */
enum { SP_CALL_HOLDER_DEPTH = 128 };

/* A call that was sampled, written by the thread that made it. In the same record follow an
 * sp_interval_record (the context), an sp_sample_record (the stack) and, if the holder's stack is
 * known, a second sp_sample_record with that stack. value and count are estimates for all calls
 * that the sampled call represents. */
typedef struct sp_call_record {
    sp_record header;
    uint32_t kind;      /* sp_call_kind */
    uint32_t live_slot; /* of a block: its place in the table of live blocks */
    uint64_t live_id;   /* and its id there; 0: it is in no place */
    int64_t tid;
    uint64_t value;        /* bytes, or the unit of the type */
    uint64_t count;        /* of calls */
    uint64_t lock;         /* address of the lock that was waited for; 0: none, or unknown */
    sp_call_holder holder; /* the holder of that lock */
    uint64_t has_holder_stack;
} sp_call_record;

static inline sp_interval_record *sp_call_interval(const sp_call_record *call)
{
    return (sp_interval_record *)(uintptr_t)(call + 1); // NOLINT(performance-no-int-to-ptr)
}

static inline sp_sample_record *sp_call_sample(const sp_call_record *call)
{
    sp_interval_record *interval = sp_call_interval(call);
    return (sp_sample_record *)(void *)((uint8_t *)interval + interval->header.size);
}

/* The holder's stack; NULL: it is not known. */
static inline sp_sample_record *sp_call_holder_stack(const sp_call_record *call)
{
    sp_sample_record *sample = sp_call_sample(call);
    return call->has_holder_stack
               ? (sp_sample_record *)(void *)((uint8_t *)sample + sample->header.size)
               : NULL;
}

/* size is a power of two. */
typedef struct sp_ring {
    _Atomic(uint8_t *) data; /* NULL: no ring; stored last (release; pairs with sp_ring_exists) */
    uint64_t size;
    _Atomic uint64_t head;
    _Atomic uint64_t tail;
    uint64_t corrupt; /* used by the consumer: how often the contents were skipped */
} sp_ring;

SP_SIGSAFE static inline bool sp_ring_exists(const sp_ring *ring)
{
    return sp_load_acquire(&ring->data) != NULL;
}

/* BYTES (a multiple of 8, at most a quarter of the ring) in one piece, which the producer then
 * writes; NULL when the ring is full. */
SP_SIGSAFE static inline void *sp_ring_reserve(sp_ring *ring, uint64_t bytes)
{
    uint64_t head = sp_load_relaxed(&ring->head);
    uint64_t used = head - sp_load_acquire(&ring->tail);
    uint64_t offset = head & (ring->size - 1);
    uint64_t to_end = ring->size - offset;
    uint64_t needed = to_end < bytes ? to_end + bytes : bytes;
    if (ring->size - used < needed)
        return NULL;
    if (to_end < bytes) {
        sp_record *skip = (sp_record *)(void *)(sp_load_relaxed(&ring->data) + offset);
        skip->size = (uint32_t)to_end;
        skip->kind = SP_RECORD_SKIP;
        /* Release: the consumer may read the skip before the next commit, and must find it
         * complete. */
        sp_store_release(&ring->head, head + to_end);
        offset = 0;
    }
    return sp_load_relaxed(&ring->data) + offset;
}

/* Publish the first BYTES of the room that the last reserve returned. */
SP_SIGSAFE static inline void sp_ring_commit(sp_ring *ring, uint64_t bytes)
{
    sp_store_release(&ring->head, sp_load_relaxed(&ring->head) + bytes);
}

/* Count the contents below END as corrupt and discard them. */
void sp_ring_skip_corrupt(sp_ring *ring, uint64_t end);

/* Whether a record at TAIL can have SIZE: a pop then moves the tail forward, but not beyond END,
 * and the record does not wrap. */
static inline bool sp_ring_fits(const sp_ring *ring, uint64_t size, uint64_t tail, uint64_t end)
{
    return size >= sizeof(sp_record) && size % 8 == 0 && end - tail <= ring->size &&
           size <= end - tail && size <= ring->size - (tail & (ring->size - 1));
}

/* For the consumer: the oldest record below END, which is a head that was read before; NULL: none.
 * sp_ring_pop gives it back. An impossible size means that the ring is corrupt and that the next
 * record cannot be found. Then all of the ring is skipped; else the consumer would read beyond the
 * ring, or never end. */
static inline const sp_record *sp_ring_peek(sp_ring *ring, uint64_t end)
{
    uint64_t tail = sp_load_relaxed(&ring->tail);
    if (tail == end)
        return NULL;
    const sp_record *record =
        (const sp_record *)(const void *)(sp_load_relaxed(&ring->data) + (tail & (ring->size - 8)));
    if (sp_ring_fits(ring, record->size, tail, end))
        return record;
    sp_ring_skip_corrupt(ring, end);
    return NULL;
}

static inline void sp_ring_pop(sp_ring *ring, const sp_record *record)
{
    sp_store_release(&ring->tail, sp_load_relaxed(&ring->tail) + record->size);
}

/* Map and touch SIZE bytes (a power of two of at least 4096); false when memory is short. Not in
 * handlers. A consumer may read the ring meanwhile. */
bool sp_ring_init(sp_ring *ring, uint64_t size);
/* Neither producer nor consumer may be using it. */
void sp_ring_deinit(sp_ring *ring);

#endif
