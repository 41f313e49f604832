/* SPDX-License-Identifier: Apache-2.0 */
/* The registers of the calling code, for a walk that begins in ordinary code and not in a signal
 * handler. */
#ifndef SP_UNWIND_REGISTERS_HERE_H
#define SP_UNWIND_REGISTERS_HERE_H

#include "unwind/walk_sig.h"

/* All values are of one pc, and are loaded into registers that a walk does not need. The function
 * that this is expanded in must not return before the walk ends. */
static inline __attribute__((always_inline)) sp_registers sp_registers_here(void)
{
    sp_registers here = {.has_fp = true, .has_base = true};
#if defined(__x86_64__)
    __asm__ volatile("leaq 0(%%rip), %0\n\tmovq %%rsp, %1\n\tmovq %%rbp, %2\n\tmovq %%rbx, %3"
                     : "=&a"(here.pc), "=&c"(here.sp), "=&d"(here.fp), "=&S"(here.base));
#elif defined(__aarch64__)
    register uint64_t pc __asm__("x9"), sp __asm__("x10"), fp __asm__("x11"), base __asm__("x12"),
        link __asm__("x13");
    __asm__ volatile("adr %0, .\n\tmov %1, sp\n\tmov %2, x29\n\tmov %3, x19\n\tmov %4, x30"
                     : "=&r"(pc), "=&r"(sp), "=&r"(fp), "=&r"(base), "=&r"(link));
    here.pc = pc, here.sp = sp, here.fp = fp, here.base = base, here.link = link;
    here.has_link = true;
#else
#error "spanprof samples on x86-64 and aarch64"
#endif
    return here;
}

/* The address of the thread's control block. */
static inline uint64_t sp_thread_pointer_here(void)
{
    uint64_t pointer;
#if defined(__x86_64__)
    __asm__("movq %%fs:0, %0" : "=r"(pointer)); /* the C library keeps it there, too */
#else
    __asm__("mrs %0, tpidr_el0" : "=r"(pointer));
#endif
    return pointer;
}

#endif
