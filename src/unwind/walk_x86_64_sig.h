/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a walk that depend on x86-64: where the kernel saves registers, and how the
 * instructions around a frame look. */
#ifndef SP_UNWIND_WALK_X86_64_SIG_H
#define SP_UNWIND_WALK_X86_64_SIG_H

#include <stddef.h>
#include <ucontext.h>

#include "core/compiler.h"
#include "unwind/unwind_rule.h"
#include "unwind/walk_sig.h"

#define SP_MACHINE_CODE_BEFORE 6 /* bytes of code that the functions below may read: */
#define SP_MACHINE_CODE_BYTES  9 /* before a pc, and from it on */

/* The caller's stack pointer is the address after the return address, so a frame record determines
 * it. */
#define SP_MACHINE_RECORD_GIVES_SP true

/* libc's frame information for its trampoline is right. */
#define SP_MACHINE_SIGNAL_BY_BYTES false

/* What the first instructions at a pc without unwind rule say about the frame. */
typedef enum sp_shape_kind {
    SP_FRAME_SET_UP,  /* fp points to the saved fp, the return address above it */
    SP_FRAME_ENTERED, /* sp + offset points to the return address: before `push fp`, or at the `ret`
                       */
    SP_FRAME_PUSHED,  /* sp + offset points to the saved fp: between `push fp` and `mov sp to fp` */
    SP_FRAME_LINKED,  /* never */
    SP_FRAME_SIGNAL,  /* never */
} sp_shape_kind;

typedef struct sp_frame_shape {
    sp_shape_kind kind;
    uint32_t offset;
} sp_frame_shape;

SP_SIGSAFE static inline sp_registers sp_machine_registers(const ucontext_t *context)
{
    const greg_t *general = context->uc_mcontext.gregs;
    return (sp_registers){.pc = (uint64_t)general[REG_RIP],
                          .sp = (uint64_t)general[REG_RSP],
                          .fp = (uint64_t)general[REG_RBP],
                          .base = (uint64_t)general[REG_RBX],
                          .has_fp = true,
                          .has_base = true,
                          .context = (uint64_t)(uintptr_t)context};
}

/* The address of the register with DWARF number NUMBER in the ucontext at CONTEXT. */
SP_SIGSAFE static inline uint64_t sp_machine_register_address(uint64_t context, unsigned number)
{
    static const uint8_t position[SP_DWARF_REGISTERS] = {
        REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_R8,
        REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};
    return context + offsetof(ucontext_t, uc_mcontext.gregs) + UINT64_C(8) * position[number];
}

/* The kernel's signal frame begins with the return address into the trampoline; when the handler
 * has returned there, sp is at the ucontext. */
SP_SIGSAFE static inline uint64_t sp_machine_signal_context(uint64_t sp)
{
    return sp;
}

SP_SIGSAFE static inline sp_saved sp_machine_saved_by_kernel(unsigned number)
{
    return (sp_saved){.kind = SP_SAVED_AT_REGISTER,
                      .base = SP_DWARF_SP,
                      .offset = (int32_t)sp_machine_register_address(0, number)};
}

/* The rule of a signal trampoline, for those without frame information (musl). */
SP_SIGSAFE static inline void sp_machine_signal_rule(sp_unwind_rule *rule)
{
    *rule = (sp_unwind_rule){.cfa_kind = SP_CFA_DEREF,
                             .cfa_register = SP_DWARF_SP,
                             .cfa_offset = (int32_t)sp_machine_register_address(0, SP_DWARF_SP),
                             .ra = sp_machine_saved_by_kernel(SP_DWARF_RA),
                             .fp = sp_machine_saved_by_kernel(SP_DWARF_FP),
                             .base = sp_machine_saved_by_kernel(SP_DWARF_BASE),
                             .is_signal_frame = 1};
}

/* A return address without its signature. There are none on x86-64. */
SP_SIGSAFE static inline uint64_t sp_machine_strip(uint64_t address)
{
    return address;
}

/* mov $15, %rax; syscall: rt_sigreturn. */
SP_SIGSAFE static inline bool sp_machine_is_trampoline(const uint8_t *code)
{
    static const uint8_t expected[SP_MACHINE_CODE_BYTES] = {0x48, 0xc7, 0xc0, 0x0f, 0,
                                                            0,    0,    0x0f, 0x05};
    for (int i = 0; i < SP_MACHINE_CODE_BYTES; i++)
        if (code[i] != expected[i])
            return false;
    return true;
}

/* lld, gold and mold do not describe their procedure linkage table. Its entries have no frame, but
 * push up to two words on the way to the loader. Returns the number of bytes below the return
 * address, -1 if CODE is not part of such a table. The number is before each instruction:
 *
 *     entry         0: jmp *slot           0: push $index  8: jmp header
 *     entry, mold   0: mov $index, %r11d   0: jmp *slot
 *     header        8: push slot          16: jmp *slot
 *     header, mold  0: push %r11           8: push slot   16: jmp *slot
 *
 * With control flow protection, a jump has the prefix f2. */
SP_SIGSAFE static inline int sp_machine_linkage_offset(const uint8_t *code)
{
    const uint8_t *jump = code + (code[0] == 0xf2);
    if (jump[0] == 0xff && jump[1] == 0x25)
        return code[-6] == 0xff && code[-5] == 0x35 ? 16 : 0;
    if (jump[0] == 0xe9)
        return code[-5] == 0x68 ? 8 : -1;
    if (code[0] == 0x68)
        return code[5 + (code[5] == 0xf2)] == 0xe9 ? 0 : -1;
    if (code[0] == 0xff && code[1] == 0x35) {
        jump = code + 6 + (code[6] == 0xf2);
        return jump[0] == 0xff && jump[1] == 0x25 ? 8 : -1;
    }
    bool is_mold = (code[0] == 0x41 && code[1] == 0xbb && code[6] == 0xff && code[7] == 0x25) ||
                   (code[0] == 0x41 && code[1] == 0x53 && code[2] == 0xff && code[3] == 0x35);
    return is_mold ? 0 : -1;
}

/* CODE is the code at the interrupted pc. */
SP_SIGSAFE static inline sp_frame_shape sp_machine_frame_shape(const uint8_t *code)
{
    bool is_endbr = code[0] == 0xf3 && code[1] == 0x0f && code[2] == 0x1e && code[3] == 0xfa;
    bool is_push = code[0] == 0x55;
    bool is_return = code[0] == 0xc3 || code[0] == 0xc2;
    int linkage_offset = sp_machine_linkage_offset(code);
    if (is_endbr || is_push || is_return)
        return (sp_frame_shape){.kind = SP_FRAME_ENTERED};
    if (linkage_offset >= 0)
        return (sp_frame_shape){.kind = SP_FRAME_ENTERED, .offset = (uint32_t)linkage_offset};
    bool is_move = code[0] == 0x48 &&
                   ((code[1] == 0x89 && code[2] == 0xe5) || (code[1] == 0x8b && code[2] == 0xec));
    return (sp_frame_shape){.kind = is_move ? SP_FRAME_PUSHED : SP_FRAME_SET_UP};
}

#define SP_MACHINE_CALL_BYTES 7 /* the longest call instruction */

/* Whether BEFORE, the bytes before an address, ends with a call: e8 rel32, or ff /2 of two to seven
 * bytes. */
SP_SIGSAFE static inline bool sp_machine_is_after_call(const uint8_t *before)
{
    if (before[SP_MACHINE_CALL_BYTES - 5] == 0xe8)
        return true;
    for (int length = 2; length <= SP_MACHINE_CALL_BYTES; length++) {
        const uint8_t *call = before + SP_MACHINE_CALL_BYTES - length;
        if (call[0] == 0xff && (call[1] >> 3 & 7) == 2)
            return true;
    }
    return false;
}

#endif
