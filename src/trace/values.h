/* SPDX-License-Identifier: Apache-2.0 */
/* Attribute values in a sp_span_memory: copied whole, strings made valid UTF-8 and cut to the limit
 * of their length.
 *
 * Strings and arrays are in blocks with a stored size. A new value that fits overwrites the old
 * one; a value that does not fit gets a new block, at least twice as large. So setting one
 * attribute again and again takes a bounded amount of memory. Threads: one at a time for a
 * memory. */
#ifndef SP_TRACE_VALUES_H
#define SP_TRACE_VALUES_H

#include <spanprof/tracer.h>
#include "trace/span_memory.h"

/* The value of a string or an array points to `bytes` of a block. */
typedef struct sp_block {
    uint32_t capacity;
    char bytes[];
} sp_block;

/* The block of an empty text; the first text that does not fit gets a block of its own. */
extern __attribute__((visibility("hidden"))) const struct sp_empty_block {
    uint32_t capacity;
    char bytes[4];
} sp_text_empty;

/* A block for CAPACITY bytes aligned to ALIGNMENT, 1 or 8; NULL when memory is short. Four unused
 * bytes precede a block whose bytes are aligned to 8. */
static inline sp_block *sp_block_make(sp_span_memory *memory, size_t capacity, size_t alignment)
{
    size_t front = alignment > sizeof(sp_block) ? alignment - sizeof(sp_block) : 0;
    char *start = sp_span_memory_take(memory, front + sizeof(sp_block) + capacity,
                                      front ? alignment : _Alignof(sp_block));
    if (SP_UNLIKELY(!start))
        return NULL;
    sp_block *fresh = (sp_block *)(void *)(start + front);
    fresh->capacity = (uint32_t)capacity;
    return fresh;
}

/* Room for BYTES, at most SP_TEXT_MAX + 1, aligned to ALIGNMENT: the block whose bytes OLD points
 * to if it is large enough, else a new block. OLD may be NULL. Returns NULL when memory is
 * short. */
static inline char *sp_block_replace(sp_span_memory *memory, const void *old, size_t bytes,
                                     size_t alignment)
{
    size_t capacity = bytes;
    if (old) {
        sp_block *b = (sp_block *)(void *)((uintptr_t)old - offsetof(sp_block, bytes));
        if (b->capacity >= bytes && ((uintptr_t)old & (alignment - 1)) == 0)
            return b->bytes;
        capacity = sp_min_u64(sp_max_u64(bytes, 2 * (uint64_t)b->capacity), 2 * SP_TEXT_MAX);
    }
    sp_block *fresh = sp_block_make(memory, capacity, alignment);
    return fresh ? fresh->bytes : NULL;
}

static inline char *sp_block_replace_text(sp_span_memory *memory, const char *old,
                                          const sp_measured_text *m)
{
    char *out = m->stored <= SP_TEXT_MAX ? sp_block_replace(memory, old, m->stored + 1, 1) : NULL;
    if (SP_LIKELY(out != NULL))
        sp_text_store(out, m);
    return out;
}

/* Copy FROM to the block whose bytes OLD points to if it fits, else to a new block. OLD may be
 * NULL. Returns NULL when FROM is too long or memory is short; OLD is then unchanged. */
static inline const char *sp_text_replace(sp_span_memory *memory, const char *old, const char *from)
{
    sp_measured_text m = sp_text_measure(from);
    return sp_block_replace_text(memory, old, &m);
}

/* Give TO, whose value is of type to->type unless IS_NEW, the value of FROM. LENGTH_LIMIT is in
 * characters, of each string. False when the type of FROM is unknown, its value is too long, or
 * memory is short; TO then keeps its value. */
bool sp_value_assign(sp_span_memory *memory, uint32_t length_limit, spanprof_attribute *to,
                     bool is_new, const spanprof_attribute *from);

/* The attributes of an event, a link or a scope, which gets all of them at once. */
typedef struct sp_attribute_list {
    spanprof_attribute *items;
    uint32_t count;
    uint32_t room;    /* of items */
    uint32_t dropped; /* no room, no memory, or no value */
} sp_attribute_list;

/* An empty list with room for ROOM attributes, or for none when memory is short. */
sp_attribute_list sp_attribute_list_make(sp_span_memory *memory, uint32_t room);
/* Add COUNT attributes of FROM, which may be NULL: the last one with the same key counts, those
 * without a key do not. */
void sp_attribute_list_add(sp_span_memory *memory, uint32_t length_limit, sp_attribute_list *list,
                           const spanprof_attribute *from, uint32_t count);

/* An array with the COUNT items of OLD, ITEM_BYTES each, and room for one more: OLD itself unless
 * it is full, else a copy with twice the room. The first array has room for FIRST items, a power of
 * two, so COUNT says whether an array is full. NULL when memory is short. */
static inline void *sp_span_array_extend(sp_span_memory *memory, const void *old, uint32_t count,
                                         size_t item_bytes, uint32_t first)
{
    if (count && (count < first || (count & (count - 1)) != 0))
        return (void *)(uintptr_t)old;
    size_t capacity = count ? 2 * (size_t)count : first;
    void *grown = sp_span_memory_take(memory, capacity * item_bytes, 8);
    if (grown && count)
        memcpy(grown, old, count * item_bytes);
    return grown;
}

/* The attribute with KEY among COUNT, or NULL. */
static inline spanprof_attribute *sp_attribute_find(spanprof_attribute *attributes, uint32_t count,
                                                    const char *key)
{
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(attributes[i].key, key) == 0)
            return &attributes[i];
    return NULL;
}

#endif
