/* SPDX-License-Identifier: Apache-2.0 */
/* The malloc of a program that has its own: it never gives anything back. */
#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { ALIGNMENT = 16 };
#define ROOM_BYTES ((size_t)4 << 30)

static _Atomic(uint8_t *) room;
static _Atomic size_t used;

/* The size of a block stands in front of it. */
void *malloc(size_t bytes)
{
    if (!room) {
        void *mapped = mmap(NULL, ROOM_BYTES, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        uint8_t *none = NULL;
        atomic_compare_exchange_strong(&room, &none, mapped);
    }
    size_t whole = (bytes + 2 * ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    size_t at = bytes < ROOM_BYTES ? atomic_fetch_add(&used, whole) : ROOM_BYTES;
    if (at + whole > ROOM_BYTES || at + whole < at) {
        errno = ENOMEM;
        return NULL;
    }
    *(size_t *)(void *)(room + at) = bytes;
    return room + at + ALIGNMENT;
}

void free(void *pointer)
{
    (void)pointer;
}

void *calloc(size_t count, size_t bytes)
{
    return malloc(count * bytes); /* it is zero */
}

void *realloc(void *pointer, size_t bytes)
{
    void *moved = malloc(bytes);
    size_t before = pointer ? ((size_t *)pointer)[-2] : 0;
    if (moved && pointer)
        memcpy(moved, pointer, before < bytes ? before : bytes);
    return moved;
}
