/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes the parts of an x86-64 instruction that determine the position of a frame: its length,
 * where execution continues, and its effect on stack and frame pointer. Threads: any. Signals:
 * safe. */
#ifndef SP_UNWIND_X86_INSTRUCTION_H
#define SP_UNWIND_X86_INSTRUCTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SP_X86_BYTES_MAX 15

/* Where execution continues. */
typedef enum sp_x86_flow {
    SP_X86_NEXT,
    SP_X86_BRANCH,        /* to target or next */
    SP_X86_JUMP,          /* to target */
    SP_X86_JUMP_INDIRECT, /* to an address in a register or in memory */
    SP_X86_CALL,          /* of target */
    SP_X86_CALL_INDIRECT,
    SP_X86_STOP, /* returns, traps, or continues at an unknown place */
} sp_x86_flow;

/* The effect on the stack pointer. */
typedef enum sp_x86_stack {
    SP_X86_SP_SAME,
    SP_X86_SP_ADD,     /* sp += amount */
    SP_X86_SP_FROM_FP, /* sp = fp + amount */
    SP_X86_SP_ALIGN,   /* sp &= amount, a negative power of two */
    SP_X86_SP_UNKNOWN,
} sp_x86_stack;

/* The effect on the frame pointer, before the stack pointer changes. */
typedef enum sp_x86_frame {
    SP_X86_FP_SAME,
    SP_X86_FP_FROM_SP, /* fp = sp + amount */
    SP_X86_FP_LOST,
} sp_x86_frame;

typedef struct sp_x86_instruction {
    uint8_t length;
    uint8_t flow;     /* sp_x86_flow */
    uint8_t stack;    /* sp_x86_stack */
    uint8_t frame;    /* sp_x86_frame */
    bool has_slot;    /* of an indirect call or jump: the target's address is in memory at `target`,
                         relative to the instruction's end */
    bool is_sum;      /* a register becomes the sum of itself and another */
    bool has_index;   /* of a jump through memory: there is a table */
    bool compares_sp; /* with the register `other` */
    bool copies_sp;   /* `other` = sp + amount */
    uint8_t other;    /* a register's number, 0 to 15 */
    int32_t amount;
    int32_t target; /* of branch, jump and call, or the slot: relative to the instruction's end */
} sp_x86_instruction;

/* Decode the instruction at CODE, where LENGTH bytes can be read. False: it is invalid, unknown or
 * cut off. */
bool sp_x86_decode(const uint8_t *code, size_t length, sp_x86_instruction *out);

#endif
