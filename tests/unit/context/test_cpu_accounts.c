/* SPDX-License-Identifier: Apache-2.0 */
/* The table of accounts of CPU time: its trees stay right while it grows, shrinks and moves what it
 * holds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "context/cpu_accounts.h"

enum { SPANS = 2000 };

/* Ids that meet at few places, so that accounts lie behind each other. */
static uint64_t id_of(int number)
{
    return (uint64_t)(number + 1) << 4 | (uint64_t)(number % 3);
}

static void start(sp_cpu_accounts *accounts, int number, int parent)
{
    sp_cpu_account *account = sp_cpu_accounts_add(accounts, id_of(number));
    assert_non_null(account);
    account->total_ns = 1;
    if (parent >= 0)
        sp_cpu_accounts_adopt(accounts, sp_cpu_accounts_find(accounts, id_of(parent)), account);
}

static void end(sp_cpu_accounts *accounts, int number)
{
    sp_cpu_accounts_remove(accounts, sp_cpu_accounts_find(accounts, id_of(number)));
}

/* Of the accounts that live, those that have TOP above them by PARENTS, or are it, are listed. */
static void check_list(sp_cpu_accounts *accounts, const int *parents, const bool *lives, int top)
{
    sp_cpu_account *list = sp_cpu_accounts_find(accounts, id_of(top));
    uint64_t within = 0, length = 0;
    sp_cpu_sum sum = sp_cpu_accounts_list(accounts, list);
    for (int i = 0; i < SPANS; i++) {
        int above = i;
        while (lives[i] && above >= 0 && above != top)
            above = parents[above];
        if (lives[i])
            assert_int_equal(sp_cpu_accounts_find(accounts, id_of(i))->list == accounts->lists,
                             above == top);
        within += lives[i] && above == top;
    }
    for (const sp_cpu_account *account = list; account; account = account->next_listed)
        length++;
    assert_int_equal(length, within);
    assert_int_equal(sum.total_ns, within); /* 1 each */
}

static void removed_account_leaves_its_children_to_its_parent(void **state)
{
    (void)state;
    static int parents[SPANS];
    static bool lives[SPANS];
    sp_cpu_accounts accounts = {0};
    srandom(3);
    for (int i = 0; i < SPANS; i++) {
        parents[i] = i ? (int)(random() % i) : -1;
        start(&accounts, i, parents[i]);
        lives[i] = true;
    }
    for (int i = 1; i < SPANS; i++) { /* the first stays, so nobody loses the tree */
        int ended = i * 7 % SPANS;
        end(&accounts, ended);
        lives[ended] = false;
        if (i % 100 == 0)
            for (int top = 0; top < SPANS; top += 37)
                if (lives[top])
                    check_list(&accounts, parents, lives, top);
    }
    assert_int_equal(accounts.count, 1);
    assert_int_equal(sp_cpu_accounts_find(&accounts, id_of(0))->first_child_id, 0);
    free(accounts.places);
}

static void table_is_small_again_after_many(void **state)
{
    (void)state;
    sp_cpu_accounts accounts = {0};
    start(&accounts, 0, -1);
    uint32_t before = accounts.capacity;
    for (int i = 1; i < SPANS; i++)
        start(&accounts, i, 0);
    assert_true(accounts.capacity >= SPANS);
    for (int i = SPANS - 1; i > 0; i--)
        end(&accounts, i);
    assert_int_equal(accounts.capacity, before);
    free(accounts.places);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(removed_account_leaves_its_children_to_its_parent),
        cmocka_unit_test(table_is_small_again_after_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
