/* SPDX-License-Identifier: Apache-2.0 */
/* Exact CPU time (docs/design/cpu-time.md has the reasons).
 *
 * A thread has at most one open interval. Each belongs to one account, that of the active span, or of the nearest that lives. A switch
 * to another account reads the thread's CPU clock once: it closes one interval and opens the next. A span that ends gives what it has to
 * its parent's account; what runs at that moment, here or on other threads, is settled first, by the CPU clocks of these threads.
 *
 * The accounts of a local root and its descendants lie together under one lock, which the context names by its local root id. So an
 * account can be looked up, charged and closed without another lock, and requests that know nothing of each other hardly ever meet. The
 * locks are innermost: no other is taken under one. */
#include "thread/cpu_time.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "core/clock.h"
#include "thread/cpu_accounts.h"
#include "thread/self.h"

enum { SHARES_SHIFT = 6, SHARES = 1 << SHARES_SHIFT, WHICH_BITS = 2 };

typedef struct cpu_share {
    _Alignas(SP_CACHE_LINE) pthread_mutex_t lock;
    sp_cpu_accounts accounts;
} cpu_share;

_Atomic uint32_t sp_cpu_time_run;

static cpu_share shares[SHARES] = {[0 ... SHARES - 1] = {.lock = PTHREAD_MUTEX_INITIALIZER}};
static uint32_t starts; /* setup */
static _Atomic uint64_t unattributed_ns, dropped;

/* By the highest bits: the table of the accounts takes the lowest. */
static cpu_share *lock_share(uint64_t root_id)
{
    cpu_share *share = &shares[root_id >> (64 - SHARES_SHIFT)];
    pthread_mutex_lock(&share->lock);
    return share;
}

static void unlock_share(cpu_share *share)
{
    pthread_mutex_unlock(&share->lock);
}

/* --- life ---------------------------------------------------------------------------------------------------------------- */

void sp_cpu_time_start(sp_cpu_time which)
{
    sp_store_relaxed(&unattributed_ns, 0);
    sp_store_relaxed(&dropped, 0);
    starts++;
    sp_store_relaxed(&sp_cpu_time_run, which ? starts << WHICH_BITS | (uint32_t)which : 0);
}

/* Intervals stay open. Whoever closes one later sees by `run` that time has passed uncounted. */
void sp_cpu_time_stop(void)
{
    sp_store_relaxed(&sp_cpu_time_run, 0);
}

/* Another thread of the parent may have been changing a table, so their memory is left where it is. Open intervals name no account any
 * more, and no run that will be. */
void sp_cpu_time_after_fork(void)
{
    sp_store_relaxed(&sp_cpu_time_run, 0);
    for (int i = 0; i < SHARES; i++)
        shares[i] = (cpu_share){.lock = PTHREAD_MUTEX_INITIALIZER};
}

void sp_cpu_time_counters_get(sp_cpu_time_counters *out)
{
    out->unattributed_ns = sp_load_relaxed(&unattributed_ns);
    out->dropped = sp_load_relaxed(&dropped);
}

/* --- switches ------------------------------------------------------------------------------------------------------------ */

static uint64_t elapsed_ns(uint64_t mark_ns, uint64_t now_ns)
{
    return now_ns > mark_ns ? now_ns - mark_ns
                            : 0; /* the mark may be another thread's, and later */
}

static void close_interval(sp_cpu_interval *interval, uint64_t now_ns)
{
    cpu_share *share = lock_share(interval->root_id);
    uint64_t spent = elapsed_ns(interval->mark_ns, now_ns);
    sp_cpu_account *account =
        sp_cpu_accounts_find(&share->accounts, sp_load_relaxed(&interval->account_id));
    if (account) {
        account->total_ns += spent;
        account->active--;
        sp_store_relaxed(&interval->account_id, 0);
    } else if (interval->run == sp_load_relaxed(&sp_cpu_time_run)) {
        sp_count(&unattributed_ns, spent);
    }
    unlock_share(share);
    interval->root_id = 0;
}

/* A span that does not live, any more or for lack of memory, was a descendant of its local root all the same. */
static void open_interval(sp_cpu_interval *interval, uint64_t root_id, uint64_t span_id,
                          uint64_t now_ns)
{
    cpu_share *share = lock_share(root_id);
    sp_cpu_account *account = sp_cpu_accounts_find(&share->accounts, span_id);
    if (!account)
        account = sp_cpu_accounts_find(&share->accounts, root_id);
    interval->root_id = root_id;
    interval->span_id = span_id;
    interval->mark_ns = now_ns;
    if (account) {
        account->active++;
        sp_store_relaxed(&interval->account_id, account->span_id);
    }
    unlock_share(share);
}

/* The ids of CONTEXT, both 0 when no recorded span of ours can stand behind it. */
static void read_ids(const spanprof_context *context, uint64_t *root_id, uint64_t *span_id)
{
    *root_id = *span_id = 0;
    if (!(context->trace_flags & SPANPROF_TRACE_FLAG_SAMPLED) || context->remote)
        return;
    memcpy(root_id, context->local_root_span_id, sizeof *root_id);
    if (*root_id)
        memcpy(span_id, context->span_id, sizeof *span_id);
}

void sp_cpu_time_switch(sp_thread *thread, const spanprof_context *context)
{
    sp_cpu_interval *interval = &thread->cpu;
    uint32_t run = sp_load_relaxed(&sp_cpu_time_run);
    uint64_t root_id, span_id;
    read_ids(context, &root_id, &span_id);
    if ((run & ((1u << WHICH_BITS) - 1)) == SP_CPU_TIME_ROOT)
        span_id = root_id;
    if (interval->root_id == root_id && interval->span_id == span_id && interval->run == run)
        return;
    if (!interval->root_id && !root_id)
        return;
    uint64_t now_ns = sp_clock_own_cpu_ns();
    if (interval->root_id)
        close_interval(interval, now_ns);
    interval->run = run;
    if (root_id)
        open_interval(interval, root_id, span_id, now_ns);
}

void sp_cpu_time_leave(sp_thread *thread)
{
    if (thread->cpu.root_id)
        close_interval(&thread->cpu, sp_clock_own_cpu_ns());
}

void sp_cpu_time_abandon(sp_thread *thread)
{
    if (thread->cpu.root_id)
        close_interval(&thread->cpu, 0);
}

/* --- spans --------------------------------------------------------------------------------------------------------------- */

bool sp_cpu_time_open(uint64_t root_id, uint64_t span_id, uint64_t parent_id)
{
    cpu_share *share = lock_share(root_id);
    sp_cpu_account *account = sp_cpu_accounts_add(&share->accounts, span_id);
    if (account && span_id != root_id) {
        sp_cpu_account *parent = sp_cpu_accounts_find(&share->accounts, parent_id);
        if (!parent)
            parent = sp_cpu_accounts_find(&share->accounts, root_id);
        if (parent) {
            parent->children++;
            account->parent_id = parent->span_id;
        }
    }
    unlock_share(share);
    if (!account)
        sp_count(&dropped, 1);
    return account != NULL;
}

/* Whether ACCOUNT is that of SPAN_ID or of a descendant. */
static bool is_within(const sp_cpu_accounts *accounts, const sp_cpu_account *account,
                      uint64_t span_id)
{
    while (account && account->span_id != span_id)
        account = sp_cpu_accounts_find(accounts, account->parent_id);
    return account != NULL;
}

/* What an account and its descendants have, and on how many threads they are active. */
typedef struct cpu_sum {
    uint64_t total_ns;
    uint32_t active;
} cpu_sum;

static cpu_sum sum_within(const sp_cpu_accounts *accounts, const sp_cpu_account *top)
{
    cpu_sum sum = {.total_ns = top->total_ns, .active = top->active};
    for (uint32_t i = 0; top->children && i < accounts->capacity; i++) {
        const sp_cpu_account *account = &accounts->places[i];
        if (account->span_id && account != top && is_within(accounts, account, top->span_id)) {
            sum.total_ns += account->total_ns;
            sum.active += account->active;
        }
    }
    return sum;
}

/* THREAD's time up to now goes to its account, if that is TOP's or a descendant's; what comes next of TOP's own goes to its parent.
 * Threads come to an account and leave it under its lock, which is held: an interval that names one of ours stays as it is. */
static bool settle_thread(sp_cpu_accounts *accounts, const sp_cpu_account *top, sp_thread *thread,
                          bool own)
{
    uint64_t id = sp_load_relaxed(&thread->cpu.account_id), now_ns;
    sp_cpu_account *account = sp_cpu_accounts_find(accounts, id);
    if (!is_within(accounts, account, top->span_id))
        return false;
    if (own)
        now_ns = sp_clock_own_cpu_ns();
    else if (!sp_clock_thread_cpu_ns(sp_load_relaxed(&thread->tid), &now_ns))
        now_ns = 0; /* it has just ended; nothing more is known of it */
    uint64_t spent = elapsed_ns(thread->cpu.mark_ns, now_ns);
    account->total_ns += spent;
    thread->cpu.mark_ns += spent;
    if (account == top)
        sp_store_relaxed(&thread->cpu.account_id, top->parent_id);
    return true;
}

/* The same for all threads, of which COUNT are concerned: mostly the calling one alone. */
static void settle_threads(sp_cpu_accounts *accounts, const sp_cpu_account *top, uint32_t count)
{
    int saved_errno = errno; /* the clock of a thread that has ended sets it */
    sp_thread *self = sp_self_get();
    if (self && settle_thread(accounts, top, self, true))
        count--;
    for (uint32_t slot = 0; count && slot < sp_thread_slots(); slot++) {
        sp_thread *thread = sp_thread_by_slot(slot);
        if (thread != self && settle_thread(accounts, top, thread, false))
            count--;
    }
    errno = saved_errno;
}

/* What ACCOUNT has, and whoever named it, is its parent's now. */
static void hand_over(sp_cpu_accounts *accounts, const sp_cpu_account *account)
{
    sp_cpu_account *parent = sp_cpu_accounts_find(accounts, account->parent_id);
    if (parent) {
        parent->total_ns += account->total_ns;
        parent->active += account->active;
        parent->children += account->children - 1;
    }
    for (uint32_t i = 0; account->children && i < accounts->capacity; i++)
        if (accounts->places[i].span_id && accounts->places[i].parent_id == account->span_id)
            accounts->places[i].parent_id = account->parent_id;
}

bool sp_cpu_time_close(uint64_t root_id, uint64_t span_id, uint64_t *out)
{
    cpu_share *share = lock_share(root_id);
    sp_cpu_accounts *accounts = &share->accounts;
    sp_cpu_account *account = sp_cpu_accounts_find(accounts, span_id);
    if (account) {
        cpu_sum sum = sum_within(accounts, account);
        if (sum.active) {
            settle_threads(accounts, account, sum.active);
            sum = sum_within(accounts, account);
        }
        *out = sum.total_ns;
        hand_over(accounts, account);
        sp_cpu_accounts_remove(accounts, account);
    }
    unlock_share(share);
    return account != NULL;
}
