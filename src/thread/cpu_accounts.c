/* SPDX-License-Identifier: Apache-2.0 */
/* Open addressing with linear probing: an account lies at the place that its id names, or behind it with no free place between. Ids are
 * random, so their low bits are the hash. */
#include "thread/cpu_accounts.h"

#include <errno.h>
#include <stdlib.h>

enum { FIRST_CAPACITY = 8 };

static uint32_t next_place(const sp_cpu_accounts *accounts, uint32_t place)
{
    return (place + 1) & (accounts->capacity - 1);
}

/* Where SPAN_ID lies, or the free place where it would. */
static uint32_t place_of(const sp_cpu_accounts *accounts, uint64_t span_id)
{
    uint32_t place = (uint32_t)span_id & (accounts->capacity - 1);
    while (accounts->places[place].span_id && accounts->places[place].span_id != span_id)
        place = next_place(accounts, place);
    return place;
}

sp_cpu_account *sp_cpu_accounts_find(const sp_cpu_accounts *accounts, uint64_t span_id)
{
    if (!accounts->count || !span_id)
        return NULL;
    sp_cpu_account *account = &accounts->places[place_of(accounts, span_id)];
    return account->span_id ? account : NULL;
}

static bool grow(sp_cpu_accounts *accounts)
{
    int saved_errno = errno; /* the application's: starting a span does not change it */
    sp_cpu_accounts larger = {.capacity =
                                  accounts->capacity ? 2 * accounts->capacity : FIRST_CAPACITY,
                              .count = accounts->count};
    larger.places = calloc(larger.capacity, sizeof *larger.places);
    errno = saved_errno;
    if (!larger.places)
        return false;
    for (uint32_t i = 0; i < accounts->capacity; i++)
        if (accounts->places[i].span_id)
            larger.places[place_of(&larger, accounts->places[i].span_id)] = accounts->places[i];
    free(accounts->places);
    *accounts = larger;
    return true;
}

sp_cpu_account *sp_cpu_accounts_add(sp_cpu_accounts *accounts, uint64_t span_id)
{
    if (accounts->count >= accounts->capacity / 4 * 3 && !grow(accounts))
        return NULL;
    sp_cpu_account *account = &accounts->places[place_of(accounts, span_id)];
    *account = (sp_cpu_account){.span_id = span_id};
    accounts->count++;
    return account;
}

/* Accounts behind the hole move up into it, unless they would then lie before the place that their id names. */
void sp_cpu_accounts_remove(sp_cpu_accounts *accounts, sp_cpu_account *account)
{
    uint32_t mask = accounts->capacity - 1, hole = (uint32_t)(account - accounts->places);
    for (uint32_t i = next_place(accounts, hole); accounts->places[i].span_id;
         i = next_place(accounts, i)) {
        uint32_t named = (uint32_t)accounts->places[i].span_id & mask;
        if (((i - named) & mask) < ((i - hole) & mask))
            continue;
        accounts->places[hole] = accounts->places[i];
        hole = i;
    }
    accounts->places[hole].span_id = 0;
    accounts->count--;
}
