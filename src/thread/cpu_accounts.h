/* SPDX-License-Identifier: Apache-2.0 */
/* The accounts of CPU time of live spans (docs/design/cpu-time.md): a hash table by span id that grows, for one lock's share of them.
 *
 * Threads: whoever holds the lock.  Signals: not safe. */
#ifndef SP_THREAD_CPU_ACCOUNTS_H
#define SP_THREAD_CPU_ACCOUNTS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct sp_cpu_account {
    uint64_t span_id;   /* 0: a free place */
    uint64_t parent_id; /* the account that gets total_ns when this span ends; 0: none */
    uint64_t
        total_ns;    /* spent by the span itself, and by those of its descendants that have ended */
    uint32_t active; /* threads whose open interval is this account's */
    uint32_t children; /* accounts whose parent_id is span_id */
} sp_cpu_account;

/* Zero is an empty table. capacity is 0 or a power of two, and count at most 3/4 of it. Whoever adds or removes moves accounts. */
typedef struct sp_cpu_accounts {
    sp_cpu_account *places;
    uint32_t capacity;
    uint32_t count;
} sp_cpu_accounts;

/* NULL when there is none. SPAN_ID 0 has none. */
sp_cpu_account *sp_cpu_accounts_find(const sp_cpu_accounts *accounts, uint64_t span_id);
/* A new account of SPAN_ID, which has none yet; NULL when memory is short. Keeps errno. */
sp_cpu_account *sp_cpu_accounts_add(sp_cpu_accounts *accounts, uint64_t span_id);
void sp_cpu_accounts_remove(sp_cpu_accounts *accounts, sp_cpu_account *account);

#endif
