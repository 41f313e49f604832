/* SPDX-License-Identifier: Apache-2.0 */
/* An unwind rule: how to get from one frame to its caller's. It covers the registers that a walk
 * needs: program counter, stack pointer, frame pointer, and a *base register*, in which
 * hand-written code that switches or realigns the stack keeps its frame (on x86-64 rbx, in the
 * loader's lazy binding). It has the content of DWARF call frame information for a program counter,
 * in a form that a signal handler can apply without an interpreter. A module has a few hundred
 * different ones. Registers have their DWARF numbers. */
#ifndef SP_UNWIND_UNWIND_RULE_H
#define SP_UNWIND_UNWIND_RULE_H

#include <stdint.h>

#if defined(__x86_64__)
#define SP_DWARF_BASE      3  /* rbx */
#define SP_DWARF_FP        6  /* rbp */
#define SP_DWARF_SP        7  /* rsp */
#define SP_DWARF_RA        16 /* rip */
#define SP_DWARF_PC        16
#define SP_DWARF_GENERAL   16 /* a CFA may be computed from the registers below this number */
#define SP_DWARF_REGISTERS 17
#define SP_LINK_REGISTER   0 /* a call pushes the return address */
#elif defined(__aarch64__)
#define SP_DWARF_BASE      19 /* x19, LLVM's base pointer; nothing in glibc needs one here */
#define SP_DWARF_FP        29
#define SP_DWARF_SP        31
#define SP_DWARF_RA        30 /* x30, the link register */
#define SP_DWARF_PC        32
#define SP_DWARF_GENERAL   32
#define SP_DWARF_REGISTERS 33
#define SP_LINK_REGISTER   1 /* a call leaves the return address in SP_DWARF_RA */
#else
#error "unwinding: the DWARF register numbers of this architecture are not written down yet"
#endif

/* The canonical frame address: the stack pointer of the caller after the return. */
typedef enum sp_cfa_kind {
    SP_CFA_NONE = 0,        /* no frame information covers this address */
    SP_CFA_UNSUPPORTED = 1, /* there is information that a rule cannot express: the walk ends */
    SP_CFA_REGISTER = 2,    /* register + offset */
    SP_CFA_DEREF = 3,       /* *(register + offset) + addend: a realigned stack, a signal frame */
    SP_CFA_PLT = 4, /* sp + offset, and 8 more where (pc & 15) >= addend: a lazy PLT entry pushed
                       its index */
} sp_cfa_kind;

/* Where the caller's value of a register is. */
typedef enum sp_saved_kind {
    SP_SAVED_UNCHANGED = 0, /* still in the register */
    SP_SAVED_AT_CFA = 1,    /* in memory at CFA + offset */
    /* In memory at register + offset, with this frame's value of the register. */
    SP_SAVED_AT_REGISTER = 2,
    SP_SAVED_IN_REGISTER = 3, /* in another register */
    SP_SAVED_UNDEFINED = 4,   /* nowhere; for the return address: this frame is the outermost */
    SP_SAVED_UNKNOWN = 5,     /* at a place that no rule can express */
} sp_saved_kind;

typedef struct sp_saved {
    int32_t offset;
    uint8_t kind; /* sp_saved_kind */
    uint8_t base; /* the register of AT_REGISTER and IN_REGISTER */
    uint16_t unused;
} sp_saved;

/* Compared and hashed as bytes: every byte is set, padding would be a bug. Two fit into a cache
 * line. */
typedef struct sp_unwind_rule {
    int32_t cfa_offset;
    int16_t cfa_addend;
    uint8_t cfa_register;
    uint8_t cfa_kind : 7;        /* sp_cfa_kind */
    uint8_t is_signal_frame : 1; /* the caller was interrupted: its pc is exact, and its stack may
                                    be another one */
    sp_saved ra;                 /* the return address */
    sp_saved fp;
    sp_saved base;
} sp_unwind_rule;

_Static_assert(sizeof(sp_unwind_rule) == 32,
               "rules are compared as bytes, so they have no padding");

#endif
