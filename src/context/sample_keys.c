/* SPDX-License-Identifier: Apache-2.0 */
#include "context/sample_keys.h"

#include <stdbool.h>
#include <string.h>

#include "core/at_fork.h"
#include "core/atomic.h"
#include "core/lock.h"

static struct {
    sp_lock lock; /* taken only for additions; an innermost lock */
    _Atomic uint32_t count;
    _Atomic(const char *) keys[SP_SAMPLE_KEYS_MAX];
    _Atomic(void (*)(void)) added;
} table = {.lock = SP_LOCK_AT(SP_LOCK_SAMPLE_KEYS)};

static void fork_prepare(void)
{
    sp_lock_take(&table.lock);
}

static void fork_done(void)
{
    sp_lock_give(&table.lock);
}

SP_AT_FORK(SP_LOCK_SAMPLE_KEYS, fork_prepare, fork_done, fork_done);

uint32_t sp_sample_keys_count(void)
{
    return sp_load_acquire(&table.count); /* pairs with the release in add_locked */
}

const char *sp_sample_key(uint32_t index)
{
    return index < sp_sample_keys_count() ? sp_load_relaxed(&table.keys[index]) : NULL;
}

static uint32_t find(const char *key, uint32_t from, uint32_t count)
{
    for (uint32_t i = from; i < count; i++)
        if (strcmp(sp_load_relaxed(&table.keys[i]), key) == 0)
            return i;
    return SP_SAMPLE_KEYS_MAX;
}

static uint32_t add_locked(const char *key)
{
    uint32_t count = sp_load_relaxed(&table.count);
    const char *copy =
        count < SP_SAMPLE_KEYS_MAX ? strdup(key) : NULL; /* never freed (sample_keys.h) */
    if (!copy)
        return SP_SAMPLE_KEYS_MAX;
    sp_store_relaxed(&table.keys[count], copy);
    sp_store_release(&table.count, count + 1); /* pairs with sp_sample_keys_count */
    return count;
}

uint32_t sp_sample_key_put(const char *key)
{
    uint32_t seen = sp_sample_keys_count(), index = find(key, 0, seen);
    if (index != SP_SAMPLE_KEYS_MAX)
        return index;
    sp_lock_take(&table.lock);
    index = find(key, seen, sp_load_relaxed(&table.count));
    bool is_new = index == SP_SAMPLE_KEYS_MAX;
    if (is_new)
        index = add_locked(key);
    sp_lock_give(&table.lock);
    void (*added)(void) = sp_load_acquire(&table.added);
    if (is_new && index != SP_SAMPLE_KEYS_MAX && added)
        added();
    return index;
}

void sp_sample_keys_set_hook(void (*added)(void))
{
    sp_store_release(&table.added, added);
}
