/* SPDX-License-Identifier: Apache-2.0 */
/* Exact CPU time (docs/design/cpu-time.md has the reasons).
 *
 * A thread has at most one open interval. An interval belongs to one account: that of the active
 * span, or, if it has none, that of its local root. A switch to another account reads the thread's
 * CPU clock once: it closes one interval and opens the next. A span that ends adds its time to its
 * parent's account. Open intervals of this and of other threads that belong to the span are settled
 * first, by the CPU clocks of these threads.
 *
 * The accounts of a local root and its descendants are guarded by the same lock, which is chosen by
 * the local root id of the context. So an account can be looked up, charged and closed without
 * another lock, and independent requests rarely contend. The locks are innermost: no other is taken
 * under one. */
#include "context/cpu_time.h"

#include <errno.h>
#include <string.h>

#include "context/cpu_accounts.h"
#include "context/self.h"
#include "context/watchers.h"
#include "core/clock.h"
#include "core/lock.h"

enum { SHARES_SHIFT = 6, SHARES = 1 << SHARES_SHIFT, WHICH_BITS = 2 };

typedef struct cpu_share {
    _Alignas(SP_CACHE_LINE) sp_lock lock;
    sp_cpu_accounts accounts;
} cpu_share;

_Atomic uint32_t sp_cpu_time_run;

static cpu_share shares[SHARES] = {[0 ... SHARES - 1] = {.lock = SP_LOCK_AT(SP_LOCK_CPU_ACCOUNTS)}};
static uint32_t starts; /* their number; written by setup only */
static _Atomic uint64_t unattributed_ns, dropped;

/* Chosen by the highest bits, because the table of accounts uses the lowest. */
static cpu_share *lock_share(uint64_t root_id)
{
    cpu_share *share = &shares[root_id >> (64 - SHARES_SHIFT)];
    sp_lock_take(&share->lock);
    return share;
}

static void unlock_share(cpu_share *share)
{
    sp_lock_give(&share->lock);
}

/* --- life ------------------------------------------------------------------------------------- */

void sp_cpu_time_start(sp_cpu_time which)
{
    sp_store_relaxed(&unattributed_ns, 0);
    sp_store_relaxed(&dropped, 0);
    starts++;
    sp_store_relaxed(&sp_cpu_time_run, which ? starts << WHICH_BITS | (uint32_t)which : 0);
    sp_switch_watch(SP_WATCH_CPU_TIME, which != SP_CPU_TIME_NONE);
}

/* Intervals stay open. The thread that closes one later finds by `run` that its time is not
 * counted. */
void sp_cpu_time_stop(void)
{
    sp_switch_watch(SP_WATCH_CPU_TIME, false);
    sp_store_relaxed(&sp_cpu_time_run, 0);
}

/* Another thread of the parent may have been changing a table, so their memory is not freed. Open
 * intervals then name no account, and a run that never recurs. */
void sp_cpu_time_after_fork(void)
{
    sp_cpu_time_stop();
    for (int i = 0; i < SHARES; i++)
        shares[i] = (cpu_share){.lock = SP_LOCK_AT(SP_LOCK_CPU_ACCOUNTS)};
}

void sp_cpu_time_counters_get(sp_cpu_time_counters *out)
{
    out->unattributed_ns = sp_load_relaxed(&unattributed_ns);
    out->dropped = sp_load_relaxed(&dropped);
}

/* --- switches --------------------------------------------------------------------------------- */

static uint64_t elapsed_ns(uint64_t mark_ns, uint64_t now_ns)
{
    return now_ns > mark_ns ? now_ns - mark_ns : 0; /* another thread may have set a later mark */
}

/* Charge SPENT_NS to ACCOUNT, which is that of INTERVAL, or NULL. Time whose local root has no
 * account, because it has ended or memory was short, is unattributed, also while a descendant of it
 * still has an account. */
static void charge(sp_cpu_account *account, const sp_cpu_interval *interval, uint64_t spent_ns)
{
    if (account)
        account->total_ns += spent_ns;
    if ((!account || account->orphan) && interval->run == sp_load_relaxed(&sp_cpu_time_run))
        sp_count(&unattributed_ns, spent_ns);
}

/* Close INTERVAL, and return its end. It is after NOW_NS when another thread has settled the
 * interval since NOW_NS was read. The mark of another run may be of another clock: that of the
 * thread that forked. */
static uint64_t close_interval(sp_cpu_interval *interval, uint64_t now_ns)
{
    cpu_share *share = lock_share(interval->root_id);
    sp_cpu_account *account =
        sp_cpu_accounts_find(&share->accounts, sp_load_relaxed(&interval->account_id));
    charge(account, interval, elapsed_ns(interval->mark_ns, now_ns));
    if (account) {
        account->active--;
        sp_store_relaxed(&interval->account_id, 0);
    }
    if (interval->run == sp_load_relaxed(&sp_cpu_time_run))
        now_ns = sp_max_u64(now_ns, interval->mark_ns);
    unlock_share(share);
    interval->root_id = 0;
    return now_ns;
}

/* A span may have no account, because it has ended or memory was short. It is still a descendant of
 * its local root, so its time is charged to the root. */
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

/* The ids of CONTEXT; both 0 when it cannot be the context of a recorded span of this process. */
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
        now_ns = close_interval(interval, now_ns);
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

/* --- spans ------------------------------------------------------------------------------------ */

bool sp_cpu_time_open(uint64_t root_id, uint64_t span_id, uint64_t parent_id)
{
    cpu_share *share = lock_share(root_id);
    sp_cpu_accounts *accounts = &share->accounts;
    sp_cpu_account *account = sp_cpu_accounts_add(accounts, span_id);
    if (account && span_id != root_id) {
        sp_cpu_account *root = sp_cpu_accounts_find(accounts, root_id);
        sp_cpu_account *parent = sp_cpu_accounts_find(accounts, parent_id);
        if (!parent)
            parent = root;
        if (parent)
            sp_cpu_accounts_adopt(accounts, parent, account);
        account->orphan = !root;
    }
    unlock_share(share);
    if (!account)
        sp_count(&dropped, 1);
    return account != NULL;
}

/* The account of INTERVAL if it is in the last list, else NULL. An interval changes its account
 * only under the account's lock, which is held, so an interval that names a listed account stays as
 * it is. */
static sp_cpu_account *listed_account(const sp_cpu_accounts *accounts,
                                      const sp_cpu_interval *interval)
{
    sp_cpu_account *account =
        sp_cpu_accounts_find(accounts, sp_load_relaxed(&interval->account_id));
    return account && account->list == accounts->lists ? account : NULL;
}

/* Charge INTERVAL's time up to NOW_NS to its ACCOUNT, which is listed. If ACCOUNT is TOP, the rest
 * of the interval is charged to TOP's parent later. */
static void settle(sp_cpu_sum *sum, const sp_cpu_account *top, sp_cpu_account *account,
                   sp_cpu_interval *interval, uint64_t now_ns)
{
    uint64_t spent = elapsed_ns(interval->mark_ns, now_ns);
    charge(account, interval, spent);
    interval->mark_ns += spent;
    if (account == top)
        sp_store_relaxed(&interval->account_id, top->parent_id);
    sum->total_ns += spent;
    sum->active--;
}

/* The same for all threads except SELF. sum->active counts the threads at listed accounts that are
 * not settled yet; usually there are none. */
static void settle_others(sp_cpu_sum *sum, const sp_cpu_accounts *accounts,
                          const sp_cpu_account *top, const sp_thread *self)
{
    int saved_errno = errno; /* the clock of a thread that has ended sets it */
    for (uint32_t slot = 0; sum->active && slot < sp_thread_slots(); slot++) {
        sp_thread *thread = sp_thread_by_slot(slot);
        sp_cpu_account *account = listed_account(accounts, &thread->cpu);
        uint64_t now_ns;
        if (thread == self || !account)
            continue;
        if (!sp_clock_thread_cpu_ns(sp_load_relaxed(&thread->registered.tid), &now_ns))
            now_ns = 0; /* the thread has just ended: its last time is unknown */
        settle(sum, top, account, &thread->cpu, now_ns);
    }
    errno = saved_errno;
}

/* Lists TOP and its descendants, and returns their CPU time up to now, on all threads. The calling
 * thread's clock is read before the search, because the search may take long and its time is not
 * TOP's. The clock is needed only if the thread's account is TOP or may be a descendant of TOP. */
static uint64_t list_and_settle(sp_cpu_accounts *accounts, sp_cpu_account *top)
{
    sp_thread *self = sp_self_get();
    uint64_t own_id = self ? sp_load_relaxed(&self->cpu.account_id) : 0, now_ns = 0;
    if (own_id == top->span_id || (own_id && top->first_child_id))
        now_ns = sp_clock_own_cpu_ns();
    sp_cpu_sum sum = sp_cpu_accounts_list(accounts, top);
    sp_cpu_account *own = self ? listed_account(accounts, &self->cpu) : NULL;
    if (own)
        settle(&sum, top, own, &self->cpu, now_ns);
    settle_others(&sum, accounts, top, self);
    return sum.total_ns;
}

/* Add TOP's time and its number of active threads to its parent, and remove TOP. The descendants of
 * a local root have no parent afterwards. */
static void hand_over(sp_cpu_accounts *accounts, sp_cpu_account *top, bool is_root)
{
    sp_cpu_account *parent = sp_cpu_accounts_find(accounts, top->parent_id);
    if (parent) {
        parent->total_ns += top->total_ns;
        parent->active += top->active;
    }
    for (sp_cpu_account *account = top; is_root && account; account = account->next_listed)
        account->orphan = true;
    sp_cpu_accounts_remove(accounts, top);
}

bool sp_cpu_time_close(uint64_t root_id, uint64_t span_id, uint64_t *out)
{
    cpu_share *share = lock_share(root_id);
    sp_cpu_account *account = sp_cpu_accounts_find(&share->accounts, span_id);
    if (account) {
        *out = list_and_settle(&share->accounts, account);
        hand_over(&share->accounts, account, span_id == root_id);
    }
    unlock_share(share);
    return account != NULL;
}
