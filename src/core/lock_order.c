/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "core/lock.h"

enum { HELD_MAX = 16 };

static _Thread_local const sp_lock *held[HELD_MAX];
static _Thread_local unsigned held_count;

static const char *name_of(const sp_lock *lock)
{
    static const char *const names[] = {
#define SP_LOCK_NAME(name) #name,
        SP_LOCK_PLACES(SP_LOCK_NAME)
#undef SP_LOCK_NAME
    };
    return names[lock->place];
}

static _Noreturn void fail(const char *what, const sp_lock *lock, const sp_lock *other)
{
    fprintf(stderr, "spanprof: the lock %s is taken %s %s: see core/lock.h for the order\n",
            name_of(lock), what, name_of(other));
    abort();
}

void sp_lock_order_take(const sp_lock *lock)
{
    for (unsigned i = 0; i < held_count; i++)
        if (held[i]->place >= lock->place)
            fail("after", lock, held[i]);
    sp_lock_order_note(lock);
}

void sp_lock_order_note(const sp_lock *lock)
{
    if (held_count == HELD_MAX)
        fail("as one too many, beside", lock, held[0]);
    held[held_count++] = lock;
}

void sp_lock_order_give(const sp_lock *lock)
{
    for (unsigned i = 0; i < held_count; i++)
        if (held[i] == lock) {
            held[i] = held[--held_count];
            return;
        }
}
