/* SPDX-License-Identifier: Apache-2.0 */
/* The recorder's rings. A record has one to six words; the frequent one has one word: "at this time
 * the context with this number". Each thread has its own numbers: it remembers up to 127 contexts
 * that it has defined, by a hash of their span ids, and a reader of the records builds the same
 * table. A span of the same trace as the last context takes two words, any other context five. So a
 * switch takes 8 to 40 bytes, and in a request with spans of its own about 12 on average.
 *
 * A lost record may be a definition, so after a loss the thread forgets all definitions, and so
 * does the reader.
 *
 * The clock is read between two stores of `busy`. The writer reads the clock, makes every running
 * thread of the process execute a barrier (membarrier(2)), and reads `busy`: a thread that is not
 * busy has committed records of everything that it did before. This costs the owner two plain
 * stores, and the file can say up to which time it is complete. */
#include "context/switch_recorder.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "context/self.h"
#include "context/watchers.h"
#include "core/clock.h"
#include "core/compiler.h"
#include "core/word.h"

/* Rings are made at a thread's first switch and stay with its slot. A large one holds 10 ms at 3
 * million switches a second. From LARGE_RINGS on threads get small ones, so that many thousands of
 * threads take a bounded share of the memory. */
enum { LARGE_WORDS = 32 * 1024, SMALL_WORDS = 2 * 1024, LARGE_RINGS = 128 };

/* No context has these numbers. NUMBER_UNKNOWN: the active context is unknown. NUMBER_UNRECORDED:
 * the active context is not in the records, because one was lost or they have just begun. */
enum { NUMBER_UNKNOWN = SP_SWITCH_KNOWN, NUMBER_UNRECORDED };

/* The room for a record: a record of a loss before it, and a record of the time before each of the
 * two. */
enum { ROOM_WORDS = 2 * 2 + 2 + SP_SWITCH_WORDS_MAX };

/* A context, and the epoch in which it was defined. Each word is loaded and stored by itself, as in
 * context.c: a vector of words that were just written one by one is slow to read. */
typedef struct known_context {
    uint64_t trace_high, trace_low, span, local_root;
    uint64_t flags; /* trace flags, remote << 8, and above them the epoch: the context is defined if
                       that is the ring's epoch */
} known_context;

enum { EPOCH_SHIFT = 32 };

struct sp_switch_ring {
    /* Written by the writer. */
    _Alignas(SP_CACHE_LINE) _Atomic uint64_t tail;

    /* Written by the owner. head and tail count words and only grow. */
    _Alignas(SP_CACHE_LINE) _Atomic uint64_t head; /* release; pairs with sp_switch_ring_look */
    _Atomic uint32_t busy;
    _Atomic uint32_t run; /* the run whose records begin at `first` */
    _Atomic uint64_t first;
    _Atomic uint64_t lost;          /* records lost; the ring has no record of that yet */
    _Atomic uint64_t lost_ever;     /* in this run */
    _Atomic uint64_t lost_switches; /* those of them that were switches */
    uint32_t owned_run;             /* as `run`; 0: the next record begins a thread */
    uint32_t epoch;
    uint32_t number; /* of the active context */
    bool tainted;
    uint64_t tail_seen;
    uint64_t last_ns;       /* of the last record */
    uint64_t first_lost_ns; /* while `lost` */
    uint32_t base; /* number of the last context that was active or defined; 0: none since the last
                      loss */
    uint64_t mask; /* the size less one */
    uint64_t *words;
    known_context known[SP_SWITCH_KNOWN];
};

static _Atomic uint32_t current_run; /* 0: never started */
static _Atomic uint32_t ring_count;

/* --- writing ---------------------------------------------------------------------------------- */

static inline void begin_moment(sp_switch_ring *ring)
{
    sp_store_relaxed(&ring->busy, 1);
    sp_fence_signal(); /* a compiler fence is enough, because the writer calls membarrier */
}

static inline void end_moment(sp_switch_ring *ring)
{
    sp_store_release(&ring->busy, 0); /* pairs with sp_switch_ring_is_open */
}

static inline void put(sp_switch_ring *ring, uint64_t *head, uint64_t word)
{
    ring->words[(*head)++ & ring->mask] = word;
}

static inline uint64_t make_header(sp_switch_kind kind, uint32_t number, uint32_t flags,
                                   uint32_t trace_flags)
{
    return (uint64_t)kind | (uint64_t)number << SP_SWITCH_NUMBER_SHIFT |
           (uint64_t)flags << SP_SWITCH_FLAGS_SHIFT |
           (uint64_t)trace_flags << SP_SWITCH_TRACE_FLAGS_SHIFT;
}

/* Put HEADER with the time NOW_NS; when the difference is too large, put a record of the time
 * before it. */
static inline void put_header(sp_switch_ring *ring, uint64_t *head, uint64_t header,
                              uint64_t now_ns)
{
    uint64_t delta = now_ns - ring->last_ns;
    if (SP_UNLIKELY(delta >> SP_SWITCH_DELTA_BITS)) {
        put(ring, head, SP_SWITCH_TIME);
        put(ring, head, now_ns);
        delta = 0;
    }
    ring->last_ns = now_ns;
    put(ring, head, header | delta << SP_SWITCH_DELTA_SHIFT);
}

static inline uint32_t take_taint(sp_switch_ring *ring)
{
    uint32_t flags = ring->tainted ? SP_SWITCH_FLAG_TAINTED : 0;
    ring->tainted = false;
    return flags;
}

/* Make all definitions invalid. */
static void forget_all(sp_switch_ring *ring)
{
    ring->epoch++;
    ring->base = 0;
}

static __attribute__((noinline)) void put_lost(sp_switch_ring *ring, uint64_t *head)
{
    put_header(ring, head, make_header(SP_SWITCH_LOST, 0, 0, 0), ring->first_lost_ns);
    put(ring, head, sp_load_relaxed(&ring->lost));
    forget_all(ring);
}

/* Find room for a record at NOW_NS, from *HEAD on. False when there is none: the record is lost,
 * and counted. */
static inline bool open_record(sp_switch_ring *ring, uint64_t *head, uint64_t now_ns)
{
    *head = sp_load_relaxed(&ring->head);
    if (SP_UNLIKELY(*head + ROOM_WORDS - ring->tail_seen > ring->mask + 1)) {
        ring->tail_seen = sp_load_acquire(&ring->tail); /* pairs with sp_switch_ring_release */
        if (*head + ROOM_WORDS - ring->tail_seen > ring->mask + 1) {
            if (sp_load_relaxed(&ring->lost) == 0)
                ring->first_lost_ns = now_ns;
            sp_count_owned(&ring->lost, 1);
            sp_count_owned(&ring->lost_ever, 1);
            ring->number = NUMBER_UNRECORDED;
            return false;
        }
    }
    if (SP_UNLIKELY(sp_load_relaxed(&ring->lost) != 0))
        put_lost(ring, head);
    return true;
}

/* `lost` is cleared only after the record of the loss can be read: pairs with the order in
 * sp_switch_ring_is_open. */
static inline void close_record(sp_switch_ring *ring, uint64_t head)
{
    sp_store_release(&ring->head, head);
    if (SP_UNLIKELY(sp_load_relaxed(&ring->lost) != 0))
        sp_store_release(&ring->lost, 0);
}

/* --- the beginning and end of threads --------------------------------------------------------- */

static sp_switch_ring *make_ring(sp_thread *thread)
{
    uint32_t number = atomic_fetch_add_explicit(&ring_count, 1, memory_order_relaxed);
    uint64_t size = number < LARGE_RINGS ? LARGE_WORDS : SMALL_WORDS;
    sp_switch_ring *ring = mmap(NULL, sizeof *ring + size * sizeof *ring->words,
                                PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (ring == MAP_FAILED)
        return NULL;
    ring->mask = size - 1;
    ring->words = (uint64_t *)(void *)(ring + 1);
    ring->epoch = 1;
    sp_store_release(&thread->owned.switches, ring); /* pairs with ring_of; stays with the slot */
    return ring;
}

static void put_name(sp_switch_ring *ring, uint64_t *head)
{
    uint64_t name[2] = {0};
    prctl(PR_GET_NAME, (char *)name);
    put(ring, head, name[0]);
    put(ring, head, name[1]);
}

/* Begin the records of a thread: the last record in the ring is of another thread or of another
 * run. The ring may still be full of records of a run that has ended. Then the next records are
 * lost until the writer has read the ring. */
static __attribute__((noinline)) sp_switch_ring *begin_thread(sp_thread *thread)
{
    sp_switch_ring *ring = sp_load_relaxed(&thread->owned.switches);
    uint32_t run = sp_load_relaxed(&current_run);
    uint64_t head;
    if (!ring && !(ring = make_ring(thread)))
        return NULL;
    if (sp_load_relaxed(&ring->run) != run) {
        sp_store_relaxed(&ring->lost, 0);
        sp_store_relaxed(&ring->lost_ever, 0);
        sp_store_relaxed(&ring->lost_switches, 0);
        ring->last_ns = 0; /* as a reader of the run starts with */
        sp_store_relaxed(&ring->first, sp_load_relaxed(&ring->head));
        sp_store_release(&ring->run, run); /* pairs with sp_switch_ring_look */
    }
    ring->number = NUMBER_UNRECORDED;
    ring->tainted = false;
    begin_moment(ring);
    uint64_t now_ns = sp_clock_monotonic_ns();
    bool has_room = open_record(ring, &head, now_ns);
    if (has_room) {
        ring->last_ns = now_ns;
        put(ring, &head, make_header(SP_SWITCH_BEGIN, 0, 0, 0));
        put(ring, &head, now_ns);
        put(ring, &head,
            (uint32_t)sp_load_relaxed(&thread->registered.tid) |
                (uint64_t)sp_load_relaxed(&thread->registered.generation) << 32);
        put_name(ring, &head);
        forget_all(ring);
        close_record(ring, head);
        ring->owned_run = run;
    }
    end_moment(ring);
    return has_room ? ring : NULL;
}

static inline sp_switch_ring *own_ring(sp_thread *thread)
{
    sp_switch_ring *ring = sp_load_relaxed(&thread->owned.switches);
    if (SP_UNLIKELY(!ring || ring->owned_run != sp_load_relaxed(&current_run)))
        return begin_thread(thread);
    return ring;
}

void sp_switch_recorder_taint(sp_thread *thread)
{
    sp_switch_ring *ring = sp_load_relaxed(&thread->owned.switches);
    if (ring)
        ring->tainted = true;
}

void sp_switch_recorder_exit(sp_thread *thread)
{
    sp_switch_ring *ring = sp_load_relaxed(&thread->owned.switches);
    uint64_t head;
    if (!ring || ring->owned_run != sp_load_relaxed(&current_run) ||
        !sp_switch_is_watched_by(SP_WATCH_RECORDER))
        return;
    if (sp_load_acquire(&thread->owned.posts) != sp_load_relaxed(&thread->owned.posts_seen))
        ring->tainted = true;
    begin_moment(ring);
    uint64_t now_ns = sp_clock_monotonic_ns();
    if (open_record(ring, &head, now_ns)) {
        put_header(ring, &head, make_header(SP_SWITCH_EXIT, 0, take_taint(ring), 0), now_ns);
        put_name(ring, &head);
        close_record(ring, head);
    }
    end_moment(ring);
    ring->owned_run = 0;
}

void sp_switch_recorder_abandon(sp_thread *thread)
{
    sp_switch_ring *ring = sp_load_relaxed(&thread->owned.switches);
    if (ring)
        ring->owned_run = 0;
}

/* --- switches --------------------------------------------------------------------------------- */

/* The bytes trace_flags and remote are the lowest of their word. */
static inline known_context read_context(const sp_switch_ring *ring,
                                         const spanprof_context *context)
{
    uint64_t flags = sp_word_load_alone(&context->trace_flags, 0) & 0xffff;
    return (known_context){
        .trace_high = sp_word_load_alone(context->trace_id, 0),
        .trace_low = sp_word_load_alone(context->trace_id, 1),
        .span = sp_word_load_alone(context->span_id, 0),
        .local_root = sp_word_load_alone(context->local_root_span_id, 0),
        .flags = flags | (uint64_t)ring->epoch << EPOCH_SHIFT,
    };
}

/* 1 to SP_SWITCH_KNOWN - 1. Span ids need not be random: another tracer may number its spans. */
static inline uint32_t number_of(uint64_t span)
{
    _Static_assert(SP_SWITCH_KNOWN == 1 << 7, "a number is the highest 7 bits of a hash");
    uint32_t number = (uint32_t)(span * UINT64_C(0x9e3779b97f4a7c15) >> (64 - 7));
    return number ? number : 1;
}

static inline bool is_same_trace(const known_context *a, const known_context *b)
{
    return ((a->trace_high ^ b->trace_high) | (a->trace_low ^ b->trace_low) |
            (a->local_root ^ b->local_root)) == 0;
}

static inline bool is_known(const sp_switch_ring *ring, uint32_t number,
                            const known_context *context)
{
    const known_context *known = &ring->known[number];
    return number == 0 || (((known->span ^ context->span) | (known->flags ^ context->flags)) == 0 &&
                           is_same_trace(known, context));
}

static inline void define(sp_switch_ring *ring, uint32_t number, const known_context *context)
{
    volatile known_context *known = &ring->known[number];
    known->trace_high = context->trace_high;
    known->trace_low = context->trace_low;
    known->span = context->span;
    known->local_root = context->local_root;
    known->flags = context->flags;
}

/* Record that NUMBER means CONTEXT from now on, and is active. */
static inline void put_context(sp_switch_ring *ring, uint64_t *head, uint32_t number,
                               const known_context *context, uint64_t now_ns)
{
    uint32_t trace_flags = context->flags & 0xff, is_remote = context->flags >> 8 & 0xff;
    uint32_t flags = take_taint(ring) | (is_remote ? SP_SWITCH_FLAG_REMOTE : 0);
    bool is_short = ring->base && is_same_trace(&ring->known[ring->base], context);
    put_header(
        ring, head,
        make_header(is_short ? SP_SWITCH_SPAN : SP_SWITCH_CONTEXT, number, flags, trace_flags),
        now_ns);
    if (!is_short) {
        put(ring, head, context->trace_high);
        put(ring, head, context->trace_low);
    }
    put(ring, head, context->span);
    if (!is_short)
        put(ring, head, context->local_root);
    define(ring, number, context);
}

/* Whether the active context has not changed, so that there is nothing to record. */
static inline bool is_active(const sp_switch_ring *ring, uint32_t number, bool known)
{
    return number == ring->number && known && !ring->tainted;
}

static inline void put_switch(sp_switch_ring *ring, uint64_t *head, uint32_t number, bool known,
                              const known_context *context, uint64_t now_ns)
{
    if (SP_UNLIKELY(number == NUMBER_UNKNOWN))
        put_header(ring, head, make_header(SP_SWITCH_UNKNOWN, 0, take_taint(ring), 0), now_ns);
    else if (known)
        put_header(ring, head, make_header(SP_SWITCH_TO, number, take_taint(ring), 0), now_ns);
    else
        put_context(ring, head, number, context, now_ns);
    ring->number = number;
    if (number != NUMBER_UNKNOWN && number != 0)
        ring->base = number;
}

static __attribute__((noinline)) void count_lost_switch(sp_thread *thread)
{
    sp_switch_ring *ring = sp_load_relaxed(&thread->owned.switches);
    if (ring)
        sp_count_owned(&ring->lost_switches, 1);
}

/* The clock is read first: reading it waits for all earlier instructions, while the rest of this
 * function can overlap with the application's own instructions. */
void sp_switch_recorder_switch(sp_thread *thread, const spanprof_context *context)
{
    sp_switch_ring *ring = own_ring(thread);
    known_context next = {0};
    uint32_t number = NUMBER_UNKNOWN;
    uint64_t head;
    if (SP_UNLIKELY(!ring)) {
        count_lost_switch(thread);
        return;
    }
    begin_moment(ring);
    uint64_t now_ns = sp_clock_monotonic_ns();
    bool has_room = open_record(ring, &head, now_ns);
    if (SP_LIKELY(context != NULL)) {
        next = read_context(ring, context);
        number = next.span ? number_of(next.span) : 0;
    }
    bool known = number == NUMBER_UNKNOWN || is_known(ring, number, &next);
    if (SP_LIKELY(has_room && !is_active(ring, number, known))) {
        put_switch(ring, &head, number, known, &next, now_ns);
        close_record(ring, head);
    }
    end_moment(ring);
    if (SP_UNLIKELY(!has_room))
        count_lost_switch(thread);
}

/* --- events of another tracer ----------------------------------------------------------------- */

/* Write a record of KIND with the COUNT words of DATA. */
static void put_event(sp_switch_kind kind, uint32_t trace_flags, const uint64_t *data, int count)
{
    sp_thread *thread = sp_self_get();
    if (!thread && !(thread = sp_thread_self_create()))
        return;
    sp_switch_ring *ring = own_ring(thread);
    uint64_t head;
    if (!ring)
        return;
    begin_moment(ring);
    uint64_t now_ns = sp_clock_monotonic_ns();
    if (open_record(ring, &head, now_ns)) {
        put_header(ring, &head, make_header(kind, 0, 0, trace_flags), now_ns);
        for (int i = 0; i < count; i++)
            put(ring, &head, data[i]);
        close_record(ring, head);
    }
    end_moment(ring);
}

void sp_switch_recorder_span_start(const spanprof_context *context, const spanprof_context *parent,
                                   uint64_t local_root)
{
    if (SP_LIKELY(!sp_switch_is_watched_by(SP_WATCH_RECORDER)))
        return;
    const uint64_t data[] = {sp_word_load_alone(context->trace_id, 0),
                             sp_word_load_alone(context->trace_id, 1),
                             sp_word_load_alone(context->span_id, 0),
                             parent ? sp_word_load_alone(parent->span_id, 0) : 0, local_root};
    put_event(SP_SWITCH_SPAN_START, context->trace_flags, data, SP_ARRAY_LENGTH(data));
}

void sp_switch_recorder_span_end(const spanprof_context *context)
{
    if (SP_LIKELY(!sp_switch_is_watched_by(SP_WATCH_RECORDER)))
        return;
    const uint64_t data[] = {sp_word_load_alone(context->trace_id, 0),
                             sp_word_load_alone(context->trace_id, 1),
                             sp_word_load_alone(context->span_id, 0)};
    put_event(SP_SWITCH_SPAN_END, context->trace_flags, data, SP_ARRAY_LENGTH(data));
}

/* --- the writer ------------------------------------------------------------------------------- */

uint32_t sp_switch_recorder_start(void)
{
    uint32_t run = sp_load_relaxed(&current_run) + 1;
    sp_store_relaxed(&current_run, run);
    sp_switch_watch(SP_WATCH_RECORDER, true);
    return run;
}

void sp_switch_recorder_stop(void)
{
    sp_switch_watch(SP_WATCH_RECORDER, false);
}

void sp_switch_recorder_after_fork(void)
{
    sp_switch_watch(SP_WATCH_RECORDER, false);
}

static sp_switch_ring *ring_of(sp_thread *thread)
{
    return sp_load_acquire(&thread->owned.switches);
}

size_t sp_switch_ring_look(sp_thread *thread, uint32_t run, sp_switch_piece pieces[2],
                           uint64_t *head, double *full)
{
    sp_switch_ring *ring = ring_of(thread);
    if (!ring)
        return 0;
    /* Read head first: records of a later run are then after it, or the run number that is read
     * next is theirs. */
    *head = sp_load_acquire(&ring->head);
    uint64_t tail = sp_load_relaxed(&ring->tail), size = ring->mask + 1;
    bool is_ours = sp_load_acquire(&ring->run) == run;
    uint64_t first = is_ours ? sp_load_relaxed(&ring->first) : *head;
    if (first > tail)
        tail = first < *head ? first : *head;
    if (tail == *head) {
        sp_store_release(&ring->tail, tail);
        return 0;
    }
    size_t count = *head - tail, to_end = size - (tail & ring->mask);
    size_t before_end = count < to_end ? count : to_end;
    pieces[0] = (sp_switch_piece){&ring->words[tail & ring->mask], before_end};
    pieces[1] = (sp_switch_piece){ring->words, count - before_end};
    if (full)
        *full = (double)count / (double)size;
    return count;
}

void sp_switch_ring_release(sp_thread *thread, uint64_t head)
{
    sp_store_release(&ring_of(thread)->tail, head); /* pairs with open_record */
}

bool sp_switch_ring_is_open(sp_thread *thread, uint32_t run)
{
    sp_switch_ring *ring = ring_of(thread);
    if (!ring)
        return false;
    return sp_load_acquire(&ring->busy) != 0 ||
           (sp_load_acquire(&ring->run) == run && sp_load_acquire(&ring->lost) != 0) ||
           sp_load_acquire(&thread->owned.posts) != sp_load_acquire(&thread->owned.posts_seen);
}

sp_switch_lost sp_switch_ring_lost(sp_thread *thread, uint32_t run)
{
    sp_switch_ring *ring = ring_of(thread);
    if (!ring || sp_load_acquire(&ring->run) != run)
        return (sp_switch_lost){0};
    return (sp_switch_lost){
        .records = sp_load_relaxed(&ring->lost_ever),
        .switches = sp_load_relaxed(&ring->lost_switches),
    };
}
