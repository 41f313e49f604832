/* SPDX-License-Identifier: Apache-2.0 */
/* The active context: attach, detach, and how a switch is published.
 *
 * A switch writes the new context into the thread's state with word-sized relaxed stores and bumps the switch number before and
 * after, so it is odd meanwhile: nothing else. No clock, no lock, no allocation, no pointer into a span. Readers are the tick, which
 * runs on this very thread between two of its instructions, and readers of OTEP 4947, which stop the thread; compiler fences are
 * all the order they need. (The wall sampler, which reads from another thread, checks that the thread has not run.)
 *
 * Scopes form a stack per thread; the active context is that of its top. A scope detached out of order leaves a dead entry behind,
 * which is skipped when those above it are gone. The alternative, scopes that hold the previous context themselves and a bounded
 * list of dead ids, is wrong once the list overflows, and its scope is 80 bytes instead of 16. */
#include <string.h>
#include <sys/mman.h>

#include "thread/cpu_time.h"
#include "thread/self.h"

static const spanprof_context no_context;

static inline uint64_t load_word(const uint8_t *bytes)
{
    uint64_t word;
    memcpy(&word, bytes, 8);
    return word;
}

static inline void publish(sp_thread *thread, const spanprof_context *context)
{
    uint64_t number = sp_load_relaxed(&thread->switch_number);
    uint64_t trace_high = load_word(context->trace_id),
             trace_low = load_word(context->trace_id + 8);
    uint64_t span = load_word(context->span_id);
    sp_store_relaxed(&thread->switch_number, number + 1);
    sp_store_relaxed(&thread->record.tail, 0);
    sp_fence_signal();
    sp_store_relaxed(&thread->record.trace_id[0], trace_high);
    sp_store_relaxed(&thread->record.trace_id[1], trace_low);
    sp_store_relaxed(&thread->record.span_id, span);
    sp_store_relaxed(&thread->local_root_span_id, load_word(context->local_root_span_id));
    sp_store_relaxed(&thread->remote, context->remote);
    sp_fence_signal();
    /* The word is valid, flags, size: little-endian on every supported architecture. */
    sp_store_relaxed(&thread->record.tail, span ? 1u | (uint32_t)context->trace_flags << 8 : 0);
    sp_fence_signal();
    sp_store_relaxed(&thread->switch_number, number + 2);
}

/* Where the entry of DEPTH lies: chunk 0 holds 0 to 15, chunk k from 16 << (k - 1) on. NULL when that chunk is not there. */
static inline sp_scope_entry *entry_at(sp_thread *thread, uint32_t depth)
{
    if (SP_LIKELY(depth < SP_SCOPE_FIRST))
        return &thread->first_scopes[depth];
    uint32_t chunk = 32 - (uint32_t)__builtin_clz(depth / SP_SCOPE_FIRST);
    if (chunk >= SP_SCOPE_CHUNKS)
        return NULL;
    sp_scope_entry *entries =
        sp_load_acquire(&thread->chunks[chunk]); /* pairs with the release in add_chunk */
    return entries ? entries + (depth - (SP_SCOPE_FIRST << (chunk - 1))) : NULL;
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
    sp_store_release(&thread->chunks[chunk],
                     entries); /* stays with the slot, for the next thread */
    return entry_at(thread, depth);
}

static inline bool is_dead(sp_scope_entry *entry)
{
    return sp_load_relaxed(&entry->serial) == 0;
}

/* Take the dead entries off the top. */
static inline void pop_dead(sp_thread *thread)
{
    while (thread->depth > 0 && is_dead(entry_at(thread, thread->depth - 1)))
        thread->depth--;
}

static inline const spanprof_context *top_context(sp_thread *thread)
{
    return thread->depth ? &entry_at(thread, thread->depth - 1)->context : &no_context;
}

/* Other threads have posted detaches of our scopes: carry them out. Rare, so it looks at every scope. */
static __attribute__((noinline)) void take_posts(sp_thread *thread)
{
    uint64_t posts = sp_load_acquire(&thread->posts); /* pairs with the post: its scope is marked */
    for (uint32_t depth = 0; depth < thread->depth; depth++) {
        sp_scope_entry *entry = entry_at(thread, depth);
        uint64_t serial = sp_load_relaxed(&entry->serial);
        if (serial && sp_load_relaxed(&entry->posted) == serial)
            sp_store_relaxed(&entry->serial, 0);
    }
    pop_dead(thread);
    publish(thread, top_context(thread));
    sp_store_relaxed(&thread->posts_seen, posts);
}

static inline bool has_posts(sp_thread *thread)
{
    return sp_load_relaxed(&thread->posts) != sp_load_relaxed(&thread->posts_seen);
}

/* Whether a switch has more to do than to publish: posts, or CPU time is counted. One branch for both, as all switches pay for it. */
static inline bool needs_care(sp_thread *thread)
{
    uint64_t unseen = sp_load_relaxed(&thread->posts) ^ sp_load_relaxed(&thread->posts_seen);
    return SP_UNLIKELY((unseen | sp_load_relaxed(&sp_cpu_time_run)) != 0);
}

static inline void take_care_before(sp_thread *thread)
{
    if (has_posts(thread))
        take_posts(thread);
}

/* Behind a switch, for which nobody knows what is active while there is a post. */
static inline void take_care_behind(sp_thread *thread)
{
    if (sp_load_relaxed(&sp_cpu_time_run))
        sp_cpu_time_switch(thread, has_posts(thread) ? &no_context : top_context(thread));
}

static inline bool is_valid(const spanprof_context *context)
{
    return context && load_word(context->span_id) != 0 &&
           (load_word(context->trace_id) | load_word(context->trace_id + 8)) != 0;
}

/* ENTRY becomes "no span", which may have baggage all the same. Returns what is to be published. */
static __attribute__((noinline)) const spanprof_context *
store_without_span(sp_scope_entry *entry, const spanprof_context *context)
{
    entry->context = (spanprof_context){.carrier = context ? context->carrier : no_context.carrier};
    return &no_context;
}

static inline spanprof_scope attach(sp_thread *thread, const spanprof_context *context)
{
    sp_scope_entry *entry = entry_at(thread, thread->depth);
    if (SP_UNLIKELY(!entry) && !(entry = add_chunk(thread, thread->depth))) {
        /* What is active now should not be: unknown until the next switch, as after a foreign detach. */
        sp_count(&sp_thread_counts.failed_attaches, 1);
        sp_count(&thread->posts, 1);
        return (spanprof_scope){0};
    }
    if (SP_LIKELY(is_valid(context)))
        entry->context = *context;
    else
        context = store_without_span(entry, context);
    sp_store_relaxed(&entry->serial, ++thread->next_serial);
    spanprof_scope scope = {
        .thread = thread->slot + 1, .depth = thread->depth, .serial = thread->next_serial};
    thread->depth++;
    publish(thread, context);
    return scope;
}

static __attribute__((noinline)) spanprof_scope attach_with_care(sp_thread *thread,
                                                                 const spanprof_context *context)
{
    take_care_before(thread);
    spanprof_scope scope = attach(thread, context);
    take_care_behind(thread);
    return scope;
}

spanprof_scope spanprof_context_attach(const spanprof_context *context)
{
    sp_thread *thread = sp_self_get();
    if (SP_UNLIKELY(!thread) && !(thread = sp_thread_self_create()))
        return (spanprof_scope){0};
    if (needs_care(thread))
        return attach_with_care(thread, context);
    return attach(thread, context);
}

void sp_context_forget_scopes(sp_thread *thread)
{
    for (uint32_t depth = 0; depth < thread->depth; depth++)
        sp_store_relaxed(&entry_at(thread, depth)->serial, 0);
    thread->depth = 0;
}

/* SCOPE belongs to another thread: leave it a note. The note names the serial, so it is void when the owner was faster. */
static __attribute__((noinline)) spanprof_status post_detach(spanprof_scope scope)
{
    sp_thread *owner = sp_thread_by_slot(scope.thread - 1);
    sp_scope_entry *entry = owner ? entry_at(owner, scope.depth) : NULL;
    if (!entry || sp_load_relaxed(&entry->serial) != scope.serial) {
        sp_count(&sp_thread_counts.misuse_dead_scope, 1);
        return SPANPROF_OK;
    }
    sp_count(&sp_thread_counts.misuse_foreign_scope, 1);
    sp_store_relaxed(&entry->posted, scope.serial);
    atomic_fetch_add_explicit(&owner->posts, 1, memory_order_release); /* pairs with take_posts */
    return SPANPROF_ERROR_OTHER_THREAD;
}

/* The scope was stored as two words a moment ago; loading it as one of 16 bytes would wait for both to reach the cache (8 ns). */
static inline spanprof_scope take_scope(spanprof_scope *scope)
{
    volatile spanprof_scope *fields = scope;
    spanprof_scope taken = {
        .thread = fields->thread, .depth = fields->depth, .serial = fields->serial};
    *scope = (spanprof_scope){0};
    return taken;
}

static inline bool is_own(sp_thread *thread, const spanprof_scope *scope)
{
    return thread && scope->thread == thread->slot + 1;
}

static inline void detach(sp_thread *thread, spanprof_scope scope)
{
    sp_scope_entry *entry = scope.depth < thread->depth ? entry_at(thread, scope.depth) : NULL;
    if (SP_UNLIKELY(!entry || sp_load_relaxed(&entry->serial) != scope.serial)) {
        sp_count(&sp_thread_counts.misuse_dead_scope, 1);
        return;
    }
    sp_store_relaxed(&entry->serial, 0);
    if (SP_LIKELY(scope.depth == thread->depth - 1)) {
        pop_dead(thread);
        publish(thread, top_context(thread));
    }
}

static __attribute__((noinline)) void detach_with_care(sp_thread *thread, spanprof_scope scope)
{
    take_care_before(thread);
    detach(thread, scope);
    take_care_behind(thread);
}

spanprof_status spanprof_scope_detach(spanprof_scope *scope)
{
    if (SP_UNLIKELY(!scope || scope->serial == 0)) {
        sp_count(&sp_thread_counts.misuse_dead_scope, 1);
        return SPANPROF_OK;
    }
    spanprof_scope taken = take_scope(scope);
    sp_thread *thread = sp_self_get();
    if (SP_UNLIKELY(!is_own(thread, &taken)))
        return post_detach(taken);
    if (needs_care(thread))
        detach_with_care(thread, taken);
    else
        detach(thread, taken);
    return SPANPROF_OK;
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
