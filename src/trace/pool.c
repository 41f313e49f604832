/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/pool.h"

#include <errno.h>
#include <sys/mman.h>

#include "core/lock.h"
#include "trace/random_id.h"
#include "trace/trace_internal.h"

/* The context of a free slot is unused, so the first slot of a batch on the pool's list stores the
 * batch's count and link there. They are stored with release like any context, so that a late
 * sp_slot_read_context notices that the span has ended. */
enum { BATCH_COUNT = 0, BATCH_NEXT = 1 };

static size_t chunk_bytes(const sp_pool *pool)
{
    return (size_t)pool->slot_bytes * SP_POOL_CHUNK_SLOTS;
}

static bool map_chunk(sp_pool *pool, uint32_t chunk)
{
    if (chunk >= SP_POOL_CHUNKS)
        return false;
    if (sp_load_relaxed(&pool->chunks[chunk]))
        return true;
    void *memory =
        mmap(NULL, chunk_bytes(pool), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return false;
    sp_store_release(&pool->chunks[chunk], memory); /* pairs with sp_pool_at */
    return true;
}

/* Generations start at a random number, so that a handle of another copy of the library, or of the
 * parent of a forked child, matches no slot here. The result is the generation of a free slot, and
 * never zero. */
static uint64_t random_generation(void)
{
    uint64_t random;
    sp_random_id((uint8_t *)&random, sizeof random);
    return (random | 1) << 2;
}

/* The first generation of the slot with INDEX. It is far from those of its neighbours, so that a
 * handle of one slot does not fit another. The sum may wrap around. */
static uint64_t first_generation(const sp_pool *pool, uint32_t index)
{
    return pool->first_generation + (index * UINT64_C(0x9e3779b97f4a7c15) << 2);
}

/* Make a new slot and put it first into LIST. False when there is no memory. */
static bool carve_locked(sp_pool *pool, sp_slot_list *list)
{
    uint32_t index = pool->carved + 1;
    if (!map_chunk(pool, index / SP_POOL_CHUNK_SLOTS))
        return false;
    sp_slot *slot = sp_pool_at(pool, index);
    slot->index = index;
    slot->next = list->first;
    sp_store_relaxed(&slot->word, first_generation(pool, index));
    *list = (sp_slot_list){.first = index, .count = list->count + 1};
    pool->carved = index;
    return true;
}

static void put_batch_locked(sp_pool *pool, sp_slot_list list)
{
    if (!list.count)
        return;
    sp_slot *first = sp_pool_at(pool, list.first);
    sp_store_release(&first->context[BATCH_COUNT], list.count);
    sp_store_release(&first->context[BATCH_NEXT], pool->batches);
    pool->batches = list.first;
}

static sp_slot_list get_batch_locked(sp_pool *pool)
{
    sp_slot_list list = {.first = pool->batches};
    if (list.first) {
        sp_slot *first = sp_pool_at(pool, list.first);
        list.count = (uint32_t)sp_load_relaxed(&first->context[BATCH_COUNT]);
        pool->batches = (uint32_t)sp_load_relaxed(&first->context[BATCH_NEXT]);
        return list;
    }
    while (list.count < SP_POOL_BATCH && carve_locked(pool, &list))
        ;
    return list;
}

bool sp_pool_refill(sp_pool *pool, sp_magazine *magazine)
{
    if (magazine->backup.count) {
        magazine->active = magazine->backup;
        magazine->backup = (sp_slot_list){0};
        return true;
    }
    int saved_errno = errno; /* the application's: starting a span does not change it */
    uint64_t generation = random_generation();
    sp_lock_take(&pool->lock);
    if (!pool->first_generation)
        pool->first_generation = generation;
    magazine->active = get_batch_locked(pool);
    sp_lock_give(&pool->lock);
    errno = saved_errno;
    return magazine->active.count > 0;
}

void sp_pool_spill(sp_pool *pool, sp_magazine *magazine)
{
    if (magazine->backup.count) {
        sp_lock_take(&pool->lock);
        put_batch_locked(pool, magazine->backup);
        sp_lock_give(&pool->lock);
    }
    magazine->backup = magazine->active;
    magazine->active = (sp_slot_list){0};
}

void sp_pool_drain(sp_pool *pool, sp_magazine *magazine)
{
    sp_lock_take(&pool->lock);
    put_batch_locked(pool, magazine->active);
    put_batch_locked(pool, magazine->backup);
    sp_lock_give(&pool->lock);
    *magazine = (sp_magazine){0};
}

void sp_pool_give_alone(sp_pool *pool, sp_slot *slot)
{
    slot->next = 0;
    sp_magazine alone = {.active = {.first = slot->index, .count = 1}};
    sp_pool_drain(pool, &alone);
}

void sp_pool_after_fork(sp_pool *pool, bool keep)
{
    for (uint32_t chunk = 0; chunk < SP_POOL_CHUNKS; chunk++) {
        void *memory = sp_load_relaxed(&pool->chunks[chunk]);
        if (!memory)
            break;
        sp_store_relaxed(&pool->chunks[chunk], NULL);
        if (!keep)
            munmap(memory, chunk_bytes(pool));
    }
    sp_lock_init(&pool->lock, SP_LOCK_SLOT_POOL);
    pool->carved = 0;
    pool->batches = 0;
    pool->first_generation = 0;
}
