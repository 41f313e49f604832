/* SPDX-License-Identifier: Apache-2.0 */
#include "core/arena.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Blocks form a list, the current one first. */
struct sp_arena_block {
    sp_arena_block *next;
    size_t size; /* bytes of data */
    size_t used; /* <= size */
    _Alignas(16) unsigned char data[];
};

enum { FIRST_BLOCK = 16 * 1024, LARGEST_BLOCK = 1024 * 1024 };

static sp_arena_block *add_block(sp_arena *arena, size_t bytes)
{
    size_t size = FIRST_BLOCK;
    if (arena->blocks)
        size = arena->blocks->size < LARGEST_BLOCK / 2 ? arena->blocks->size * 2 : LARGEST_BLOCK;
    if (size < bytes)
        size = bytes;
    sp_arena_block *block = malloc(sizeof *block + size);
    if (!block)
        return NULL;
    block->next = arena->blocks;
    block->size = size;
    block->used = 0;
    arena->blocks = block;
    return block;
}

void *sp_arena_take(sp_arena *arena, size_t bytes)
{
    if (bytes > PTRDIFF_MAX - 64) {
        arena->failed = true;
        return NULL;
    }
    bytes = (bytes + 15) & ~(size_t)15;
    sp_arena_block *block = arena->blocks;
    if (!block || block->size - block->used < bytes)
        block = add_block(arena, bytes);
    if (!block) {
        arena->failed = true;
        return NULL;
    }
    void *result = block->data + block->used;
    block->used += bytes;
    arena->used_bytes += bytes;
    return result;
}

void *sp_arena_alloc(sp_arena *arena, size_t bytes)
{
    void *result = sp_arena_take(arena, bytes);
    return result ? memset(result, 0, bytes) : NULL;
}

void *sp_arena_array(sp_arena *arena, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        arena->failed = true;
        return NULL;
    }
    return sp_arena_alloc(arena, bytes);
}

void *sp_arena_memdup(sp_arena *arena, const void *data, size_t bytes)
{
    void *copy = sp_arena_take(arena, bytes);
    if (copy && bytes)
        memcpy(copy, data, bytes);
    return copy;
}

char *sp_arena_strndup(sp_arena *arena, const char *text, size_t length)
{
    char *copy = sp_arena_take(arena, length + 1);
    if (copy && length)
        memcpy(copy, text, length);
    if (copy)
        copy[length] = 0;
    return copy;
}

char *sp_arena_strdup(sp_arena *arena, const char *text)
{
    return sp_arena_strndup(arena, text, strlen(text));
}

char *sp_arena_printf(sp_arena *arena, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    char *text = length < 0 ? NULL : sp_arena_alloc(arena, (size_t)length + 1);
    if (!text)
        return NULL;
    va_start(arguments, format);
    vsnprintf(text, (size_t)length + 1, format, arguments);
    va_end(arguments);
    return text;
}

sp_arena_mark sp_arena_get_mark(const sp_arena *arena)
{
    return (sp_arena_mark){arena->blocks, arena->blocks ? arena->blocks->used : 0,
                           arena->used_bytes};
}

void sp_arena_go_back(sp_arena *arena, sp_arena_mark mark)
{
    while (arena->blocks != mark.block) {
        sp_arena_block *next = arena->blocks->next;
        free(arena->blocks);
        arena->blocks = next;
    }
    if (mark.block)
        mark.block->used = mark.block_used;
    arena->used_bytes = mark.used_bytes;
}

/* TO's current block stays the first. */
void sp_arena_join(sp_arena *to, sp_arena *from)
{
    sp_arena_block **end = to->blocks ? &to->blocks->next : &to->blocks;
    sp_arena_block *rest = *end;
    *end = from->blocks;
    while (*end)
        end = &(*end)->next;
    *end = rest;
    to->used_bytes += from->used_bytes;
    to->failed = to->failed || from->failed;
    *from = (sp_arena){0};
}

void sp_arena_reset(sp_arena *arena)
{
    sp_arena_block *block = arena->blocks;
    while (block && block->next) {
        sp_arena_block *next = block->next;
        free(block);
        block = next;
    }
    if (block)
        block->used = 0;
    arena->blocks = block;
    arena->used_bytes = 0;
    arena->failed = false;
}

void sp_arena_deinit(sp_arena *arena)
{
    sp_arena_reset(arena);
    free(arena->blocks);
    arena->blocks = NULL;
}
