/* SPDX-License-Identifier: Apache-2.0 */
/* Open addressing with linear probing: an account lies at the place that its id names, or after it
 * with no free place in between. Ids are random, so their low bits are the hash. */
#include "context/cpu_accounts.h"

#include <errno.h>
#include <stdlib.h>

enum { FIRST_CAPACITY = 8 };

static uint32_t next_place(const sp_cpu_accounts *accounts, uint32_t place)
{
    return (place + 1) & (accounts->capacity - 1);
}

/* The place of SPAN_ID's account, or the free place where it would be added. */
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

static bool resize(sp_cpu_accounts *accounts, uint32_t capacity)
{
    int saved_errno = errno; /* the application's: starting or ending a span does not change it */
    sp_cpu_accounts resized = {
        .capacity = capacity, .count = accounts->count, .lists = accounts->lists};
    resized.places = calloc(capacity, sizeof *resized.places);
    errno = saved_errno;
    if (!resized.places)
        return false;
    for (uint32_t i = 0; i < accounts->capacity; i++)
        if (accounts->places[i].span_id)
            resized.places[place_of(&resized, accounts->places[i].span_id)] = accounts->places[i];
    free(accounts->places);
    *accounts = resized;
    return true;
}

static bool grow(sp_cpu_accounts *accounts)
{
    return resize(accounts, accounts->capacity ? 2 * accounts->capacity : FIRST_CAPACITY);
}

/* Halve a table of which less than an eighth is used. It is then at most a quarter full, so that a
 * few more or fewer accounts do not resize it again. If memory is short, the table stays large. */
static void shrink(sp_cpu_accounts *accounts)
{
    if (accounts->capacity > FIRST_CAPACITY && accounts->count < accounts->capacity / 8)
        resize(accounts, accounts->capacity / 2);
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

void sp_cpu_accounts_adopt(const sp_cpu_accounts *accounts, sp_cpu_account *parent,
                           sp_cpu_account *account)
{
    sp_cpu_account *next = sp_cpu_accounts_find(accounts, parent->first_child_id);
    if (next)
        next->previous_id = account->span_id;
    account->next_id = parent->first_child_id;
    account->parent_id = parent->span_id;
    parent->first_child_id = account->span_id;
}

static void leave_parent(const sp_cpu_accounts *accounts, sp_cpu_account *parent,
                         const sp_cpu_account *account)
{
    sp_cpu_account *previous = sp_cpu_accounts_find(accounts, account->previous_id);
    sp_cpu_account *next = sp_cpu_accounts_find(accounts, account->next_id);
    if (next)
        next->previous_id = account->previous_id;
    if (previous)
        previous->next_id = account->next_id;
    else
        parent->first_child_id = account->next_id;
}

/* Make the children of ACCOUNT children of PARENT. PARENT may be NULL: then they have no parent. */
static void give_children(const sp_cpu_accounts *accounts, sp_cpu_account *parent,
                          const sp_cpu_account *account)
{
    for (uint64_t id = account->first_child_id; id;) {
        sp_cpu_account *child = sp_cpu_accounts_find(accounts, id);
        id = child->next_id;
        child->parent_id = child->previous_id = child->next_id = 0;
        if (parent)
            sp_cpu_accounts_adopt(accounts, parent, child);
    }
}

/* Free the place HOLE. Accounts after it move into it, unless they would then be before the place
 * that their id names. */
static void free_place(sp_cpu_accounts *accounts, uint32_t hole)
{
    uint32_t mask = accounts->capacity - 1;
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

void sp_cpu_accounts_remove(sp_cpu_accounts *accounts, sp_cpu_account *account)
{
    sp_cpu_account *parent = sp_cpu_accounts_find(accounts, account->parent_id);
    if (parent)
        leave_parent(accounts, parent, account);
    give_children(accounts, parent, account);
    free_place(accounts, (uint32_t)(account - accounts->places));
    shrink(accounts);
}

/* Breadth first: the children of each account are appended to the list. Each account is visited
 * once, because there may be thousands. */
sp_cpu_sum sp_cpu_accounts_list(sp_cpu_accounts *accounts, sp_cpu_account *top)
{
    sp_cpu_sum sum = {0};
    sp_cpu_account *last = top;
    accounts->lists++;
    top->next_listed = NULL;
    for (sp_cpu_account *account = top; account; account = account->next_listed) {
        sum.total_ns += account->total_ns;
        sum.active += account->active;
        account->list = accounts->lists;
        for (uint64_t id = account->first_child_id; id; id = last->next_id) {
            last->next_listed = sp_cpu_accounts_find(accounts, id);
            last = last->next_listed;
            last->next_listed = NULL;
        }
    }
    return sum;
}
