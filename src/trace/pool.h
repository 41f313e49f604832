/* SPDX-License-Identifier: Apache-2.0 */
/* Pools of span slots. A slot never moves and its memory is never unmapped, so a stale handle at
 * worst reads the slot of a later span, whose generation differs. (A forked child forgets all
 * slots, and handles of the parent find none.)
 *
 * Free slots move in batches: each thread has a magazine of at most two batches, and the pool has a
 * list of batches under a lock. So start and end take the lock once in SP_POOL_BATCH spans, also
 * when one thread starts the spans that another thread releases.
 *
 * | operation             | threads                                 | lock              |
 * | sp_pool_at            | any thread                              | none              |
 * | sp_pool_take, _give   | the thread that owns the magazine       | once in a batch   |
 * | sp_pool_drain         | the thread that owns the magazine       | yes               |
 * | sp_pool_after_fork    | the only thread of a forked child       | none, reset       |
 */
#ifndef SP_TRACE_POOL_H
#define SP_TRACE_POOL_H

#include <spanprof/tracer.h>
#include "core/atomic.h"
#include "core/compiler.h"
#include "core/lock.h"

/* The head of every slot: one cache line. `word` is the generation and, in bit 0, SP_SLOT_LOCKED.
 * The generation is a multiple of 4 while the slot is free. Start and end each add SP_SLOT_STEP, so
 * bit 1, SP_SLOT_LIVE, is set while a span lives. A generation does not recur: it equals the one in
 * a handle only while that handle's span lives. `context` is the first 48 bytes of the span's
 * spanprof_context. */
typedef struct sp_slot {
    _Alignas(SP_CACHE_LINE) _Atomic uint64_t word;
    _Atomic uint64_t context[6];
    uint32_t index; /* from 1 */
    uint32_t next;  /* index of the next in a list, 0: none; belongs to the owner of the list */
} sp_slot;

enum { SP_SLOT_LOCKED = 1, SP_SLOT_LIVE = 2, SP_SLOT_STEP = 2, SP_SLOT_CONTEXT_BYTES = 48 };
_Static_assert(sizeof(sp_slot) == SP_CACHE_LINE, "one cache line");
_Static_assert(offsetof(spanprof_context, reserved1) == SP_SLOT_CONTEXT_BYTES,
               "the head holds all of a context that is used");

/* The number of words of a context that a slot keeps. Contexts are copied to and from a slot in
 * words, because a word that was just written in bytes, or a vector that was just written in words,
 * is slow to read. */
enum { SP_CONTEXT_WORDS = SP_SLOT_CONTEXT_BYTES / 8 };

typedef struct sp_slot_list {
    uint32_t first; /* 0: empty */
    uint32_t count;
} sp_slot_list;

typedef struct sp_magazine {
    sp_slot_list active; /* taken from and given to */
    sp_slot_list backup; /* empty, or a full batch */
} sp_magazine;

enum { SP_POOL_CHUNKS = 8192, SP_POOL_CHUNK_SLOTS = 1024, SP_POOL_BATCH = 32 };

typedef struct sp_pool {
    uint32_t slot_bytes;
    sp_lock lock;     /* guards the members below, but `chunks` is read without it; innermost */
    uint32_t carved;  /* slots 1 to carved have been made */
    uint32_t batches; /* index of the first slot of the first free batch; 0: none */
    uint64_t first_generation;
    _Atomic(uint8_t *) chunks[SP_POOL_CHUNKS];
} sp_pool;

#define SP_POOL_INIT(bytes)                                                                        \
    {                                                                                              \
        .slot_bytes = (bytes), .lock = SP_LOCK_AT(SP_LOCK_SLOT_POOL)                               \
    }

/* The slot with INDEX, or NULL when there is none (memory not yet carved reads as 0, a free slot).
 */
static inline sp_slot *sp_pool_at(const sp_pool *pool, uint64_t index)
{
    uint64_t chunk = index / SP_POOL_CHUNK_SLOTS;
    if (SP_UNLIKELY(chunk >= SP_POOL_CHUNKS))
        return NULL;
    uint8_t *memory = sp_load_acquire(
        &pool->chunks[chunk]); /* pairs with the release in map_chunk: its memory is there */
    uint64_t offset = index % SP_POOL_CHUNK_SLOTS * pool->slot_bytes;
    return memory ? (sp_slot *)(void *)(memory + offset) : NULL;
}

/* Refill an empty MAGAZINE; false when there is no memory. */
bool sp_pool_refill(sp_pool *pool, sp_magazine *magazine);
/* Make room in a full MAGAZINE. */
void sp_pool_spill(sp_pool *pool, sp_magazine *magazine);
/* Give all of MAGAZINE back to the pool: its thread ends. */
void sp_pool_drain(sp_pool *pool, sp_magazine *magazine);
/* Give one SLOT to the pool, as a batch of its own. */
void sp_pool_give_alone(sp_pool *pool, sp_slot *slot);
/* Forget all slots, without reading the parent's lock or lists. KEEP says that this thread forked
 * inside a callback, which continues to read a slot: then their memory is never freed. */
void sp_pool_after_fork(sp_pool *pool, bool keep);

/* A free slot, or NULL when there is no memory. */
static inline sp_slot *sp_pool_take(sp_pool *pool, sp_magazine *magazine)
{
    if (SP_UNLIKELY(magazine->active.count == 0) && !sp_pool_refill(pool, magazine))
        return NULL;
    sp_slot *slot = sp_pool_at(pool, magazine->active.first);
    magazine->active.first = slot->next;
    magazine->active.count--;
    return slot;
}

/* Begin to fetch the first BYTES of the slot that the next take returns: the exporter's thread used
 * the slot last, and fetching the cache lines from another core takes as long as making a span. */
static inline void sp_pool_fetch_next(const sp_pool *pool, const sp_magazine *magazine,
                                      size_t bytes)
{
    const uint8_t *next = (const uint8_t *)sp_pool_at(pool, magazine->active.first);
    for (size_t i = 0; i < bytes; i += SP_CACHE_LINE)
        sp_prefetch_write(next + i);
}

/* Give SLOT, which is free, to MAGAZINE, or directly to the pool if the thread has no magazine
 * (NULL). */
static inline void sp_pool_give(sp_pool *pool, sp_magazine *magazine, sp_slot *slot)
{
    if (SP_UNLIKELY(!magazine)) {
        sp_pool_give_alone(pool, slot);
        return;
    }
    if (SP_UNLIKELY(magazine->active.count == SP_POOL_BATCH))
        sp_pool_spill(pool, magazine);
    slot->next = magazine->active.first;
    magazine->active = (sp_slot_list){.first = slot->index, .count = magazine->active.count + 1};
}

/* Copy the context of SLOT while its generation is GENERATION; false when it is not (any more). The
 * context is immutable for the life of the span, so no lock is needed: the words are stored with
 * release after the generation moved, and loaded with acquire, so a thread that reads a word of a
 * later span also reads that span's generation. */
static inline bool sp_slot_read_words(sp_slot *slot, uint64_t generation,
                                      uint64_t words[SP_CONTEXT_WORDS])
{
    if ((sp_load_acquire(&slot->word) & ~(uint64_t)SP_SLOT_LOCKED) != generation)
        return false;
#pragma GCC unroll 6
    for (int i = 0; i < SP_CONTEXT_WORDS; i++)
        words[i] = sp_load_acquire(&slot->context[i]);
    return (sp_load_relaxed(&slot->word) & ~(uint64_t)SP_SLOT_LOCKED) == generation;
}

static inline bool sp_slot_read_context(sp_slot *slot, uint64_t generation, spanprof_context *out)
{
    uint64_t words[SP_CONTEXT_WORDS];
    if (!sp_slot_read_words(slot, generation, words))
        return false;
    __builtin_memcpy(out, words, sizeof words);
    __builtin_memset(out->reserved1, 0, sizeof out->reserved1);
    return true;
}

/* Make SLOT, a free slot whose contents are written, a live span. Returns its generation: handles
 * with it are valid from here on. The release pairs with the acquire of a thread that finds the
 * slot by a guessed or stale handle. */
static inline uint64_t sp_slot_start(sp_slot *slot)
{
    uint64_t generation = sp_load_relaxed(&slot->word) + SP_SLOT_STEP;
    sp_store_release(&slot->word, generation);
    return generation;
}

static inline void sp_slot_write_context(sp_slot *slot, const uint64_t words[SP_CONTEXT_WORDS])
{
    for (int i = 0; i < SP_CONTEXT_WORDS; i++)
        sp_store_release(&slot->context[i], words[i]); /* pairs with sp_slot_read_context */
}

#endif
