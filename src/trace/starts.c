/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/starts.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/atomic.h"
#include "core/clock.h"
#include "core/compiler.h"
#include "core/lock.h"
#include "core/word.h"

/* How long an ended span is kept: after this time a window of 10 seconds has been joined. */
#define KEPT_NS (15 * SP_NS_PER_S)

/* A span of another tracer. Entries have numbers from 1 on; 0 is none. */
typedef struct entry {
    uint64_t trace_id[2];
    uint64_t span_id;
    uint64_t local_root_span_id;
    uint64_t ended_ns;     /* monotonic; 0: it lives */
    uint16_t next;         /* in its bucket */
    uint16_t older, newer; /* in the list of those that live, or of those that ended */
} entry;

_Static_assert(sizeof(entry) == 48, "65,536 of them are 3 MiB");

typedef struct entry_list {
    uint16_t oldest, newest;
} entry_list;

typedef struct shard {
    _Alignas(SP_CACHE_LINE) sp_lock lock; /* guards what follows; an innermost lock */
    uint32_t used;                        /* entries 1 to used have had a span */
    entry_list live, ended;               /* each used entry is in one of the two */
    uint16_t *buckets;                    /* the first entry of each */
    entry *entries; /* allocated for the first span and never freed; NULL: no span yet */
} shard;

static shard shards[SP_STARTS_SHARDS];
static pthread_once_t locks_once = PTHREAD_ONCE_INIT;

static void init_locks(void)
{
    for (int i = 0; i < SP_STARTS_SHARDS; i++)
        sp_lock_init(&shards[i].lock, SP_LOCK_FOREIGN_STARTS);
}

/* --- finding ---------------------------------------------------------------------------------- */

typedef struct key {
    uint64_t trace_id[2];
    uint64_t span_id;
    uint32_t shard, bucket;
} key;

/* Ids need not be random, so every bit of them influences the top bits of the product, which are
 * used. */
static key make_key(const spanprof_context *context)
{
    key key;
    memcpy(key.trace_id, context->trace_id, sizeof key.trace_id);
    key.span_id = sp_word_load(context->span_id, 0);
    uint64_t mixed = key.trace_id[0] ^ key.trace_id[1];
    mixed = (mixed ^ mixed >> 32) * UINT64_C(0x9e3779b97f4a7c15) + key.span_id;
    mixed = (mixed ^ mixed >> 32) * UINT64_C(0x9e3779b97f4a7c15);
    key.shard = (uint32_t)(mixed >> 58);
    key.bucket = (uint32_t)(mixed >> 48) % SP_STARTS_SHARD_SPANS;
    return key;
}

_Static_assert(SP_STARTS_SHARDS == 1 << (64 - 58) && SP_STARTS_SHARD_SPANS == 1 << (58 - 48),
               "the bits that make_key takes");

static shard *lock_shard(const key *key)
{
    pthread_once(&locks_once, init_locks);
    shard *shard = &shards[key->shard];
    sp_lock_take(&shard->lock);
    return shard;
}

static void unlock_shard(shard *shard)
{
    sp_lock_give(&shard->lock);
}

static entry *entry_of(shard *shard, uint16_t number)
{
    return &shard->entries[number - 1];
}

static bool is_of(const entry *entry, const key *key)
{
    return entry->span_id == key->span_id && entry->trace_id[0] == key->trace_id[0] &&
           entry->trace_id[1] == key->trace_id[1];
}

/* The number of the entry with KEY, or 0. */
static uint16_t find(shard *shard, const key *key)
{
    uint16_t number = shard->entries ? shard->buckets[key->bucket] : 0;
    while (number && !is_of(entry_of(shard, number), key))
        number = entry_of(shard, number)->next;
    return number;
}

/* --- the lists -------------------------------------------------------------------------------- */

static void append(shard *shard, entry_list *list, uint16_t number)
{
    entry *entry = entry_of(shard, number);
    entry->older = list->newest;
    entry->newer = 0;
    *(list->newest ? &entry_of(shard, list->newest)->newer : &list->oldest) = number;
    list->newest = number;
}

static void take_out(shard *shard, entry_list *list, uint16_t number)
{
    const entry *entry = entry_of(shard, number);
    *(entry->older ? &entry_of(shard, entry->older)->newer : &list->oldest) = entry->newer;
    *(entry->newer ? &entry_of(shard, entry->newer)->older : &list->newest) = entry->older;
}

static entry_list *list_of(shard *shard, uint16_t number)
{
    return entry_of(shard, number)->ended_ns ? &shard->ended : &shard->live;
}

/* Take an entry out of its bucket and its list. */
static void remove_entry(shard *shard, uint16_t number)
{
    entry *entry = entry_of(shard, number);
    spanprof_context context = {0};
    memcpy(context.trace_id, entry->trace_id, sizeof context.trace_id);
    sp_word_store(context.span_id, 0, entry->span_id);
    uint16_t *at = &shard->buckets[make_key(&context).bucket];
    while (*at != number)
        at = &entry_of(shard, *at)->next;
    *at = entry->next;
    take_out(shard, list_of(shard, number), number);
}

/* --- adding and ending ------------------------------------------------------------------------ */

static bool allocate(shard *shard)
{
    if (shard->entries)
        return true;
    uint16_t *buckets = calloc(SP_STARTS_SHARD_SPANS, sizeof *buckets);
    entry *entries = calloc(SP_STARTS_SHARD_SPANS, sizeof *entries);
    if (!buckets || !entries) {
        free(buckets);
        free(entries);
        return false;
    }
    shard->buckets = buckets;
    shard->entries = entries;
    return true;
}

static bool ended_long_ago(shard *shard, uint16_t number)
{
    return number && sp_clock_monotonic_coarse_ns() - entry_of(shard, number)->ended_ns > KEPT_NS;
}

/* The number of a free entry, which may have been evicted for it. Sets *ADDED when it was. */
static uint16_t make_room(shard *shard, sp_start_added *added)
{
    uint16_t ended = shard->ended.oldest;
    bool full = shard->used == SP_STARTS_SHARD_SPANS;
    if (!ended_long_ago(shard, ended) && !full)
        return (uint16_t)++shard->used;
    uint16_t number = ended ? ended : shard->live.oldest;
    *added = ended ? SP_START_ADDED : SP_START_EVICTED;
    remove_entry(shard, number);
    return number;
}

static sp_start_added add_locked(shard *shard, const key *key, uint64_t local_root_span_id)
{
    sp_start_added added = SP_START_ADDED;
    if (!allocate(shard))
        return SP_START_NO_MEMORY;
    uint16_t number = find(shard, key);
    if (number)
        remove_entry(shard, number);
    else
        number = make_room(shard, &added);
    *entry_of(shard, number) = (entry){.trace_id = {key->trace_id[0], key->trace_id[1]},
                                       .span_id = key->span_id,
                                       .local_root_span_id = local_root_span_id,
                                       .next = shard->buckets[key->bucket]};
    shard->buckets[key->bucket] = number;
    append(shard, &shard->live, number);
    return added;
}

sp_start_added sp_starts_add(const spanprof_context *context, uint64_t local_root_span_id)
{
    key key = make_key(context);
    shard *shard = lock_shard(&key);
    sp_start_added added = add_locked(shard, &key, local_root_span_id);
    unlock_shard(shard);
    return added;
}

bool sp_starts_end(const spanprof_context *context)
{
    key key = make_key(context);
    shard *shard = lock_shard(&key);
    uint16_t number = find(shard, &key);
    bool lived = number && !entry_of(shard, number)->ended_ns;
    if (lived) {
        take_out(shard, &shard->live, number);
        entry_of(shard, number)->ended_ns = sp_clock_monotonic_coarse_ns();
        append(shard, &shard->ended, number);
    }
    unlock_shard(shard);
    return lived;
}

bool sp_starts_is_alive(const spanprof_context *context)
{
    key key = make_key(context);
    shard *shard = lock_shard(&key);
    uint16_t number = find(shard, &key);
    bool lives = number && !entry_of(shard, number)->ended_ns;
    unlock_shard(shard);
    return lives;
}

uint64_t sp_starts_local_root(const spanprof_context *context)
{
    if (context->remote)
        return 0;
    key key = make_key(context);
    shard *shard = lock_shard(&key);
    uint16_t number = find(shard, &key);
    uint64_t root = number ? entry_of(shard, number)->local_root_span_id : 0;
    unlock_shard(shard);
    return root;
}

/* --- forgetting ------------------------------------------------------------------------------- */

static void forget(shard *shard)
{
    if (shard->used)
        memset(shard->buckets, 0, SP_STARTS_SHARD_SPANS * sizeof *shard->buckets);
    shard->live = shard->ended = (entry_list){0};
    shard->used = 0;
}

void sp_starts_forget(void)
{
    pthread_once(&locks_once, init_locks);
    for (int i = 0; i < SP_STARTS_SHARDS; i++) {
        sp_lock_take(&shards[i].lock);
        forget(&shards[i]);
        sp_lock_give(&shards[i].lock);
    }
}

/* Other threads of the parent may have held locks in the middle of a change, so nothing is kept. */
void sp_starts_after_fork(void)
{
    init_locks();
    for (int i = 0; i < SP_STARTS_SHARDS; i++)
        forget(&shards[i]);
}
