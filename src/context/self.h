/* SPDX-License-Identifier: Apache-2.0 */
/* The thread-local pointer to the calling thread's state. Only for the files of this folder,
 * because they are compiled with the cheapest TLS dialect. */
#ifndef SP_CONTEXT_SELF_H
#define SP_CONTEXT_SELF_H

#include "context/thread.h"

extern __attribute__((visibility("hidden"))) _Thread_local sp_thread *sp_self;

/* glibc before 2.40 may clobber vector registers when a TLS descriptor is resolved for the first
 * time on a thread (glibc bug 31372). The barrier tells the compiler that no vector register keeps
 * its value across the access; it costs no instruction. */
#if defined(__x86_64__) && !defined(__clang__)
#define SP_VECTOR_BARRIER()                                                                        \
    __asm__ volatile("" ::                                                                         \
                         : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", \
                           "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15")
#else
#define SP_VECTOR_BARRIER() ((void)0) /* no TLS descriptors there, or no such fault */
#endif

static inline sp_thread *sp_self_get(void)
{
    SP_VECTOR_BARRIER();
    sp_thread *thread = sp_self;
    __asm__ volatile("" : "+r"(thread));
    SP_VECTOR_BARRIER();
    return thread;
}

#endif
