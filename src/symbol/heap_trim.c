/* SPDX-License-Identifier: Apache-2.0 */
/* malloc_trim(3) gives back what is free between blocks, in each arena, but the end only of the
 * main one (glibc 2.36); and a thread's arena keeps at its end what it held at most, here libdw's
 * inflated sections, megabytes. So the end is taken in pieces until one is found that has no memory
 * behind it, their pages are given back, and the pieces freed: what they held is undefined, before
 * and after. With another allocator the pieces are just blocks. */
#include "symbol/heap_trim.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

/* AddressSanitizer writes into each block that it gives out, so no piece would be without memory.
 */
#ifdef __SANITIZE_ADDRESS__
enum { PIECES = 4 };
#else
enum { PIECES = 256 };
#endif

/* Smaller than what is mapped by itself. */
enum { PIECE_BYTES = 120 * 1024, PAGE_BYTES = 4096 };

/* The whole pages inside a piece: FIRST, and how many. */
static size_t inner_pages(void *piece, char **first)
{
    uintptr_t begin = ((uintptr_t)piece + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
    uintptr_t end = ((uintptr_t)piece + PIECE_BYTES) / PAGE_BYTES * PAGE_BYTES;
    *first = (char *)piece + (begin - (uintptr_t)piece);
    return (end - begin) / PAGE_BYTES;
}

static bool has_memory(void *piece)
{
    unsigned char resident[PIECE_BYTES / PAGE_BYTES];
    char *first;
    size_t count = inner_pages(piece, &first);
    if (mincore(first, count * PAGE_BYTES, resident) != 0)
        return false;
    for (size_t i = 0; i < count; i++)
        if (resident[i] & 1)
            return true;
    return false;
}

void sp_heap_trim_end(void)
{
    void *pieces[PIECES];
    size_t count = 0;
    while (count < PIECES && (pieces[count] = malloc(PIECE_BYTES)) && has_memory(pieces[count++]))
        ;
    for (size_t i = 0; i < count; i++) {
        char *first;
        size_t pages = inner_pages(pieces[i], &first);
        madvise(first, pages * PAGE_BYTES, MADV_DONTNEED);
    }
    while (count > 0)
        free(pieces[--count]);
}
