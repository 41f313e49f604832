/* SPDX-License-Identifier: Apache-2.0 */
/* System calls without libc: errno is not touched, no cancellation point, no lazy binding. For code
 * in signal handlers. Threads: any.  Signals: safe. */
#ifndef SP_CORE_SYSCALL_SIG_H
#define SP_CORE_SYSCALL_SIG_H

#include <sys/syscall.h> /* the numbers, SYS_… */

#include "core/compiler.h"

/* The kernel's result, or -errno in [-4095, -1]. Arguments that a call does not have are 0. */
SP_SIGSAFE static inline long sp_syscall6(long number, long a, long b, long c, long d, long e,
                                          long f)
{
#if defined(__x86_64__)
    long result;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
#elif defined(__aarch64__)
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;
    __asm__ volatile("svc 0"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                     : "memory");
    return x0;
#else
#error "sp_syscall6: this architecture is not supported yet"
#endif
}

#endif
