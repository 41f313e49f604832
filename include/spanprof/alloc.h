/* SPDX-License-Identifier: Apache-2.0 */
/* For the author of an allocator: an arena, a pool, or a static program's malloc. malloc and its
 * like do not need it, because libspanprof-preload.so intercepts them. While no allocations are
 * sampled (SPANPROF_PROFILES without alloc and heap, or the SDK does not run), a call costs a load
 * and a branch.
 *
 * Threads: any.  Signals: safe.  Fork: the child does not sample. */
#ifndef SPANPROF_ALLOC_H
#define SPANPROF_ALLOC_H

#include <stdbool.h>
#include <stddef.h>

#include <spanprof/status.h>

SPANPROF_BEGIN_DECLS

/* The allocator has just made a block of BYTES at POINTER, and is about to hand it out. The SDK
 * counts the bytes, and samples the block when it is its turn. The stack of the sample begins with
 * the caller of this function. POINTER is any address that no other live block has, a multiple of
 * 2; NULL, and a block of 0 bytes, are never sampled. Returns whether the block was sampled: then,
 * and only then, spanprof_alloc_freed must be called before it is given back. Since 0.1. */
SPANPROF_API bool spanprof_alloc_sampled(void *pointer, size_t bytes);

/* The block at POINTER is about to be given back; it cannot have been handed out again yet. For a
 * block that was not sampled the call does nothing, and costs a load. Since 0.1. */
SPANPROF_API void spanprof_alloc_freed(void *pointer);

SPANPROF_END_DECLS

#endif
