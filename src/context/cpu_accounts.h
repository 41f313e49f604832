/* SPDX-License-Identifier: Apache-2.0 */
/* The accounts of CPU time of live spans (docs/design/cpu-time.md), for the part of them that one
 * lock guards: a hash table by span id, which grows and shrinks. Its accounts form trees. Accounts
 * name each other by ids, because the table moves them.
 *
 * Threads: the one that holds the lock. Signals: not safe. */
#ifndef SP_CONTEXT_CPU_ACCOUNTS_H
#define SP_CONTEXT_CPU_ACCOUNTS_H

#include <stdbool.h>
#include <stdint.h>

/* The children of an account are a list in both directions: first_child_id, then next_id of each.
 * 0: there is none. */
typedef struct sp_cpu_account {
    uint64_t span_id;   /* 0: a free place */
    uint64_t parent_id; /* the account that gets total_ns when this span ends; 0: none */
    uint64_t first_child_id, previous_id, next_id;
    uint64_t
        total_ns; /* spent by the span itself, and by those of its descendants that have ended */
    struct sp_cpu_account *next_listed; /* see sp_cpu_accounts_list */
    uint64_t list;                      /* number of the last list that it was in */
    uint32_t active;                    /* threads whose open interval is this account's */
    bool orphan; /* its local root has no account: it ended, or memory was short */
} sp_cpu_account;

/* All zero: an empty table. capacity is 0 or a power of two, and count at most 3/4 of it. Adding or
 * removing an account moves others. */
typedef struct sp_cpu_accounts {
    sp_cpu_account *places;
    uint32_t capacity;
    uint32_t count;
    uint64_t lists; /* made so far */
} sp_cpu_accounts;

typedef struct sp_cpu_sum {
    uint64_t total_ns;
    uint32_t active;
} sp_cpu_sum;

/* The account of SPAN_ID, or NULL when it has none. SPAN_ID 0 never has one. */
sp_cpu_account *sp_cpu_accounts_find(const sp_cpu_accounts *accounts, uint64_t span_id);
/* A new account of SPAN_ID, which has none yet, without a parent; NULL when memory is short. Keeps
 * errno. */
sp_cpu_account *sp_cpu_accounts_add(sp_cpu_accounts *accounts, uint64_t span_id);
/* ACCOUNT, which has no parent, becomes a child of PARENT. */
void sp_cpu_accounts_adopt(const sp_cpu_accounts *accounts, sp_cpu_account *parent,
                           sp_cpu_account *account);
/* Remove ACCOUNT. Its children become children of its parent; without a parent, they have none
 * either. Keeps errno. */
void sp_cpu_accounts_remove(sp_cpu_accounts *accounts, sp_cpu_account *account);

/* Makes TOP and its descendants a list by next_listed that begins with TOP, whose `list` is
 * accounts->lists, and sums them up. It is valid until accounts are added or removed, or another
 * list is made. */
sp_cpu_sum sp_cpu_accounts_list(sp_cpu_accounts *accounts, sp_cpu_account *top);

#endif
