/* SPDX-License-Identifier: Apache-2.0 */
/* qemu-user does not have process_vm_readv, so every guarded load fails there. For the tests under
 * qemu-user the walk is compiled a second time, with this file included first. Here the load is a
 * write to a file in memory and a read from this file: the emulator checks the address of a write,
 * too. */
#ifndef TESTS_EMULATOR_SIG_H
#define TESTS_EMULATOR_SIG_H

#include <sys/uio.h>

#include "core/syscall_sig.h"

SP_SIGSAFE static inline long emulator_copy(const struct iovec *to, const struct iovec *from)
{
    static int file;
    if (!file)
        file = (int)sp_syscall6(SYS_memfd_create, (long)(uintptr_t) "guarded", 0, 0, 0, 0, 0);
    long count = (long)from->iov_len;
    if (sp_syscall6(SYS_pwrite64, file, (long)(uintptr_t)from->iov_base, count, 0, 0, 0) != count)
        return -1;
    return sp_syscall6(SYS_pread64, file, (long)(uintptr_t)to->iov_base, count, 0, 0, 0);
}

SP_SIGSAFE static inline long emulator_syscall6(long number, long a, long b, long c, long d, long e,
                                                long f)
{
    if (number != SYS_process_vm_readv)
        return sp_syscall6(number, a, b, c, d, e, f);
    return emulator_copy((const struct iovec *)(uintptr_t)b, (const struct iovec *)(uintptr_t)d);
}

#define sp_syscall6 emulator_syscall6

#endif
