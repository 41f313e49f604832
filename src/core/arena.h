/* SPDX-License-Identifier: Apache-2.0 */
/* An arena: many small allocations that are freed at once. All memory of one export is in one
 * arena. Threads: one at a time. Signals: not safe. */
#ifndef SP_CORE_ARENA_H
#define SP_CORE_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct sp_arena_block sp_arena_block;

/* Zero-initialised is an empty arena. Once an allocation failed, `failed` stays true until the
 * reset, so that a builder may check once at its end. */
typedef struct sp_arena {
    sp_arena_block *blocks;
    size_t used_bytes; /* handed out since the last reset */
    bool failed;
} sp_arena;

/* BYTES of zeroed memory aligned to 16, or NULL. Valid until reset or deinit. */
void *sp_arena_alloc(sp_arena *arena, size_t bytes);
/* The same, not zeroed. */
void *sp_arena_take(sp_arena *arena, size_t bytes);
/* COUNT elements of SIZE bytes; NULL also when their product overflows. */
void *sp_arena_array(sp_arena *arena, size_t count, size_t size);
char *sp_arena_strdup(sp_arena *arena, const char *text);
/* LENGTH bytes of TEXT, followed by a NUL. */
char *sp_arena_strndup(sp_arena *arena, const char *text, size_t length);
void *sp_arena_memdup(sp_arena *arena, const void *data, size_t bytes);
char *sp_arena_printf(sp_arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* A moment in an arena's life, to which it can go back: what was handed out since is freed. */
typedef struct sp_arena_mark {
    sp_arena_block *block;
    size_t block_used, used_bytes;
} sp_arena_mark;
sp_arena_mark sp_arena_get_mark(const sp_arena *arena);
/* No other arena was joined to this one since MARK. */
void sp_arena_go_back(sp_arena *arena, sp_arena_mark mark);

/* Move all blocks of FROM to TO. Pointers into them stay valid; FROM is empty afterwards. */
void sp_arena_join(sp_arena *to, sp_arena *from);
/* Free everything except the first block, which is kept for reuse. */
void sp_arena_reset(sp_arena *arena);
void sp_arena_deinit(sp_arena *arena);

#endif
