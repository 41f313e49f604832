/* SPDX-License-Identifier: Apache-2.0 */
/* malloc_trim(3) returns free memory between blocks to the system in each arena, but free memory at
 * the end only in the main one (glibc 2.36). A thread's arena keeps at its end the most that it
 * ever held, here megabytes of libdw's inflated sections. So this code allocates pieces of that end
 * until one has no resident pages, returns the pages of all to the system, and frees the pieces.
 * Their contents are undefined anyway. With another allocator the pieces are ordinary blocks. */
#include "symbol/heap_trim.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

/* AddressSanitizer writes into each block that it allocates, so every piece would have resident
 * pages. */
#ifdef __SANITIZE_ADDRESS__
enum { PIECES = 4 };
#else
enum { PIECES = 256 };
#endif

/* A piece is smaller than the blocks for which malloc makes a mapping of their own (128 KiB). */
enum { PIECE_BYTES = 120 * 1024, PAGE_BYTES = 4096 };

/* The whole pages inside PIECE: the address of the FIRST; returns how many. */
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
