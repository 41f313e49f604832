/* SPDX-License-Identifier: Apache-2.0 */
/* The active context: attach, detach, and how a switch is published.
 *
 * A switch writes the new context into the thread's state with word-sized relaxed stores. It
 * increments the switch number before and after, so the number is odd in between. A switch does
 * nothing else: it reads no clock, takes no lock, allocates nothing and follows no pointer into a
 * span. Readers are the tick, which runs on this very thread between two of its instructions, and
 * readers of OTEP 4947, which stop the thread; compiler fences are all the order they need. (The
 * wall profiler, which reads from another thread, checks that the thread has not run.)
 *
 * Scopes form a stack per thread; the active context is that of its top. A scope detached out of
 * order leaves a dead entry, which is removed when the entries above it are gone. The alternative
 * is a scope that holds the previous context itself, with a bounded list of dead ids. It is wrong
 * once the list overflows, and its scope has 80 bytes instead of 16.
 *
 * A stack of scopes is called a chain. A thread uses its own chain, or the chain of the fiber that
 * it runs (fiber.c), which moves with the fiber.
 *
 * A fork may interrupt a thread between any two of its stores. The child then has the earlier
 * stores and not the later ones, because the fork has write-protected the pages. So a chain must be
 * valid after every prefix of the stores: a scope counts only once it is complete, and a thread has
 * no chain while it changes from one to another. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "context/cpu_time.h"
#include "context/self.h"
#include "context/switch_recorder.h"
#include "context/watchers.h"
#include "core/hex.h"
#include "core/log.h"
#include "core/word.h"

_Atomic uint32_t sp_switch_watchers;

static const spanprof_context no_context;

/* A context is moved in words, each in a register (core/word.h). */
enum { WORDS = 6, TRACE_HIGH = 0, TRACE_LOW = 1, SPAN = 2, LOCAL_ROOT = 3, FLAGS = 4, CARRIER = 5 };
_Static_assert(offsetof(spanprof_context, reserved1) == 8 * WORDS, "all of a context that is used");

/* The attributes that a switch publishes have SIZE bytes. They are in WORDS; if that is NULL, they
 * are in the record already. */
typedef struct attributes {
    uint32_t size;
    const uint32_t *words;
} attributes;

static const attributes no_attributes;

/* Write a context into the state of THREAD. FLAGS is the word with the bytes trace_flags and
 * remote, little-endian as on every supported architecture. */
static inline void publish(sp_thread *thread, uint64_t trace_high, uint64_t trace_low,
                           uint64_t span, uint64_t local_root, uint64_t flags,
                           const attributes with)
{
    uint64_t number = sp_load_relaxed(&thread->published.switch_number);
    sp_store_relaxed(&thread->published.switch_number, number + 1);
    sp_store_relaxed(&thread->published.record.tail, 0);
    sp_fence_signal();
    sp_store_relaxed(&thread->published.record.trace_id[0], trace_high);
    sp_store_relaxed(&thread->published.record.trace_id[1], trace_low);
    sp_store_relaxed(&thread->published.record.span_id, span);
    sp_store_relaxed(&thread->published.local_root_span_id, local_root);
    sp_store_relaxed(&thread->published.remote, (uint8_t)(flags >> 8));
    for (uint32_t i = 0; with.words && i < (with.size + 3) / 4; i++)
        sp_store_relaxed(&thread->published.record.attributes[i], with.words[i]);
    sp_fence_signal();
    /* The word consists of `valid`, the flags, and the size of the attributes. */
    sp_store_relaxed(&thread->published.record.tail,
                     span ? 1u | (uint32_t)(uint8_t)flags << 8 | with.size << 16 : 0);
    sp_fence_signal();
    sp_store_relaxed(&thread->published.switch_number, number + 2);
}

static inline void publish_words(sp_thread *thread, const spanprof_context *context,
                                 const attributes with)
{
    publish(thread, sp_word_load_alone(context, TRACE_HIGH), sp_word_load_alone(context, TRACE_LOW),
            sp_word_load_alone(context, SPAN), sp_word_load_alone(context, LOCAL_ROOT),
            sp_word_load_alone(context, FLAGS), with);
}

static _Atomic(sp_attribute_source *) attribute_source;

void sp_context_set_attribute_source(sp_attribute_source *source)
{
    sp_store_release(&attribute_source, source); /* pairs with publish_attributes */
    if (!sp_switch_is_watched_by(SP_WATCH_ATTRIBUTES))
        sp_switch_watch(SP_WATCH_ATTRIBUTES, true);
}

/* CARRIER's attributes are fetched before the switch, so that it is not odd for longer. */
static __attribute__((noinline)) void
publish_attributes(sp_thread *thread, const spanprof_context *context, uint64_t carrier)
{
    uint32_t words[SP_ATTRIBUTE_WORDS];
    sp_attribute_source *source = sp_load_acquire(&attribute_source);
    attributes with = {.size = thread->owned.attribute_bytes};
    if (thread->owned.attributes_of != carrier) {
        with = (attributes){.size = source ? source(carrier, words) : 0, .words = words};
        if (with.size == 0) {
            thread->owned.no_attributes_of = carrier;
            publish_words(thread, context, no_attributes);
            return;
        }
        /* Cleared first: a fork or cancellation during the copy must not leave half-written
         * attributes that look valid. */
        thread->owned.attributes_of = 0;
        sp_fence_signal();
    }
    publish_words(thread, context, with);
    sp_fence_signal();
    thread->owned.attribute_bytes = with.size;
    thread->owned.attributes_of = carrier;
}

/* Whether CARRIER may have attributes. */
static inline bool may_have_attributes(const sp_thread *thread, uint64_t carrier)
{
    return SP_UNLIKELY(carrier != 0) && carrier != thread->owned.no_attributes_of &&
           sp_switch_is_watched_by(SP_WATCH_ATTRIBUTES);
}

/* CHECK_ATTRIBUTES: the context may have attributes. The fast path is compiled without this
 * test. */
static inline void publish_context(sp_thread *thread, const spanprof_context *context,
                                   bool check_attributes)
{
    if (check_attributes && may_have_attributes(thread, sp_word_load_alone(context, CARRIER)))
        publish_attributes(thread, context, sp_word_load_alone(context, CARRIER));
    else
        publish_words(thread, context, no_attributes);
}

/* The entry of DEPTH. Chunk 0 has the entries 0 to 15, chunk k those from 16 << (k - 1) on. NULL
 * when that chunk does not exist. */
static inline sp_scope_entry *entry_of(sp_scope_chain *chain, uint32_t depth)
{
    if (SP_LIKELY(depth < SP_SCOPE_FIRST))
        return &chain->first[depth];
    uint32_t chunk = 32 - (uint32_t)__builtin_clz(depth / SP_SCOPE_FIRST);
    if (chunk >= SP_SCOPE_CHUNKS)
        return NULL;
    sp_scope_entry *entries =
        sp_load_acquire(&chain->chunks[chunk]); /* pairs with the release in add_chunk */
    return entries ? entries + (depth - (SP_SCOPE_FIRST << (chunk - 1))) : NULL;
}

static inline sp_scope_entry *entry_at(sp_thread *thread, uint32_t depth)
{
    return entry_of(thread->owned.chain, depth);
}

static __attribute__((noinline)) sp_scope_entry *add_chunk(sp_thread *thread, uint32_t depth)
{
    uint32_t chunk = 32 - (uint32_t)__builtin_clz(depth / SP_SCOPE_FIRST);
    if (chunk >= SP_SCOPE_CHUNKS)
        return NULL;
    size_t bytes = ((size_t)SP_SCOPE_FIRST << (chunk - 1)) * sizeof(sp_scope_entry);
    sp_scope_entry *entries =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (entries == MAP_FAILED)
        return NULL;
    sp_store_release(&thread->owned.chain->chunks[chunk],
                     entries); /* stays with the slot, for the next thread or fiber */
    return entry_at(thread, depth);
}

static inline bool is_dead(sp_scope_entry *entry)
{
    return sp_load_relaxed(&entry->serial) == 0;
}

/* Set the depth to DEPTH, less the dead scopes at the top. */
static inline void pop_dead(sp_thread *thread, uint32_t depth)
{
    while (depth > 0 && is_dead(entry_at(thread, depth - 1)))
        depth--;
    thread->owned.depth = depth;
}

static inline const spanprof_context *top_context(sp_thread *thread)
{
    return thread->owned.depth ? &entry_at(thread, thread->owned.depth - 1)->context : &no_context;
}

/* The chain of a thread whose running fiber is not known. It never has a scope. */
static sp_scope_chain lost_chain;

/* Carry out the detaches that other threads have posted to the chain. They are rare, so the loop
 * may check every scope. */
static __attribute__((noinline)) void drop_posted(sp_thread *thread)
{
    sp_scope_chain *chain = thread->owned.chain;
    uint64_t posts = sp_load_acquire(&chain->posts); /* pairs with the post: its scope is marked */
    for (uint32_t depth = 0; depth < thread->owned.depth; depth++) {
        sp_scope_entry *entry = entry_at(thread, depth);
        uint64_t serial = sp_load_relaxed(&entry->serial);
        if (serial && sp_load_relaxed(&entry->posted) == serial)
            sp_store_relaxed(&entry->serial, 0);
    }
    pop_dead(thread, thread->owned.depth);
    sp_fence_signal(); /* after a fork in between, the child must carry out the posts again */
    chain->posts_seen = posts;
}

/* Carry out the detaches of this thread's scopes that other threads have posted, and publish. */
static __attribute__((noinline)) void take_posts(sp_thread *thread)
{
    uint64_t posts = sp_load_acquire(
        &thread->owned.posts); /* pairs with the post, which incremented the chain's count before */
    if (thread->owned.chain == &lost_chain)
        return;
    drop_posted(thread);
    publish_context(thread, top_context(thread), true);
    sp_store_relaxed(&thread->owned.posts_seen, posts);
}

void sp_context_drop_posted(sp_thread *thread)
{
    if (thread->owned.chain != &lost_chain)
        drop_posted(thread);
}

static inline bool has_posts(sp_thread *thread)
{
    return sp_load_relaxed(&thread->owned.posts) != sp_load_relaxed(&thread->owned.posts_seen);
}

/* Whether a switch has more to do than to publish: there are posts or watchers. One branch covers
 * all, because every switch executes it. */
static inline bool needs_slow_path(sp_thread *thread)
{
    uint64_t unseen =
        sp_load_relaxed(&thread->owned.posts) ^ sp_load_relaxed(&thread->owned.posts_seen);
    return SP_UNLIKELY((unseen | sp_load_relaxed(&sp_switch_watchers)) != 0);
}

static inline void handle_pending_detaches(sp_thread *thread)
{
    if (!has_posts(thread))
        return;
    if (sp_switch_is_watched_by(SP_WATCH_RECORDER))
        sp_switch_recorder_taint(thread);
    take_posts(thread);
}

/* Called after a switch. While a detach by another thread is pending, the active context is
 * unknown. */
static inline void notify_watchers(sp_thread *thread)
{
    const spanprof_context *known = has_posts(thread) ? NULL : top_context(thread);
    if (sp_switch_is_watched_by(SP_WATCH_CPU_TIME))
        sp_cpu_time_switch(thread, known ? known : &no_context);
    if (sp_switch_is_watched_by(SP_WATCH_RECORDER))
        sp_switch_recorder_switch(thread, known);
}

static inline spanprof_scope make_scope(const sp_thread *thread, uint32_t depth, uint64_t serial)
{
    return (spanprof_scope){.thread = thread->owned.owner, .depth = depth, .serial = serial};
}

/* Fill ENTRY, of DEPTH, with a context without a span, which may still have baggage. */
static __attribute__((noinline)) spanprof_scope
attach_without_span(sp_thread *thread, sp_scope_entry *entry, uint32_t depth, uint64_t carrier)
{
    entry->context = no_context;
    sp_word_store(&entry->context, CARRIER, carrier);
    sp_fence_signal();
    thread->owned.depth = depth + 1;
    publish_words(thread, &no_context, no_attributes);
    return make_scope(thread, depth, sp_load_relaxed(&entry->serial));
}

/* The rare work before an attach: create the thread's state, carry out posts, add a chunk. Returns
 * the entry to fill; NULL when memory is short. */
static sp_scope_entry *prepare(void)
{
    sp_thread *thread = sp_self_get();
    if (!thread && !(thread = sp_thread_self_create()))
        return NULL;
    handle_pending_detaches(thread);
    if (thread->owned.chain == &lost_chain) {
        sp_count(&sp_thread_counts.failed_attaches, 1);
        return NULL;
    }
    sp_scope_entry *entry = entry_at(thread, thread->owned.depth);
    if (!entry && !(entry = add_chunk(thread, thread->owned.depth))) {
        /* The active context is wrong, because the attach failed. Samples are "unknown" until the
         * next switch, as after a detach by another thread. */
        sp_count(&sp_thread_counts.failed_attaches, 1);
        sp_count(&thread->owned.posts, 1);
    }
    return entry;
}

static inline spanprof_scope attach(sp_thread *thread, sp_scope_entry *entry, uint64_t trace_high,
                                    uint64_t trace_low, uint64_t span, uint64_t local_root,
                                    uint64_t flags, uint64_t carrier, bool check_attributes)
{
    uint32_t depth = thread->owned.depth;
    uint64_t serial = ++thread->owned.next_serial;
    sp_store_relaxed(&entry->serial, serial);
    if (SP_UNLIKELY(span == 0 || (trace_high | trace_low) == 0))
        return attach_without_span(thread, entry, depth, carrier);
    sp_word_store(&entry->context, TRACE_HIGH, trace_high);
    sp_word_store(&entry->context, TRACE_LOW, trace_low);
    sp_word_store(&entry->context, SPAN, span);
    sp_word_store(&entry->context, LOCAL_ROOT, local_root);
    sp_word_store(&entry->context, FLAGS, flags);
    sp_word_store(&entry->context, CARRIER, carrier);
    sp_fence_signal();
    thread->owned.depth = depth + 1; /* only when the scope is complete */
    if (check_attributes && may_have_attributes(thread, carrier))
        publish_attributes(thread, &entry->context, carrier);
    else
        publish(thread, trace_high, trace_low, span, local_root, flags, no_attributes);
    return make_scope(thread, depth, serial);
}

/* The thread continues under a span that it has ended, so a scope was not detached. This is logged
 * once, because such a program does it with each request. */
static void note_ended_below(sp_thread *thread, uint64_t span)
{
    bool is_below = sp_load_relaxed(&thread->owned.ended_span_id) ==
                    sp_load_relaxed(&thread->published.record.span_id);
    sp_store_relaxed(&thread->owned.ended_span_id, 0);
    if (!is_below || span == 0)
        return;
    if (atomic_fetch_add(&sp_thread_counts.misuse_ended_parent, 1) == 0)
        sp_log_warn("context",
                    "a context is attached on a thread whose active span has ended on it: was its "
                    "scope detached? Each spanprof_span_attach or spanprof_context_attach needs a "
                    "spanprof_scope_detach, else what comes next counts for the wrong request. "
                    "(misuse_ended_parent counts them; said once)");
}

/* A separate function, so that the fast path of attach calls nothing and saves no registers. */
static __attribute__((noinline)) spanprof_scope attach_slowly(uint64_t trace_high,
                                                              uint64_t trace_low, uint64_t span,
                                                              uint64_t local_root, uint64_t flags,
                                                              uint64_t carrier)
{
    spanprof_scope scope = {0};
    sp_scope_entry *entry = prepare();
    sp_thread *thread = sp_self_get();
    if (thread && sp_load_relaxed(&thread->owned.ended_span_id))
        note_ended_below(thread, span);
    if (entry)
        scope =
            attach(thread, entry, trace_high, trace_low, span, local_root, flags, carrier, true);
    if (thread)
        notify_watchers(thread);
    return scope;
}

spanprof_scope sp_context_attach_words(uint64_t trace_high, uint64_t trace_low, uint64_t span,
                                       uint64_t local_root, uint64_t flags, uint64_t carrier)
{
    sp_thread *thread = sp_self_get();
    sp_scope_entry *entry = thread ? entry_at(thread, thread->owned.depth) : NULL;
    if (SP_UNLIKELY(!entry) || needs_slow_path(thread) ||
        SP_UNLIKELY(sp_load_relaxed(&thread->owned.ended_span_id)))
        return attach_slowly(trace_high, trace_low, span, local_root, flags, carrier);
    return attach(thread, entry, trace_high, trace_low, span, local_root, flags, carrier, false);
}

spanprof_scope spanprof_context_attach(const spanprof_context *context)
{
    const spanprof_context *from = context ? context : &no_context;
    return sp_context_attach_words(
        sp_word_load_alone(from, TRACE_HIGH), sp_word_load_alone(from, TRACE_LOW),
        sp_word_load_alone(from, SPAN), sp_word_load_alone(from, LOCAL_ROOT),
        sp_word_load_alone(from, FLAGS), sp_word_load_alone(from, CARRIER));
}

void sp_context_forget_scopes(sp_scope_chain *chain)
{
    for (uint32_t depth = 0; depth < chain->depth; depth++)
        sp_store_relaxed(&entry_of(chain, depth)->serial, 0);
    chain->depth = 0;
}

void sp_context_drop_dead(sp_scope_chain *chain)
{
    while (chain->depth > 0 && is_dead(entry_of(chain, chain->depth - 1)))
        chain->depth--;
}

/* Write depth and serial back to the chain that THREAD leaves, if any. Between the two chains the
 * thread has none. */
void sp_context_take_chain(sp_thread *thread, sp_scope_chain *to)
{
    sp_scope_chain *from = thread->owned.chain;
    if (from && from != &lost_chain) {
        from->depth = thread->owned.depth;
        from->next_serial = thread->owned.next_serial;
    }
    sp_fence_signal();
    thread->owned.chain = &lost_chain;
    sp_fence_signal();
    if (!to)
        to = &lost_chain;
    thread->owned.depth = to->depth;
    thread->owned.next_serial = to->next_serial;
    thread->owned.owner = to->owner;
    sp_fence_signal();
    thread->owned.chain = to;
}

/* A poster increments the count of the chain first, then that of the thread that runs the chain. So
 * a post that this function does not find in the chain is found in the thread's count later. (For a
 * fiber's chain, the compare-exchange in fiber.c orders the two: either the poster finds the thread
 * that runs the fiber, or that thread finds the post.) */
void sp_context_switch_chain(sp_thread *thread, sp_scope_chain *to)
{
    if (has_posts(thread) && sp_switch_is_watched_by(SP_WATCH_RECORDER))
        sp_switch_recorder_taint(thread);
    sp_context_take_chain(thread, to);
    if (!to)
        sp_count(&thread->owned.posts, 1); /* take_posts keeps this difference */
    uint64_t posts = sp_load_acquire(&thread->owned.posts);
    if (SP_UNLIKELY(sp_load_acquire(&thread->owned.chain->posts) !=
                    thread->owned.chain->posts_seen))
        drop_posted(thread);
    publish_context(thread, top_context(thread), true);
    if (to)
        sp_store_relaxed(&thread->owned.posts_seen, posts);
    notify_watchers(thread);
}

/* The chain with the number OWNER, which its scopes contain; below, the thread that runs that
 * chain. */
static sp_scope_chain *chain_of(uint32_t owner)
{
    if (owner > SP_THREADS_MAX)
        return sp_fiber_chain(owner - SP_THREADS_MAX - 1);
    sp_thread *thread = sp_thread_by_slot(owner - 1);
    return thread ? &thread->own_scopes : NULL;
}

static sp_thread *runner_of(uint32_t owner)
{
    return owner > SP_THREADS_MAX ? sp_fiber_runner(owner - SP_THREADS_MAX - 1)
                                  : sp_thread_by_slot(owner - 1);
}

/* Logged once: such a program does it with each request. SPAN: of the scope. OWNER: the number of
 * its chain. RUNNER: the thread that runs that chain; NULL: none does. */
static void log_foreign(uint64_t span, uint32_t owner, sp_thread *runner)
{
    char id[2 * sizeof(uint64_t) + 1], attached[64] = "a fiber";
    sp_hex_encode(id, (const uint8_t *)&span, sizeof span);
    if (owner <= SP_THREADS_MAX)
        snprintf(attached, sizeof attached, "thread %d",
                 runner ? (int)sp_load_relaxed(&runner->registered.tid) : 0);
    sp_log_warn("context",
                "thread %d detached a scope of span %s that %s had attached: a scope stays on the "
                "thread that attached it, and samples of that thread have no span until it next "
                "attaches or detaches. Give the other thread the span or its context, which it "
                "attaches and detaches for itself. (misuse_foreign_scope counts them; said once)",
                (int)syscall(SYS_gettid), id, attached);
}

/* The scope belongs to another thread, or to a fiber that does not run here: post the detach to it.
 * The post names the serial, so it has no effect if the owner detached first. Sequentially
 * consistent with the fiber's runner (sp_context_switch_chain). */
static __attribute__((noinline)) spanprof_status post_detach(uint32_t owner, uint32_t depth,
                                                             uint64_t serial)
{
    sp_scope_chain *chain = chain_of(owner);
    sp_scope_entry *entry = chain ? entry_of(chain, depth) : NULL;
    if (!entry || sp_load_relaxed(&entry->serial) != serial) {
        sp_count(&sp_thread_counts.misuse_dead_scope, 1);
        return SPANPROF_OK;
    }
    uint64_t span = sp_word_load_alone(&entry->context, SPAN);
    sp_store_relaxed(&entry->posted, serial);
    atomic_fetch_add(&chain->posts, 1); /* pairs with drop_posted */
    sp_thread *runner = runner_of(owner);
    if (runner)
        atomic_fetch_add(&runner->owned.posts, 1); /* pairs with take_posts */
    if (atomic_fetch_add(&sp_thread_counts.misuse_foreign_scope, 1) == 0)
        log_foreign(span, owner, runner);
    return SPANPROF_ERROR_OTHER_THREAD;
}

/* The scope was stored as two words a moment ago; loading it as one of 16 bytes would wait for both
 * to reach the cache (8 ns). */
static inline spanprof_scope take_scope(spanprof_scope *scope)
{
    volatile spanprof_scope *fields = scope;
    spanprof_scope taken = {
        .thread = fields->thread, .depth = fields->depth, .serial = fields->serial};
    *scope = (spanprof_scope){0};
    return taken;
}

/* The rare cases of a detach: posts of other threads, a scope that is out of order or dead. They
 * are separate functions for the reason given at attach_slowly. */
static __attribute__((noinline)) spanprof_status detach_below_top(sp_thread *thread, uint32_t depth,
                                                                  uint64_t serial)
{
    sp_scope_entry *entry = depth < thread->owned.depth ? entry_at(thread, depth) : NULL;
    if (!entry || sp_load_relaxed(&entry->serial) != serial)
        sp_count(&sp_thread_counts.misuse_dead_scope, 1);
    else
        sp_store_relaxed(&entry->serial, 0);
    return SPANPROF_OK;
}

/* Always inline, so that the fast path of detach is compiled with CHECK_ATTRIBUTES false and
 * without a call. */
static inline __attribute__((always_inline)) spanprof_status
detach_own(sp_thread *thread, uint32_t depth, uint64_t serial, bool check_attributes)
{
    uint32_t below = thread->owned.depth - 1;
    sp_scope_entry *entry = depth == below ? entry_at(thread, below) : NULL;
    if (SP_UNLIKELY(!entry || sp_load_relaxed(&entry->serial) != serial))
        return detach_below_top(thread, depth, serial);
    sp_store_relaxed(&entry->serial, 0);
    pop_dead(thread, below);
    publish_context(thread, top_context(thread), check_attributes);
    return SPANPROF_OK;
}

static __attribute__((noinline)) spanprof_status detach_slowly(sp_thread *thread, uint32_t depth,
                                                               uint64_t serial)
{
    handle_pending_detaches(thread);
    spanprof_status status = detach_own(thread, depth, serial, true);
    notify_watchers(thread);
    return status;
}

spanprof_status spanprof_scope_detach(spanprof_scope *scope)
{
    if (SP_UNLIKELY(!scope || scope->serial == 0)) {
        sp_count(&sp_thread_counts.misuse_dead_scope, 1);
        return SPANPROF_OK;
    }
    spanprof_scope taken = take_scope(scope);
    sp_thread *thread = sp_self_get();
    if (SP_UNLIKELY(!thread || taken.thread != thread->owned.owner))
        return post_detach(taken.thread, taken.depth, taken.serial);
    if (needs_slow_path(thread))
        return detach_slowly(thread, taken.depth, taken.serial);
    return detach_own(thread, taken.depth, taken.serial, false);
}

const spanprof_context *sp_context_current_borrow(void)
{
    sp_thread *thread = sp_self_get();
    return thread ? top_context(thread) : &no_context;
}

spanprof_context spanprof_context_current(void)
{
    return *sp_context_current_borrow();
}
