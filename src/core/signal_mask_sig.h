/* SPDX-License-Identifier: Apache-2.0 */
/* The calling thread's mask of blocked signals, set past the C library: under `spanprof run` its
 * functions are the program's, and keep the signal of ticks out of the mask. Signal N is bit
 * N - 1.  Threads: any.  Signals: safe. */
#ifndef SP_CORE_SIGNAL_MASK_SIG_H
#define SP_CORE_SIGNAL_MASK_SIG_H

#include <signal.h>
#include <stdint.h>

#include "core/syscall_sig.h"

#define SP_SIGNAL_BIT(signal) (UINT64_C(1) << ((signal)-1))
/* But 32 and 33, by which the C library ends threads and changes their user. */
#define SP_SIGNALS_ALL (~(SP_SIGNAL_BIT(32) | SP_SIGNAL_BIT(33)))

/* The mask before. */
SP_SIGSAFE static inline uint64_t sp_signal_mask_set(uint64_t mask)
{
    uint64_t before = 0;
    sp_syscall6(SYS_rt_sigprocmask, SIG_SETMASK, (long)(uintptr_t)&mask, (long)(uintptr_t)&before,
                sizeof mask, 0, 0);
    return before;
}

#endif
