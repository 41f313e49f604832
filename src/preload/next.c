/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/next.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "preload/preload.h"

/* --- blocks that are allocated during the search for the functions ---------------------------- */

enum { ROOM_BYTES = 64 * 1024, ALIGNMENT = 16 };

/* The size of a block is stored before it. */
static _Alignas(ALIGNMENT) uint8_t room[ROOM_BYTES];
static _Atomic size_t room_used;

static void *bootstrap_alloc(size_t bytes)
{
    size_t whole =
        bytes < ROOM_BYTES ? (bytes + 2 * ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT : ROOM_BYTES;
    size_t at = atomic_fetch_add(&room_used, whole);
    if (at > ROOM_BYTES || whole > ROOM_BYTES - at) {
        errno = ENOMEM;
        return NULL;
    }
    *(size_t *)(void *)(room + at) = bytes;
    sp_filter_mark(room + at + ALIGNMENT);
    return room + at + ALIGNMENT;
}

bool sp_bootstrap_has(const void *pointer)
{
    return (uintptr_t)pointer - (uintptr_t)room < ROOM_BYTES;
}

size_t sp_bootstrap_bytes(const void *pointer)
{
    return *(const size_t *)(const void *)((const uint8_t *)pointer - ALIGNMENT);
}

/* --- functions that are not found yet --------------------------------------------------------- */

static __thread int resolving __attribute__((tls_model("initial-exec")));

static int no_posix_memalign(void **out, size_t alignment, size_t bytes)
{
    (void)out, (void)alignment, (void)bytes;
    return ENOMEM;
}

static void *no_aligned(size_t alignment, size_t bytes)
{
    (void)alignment, (void)bytes;
    errno = ENOMEM;
    return NULL;
}

static void *no_pages(size_t bytes)
{
    (void)bytes;
    errno = ENOMEM;
    return NULL;
}

static size_t no_usable_size(void *pointer)
{
    (void)pointer;
    return 0;
}

static void *find(const char *name, void *otherwise)
{
    void *found = dlsym(RTLD_NEXT, name);
    return found ? found : otherwise;
}

/* Find all functions, and store them together, so that another thread finds either all or none.
 * False when this thread is inside this search already. */
static bool resolve(void)
{
    if (resolving)
        return false;
    resolving = 1;
    sp_next_allocator found;
    found.malloc = (void *(*)(size_t))find("malloc", NULL);
    found.calloc = (void *(*)(size_t, size_t))find("calloc", NULL);
    found.realloc = (void *(*)(void *, size_t))find("realloc", NULL);
    found.free = (void (*)(void *))find("free", NULL);
    found.posix_memalign =
        (int (*)(void **, size_t, size_t))find("posix_memalign", (void *)no_posix_memalign);
    found.aligned_alloc = (void *(*)(size_t, size_t))find("aligned_alloc", (void *)no_aligned);
    found.memalign = (void *(*)(size_t, size_t))find("memalign", (void *)no_aligned);
    found.valloc = (void *(*)(size_t))find("valloc", (void *)no_pages);
    found.pvalloc = (void *(*)(size_t))find("pvalloc", (void *)no_pages);
    found.malloc_usable_size =
        (size_t(*)(void *))find("malloc_usable_size", (void *)no_usable_size);
    if (!found.malloc || !found.calloc || !found.realloc || !found.free)
        abort(); /* a process cannot run without an allocator */
    sp_next = found;
    resolving = 0;
    return true;
}

static void *first_malloc(size_t bytes)
{
    return resolve() ? sp_next.malloc(bytes) : bootstrap_alloc(bytes);
}

static void *first_calloc(size_t count, size_t bytes)
{
    size_t all;
    if (resolve())
        return sp_next.calloc(count, bytes);
    return __builtin_mul_overflow(count, bytes, &all) ? NULL
                                                      : bootstrap_alloc(all); /* the room is zero */
}

static void *first_realloc(void *pointer, size_t bytes)
{
    return resolve() ? sp_next.realloc(pointer, bytes) : NULL;
}

static void first_free(void *pointer)
{
    if (pointer && resolve())
        sp_next.free(pointer);
}

static int first_posix_memalign(void **out, size_t alignment, size_t bytes)
{
    return resolve() ? sp_next.posix_memalign(out, alignment, bytes) : ENOMEM;
}

static void *first_aligned_alloc(size_t alignment, size_t bytes)
{
    return resolve() ? sp_next.aligned_alloc(alignment, bytes) : NULL;
}

static void *first_memalign(size_t alignment, size_t bytes)
{
    return resolve() ? sp_next.memalign(alignment, bytes) : NULL;
}

static void *first_valloc(size_t bytes)
{
    return resolve() ? sp_next.valloc(bytes) : NULL;
}

static void *first_pvalloc(size_t bytes)
{
    return resolve() ? sp_next.pvalloc(bytes) : NULL;
}

static size_t first_usable_size(void *pointer)
{
    return resolve() ? sp_next.malloc_usable_size(pointer) : 0;
}

sp_next_allocator sp_next = {
    .malloc = first_malloc,
    .calloc = first_calloc,
    .realloc = first_realloc,
    .free = first_free,
    .posix_memalign = first_posix_memalign,
    .aligned_alloc = first_aligned_alloc,
    .memalign = first_memalign,
    .valloc = first_valloc,
    .pvalloc = first_pvalloc,
    .malloc_usable_size = first_usable_size,
};
