/* SPDX-License-Identifier: Apache-2.0 */
/* The table of carried texts. docs/design/propagation.md gives the reasons for this design.
 *
 * The word of a slot holds its generation and its number of pins. Pinning is one compare-and-swap,
 * which fails when the generation differs. Evicting is one compare-and-swap, which fails when there
 * is a pin, and which increments the generation. So a thread that holds a pin may read the entry
 * without a lock, and after an eviction no other thread reads it. The lock guards everything else
 * (ages, free slots, the index of equal texts). It is held for a few dozen instructions, because
 * memory is allocated before and freed after. */
#include "trace/carrier.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/at_fork.h"
#include "core/atomic.h"
#include "core/compiler.h"
#include "core/intern.h"
#include "core/lock.h"
#include "core/slot_table.h"
#include "trace/random_id.h"

/* word = generation << 24 | uses. `uses` is 0 for a slot that has no entry, or whose entry is being
 * written; else it is 1 plus the number of pins. 40 bits of generation last 34 years for a slot
 * that is reused a thousand times a second. */
enum { USE_BITS = 24, INDEX_BITS = 24, UNUSED = 0, UNPINNED = 1 };
#define USES_MAX            ((UINT64_C(1) << USE_BITS) - 1)
#define USES_OF(word)       ((word)&USES_MAX)
#define GENERATION_OF(word) ((word) >> USE_BITS)
#define GENERATIONS         (UINT64_C(1) << (64 - USE_BITS))

/* The rings of slots. A ring is named by the index of the slot that links its two ends and has no
 * entry. */
enum { AGES = 0, PARKED = SP_CARRIER_SLOTS + 1, RINGS_END };

/* How many parked entries are checked at each eviction: more than one, so that entries are unparked
 * faster than they are parked. */
enum { PARKED_CHECKS = 2 };

_Static_assert(SP_CARRIER_SLOTS < 1 << INDEX_BITS, "a handle has room for the index");

typedef struct entry {
    sp_carried carried; /* points into bytes */
    struct entry *next; /* in the list of entries to be freed */
    char bytes[];
} entry;

typedef struct carrier_slot {
    _Alignas(SP_CACHE_LINE) _Atomic uint64_t word;
    entry *entry; /* written while the slot is unused */
    uint64_t hash;
    uint32_t older, newer; /* neighbours in its ring */
    uint32_t next;         /* index of the next free slot */
} carrier_slot;

static sp_slot_init init_slot;

/* An entry is in one of two rings: the ring of ages, or, if it was pinned when an eviction reached
 * it, the ring of parked entries. In the ring of ages, slots[AGES].newer is the oldest,
 * slots[AGES].older the newest. */
static carrier_slot slots[RINGS_END];
/* For each hash, modulo the size, the slot that was put last, or 0. Equal texts are found unless a
 * text with the same index was put in between. */
static uint32_t newest_of[SP_CARRIER_SLOTS];

/* The arrays are not in this struct: its initializer would make them, all zeros, part of the
 * library's file. */
static struct {
    sp_lock lock;             /* guards this struct and the arrays except `word`; innermost */
    sp_slot_table slot_table; /* of slots[1] to slots[SP_CARRIER_SLOTS] */
    uint64_t first_generation;
    uint64_t entries, bytes;
    uint64_t evicted;
    _Atomic uint64_t dropped; /* no lock */
} table = {.lock = SP_LOCK_AT(SP_LOCK_CARRIERS),
           .slot_table =
               SP_SLOT_TABLE_IN(&slots[1], carrier_slot, next, SP_CARRIER_SLOTS, init_slot)};

const sp_carried sp_carried_nothing = {.trace_state = "", .baggage = ""};

/* --- handles ---------------------------------------------------------------------------------- */

static spanprof_carrier make_handle(uint32_t index)
{
    uint64_t generation = GENERATION_OF(sp_load_relaxed(&slots[index].word));
    return (spanprof_carrier){.slot = index | (uint32_t)(generation >> 32) << INDEX_BITS,
                              .generation = (uint32_t)generation};
}

static uint64_t generation_of(spanprof_carrier carrier)
{
    return (uint64_t)(carrier.slot >> INDEX_BITS) << 32 | carrier.generation;
}

static carrier_slot *slot_of(spanprof_carrier carrier)
{
    uint32_t index = carrier.slot & ((1u << INDEX_BITS) - 1);
    return index > 0 && index <= SP_CARRIER_SLOTS ? &slots[index] : NULL;
}

const sp_carried *sp_carrier_pin(spanprof_carrier carrier)
{
    carrier_slot *slot = slot_of(carrier);
    if (!slot)
        return NULL;
    uint64_t word = sp_load_relaxed(&slot->word);
    do {
        /* 16 million pins of one entry are enough. */
        if (GENERATION_OF(word) != generation_of(carrier) || USES_OF(word) == UNUSED ||
            USES_OF(word) == USES_MAX)
            return NULL;
    } while (!atomic_compare_exchange_weak_explicit(&slot->word, &word, word + 1,
                                                    memory_order_acquire, /* pairs with open_slot */
                                                    memory_order_relaxed));
    return &slot->entry->carried;
}

const sp_carried *sp_carrier_pinned(spanprof_carrier carrier)
{
    return &slot_of(carrier)->entry->carried;
}

void sp_carrier_unpin(spanprof_carrier carrier)
{
    carrier_slot *slot = slot_of(carrier);
    uint64_t word = sp_load_relaxed(&slot->word);
    do {
        /* A forked child has no pins: fork_child removes also those of the thread that forked. */
        if (GENERATION_OF(word) != generation_of(carrier) || USES_OF(word) <= UNPINNED)
            return;
    } while (!atomic_compare_exchange_weak_explicit(
        &slot->word, &word, word - 1, memory_order_release, /* pairs with close_slot */
        memory_order_relaxed));
}

/* --- the rings -------------------------------------------------------------------------------- */

static void unlink_locked(uint32_t index)
{
    carrier_slot *slot = &slots[index];
    slots[slot->older].newer = slot->newer;
    slots[slot->newer].older = slot->older;
}

/* Put INDEX next to OLDER, on its newer side. */
static void link_locked(uint32_t index, uint32_t older)
{
    uint32_t newer = slots[older].newer;
    slots[index].older = older;
    slots[index].newer = newer;
    slots[older].newer = index;
    slots[newer].older = index;
}

/* Move INDEX to the newer end of RING. */
static void move_locked(uint32_t index, uint32_t ring)
{
    unlink_locked(index);
    link_locked(index, slots[ring].older);
}

/* --- making room ------------------------------------------------------------------------------ */

static size_t bytes_of(const sp_carried *carried)
{
    return sizeof(entry) + carried->trace_state_length + carried->baggage_length + 2 +
           carried->attributes_length;
}

/* Increment SLOT's generation and mark it as unused; false when it is pinned. Its old handles find
 * nothing from now on. */
static bool close_slot(carrier_slot *slot)
{
    uint64_t word = sp_load_relaxed(&slot->word);
    uint64_t next = (GENERATION_OF(word) + 1) % GENERATIONS << USE_BITS | UNUSED;
    return USES_OF(word) == UNPINNED &&
           atomic_compare_exchange_strong_explicit(&slot->word, &word, next,
                                                   memory_order_acquire, /* pairs with unpin */
                                                   memory_order_relaxed);
}

static void open_slot(carrier_slot *slot)
{
    uint64_t word = sp_load_relaxed(&slot->word);
    sp_store_release(&slot->word, word | UNPINNED); /* pairs with sp_carrier_pin */
}

/* Take the entry out of slot INDEX, which close_slot has closed, and put it on *GONE. */
static void empty_locked(uint32_t index, entry **gone)
{
    carrier_slot *slot = &slots[index];
    uint32_t *newest = &newest_of[slot->hash % SP_CARRIER_SLOTS];
    if (*newest == index)
        *newest = 0;
    unlink_locked(index);
    table.entries--;
    table.bytes -= bytes_of(&slot->entry->carried);
    slot->entry->next = *gone;
    *gone = slot->entry;
    sp_slot_give(&table.slot_table, slot);
}

/* Check the first PARKED_CHECKS parked entries: move an entry that is no longer pinned to the old
 * end of the ring of ages, and the others to the end of the ring of parked entries. */
static void unpark_locked(void)
{
    for (int checks = 0; checks < PARKED_CHECKS && slots[PARKED].newer != PARKED; checks++) {
        uint32_t index = slots[PARKED].newer;
        if (USES_OF(sp_load_relaxed(&slots[index].word)) > UNPINNED) {
            move_locked(index, PARKED);
        } else {
            unlink_locked(index);
            link_locked(index, AGES);
        }
    }
}

/* Evict the oldest entry that is not pinned. Pinned entries that it meets are parked, so that later
 * evictions do not meet them again. False when there is none. */
static bool evict_locked(entry **gone)
{
    unpark_locked();
    uint32_t oldest;
    while ((oldest = slots[AGES].newer) != AGES) {
        if (close_slot(&slots[oldest])) {
            empty_locked(oldest, gone);
            table.evicted++;
            return true;
        }
        move_locked(oldest, PARKED);
    }
    return false;
}

static void init_slot(void *slot, uint32_t index)
{
    (void)index;
    sp_store_relaxed(&((carrier_slot *)slot)->word, table.first_generation << USE_BITS | UNUSED);
}

/* Take an unused slot, and evict until there is room for BYTES. Returns its index, or 0 when all
 * entries are pinned. The caller frees the entries in *GONE after the lock is given back. */
static uint32_t take_slot_locked(size_t bytes, entry **gone)
{
    while (!sp_slot_is_available(&table.slot_table) || table.bytes + bytes > SP_CARRIER_BYTES_MAX)
        if (!evict_locked(gone))
            return 0;
    const carrier_slot *slot = sp_slot_take(&table.slot_table);
    return slot ? (uint32_t)(slot - slots) : 0;
}

/* --- putting ---------------------------------------------------------------------------------- */

static uint64_t hash_of(const sp_carried *carried)
{
    uint64_t texts = sp_hash_bytes(carried->trace_state, carried->trace_state_length) * 31 +
                     sp_hash_bytes(carried->baggage, carried->baggage_length);
    return carried->attributes_length
               ? texts * 31 + sp_hash_bytes(carried->attributes, carried->attributes_length)
               : texts;
}

static bool is_equal(const sp_carried *a, const sp_carried *b)
{
    return a->trace_state_length == b->trace_state_length &&
           a->baggage_length == b->baggage_length &&
           memcmp(a->trace_state, b->trace_state, a->trace_state_length) == 0 &&
           memcmp(a->baggage, b->baggage, a->baggage_length) == 0 &&
           a->attributes_length == b->attributes_length &&
           (a->attributes_length == 0 ||
            memcmp(a->attributes, b->attributes, a->attributes_length) == 0);
}

static uint32_t find_locked(uint64_t hash, const sp_carried *carried)
{
    uint32_t index = newest_of[hash % SP_CARRIER_SLOTS];
    if (!index || slots[index].hash != hash || !is_equal(&slots[index].entry->carried, carried))
        return 0;
    move_locked(index, AGES); /* it counts as newly put */
    return index;
}

static uint32_t insert_locked(entry *fresh, uint64_t hash, entry **gone)
{
    uint32_t index = take_slot_locked(bytes_of(&fresh->carried), gone);
    if (!index)
        return 0;
    carrier_slot *slot = &slots[index];
    slot->entry = fresh;
    slot->hash = hash;
    newest_of[hash % SP_CARRIER_SLOTS] = index;
    link_locked(index, slots[AGES].older);
    table.entries++;
    table.bytes += bytes_of(&fresh->carried);
    open_slot(slot);
    return index;
}

static entry *make_entry(const sp_carried *carried)
{
    entry *fresh = malloc(bytes_of(carried));
    if (!fresh)
        return NULL;
    char *trace_state = fresh->bytes, *baggage = trace_state + carried->trace_state_length + 1;
    memcpy(trace_state, carried->trace_state, carried->trace_state_length);
    memcpy(baggage, carried->baggage, carried->baggage_length);
    trace_state[carried->trace_state_length] = baggage[carried->baggage_length] = 0;
    fresh->carried = *carried;
    fresh->carried.trace_state = trace_state;
    fresh->carried.baggage = baggage;
    uint8_t *attributes = (uint8_t *)baggage + carried->baggage_length + 1;
    if (carried->attributes_length)
        memcpy(attributes, carried->attributes, carried->attributes_length);
    fresh->carried.attributes = attributes;
    return fresh;
}

static void free_entries(entry *gone)
{
    while (gone) {
        entry *next = gone->next;
        free(gone);
        gone = next;
    }
}

static void fork_prepare(void)
{
    sp_lock_take(&table.lock);
}

static void fork_parent(void)
{
    sp_lock_give(&table.lock);
}

static void fork_child(void)
{
    for (uint32_t index = 1; index <= sp_slots_ever_taken(&table.slot_table); index++) {
        uint64_t word = sp_load_relaxed(&slots[index].word);
        if (USES_OF(word) != UNUSED)
            sp_store_relaxed(&slots[index].word, (word & ~USES_MAX) | UNPINNED);
    }
    sp_lock_give(&table.lock);
}

SP_AT_FORK(SP_LOCK_CARRIERS, fork_prepare, fork_parent, fork_child);

/* Generations begin at a random number, so that a handle of another copy of the library names
 * nothing here. */
static void set_up(void)
{
    uint64_t random;
    sp_random_id((uint8_t *)&random, sizeof random);
    table.first_generation = random % GENERATIONS;
    slots[PARKED].older = slots[PARKED].newer = PARKED;
}

void sp_carrier_count_dropped(void)
{
    sp_count(&table.dropped, 1);
}

spanprof_carrier sp_carrier_put(const sp_carried *carried)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    spanprof_carrier handle = {0};
    if (sp_carried_is_nothing(carried))
        return handle;
    pthread_once(&once, set_up);
    uint64_t hash = hash_of(carried);
    sp_lock_take(&table.lock);
    uint32_t index = find_locked(hash, carried);
    if (index)
        handle = make_handle(index);
    sp_lock_give(&table.lock);
    if (index)
        return handle;
    entry *fresh = make_entry(carried), *gone = NULL;
    if (fresh) {
        sp_lock_take(&table.lock);
        index = insert_locked(fresh, hash, &gone);
        if (index)
            handle = make_handle(index);
        sp_lock_give(&table.lock);
        free_entries(gone);
    }
    if (!index) {
        sp_carrier_count_dropped();
        free(fresh);
    }
    return handle;
}

void sp_carrier_counters_get(sp_carrier_counters *out)
{
    sp_lock_take(&table.lock);
    *out = (sp_carrier_counters){.entries = table.entries,
                                 .bytes = table.bytes,
                                 .evicted = table.evicted,
                                 .dropped = sp_load_relaxed(&table.dropped)};
    sp_lock_give(&table.lock);
}
