/* SPDX-License-Identifier: Apache-2.0 */
/* Another tracer's record (OTEP 4947): the span that a thread works for, as that tracer publishes
 * it through the thread's otel_thread_ctx_v1. A tick reads the record on its own thread, between
 * two instructions of that tracer, as the rules of the record demand. The wall profiler reads the
 * record of another thread, and proves that the thread did not run meanwhile.
 *
 * The slot is the thread's own memory, so it is read directly. The record is the other tracer's
 * memory, which it may unmap at any moment, so it is read by a guarded load. */
#ifndef SP_CONTEXT_FOREIGN_RECORD_SIG_H
#define SP_CONTEXT_FOREIGN_RECORD_SIG_H

#include "context/context_slot.h"
#include "core/guarded_load_sig.h"

typedef enum sp_foreign_result {
    SP_FOREIGN_NONE = 0,
    SP_FOREIGN_ACTIVE,
    SP_FOREIGN_UNKNOWN, /* there is a record, and it cannot be read */
} sp_foreign_result;

/* The memory before the record, and the record. */
typedef struct sp_foreign_memory {
    uint64_t signature; /* SP_THREAD_SIGNATURE in a copy of this library */
    uint64_t between[3];
    uint64_t trace_id[2];
    uint64_t span_id;
    uint32_t tail;
} sp_foreign_memory;

enum { SP_FOREIGN_RECORD_BYTES = 28, SP_FOREIGN_BEFORE_BYTES = 32 };

_Static_assert(offsetof(sp_foreign_memory, trace_id) == SP_FOREIGN_BEFORE_BYTES &&
                   offsetof(sp_foreign_memory, tail) + 4 ==
                       SP_FOREIGN_BEFORE_BYTES + SP_FOREIGN_RECORD_BYTES,
               "the layout of OTEP 4947");

/* Whether a context of this SDK is active, which takes precedence. */
SP_SIGSAFE static inline bool sp_foreign_is_hidden(const sp_thread *thread)
{
    return (sp_load_relaxed(&thread->published.record.tail) & 1) != 0;
}

SP_SIGSAFE static inline bool sp_foreign_copy(long pid, sp_foreign_memory *memory, uint64_t record)
{
    if (sp_guarded_read(pid, memory, record - SP_FOREIGN_BEFORE_BYTES,
                        SP_FOREIGN_BEFORE_BYTES + SP_FOREIGN_RECORD_BYTES))
        return true;
    memory->signature = 0; /* the memory before the record may be unmapped */
    return sp_guarded_read(pid, memory->trace_id, record, SP_FOREIGN_RECORD_BYTES);
}

/* Read the record at the address RECORD (0: none) into *CONTEXT, which is all zero unless the
 * result is ACTIVE. A record that is not valid counts as none: its owner has detached, or is
 * changing the record, and a reader cannot distinguish the two. */
SP_SIGSAFE static inline sp_foreign_result sp_foreign_read(uint64_t record,
                                                           sp_foreign_context *context)
{
    sp_foreign_memory memory;
    *context = (sp_foreign_context){0};
    if (!record ||
        record - (uint64_t)(uintptr_t)sp_thread_states < sizeof(sp_thread) * SP_THREADS_MAX)
        return SP_FOREIGN_NONE;
    if (!sp_foreign_copy(sp_own_pid(), &memory, record))
        return SP_FOREIGN_UNKNOWN;
    if (memory.signature == SP_THREAD_SIGNATURE || (memory.tail & 0xff) != 1 || !memory.span_id ||
        !(memory.trace_id[0] | memory.trace_id[1]))
        return SP_FOREIGN_NONE;
    context->trace_id[0] = memory.trace_id[0];
    context->trace_id[1] = memory.trace_id[1];
    context->span_id = memory.span_id;
    context->tail = memory.tail & 0xffff;
    if (!sp_load_relaxed(&sp_context_is_shared))
        sp_store_relaxed(&sp_context_is_shared, 1);
    return SP_FOREIGN_ACTIVE;
}

SP_SIGSAFE static inline bool sp_foreign_is_same(const sp_foreign_context *a,
                                                 const sp_foreign_context *b)
{
    return a->trace_id[0] == b->trace_id[0] && a->trace_id[1] == b->trace_id[1] &&
           a->span_id == b->span_id && a->tail == b->tail;
}

/* The slot of the thread with thread pointer POINTER, in the block that the thread's vector names;
 * 0 when that block does not exist yet. */
SP_SIGSAFE static inline uint64_t sp_foreign_find_slot(uint64_t pointer, long pid)
{
    const sp_context_layout *layout = &sp_context_layout_now;
    uint64_t vector, count, block;
    if (layout->kind != SP_CONTEXT_BLOCK ||
        !sp_guarded_read(pid, &vector, pointer + SP_CONTEXT_VECTOR_AT, sizeof vector) ||
        !sp_guarded_read(pid, &count, vector - 16, sizeof count) || layout->module > count ||
        !sp_guarded_read(pid, &block, vector + 16 * layout->module, sizeof block) || !block ||
        block == UINT64_MAX)
        return 0;
    return block + (uint64_t)layout->offset;
}

/* Find the thread pointer of a new thread, which ticks before a scan has found its slot. Thread id
 * 0 is the calling thread. */
SP_SIGSAFE static inline uint64_t sp_foreign_find_pointer(sp_thread *thread)
{
    const sp_context_layout *layout = &sp_context_layout_now;
    uint64_t list = 0, size = 0;
    if (layout->kind == SP_CONTEXT_NOWHERE ||
        sp_syscall6(SYS_get_robust_list, 0, (long)(uintptr_t)&list, (long)(uintptr_t)&size, 0, 0,
                    0) != 0 ||
        !list)
        return 0;
    uint64_t pointer = list - (uint64_t)layout->list_offset;
    sp_store_relaxed(&thread->tick.context_tp, pointer);
    if (layout->kind == SP_CONTEXT_STATIC)
        sp_store_release(&thread->tick.context_slot, pointer + (uint64_t)layout->offset);
    return pointer;
}

/* The contents of the calling thread's slot; 0 also when the thread pointer that POINTER_OF returns
 * is not the one that the slot belongs to. */
SP_SIGSAFE static inline uint64_t sp_foreign_own_record(sp_thread *thread,
                                                        uint64_t (*pointer_of)(void))
{
    uint64_t pointer = sp_load_relaxed(&thread->tick.context_tp);
    if (!pointer)
        pointer = sp_foreign_find_pointer(thread);
    uint64_t slot =
        sp_load_acquire(&thread->tick.context_slot); /* pairs with sp_context_slot_set */
    if (!pointer || pointer != pointer_of())
        return 0;
    if (!slot) {
        slot = sp_foreign_find_slot(pointer, sp_own_pid());
        sp_store_relaxed(&thread->tick.context_slot, slot);
    }
    // NOLINTNEXTLINE(performance-no-int-to-ptr)
    return slot ? *(const volatile uint64_t *)(uintptr_t)slot : 0;
}

/* A tick reads the record of its own thread. A context that differs from that of the last tick
 * counts as a switch, and so does the end of a context. Otherwise a sample with the old number
 * would be joined with the interval of the previous context. */
SP_SIGSAFE static inline sp_foreign_result sp_foreign_look(sp_thread *thread,
                                                           uint64_t (*pointer_of)(void))
{
    sp_foreign_context context;
    sp_foreign_result result = sp_foreign_read(sp_foreign_own_record(thread, pointer_of), &context);
    if (result != SP_FOREIGN_UNKNOWN && !sp_foreign_is_same(&context, &thread->tick.foreign)) {
        thread->tick.foreign = context;
        thread->tick.foreign_switches += 2;
    }
    return result;
}

/* Read the record of another thread. The result is consistent only if that thread did not run
 * meanwhile. */
SP_SIGSAFE static inline sp_foreign_result sp_foreign_peek(const sp_thread *thread,
                                                           sp_foreign_context *context)
{
    long pid = sp_own_pid();
    uint64_t slot =
        sp_load_acquire(&thread->tick.context_slot); /* pairs with sp_context_slot_set */
    uint64_t pointer = sp_load_relaxed(&thread->tick.context_tp), record;
    *context = (sp_foreign_context){0};
    if (!slot && pointer)
        slot = sp_foreign_find_slot(pointer, pid);
    if (!slot)
        return SP_FOREIGN_NONE;
    /* If the kernel refuses such reads, no record was ever found, so there is probably none. */
    if (!sp_guarded_read(pid, &record, slot, sizeof record))
        return sp_load_relaxed(&sp_context_is_shared) ? SP_FOREIGN_UNKNOWN : SP_FOREIGN_NONE;
    return sp_foreign_read(record, context);
}

#endif
