/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU's counter of time: no system call, no lock, a few nanoseconds. Its rate is constant but
 * unknown; measure it against a clock. Threads: any. Signals: safe. */
#ifndef SP_CORE_CYCLES_SIG_H
#define SP_CORE_CYCLES_SIG_H

#include "core/compiler.h"

SP_SIGSAFE static inline uint64_t sp_cycles(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t count;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(count));
    return count;
#else
#error "sp_cycles: this architecture is not supported yet"
#endif
}

#endif
