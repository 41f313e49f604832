/* SPDX-License-Identifier: Apache-2.0 */
/* Without a stop the kernel does not give thread pointers, but it gives the address of a thread's
 * list of robust mutexes. With glibc that list is in the thread's control block, which begins at
 * the thread pointer. On x86-64 the block has its own address in two places, which identify its
 * begin without a doubt. On other architectures, and with other C libraries, there is no such mark.
 */
#include <sys/syscall.h>
#include <unistd.h>

#include "outside/outside_internal.h"

#if defined(__x86_64__)
/* The list begins less than a page after the begin of the block (0x2e0 in glibc 2.36). */
enum { BLOCK_WORDS = 512, SELF_AT = 2 };

uint64_t sp_outside_thread_pointer(pid_t pid, pid_t tid)
{
    uint64_t words[BLOCK_WORDS + SELF_AT], list = 0;
    size_t length;
    if (syscall(SYS_get_robust_list, tid, &list, &length) != 0 || list % 8 || !list)
        return 0;
    uint64_t low = list - BLOCK_WORDS * sizeof words[0];
    size_t first = 0;
    if (!sp_outside_copy(pid, words, low, sizeof words)) {
        /* The page in front of the block is of another mapping, or not mapped. */
        first = (4096 - low % 4096) / sizeof words[0];
        if (first >= BLOCK_WORDS ||
            !sp_outside_copy(pid, words + first, low + first * sizeof words[0],
                             sizeof words - first * sizeof words[0]))
            return 0;
    }
    for (size_t i = BLOCK_WORDS; i > first; i--) {
        uint64_t address = low + (i - 1) * sizeof words[0];
        if (words[i - 1] == address && words[i - 1 + SELF_AT] == address)
            return address;
    }
    return 0;
}
#else
uint64_t sp_outside_thread_pointer(pid_t pid, pid_t tid)
{
    (void)pid;
    (void)tid;
    return 0;
}
#endif
