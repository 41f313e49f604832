/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/span_memory.h"

#include <stdlib.h>

struct sp_span_chunk {
    sp_span_chunk *next;
    _Alignas(8) uint8_t bytes[];
};

enum { CHUNK_BYTES = 1024 - sizeof(sp_span_chunk) };

void *sp_span_memory_grow(sp_span_memory *memory, size_t bytes)
{
    size_t room = bytes > CHUNK_BYTES ? bytes : CHUNK_BYTES;
    if (room > PTRDIFF_MAX - sizeof(sp_span_chunk))
        return NULL;
    sp_span_chunk *chunk = malloc(sizeof *chunk + room);
    if (!chunk)
        return NULL;
    chunk->next = memory->chunks;
    memory->chunks = chunk;
    memory->cursor = chunk->bytes + bytes;
    memory->limit = chunk->bytes + room;
    return chunk->bytes;
}

static void free_until(sp_span_memory *memory, const sp_span_chunk *last)
{
    while (memory->chunks != last) {
        sp_span_chunk *chunk = memory->chunks;
        memory->chunks = chunk->next;
        free(chunk);
    }
}

void sp_span_memory_return(sp_span_memory *memory, const sp_span_memory *mark)
{
    free_until(memory, mark->chunks);
    memory->cursor = mark->cursor;
    memory->limit = mark->limit;
}

void sp_span_memory_deinit(sp_span_memory *memory)
{
    free_until(memory, NULL);
}

size_t sp_text_repaired_length(const char *from, size_t length)
{
    size_t result = 0;
    for (size_t i = 0; i < length;) {
        size_t step = sp_utf8_sequence(from + i, length - i);
        result += step ? step : 3;
        i += step ? step : 1;
    }
    return result;
}
