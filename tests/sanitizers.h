/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of the sanitizers' runtimes. */
#ifndef SPANPROF_TESTS_SANITIZERS_H
#define SPANPROF_TESTS_SANITIZERS_H

#include <stdbool.h>
#include <stddef.h>
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/lsan_interface.h>
#endif

/* Why a forked child of a process with threads cannot allocate memory and start threads in this
 * build; NULL when it can. glibc's allocator prepares for a fork; ASan's does not. TSan reports
 * races of the child's only thread with the parent's threads, which the child does not have. */
static inline const char *why_forked_child_cannot_start(void)
{
#if defined(__SANITIZE_THREAD__)
    return "TSan cannot make threads after a fork";
#elif defined(__SANITIZE_ADDRESS__)
    return "ASan's allocator leaves its locks in the child as other threads held them";
#else
    return NULL;
#endif
}

/* From here to allow_leaks(false), what this thread allocates may stay: a run that a stop had to
 * abandon keeps its resource, because a thread may still read it. */
static inline void allow_leaks(bool may)
{
#if defined(__SANITIZE_ADDRESS__)
    if (may)
        __lsan_disable();
    else
        __lsan_enable();
#else
    (void)may;
#endif
}

#endif
