/* SPDX-License-Identifier: Apache-2.0 */
/* The interposed functions of the malloc family. A block that is not sampled costs two loads and
 * two branches before the jump to the next allocator, and one load and one branch before its
 * free. */
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "core/atomic.h"
#include "core/compiler.h"
#include "preload/next.h"
#include "preload/preload.h"

#define PUBLIC __attribute__((visibility("default")))

static sp_preload preload = {.version = SP_PRELOAD_VERSION};

static __thread sp_sampling_thread self __attribute__((tls_model("initial-exec")));

PUBLIC sp_preload *spanprof_preload(uint32_t version);

PUBLIC sp_preload *spanprof_preload(uint32_t version)
{
    return version == SP_PRELOAD_VERSION ? &preload : NULL;
}

void sp_filter_mark(const void *pointer)
{
    sp_store_relaxed(&preload.filter[sp_filter_index(pointer)], UINT8_MAX);
}

/* --- counting --------------------------------------------------------------------------------- */

/* How much a thread may allocate before it checks whether the SDK runs: no limit. passes() detects
 * a change of the run at once. */
#define IDLE_BYTES (UINT64_MAX / 2)

/* Whether a block of BYTES is not sampled. A thread also compares its run with the current one
 * while nothing is sampled, so that both cases take the same path. */
static inline bool passes(size_t bytes)
{
    if (SP_UNLIKELY(bytes >= self.left || self.run != sp_load_relaxed(&preload.run)))
        return false;
    self.left -= bytes;
    return true;
}

static __attribute__((noinline)) void *report(void *pointer, size_t bytes,
                                              const void *return_address)
{
    sp_alloc_seen *seen = sp_load_acquire(&preload.seen);
    if (sp_load_relaxed(&preload.run) == 0) {
        self.run = 0;
        self.left = IDLE_BYTES;
    } else if (pointer && seen) {
        seen(&self, pointer, bytes, return_address);
    }
    return pointer;
}

static inline bool may_be_sampled(const void *pointer)
{
    return SP_UNLIKELY(sp_load_relaxed(&preload.filter[sp_filter_index(pointer)]) != 0);
}

#define RETURN_ADDRESS __builtin_return_address(0)

/* --- allocate --------------------------------------------------------------------------------- */

PUBLIC void *malloc(size_t bytes)
{
    if (SP_LIKELY(passes(bytes)))
        return sp_next.malloc(bytes);
    return report(sp_next.malloc(bytes), bytes, RETURN_ADDRESS);
}

PUBLIC void *calloc(size_t count, size_t bytes)
{
    size_t all;
    if (SP_UNLIKELY(__builtin_mul_overflow(count, bytes, &all)) || SP_LIKELY(passes(all)))
        return sp_next.calloc(count, bytes);
    return report(sp_next.calloc(count, bytes), all, RETURN_ADDRESS);
}

PUBLIC int posix_memalign(void **out, size_t alignment, size_t bytes)
{
    if (SP_LIKELY(passes(bytes)))
        return sp_next.posix_memalign(out, alignment, bytes);
    int error = sp_next.posix_memalign(out, alignment, bytes);
    if (error == 0)
        report(*out, bytes, RETURN_ADDRESS);
    return error;
}

PUBLIC void *aligned_alloc(size_t alignment, size_t bytes)
{
    if (SP_LIKELY(passes(bytes)))
        return sp_next.aligned_alloc(alignment, bytes);
    return report(sp_next.aligned_alloc(alignment, bytes), bytes, RETURN_ADDRESS);
}

PUBLIC void *memalign(size_t alignment, size_t bytes)
{
    if (SP_LIKELY(passes(bytes)))
        return sp_next.memalign(alignment, bytes);
    return report(sp_next.memalign(alignment, bytes), bytes, RETURN_ADDRESS);
}

PUBLIC void *valloc(size_t bytes)
{
    if (SP_LIKELY(passes(bytes)))
        return sp_next.valloc(bytes);
    return report(sp_next.valloc(bytes), bytes, RETURN_ADDRESS);
}

PUBLIC void *pvalloc(size_t bytes)
{
    if (SP_LIKELY(passes(bytes)))
        return sp_next.pvalloc(bytes);
    return report(sp_next.pvalloc(bytes), bytes, RETURN_ADDRESS);
}

/* --- free ------------------------------------------------------------------------------------- */

/* The SDK is called before the next allocator frees the block, because another thread may get the
 * block right after. */
static __attribute__((noinline)) void free_slowly(void *pointer)
{
    sp_alloc_freed *freed = sp_load_acquire(&preload.freed);
    if (sp_bootstrap_has(pointer))
        return;
    if (freed)
        freed(pointer);
    sp_next.free(pointer);
}

PUBLIC void free(void *pointer)
{
    if (may_be_sampled(pointer))
        free_slowly(pointer);
    else
        sp_next.free(pointer);
}

PUBLIC size_t malloc_usable_size(void *pointer)
{
    if (may_be_sampled(pointer) && sp_bootstrap_has(pointer))
        return sp_bootstrap_bytes(pointer);
    return sp_next.malloc_usable_size(pointer);
}

/* --- reallocate ------------------------------------------------------------------------------- */

static void *leave_bootstrap(void *pointer, size_t bytes)
{
    size_t before = sp_bootstrap_bytes(pointer);
    void *moved = sp_next.malloc(bytes);
    if (moved)
        memcpy(moved, pointer, before < bytes ? before : bytes);
    return moved;
}

static __attribute__((noinline)) void *realloc_slowly(void *pointer, size_t bytes)
{
    sp_alloc_freed *freed =
        sp_load_acquire(&preload.freed); /* hold and settle were stored before */
    if (sp_bootstrap_has(pointer))
        return leave_bootstrap(pointer, bytes);
    sp_alloc_settle *settle = sp_load_relaxed(&preload.settle);
    uint32_t held = freed ? sp_load_relaxed(&preload.hold)(pointer) : 0;
    void *moved = sp_next.realloc(pointer, bytes);
    if (held)
        settle(held, moved != NULL || bytes == 0);
    return moved;
}

/* Counts as a free of the old block and an allocation of a new one. */
static inline void *reallocate(void *pointer, size_t bytes, const void *return_address)
{
    void *moved =
        may_be_sampled(pointer) ? realloc_slowly(pointer, bytes) : sp_next.realloc(pointer, bytes);
    return SP_LIKELY(passes(bytes)) ? moved : report(moved, bytes, return_address);
}

PUBLIC void *realloc(void *pointer, size_t bytes)
{
    return reallocate(pointer, bytes, RETURN_ADDRESS);
}

PUBLIC void *reallocarray(void *pointer, size_t count, size_t bytes)
{
    size_t all;
    if (!__builtin_mul_overflow(count, bytes, &all))
        return reallocate(pointer, all, RETURN_ADDRESS);
    errno = ENOMEM;
    return NULL;
}

/* --- blocks of maps.c ------------------------------------------------------------------------- */

int sp_maps_are_counted(void)
{
    return SP_UNLIKELY(sp_load_relaxed(&preload.maps) != 0);
}

void sp_block_count(void *pointer, size_t bytes, const void *return_address)
{
    int error = errno;
    if (!passes(bytes))
        report(pointer, bytes, return_address);
    errno = error;
}

void sp_block_forget(void *pointer)
{
    sp_alloc_freed *freed = sp_load_acquire(&preload.freed);
    if (may_be_sampled(pointer) && freed)
        freed(pointer);
}

uint32_t sp_block_hold(void *pointer)
{
    sp_alloc_freed *freed =
        sp_load_acquire(&preload.freed); /* hold and settle were stored before */
    return may_be_sampled(pointer) && freed ? sp_load_relaxed(&preload.hold)(pointer) : 0;
}

void sp_block_settle(uint32_t held, int is_freed)
{
    sp_load_relaxed (&preload.settle)(held, is_freed != 0);
}
