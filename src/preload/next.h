/* SPDX-License-Identifier: Apache-2.0 */
/* The next allocator after this library: the C library's, or jemalloc, tcmalloc and the like. */
#ifndef SP_PRELOAD_NEXT_H
#define SP_PRELOAD_NEXT_H

#include <stdbool.h>
#include <stddef.h>

typedef struct sp_next_allocator {
    void *(*malloc)(size_t bytes);
    void *(*calloc)(size_t count, size_t bytes);
    void *(*realloc)(void *pointer, size_t bytes);
    void (*free)(void *pointer);
    int (*posix_memalign)(void **out, size_t alignment, size_t bytes);
    void *(*aligned_alloc)(size_t alignment, size_t bytes);
    void *(*memalign)(size_t alignment, size_t bytes);
    void *(*valloc)(size_t bytes);
    void *(*pvalloc)(size_t bytes);
    size_t (*malloc_usable_size)(void *pointer);
} sp_next_allocator;

/* At first, each member is a function that finds all of them at its first call. */
extern sp_next_allocator sp_next;

/* The search for them may allocate. Those blocks are in a static array, and are never freed. */
bool sp_bootstrap_has(const void *pointer);
size_t sp_bootstrap_bytes(const void *pointer);

#endif
