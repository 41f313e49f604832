/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that goes with one object: bytes are cut from what the object has inside, then from chunks
 * of malloc, by a cursor that only moves forward, and all chunks are freed at once.
 *
 * cursor <= limit. Both point into the object's own bytes while `chunks` is NULL, else into the
 * newest chunk.
 *
 * The memory of a replaced value, or of an array that has grown, is not reused. A function that
 * fails half-way returns to the mark where it began, so that repeated failures use no memory.
 * Threads: one at a time. */
#ifndef SP_TRACE_SPAN_MEMORY_H
#define SP_TRACE_SPAN_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core/compiler.h"
#include "core/utf8.h"

/* A longer text or array is dropped: it could not be sent anyway. */
#define SP_TEXT_MAX ((size_t)16 << 20)

typedef struct sp_span_chunk sp_span_chunk;

typedef struct sp_span_memory {
    sp_span_chunk *chunks; /* the newest first */
    uint8_t *cursor;       /* next free byte, up to `limit` */
    uint8_t *limit;
} sp_span_memory;

/* Where MEMORY is now. Word by word: a struct's copy goes by vectors, and a vector of words that
 * were just written is slow to read. */
static inline sp_span_memory sp_span_memory_mark(const sp_span_memory *memory)
{
    const volatile sp_span_memory *words = memory;
    return (sp_span_memory){
        .chunks = words->chunks, .cursor = words->cursor, .limit = words->limit};
}

/* BYTES at the start of a new chunk, or NULL. */
void *sp_span_memory_grow(sp_span_memory *memory, size_t bytes);
/* Give back all that was taken since MARK, a copy of *MEMORY. */
void sp_span_memory_return(sp_span_memory *memory, const sp_span_memory *mark);
void sp_span_memory_deinit(sp_span_memory *memory);

/* BYTES aligned to ALIGNMENT, a power of two up to 8, or NULL. */
static inline void *sp_span_memory_take(sp_span_memory *memory, size_t bytes, size_t alignment)
{
    uint8_t *start =
        (uint8_t *)(((uintptr_t)memory->cursor + alignment - 1) & ~(uintptr_t)(alignment - 1));
    if (SP_UNLIKELY(start > memory->limit || bytes > (size_t)(memory->limit - start)))
        return sp_span_memory_grow(memory, bytes);
    memory->cursor = start + bytes;
    return start;
}

/* --- texts ------------------------------------------------------------------------------------ */

/* A source text as it will be stored. */
typedef struct sp_measured_text {
    const char *from;
    size_t length; /* of from */
    size_t stored; /* of the valid UTF-8 that it becomes */
} sp_measured_text;

/* The `stored` length of a text whose bytes are not all valid UTF-8. */
size_t sp_text_repaired_length(const char *from, size_t length);

static inline sp_measured_text sp_text_measure_sized(const char *from, size_t length)
{
    sp_measured_text m = {.from = from, .length = length, .stored = length};
    if (SP_UNLIKELY(!sp_utf8_valid(m.from, m.length)))
        m.stored = sp_text_repaired_length(m.from, m.length);
    return m;
}

static inline sp_measured_text sp_text_measure(const char *from)
{
    const char *text = from ? from : "";
    return sp_text_measure_sized(text, strlen(text));
}

/* OUT has room for m->stored + 1 bytes. */
static inline void sp_text_store(char *out, const sp_measured_text *m)
{
    if (SP_LIKELY(m->stored == m->length)) {
        memcpy(out, m->from, m->length);
        out[m->length] = 0;
    } else {
        sp_utf8_repair(out, m->from, m->length);
    }
}

/* A copy of M that will not be replaced; NULL when it is too long or memory is short. */
static inline const char *sp_text_copy_measured(sp_span_memory *memory, const sp_measured_text *m)
{
    if (SP_UNLIKELY(m->stored > SP_TEXT_MAX))
        return NULL;
    char *out = sp_span_memory_take(memory, m->stored + 1, 1);
    if (SP_LIKELY(out != NULL))
        sp_text_store(out, m);
    return out;
}

static inline const char *sp_text_copy(sp_span_memory *memory, const char *from)
{
    sp_measured_text m = sp_text_measure(from);
    return sp_text_copy_measured(memory, &m);
}

#endif
