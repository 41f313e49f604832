/* SPDX-License-Identifier: Apache-2.0 */
/* What a sanitizer's own runtime cannot do. */
#ifndef SPANPROF_TESTS_SANITIZERS_H
#define SPANPROF_TESTS_SANITIZERS_H

#include <stddef.h>

/* Why a forked child of a process with threads cannot use memory and make threads of its own here,
 * or NULL when it can. glibc's allocator is ready for a fork; ASan's is not. To TSan the child's
 * only thread races with those of the parent, which are not there. */
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

#endif
