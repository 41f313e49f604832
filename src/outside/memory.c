/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/uio.h>

#include "outside/memory.h"

bool sp_outside_copy(pid_t pid, void *out, uint64_t address, size_t bytes)
{
    struct iovec to = {.iov_base = out, .iov_len = bytes};
    struct iovec from = {.iov_base = (void *)(uintptr_t)address, .iov_len = bytes}; // NOLINT
    return process_vm_readv(pid, &to, 1, &from, 1, 0) == (ssize_t)bytes;
}
