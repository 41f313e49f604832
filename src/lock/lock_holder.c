/* SPDX-License-Identifier: Apache-2.0 */
/* The holder's record is read while its thread runs, in this order:
 *
 *   owner ─ switch number ─ context ─ owner again ─ switch number again
 *
 * Switch numbers only grow. An even one that is the same at the end says that the context has been
 * the same all the time, so it was active when the owner was read for the second time, and at that
 * moment its thread held the lock. */
#include "lock/lock_holder.h"

#include <sys/syscall.h>

#include "context/thread.h"
#include "core/syscall_sig.h"

/* Whether another thread sees the stores of a switch in order, although the writer has compiler
 * fences only. */
#if defined(__x86_64__)
#define STORES_COME_IN_ORDER true
#else
#define STORES_COME_IN_ORDER false
#endif

enum { ATTEMPTS = 8 };

static int owner_now(const int *owner)
{
    return __atomic_load_n(owner, __ATOMIC_ACQUIRE);
}

/* sp_thread_try_find fails while another thread holds the registry's lock, so it is tried several
 * times. */
static sp_thread *find_thread(pid_t tid)
{
    sp_thread *thread = NULL;
    for (int attempt = 0; attempt < ATTEMPTS && !thread; attempt++)
        thread = sp_thread_try_find(tid);
    return thread;
}

/* Whether a sample may be linked to the context of THREAD: a sampled span of this process. */
static bool has_span(sp_thread *thread)
{
    uint32_t flags = sp_load_relaxed(&thread->published.record.tail) >> 8 & 0xff;
    return sp_load_relaxed(&thread->published.record.span_id) != 0 &&
           !sp_load_relaxed(&thread->published.remote) && (flags & SPANPROF_TRACE_FLAG_SAMPLED);
}

/* The switch number of THREAD. While a detach by another thread is pending, the context is not
 * certain. */
static uint64_t count_of(sp_thread *thread, bool *is_certain)
{
    bool posted =
        sp_load_acquire(&thread->owned.posts) != sp_load_relaxed(&thread->owned.posts_seen);
    uint64_t number = sp_load_acquire(&thread->published.switch_number);
    *is_certain = !posted && !(number & 1);
    return number;
}

void sp_lock_holder_find(sp_contention *wait, const int *owner)
{
    bool is_certain, is_still_certain;
    int tid = owner && STORES_COME_IN_ORDER ? owner_now(owner) : 0;
    sp_thread *thread = tid > 0 ? find_thread(tid) : NULL;
    if (!thread)
        return;
    uint64_t number = count_of(thread, &is_certain);
    sp_contention found = {
        .holder_trace_id = {sp_load_relaxed(&thread->published.record.trace_id[0]),
                            sp_load_relaxed(&thread->published.record.trace_id[1])},
        .holder_span_id = sp_load_relaxed(&thread->published.record.span_id)};
    bool is_span = has_span(thread);
    atomic_thread_fence(memory_order_acquire);
    bool is_holder = owner_now(owner) == tid && sp_load_relaxed(&thread->registered.tid) == tid;
    if (count_of(thread, &is_still_certain) != number || !is_certain || !is_still_certain)
        return;
    if (!is_span || !is_holder)
        return;
    found.begin_ns = wait->begin_ns;
    found.kind = wait->kind;
    found.place = wait->place;
    found.lock = wait->lock;
    *wait = found;
}

void sp_lock_holder_here(sp_call_holder *out)
{
    bool is_certain = false;
    sp_thread *thread = sp_thread_self_find();
    if (thread)
        count_of(thread, &is_certain);
    *out = (sp_call_holder){0};
    if (!is_certain || !has_span(thread))
        return;
    *out = (sp_call_holder){.trace_id = {sp_load_relaxed(&thread->published.record.trace_id[0]),
                                         sp_load_relaxed(&thread->published.record.trace_id[1])},
                            .span_id = sp_load_relaxed(&thread->published.record.span_id)};
}

bool sp_lock_holder_may_be_here(const int *owner)
{
    int tid = owner ? owner_now(owner) : 0;
    return tid == 0 || tid == (int)sp_syscall6(SYS_gettid, 0, 0, 0, 0, 0, 0);
}
