/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes for the compiler, and small helpers that every folder uses. */
#ifndef SP_CORE_COMPILER_H
#define SP_CORE_COMPILER_H

#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>

/* Marks a function that a signal handler may call (docs/design/sampling.md, the handler's charter).
 * AddressSanitizer and UBSan do not check it, because it reads other functions' stack frames on
 * purpose. ThreadSanitizer does, because it has to know the order of its atomics. */
#if defined(__clang__)
#define SP_SIGSAFE __attribute__((annotate("sp_sigsafe"), no_sanitize("address", "undefined")))
#else
#define SP_SIGSAFE __attribute__((no_sanitize("address", "undefined")))
#endif

#define SP_PRINTF(text, first) __attribute__((__format__(__printf__, text, first)))
#define SP_UNUSED              __attribute__((unused))
#define SP_LIKELY(x)           __builtin_expect(!!(x), 1)
#define SP_UNLIKELY(x)         __builtin_expect(!!(x), 0)

#define SP_ARRAY_LENGTH(array) (sizeof(array) / sizeof((array)[0]))

#define SP_CACHE_LINE 64

/* Begin to fetch the cache line of ADDRESS, which may be any value, to write to it. The compiler
 * emits prefetchw only for a target that is known to have it, so it is written in assembly; x86-64
 * processors without it ignore it. */
static inline void sp_prefetch_write(const void *address)
{
#if defined(__x86_64__)
    __asm__ volatile("prefetchw %0" : : "m"(*(const char *)address));
#else
    __builtin_prefetch(address, 1);
#endif
}

static inline uint64_t sp_min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static inline uint64_t sp_max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

#endif
