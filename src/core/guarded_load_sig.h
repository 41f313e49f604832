/* SPDX-License-Identifier: Apache-2.0 */
/* Loads from addresses that may not be mapped, by asking the kernel to copy (process_vm_readv on
 * the own process): a bad address is an error code, not a fault, so no SIGSEGV handler has to be
 * installed. A call costs over a microsecond, so a whole block is read at once and kept: stacks are
 * read upwards, and the next load is mostly in the same block. Where a seccomp policy forbids the
 * call, every guarded load fails, and walks end as SP_WALK_BAD_MEMORY. */
#ifndef SP_CORE_GUARDED_LOAD_SIG_H
#define SP_CORE_GUARDED_LOAD_SIG_H

#include <sys/uio.h>

#include "core/compiler.h"
#include "core/syscall_sig.h"

/* Divides the page size, so that a block is mapped as a whole or not at all. */
#define SP_GUARDED_BLOCK_BYTES 1024u

/* words is a copy of the block at the address `block`. 1, which cannot be a block's address, means
 * that nothing was read yet. */
typedef struct sp_guarded {
    uint64_t block;
    long pid; /* 0: not read yet */
    uint64_t words[SP_GUARDED_BLOCK_BYTES / 8];
} sp_guarded;

/* Set field by field, because an initializer would clear the whole block on each tick. */
SP_SIGSAFE static inline void sp_guarded_init(sp_guarded *guarded)
{
    guarded->block = 1;
    guarded->pid = 0;
}

/* The pid of the calling process. It is not cached, because a fork changes it. */
SP_SIGSAFE static inline long sp_own_pid(void)
{
    return sp_syscall6(SYS_getpid, 0, 0, 0, 0, 0, 0);
}

/* Copy BYTES at ADDRESS to OUT; false when not all of them can be read. PID is the calling
 * process. */
SP_SIGSAFE static inline bool sp_guarded_read(long pid, void *out, uint64_t address, uint64_t bytes)
{
    struct iovec to = {.iov_base = out, .iov_len = bytes};
    struct iovec from = {.iov_base = (void *)(uintptr_t)address, .iov_len = bytes}; // NOLINT
    return sp_syscall6(SYS_process_vm_readv, pid, (long)(uintptr_t)&to, 1, (long)(uintptr_t)&from,
                       1, 0) == (long)bytes;
}

/* The same; it finds the pid itself. */
SP_SIGSAFE static inline bool sp_guarded_copy(sp_guarded *guarded, void *out, uint64_t address,
                                              uint64_t bytes)
{
    if (!guarded->pid)
        guarded->pid = sp_own_pid();
    return sp_guarded_read(guarded->pid, out, address, bytes);
}

/* Load the word at ADDRESS into *OUT. False when it cannot be read, or ADDRESS is not a multiple of
 * 8. */
SP_SIGSAFE static inline bool sp_guarded_load(sp_guarded *guarded, uint64_t address, uint64_t *out)
{
    uint64_t block = address & ~(uint64_t)(SP_GUARDED_BLOCK_BYTES - 1);
    if (address % 8)
        return false;
    if (block != guarded->block) {
        guarded->block = 1;
        if (!sp_guarded_copy(guarded, guarded->words, block, SP_GUARDED_BLOCK_BYTES))
            return false;
        guarded->block = block;
    }
    *out = guarded->words[(address - block) / 8];
    return true;
}

#endif
