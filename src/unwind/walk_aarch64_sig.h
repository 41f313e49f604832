/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a walk that depend on aarch64: where the kernel saves registers, and how the
 * instructions around a frame look.
 *
 * A call leaves the return address in the link register. A function that calls others saves it
 * beside the frame pointer: {x29, x30} is a frame record, x29 points to the newest, and where it
 * lies within its frame is the compiler's choice. */
#ifndef SP_UNWIND_WALK_AARCH64_SIG_H
#define SP_UNWIND_WALK_AARCH64_SIG_H

#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <ucontext.h>

#include "core/compiler.h"
#include "unwind/unwind_rule.h"
#include "unwind/walk_sig.h"

#define SP_MACHINE_CODE_BEFORE 16 /* bytes of code that the functions below may read: */
#define SP_MACHINE_CODE_BYTES  24 /* before a pc, and from it on */

/* A frame record does not determine the caller's stack pointer. */
#define SP_MACHINE_RECORD_GIVES_SP false

/* Linux has no frame information for its trampoline; that of older kernels wrongly gives the link
 * register as the pc. */
#define SP_MACHINE_SIGNAL_BY_BYTES true

/* What the instructions around a pc without unwind rule say about the frame. */
typedef enum sp_shape_kind {
    SP_FRAME_SET_UP,  /* fp points to the frame record */
    SP_FRAME_ENTERED, /* the return address is at sp + offset, the caller's stack above it */
    SP_FRAME_PUSHED,  /* the frame record is at sp + offset, fp still the caller's */
    SP_FRAME_LINKED,  /* the return address is in the link register, sp is the caller's */
    SP_FRAME_SIGNAL,  /* in the signal trampoline, sp as at the handler's return */
} sp_shape_kind;

typedef struct sp_frame_shape {
    sp_shape_kind kind;
    uint32_t offset;
} sp_frame_shape;

/* x0 to x30, sp and pc are stored one after the other, in the order of their DWARF numbers. */
_Static_assert(offsetof(mcontext_t, sp) == offsetof(mcontext_t, regs) + 8 * SP_DWARF_SP &&
                   offsetof(mcontext_t, pc) == offsetof(mcontext_t, regs) + 8 * SP_DWARF_PC,
               "sp_machine_register_address counts on it");

SP_SIGSAFE static inline sp_registers sp_machine_registers(const ucontext_t *context)
{
    const mcontext_t *machine = &context->uc_mcontext;
    return (sp_registers){.pc = machine->pc,
                          .sp = machine->sp,
                          .fp = machine->regs[SP_DWARF_FP],
                          .base = machine->regs[SP_DWARF_BASE],
                          .link = machine->regs[SP_DWARF_RA],
                          .has_fp = true,
                          .has_base = true,
                          .has_link = true,
                          .context = (uint64_t)(uintptr_t)context};
}

/* The address of the register with DWARF number NUMBER in the ucontext at CONTEXT. */
SP_SIGSAFE static inline uint64_t sp_machine_register_address(uint64_t context, unsigned number)
{
    return context + offsetof(ucontext_t, uc_mcontext.regs) + UINT64_C(8) * number;
}

/* The kernel's signal frame begins with the siginfo, to which sp points when the handler has
 * returned. */
SP_SIGSAFE static inline uint64_t sp_machine_signal_context(uint64_t sp)
{
    return sp + sizeof(siginfo_t);
}

SP_SIGSAFE static inline sp_saved sp_machine_saved_by_kernel(unsigned number)
{
    return (sp_saved){
        .kind = SP_SAVED_AT_REGISTER,
        .base = SP_DWARF_SP,
        .offset = (int32_t)sp_machine_register_address(sp_machine_signal_context(0), number)};
}

/* The rule of a signal trampoline. */
SP_SIGSAFE static inline void sp_machine_signal_rule(sp_unwind_rule *rule)
{
    *rule = (sp_unwind_rule){.cfa_kind = SP_CFA_DEREF,
                             .cfa_register = SP_DWARF_SP,
                             .cfa_offset = sp_machine_saved_by_kernel(SP_DWARF_SP).offset,
                             .ra = sp_machine_saved_by_kernel(SP_DWARF_PC),
                             .fp = sp_machine_saved_by_kernel(SP_DWARF_FP),
                             .base = sp_machine_saved_by_kernel(SP_DWARF_BASE),
                             .is_signal_frame = 1};
}

/* A return address without its signature (pointer authentication). The instruction xpaclri (hint
 * #7) uses the processor's number of address bits; a mask would have to assume one. Older
 * processors execute it as a nop; they do not sign addresses. */
SP_SIGSAFE static inline uint64_t sp_machine_strip(uint64_t address)
{
    register uint64_t link __asm__("x30") = address;
    __asm__("hint #7" : "+r"(link));
    return link;
}

/* The instruction INDEX places after the one at CODE. */
SP_SIGSAFE static inline uint32_t sp_machine_word(const uint8_t *code, int index)
{
    uint32_t word;
    memcpy(&word, code + 4 * index, sizeof word);
    return word;
}

/* mov x8, #139; svc #0: rt_sigreturn. */
SP_SIGSAFE static inline bool sp_machine_is_trampoline(const uint8_t *code)
{
    return sp_machine_word(code, 0) == 0xd2801168 && sp_machine_word(code, 1) == 0xd4000001;
}

/* bti; paciasp, pacibsp; autiasp, autibsp; ret, retaa, retab; stp x29, x30, [sp, #-N]!: the first
 * or the last instruction of a function. */
SP_SIGSAFE static inline bool sp_machine_is_outside_frame(uint32_t word)
{
    static const uint32_t fixed[] = {0xd503233f, 0xd503237f, 0xd50323bf, 0xd50323ff,
                                     0xd65f03c0, 0xd65f0bff, 0xd65f0fff};
    for (unsigned i = 0; i < SP_ARRAY_LENGTH(fixed); i++)
        if (word == fixed[i])
            return true;
    bool is_bti = (word & ~UINT32_C(0xc0)) == 0xd503241f;
    bool is_push = (word & ~UINT32_C(0x1f8000)) == 0xa9a07bfd;
    return is_bti || is_push;
}

/* Whether WORD is an instruction of a PLT entry, or of a linker's veneer, before the branch: nop,
 * bti c; adrp x16; ldr x17, [x16, …]; add x16, x16, …; autia1716. */
SP_SIGSAFE static inline bool sp_machine_is_linkers(uint32_t word)
{
    return word == 0xd503201f || word == 0xd503245f || word == 0xd503219f ||
           (word & 0x9f00001f) == 0x90000010 || (word & 0xffc003ff) == 0xf9400211 ||
           (word & 0xff8003ff) == 0x91000210;
}

/* Whether CODE is in a PLT entry, which ends with br x16 or br x17. Its instructions change neither
 * the stack nor the link register, except in the common part of the lazy form, which begins with
 * stp x16, x30, [sp, #-16]!. */
SP_SIGSAFE static inline bool sp_machine_is_in_plt(const uint8_t *code)
{
    for (int i = 0; i < SP_MACHINE_CODE_BYTES / 4; i++) {
        uint32_t word = sp_machine_word(code, i);
        if (word == 0xd61f0200 || word == 0xd61f0220)
            return true;
        if (!sp_machine_is_linkers(word))
            return false;
    }
    return false;
}

SP_SIGSAFE static inline sp_frame_shape sp_machine_plt_shape(const uint8_t *code)
{
    for (int i = -1; i >= -SP_MACHINE_CODE_BEFORE / 4; i--) {
        uint32_t word = sp_machine_word(code, i);
        if (word == 0xa9bf7bf0)
            return (sp_frame_shape){.kind = SP_FRAME_ENTERED, .offset = 8};
        if (!sp_machine_is_linkers(word))
            break;
    }
    return (sp_frame_shape){.kind = SP_FRAME_LINKED};
}

/* CODE is the code at the interrupted pc; SP_MACHINE_CODE_BEFORE bytes before it can be read,
 * too. */
SP_SIGSAFE static inline sp_frame_shape sp_machine_frame_shape(const uint8_t *code)
{
    uint32_t word = sp_machine_word(code, 0);
    if (sp_machine_is_outside_frame(word) || word == 0xa9bf7bf0)
        return (sp_frame_shape){.kind = SP_FRAME_LINKED};
    if (sp_machine_is_in_plt(code))
        return sp_machine_plt_shape(code);
    if (sp_machine_is_trampoline(code) || sp_machine_is_trampoline(code - 4))
        return (sp_frame_shape){.kind = SP_FRAME_SIGNAL};
    bool makes_fp = (word & 0xffc003ff) == 0x910003fd; /* add x29, sp, #offset; mov is #0 */
    if (makes_fp)
        return (sp_frame_shape){.kind = SP_FRAME_PUSHED, .offset = word >> 10 & 0xfff};
    return (sp_frame_shape){.kind = SP_FRAME_SET_UP};
}

#define SP_MACHINE_CALL_BYTES 4

/* Whether BEFORE, the instruction before an address, is a call: bl, blr, or blr with
 * authentication. */
SP_SIGSAFE static inline bool sp_machine_is_after_call(const uint8_t *before)
{
    uint32_t word = sp_machine_word(before, 0);
    return (word & 0xfc000000) == 0x94000000 || (word & 0xfffffc1f) == 0xd63f0000 ||
           (word & 0xfefff800) == 0xd63f0800;
}

#endif
