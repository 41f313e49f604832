/* SPDX-License-Identifier: Apache-2.0 */
/* The calling thread's mask of blocked signals, set by a system call. The C library's functions
 * cannot be used, because under `spanprof run` they are wrapped, and keep the signal of ticks out
 * of the mask. Signal N is bit N - 1. Threads: any. Signals: safe. */
#ifndef SP_CORE_SIGNAL_MASK_SIG_H
#define SP_CORE_SIGNAL_MASK_SIG_H

#include <signal.h>
#include <stdint.h>

#include "core/syscall_sig.h"

#define SP_SIGNAL_BIT(signal) (UINT64_C(1) << ((signal)-1))
/* All signals except 32 and 33, which the C library uses to cancel threads and to change their user
 * ids. */
#define SP_SIGNALS_ALL (~(SP_SIGNAL_BIT(32) | SP_SIGNAL_BIT(33)))

/* Set the mask. Returns the previous mask. */
SP_SIGSAFE static inline uint64_t sp_signal_mask_set(uint64_t mask)
{
    uint64_t before = 0;
    sp_syscall6(SYS_rt_sigprocmask, SIG_SETMASK, (long)(uintptr_t)&mask, (long)(uintptr_t)&before,
                sizeof mask, 0, 0);
    return before;
}

#endif
