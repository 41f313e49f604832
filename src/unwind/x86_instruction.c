/* SPDX-License-Identifier: Apache-2.0 */
/* An instruction is prefixes, an opcode of one of a few maps, then, as the opcode says, a byte that
 * names operands (ModRM), perhaps one more for an address (SIB), a displacement and an immediate
 * number. The opcode determines what follows it; a string for each map has one letter for each
 * opcode. The effect of the instruction is interpreted for a few opcodes only. */
#include "unwind/x86_instruction.h"

enum { RSP = 4, RBP = 5 };

/* What follows an opcode. */
enum {
    BARE = '.',
    MODRM = 'm',
    IMM8 = 'b',
    IMM16 = 'w',
    IMM = 'z',   /* 4 bytes, 2 with an operand prefix */
    REL32 = 'r', /* 4 bytes */
    MODRM_IMM8 = 'B',
    MODRM_IMM = 'Z',
    ADDRESS = 'a',  /* 8 bytes */
    MOVE_IMM = 'v', /* as IMM, 8 bytes when wide */
    GROUP3 = 'g',   /* ModRM, and an immediate number if it says `test` */
    ENTER = 'e',    /* 3 bytes */
    NONE = 'x',     /* no instruction in 64-bit mode, or a prefix, which is consumed before */
};

static const char one_byte_map[] = "mmmmbzxxmmmmbzxx"  /* 00 */
                                   "mmmmbzxxmmmmbzxx"  /* 10 */
                                   "mmmmbzxxmmmmbzxx"  /* 20 */
                                   "mmmmbzxxmmmmbzxx"  /* 30 */
                                   "xxxxxxxxxxxxxxxx"  /* 40 */
                                   "................"  /* 50 */
                                   "xxxmxxxxzZbB...."  /* 60 */
                                   "bbbbbbbbbbbbbbbb"  /* 70 */
                                   "BZxBmmmmmmmmmmmm"  /* 80 */
                                   "..........x....."  /* 90 */
                                   "aaaa....bz......"  /* a0 */
                                   "bbbbbbbbvvvvvvvv"  /* b0 */
                                   "BBw.xxBZe.w..bx."  /* c0 */
                                   "mmmmxxx.mmmmmmmm"  /* d0 */
                                   "bbbbbbbbrrxb...."  /* e0 */
                                   "x.xx..gg......mm"; /* f0 */

static const char two_byte_map[] = "mmmmx.....x.xm.B"  /* 00 */
                                   "mmmmmmmmmmmmmmmm"  /* 10 */
                                   "mmmmxxxxmmmmmmmm"  /* 20 */
                                   "........xxxxxxxx"  /* 30 */
                                   "mmmmmmmmmmmmmmmm"  /* 40 */
                                   "mmmmmmmmmmmmmmmm"  /* 50 */
                                   "mmmmmmmmmmmmmmmm"  /* 60 */
                                   "BBBBmmm.mmmmmmmm"  /* 70 */
                                   "rrrrrrrrrrrrrrrr"  /* 80 */
                                   "mmmmmmmmmmmmmmmm"  /* 90 */
                                   "...mBmxx...mBmmm"  /* a0 */
                                   "mmmmmmmmmmBmmmmm"  /* b0 */
                                   "mmBmBBBm........"  /* c0 */
                                   "mmmmmmmmmmmmmmmm"  /* d0 */
                                   "mmmmmmmmmmmmmmmm"  /* e0 */
                                   "mmmmmmmmmmmmmmmm"; /* f0 */

typedef struct decoder {
    const uint8_t *code;
    size_t length, at;
    bool failed;
    bool narrow, wide; /* operands of 2 and of 8 bytes */
    unsigned rex;
    unsigned map; /* 1: one byte; 2: 0f; 3: 0f 38; 4: 0f 3a */
    bool is_vector;
    unsigned opcode;
    unsigned mod, reg, rm; /* reg and rm with the bits of the prefix */
    bool has_index, rip_relative;
    unsigned base; /* register of the memory operand, 16: none */
    int32_t displacement;
    int64_t immediate;
} decoder;

static unsigned take(decoder *d)
{
    if (d->at >= d->length) {
        d->failed = true;
        return 0;
    }
    return d->code[d->at++];
}

/* Read a signed number of BYTES. */
static int64_t take_number(decoder *d, unsigned bytes)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < bytes; i++)
        value |= (uint64_t)take(d) << (8 * i);
    unsigned unused = 64 - 8 * bytes;
    return bytes ? (int64_t)(value << unused) >> unused : 0;
}

static bool is_prefix(unsigned byte)
{
    return byte == 0x66 || byte == 0x67 || byte == 0xf0 || byte == 0xf2 || byte == 0xf3 ||
           byte == 0x2e || byte == 0x36 || byte == 0x3e || byte == 0x26 || byte == 0x64 ||
           byte == 0x65;
}

/* AVX: the prefix holds the map's number. The upper bits of register numbers are ignored, because
 * vector instructions are only measured, not interpreted. */
static unsigned take_vector_opcode(decoder *d, unsigned first)
{
    unsigned map = 1;
    if (first == 0xc5) {
        take(d);
    } else if (first == 0xc4) {
        map = take(d) & 0x1f;
        take(d);
    } else {
        map = take(d) & 7;
        take(d);
        take(d);
    }
    d->is_vector = true;
    d->map = map <= 3 ? map + 1 : 3; /* 5 and 6 have no immediate numbers, as 0f 38 */
    return take(d);
}

static void take_opcode(decoder *d)
{
    unsigned byte = take(d);
    while (is_prefix(byte) && !d->failed) {
        d->narrow |= byte == 0x66;
        byte = take(d);
    }
    if ((byte & 0xf0) == 0x40) {
        d->rex = byte;
        d->wide = byte & 8;
        byte = take(d);
    }
    d->map = 1;
    if (byte == 0xc4 || byte == 0xc5 || byte == 0x62) {
        d->opcode = take_vector_opcode(d, byte);
        return;
    }
    if (byte == 0x0f) {
        d->map = 2;
        byte = take(d);
        if (byte == 0x38 || byte == 0x3a) {
            d->map = byte == 0x38 ? 3 : 4;
            byte = take(d);
        }
    }
    d->opcode = byte;
}

static void take_operands(decoder *d)
{
    unsigned byte = take(d), low = byte & 7;
    d->mod = byte >> 6;
    d->reg = (byte >> 3 & 7) | (d->rex & 4) << 1;
    d->rm = low | (d->rex & 1) << 3;
    d->base = d->rm;
    if (d->mod == 3)
        return;
    if (low == RSP) {
        unsigned address = take(d);
        unsigned index = (address >> 3 & 7) | (d->rex & 2) << 2;
        d->has_index = index != RSP;
        low = address & 7;
        d->base = low | (d->rex & 1) << 3;
        if (d->mod == 0 && low == RBP)
            d->base = 16;
    } else if (d->mod == 0 && low == RBP) {
        d->rip_relative = true;
        d->base = 16;
    }
    bool is_long = d->mod == 2 || (d->mod == 0 && low == RBP);
    d->displacement = (int32_t)take_number(d, is_long ? 4 : d->mod);
}

static char format_of(const decoder *d)
{
    if (d->map == 4)
        return MODRM_IMM8;
    if (d->map == 3)
        return MODRM;
    if (d->is_vector && d->opcode == 0x77)
        return BARE;
    char format = d->map == 1 ? one_byte_map[d->opcode] : two_byte_map[d->opcode];
    return d->is_vector && format != MODRM_IMM8 ? MODRM : format;
}

static void take_rest(decoder *d)
{
    char format = format_of(d);
    unsigned number = d->narrow && !d->wide ? 2 : 4;
    if (format == MODRM || format == MODRM_IMM8 || format == MODRM_IMM || format == GROUP3)
        take_operands(d);
    switch (format) {
    case IMM8:
    case MODRM_IMM8:
        d->immediate = take_number(d, 1);
        break;
    case IMM16:
        d->immediate = take_number(d, 2);
        break;
    case IMM:
    case MODRM_IMM:
        d->immediate = take_number(d, number);
        break;
    case REL32:
        d->immediate = take_number(d, 4);
        break;
    case ADDRESS:
        take_number(d, 8);
        break;
    case MOVE_IMM:
        take_number(d, d->wide ? 8 : number);
        break;
    case GROUP3:
        if ((d->reg & 7) < 2)
            take_number(d, d->opcode == 0xf6 ? 1 : number);
        break;
    case ENTER:
        take_number(d, 3);
        break;
    case NONE:
        d->failed = true;
        break;
    default:
        break;
    }
}

static void add_to_sp(sp_x86_instruction *out, int64_t amount)
{
    out->stack = SP_X86_SP_ADD;
    out->amount = (int32_t)amount;
}

static void go_to(sp_x86_instruction *out, sp_x86_flow flow, int64_t target)
{
    out->flow = (uint8_t)flow;
    out->target = (int32_t)target;
}

/* Opcode ff: its meaning depends on its operand. */
static void interpret_group5(const decoder *d, sp_x86_instruction *out)
{
    unsigned which = d->reg & 7;
    if (which == 2 || which == 4) {
        go_to(out, which == 2 ? SP_X86_CALL_INDIRECT : SP_X86_JUMP_INDIRECT, d->displacement);
        out->has_slot = d->rip_relative;
        out->has_index = d->has_index;
    } else if (which == 3 || which == 5) {
        out->flow = SP_X86_STOP;
    } else if (which == 6) {
        add_to_sp(out, -8);
    } else if (d->mod == 3 && d->rm == RSP) {
        out->stack = SP_X86_SP_UNKNOWN;
    } else if (d->mod == 3 && d->rm == RBP) {
        out->frame = SP_X86_FP_LOST;
    }
}

/* Register TARGET becomes BASE + DISPLACEMENT (lea), or BASE (mov; DISPLACEMENT 0). IS_SIMPLE: the
 * source is exactly that. */
static void set_register(sp_x86_instruction *out, unsigned target, unsigned base, bool is_simple,
                         int32_t displacement)
{
    bool from_sp = is_simple && base == RSP, from_fp = is_simple && base == RBP;
    out->amount = displacement;
    if (target == RSP)
        out->stack = from_sp ? SP_X86_SP_ADD : from_fp ? SP_X86_SP_FROM_FP : SP_X86_SP_UNKNOWN;
    else if (target == RBP)
        out->frame = from_sp ? SP_X86_FP_FROM_SP : SP_X86_FP_LOST;
    else if (from_sp) {
        out->copies_sp = true;
        out->other = (uint8_t)target;
    }
}

/* Opcodes 81 and 83: arithmetic of a register with an immediate number. */
static void interpret_number(const decoder *d, sp_x86_instruction *out)
{
    enum { ADD = 0, AND = 4, SUB = 5, COMPARE = 7 };
    unsigned which = d->reg & 7;
    if (d->mod != 3 || which == COMPARE)
        return;
    if (d->rm == RBP)
        out->frame = SP_X86_FP_LOST;
    if (d->rm != RSP)
        return;
    if (which == ADD || which == SUB) {
        add_to_sp(out, which == ADD ? d->immediate : -d->immediate);
    } else if (which == AND && d->immediate < 0 && (-d->immediate & (-d->immediate - 1)) == 0) {
        out->stack = SP_X86_SP_ALIGN;
        out->amount = (int32_t)d->immediate;
    } else {
        out->stack = SP_X86_SP_UNKNOWN;
    }
}

/* Register NUMBER gets a value that is not tracked. */
static void overwrite(sp_x86_instruction *out, unsigned number)
{
    set_register(out, number, 16, false, 0);
}

/* 00 to 3f: arithmetic of two operands. */
static void interpret_arithmetic(const decoder *d, sp_x86_instruction *out)
{
    unsigned form = d->opcode & 7;
    bool compares = d->opcode >= 0x38;
    if (form != 1 && form != 3)
        return;
    if (compares && d->mod == 3 && (d->rm == RSP || d->reg == RSP)) {
        out->compares_sp = true;
        out->other = (uint8_t)(d->rm == RSP ? d->reg : d->rm);
    }
    out->is_sum = d->opcode < 8 && d->mod == 3;
    if (!compares && (form == 3 || d->mod == 3))
        overwrite(out, form == 3 ? d->reg : d->rm);
}

/* The effect of one-byte opcodes on the flow. */
static void interpret_flow(const decoder *d, sp_x86_instruction *out)
{
    if (d->opcode >= 0x70 && d->opcode <= 0x7f)
        go_to(out, SP_X86_BRANCH, d->immediate);
    switch (d->opcode) {
    case 0xc2:
    case 0xc3:
    case 0xca:
    case 0xcb:
    case 0xcc:
    case 0xcf:
    case 0xf4:
        out->flow = SP_X86_STOP;
        break;
    case 0xe0:
    case 0xe1:
    case 0xe2:
    case 0xe3:
        go_to(out, SP_X86_BRANCH, d->immediate);
        break;
    case 0xe8:
        go_to(out, SP_X86_CALL, d->immediate);
        break;
    case 0xe9:
    case 0xeb:
        go_to(out, SP_X86_JUMP, d->immediate);
        break;
    default:
        break;
    }
}

/* The number of the register that an opcode has in its low bits. */
static unsigned low_register(const decoder *d)
{
    return (d->opcode & 7) | (d->rex & 1) << 3;
}

static void interpret_pop(const decoder *d, sp_x86_instruction *out)
{
    add_to_sp(out, d->narrow ? 2 : 8);
    if (low_register(d) == RSP)
        out->stack = SP_X86_SP_UNKNOWN;
    if (low_register(d) == RBP)
        out->frame = SP_X86_FP_LOST;
}

/* Pushes, pops, enter and leave. */
static void interpret_stack(const decoder *d, sp_x86_instruction *out)
{
    if (d->opcode >= 0x50 && d->opcode <= 0x57)
        add_to_sp(out, d->narrow ? -2 : -8);
    else if (d->opcode >= 0x58 && d->opcode <= 0x5f)
        interpret_pop(d, out);
    switch (d->opcode) {
    case 0x68:
    case 0x6a:
    case 0x9c:
        add_to_sp(out, -8);
        break;
    case 0x8f:
        add_to_sp(out, 8);
        if (d->mod == 3)
            overwrite(out, d->rm);
        break;
    case 0x9d:
        add_to_sp(out, 8);
        break;
    case 0xc8:
        out->stack = SP_X86_SP_UNKNOWN;
        out->frame = SP_X86_FP_LOST;
        break;
    case 0xc9:
        out->stack = SP_X86_SP_FROM_FP;
        out->frame = SP_X86_FP_LOST;
        out->amount = 8;
        break;
    default:
        break;
    }
}

/* Other opcodes that write to a register. */
static void interpret_registers(const decoder *d, sp_x86_instruction *out)
{
    bool is_register = d->mod == 3;
    if (d->opcode < 0x40)
        interpret_arithmetic(d, out);
    else if (d->opcode >= 0xb8 && d->opcode <= 0xbf)
        overwrite(out, low_register(d));
    switch (d->opcode) {
    case 0x63:
    case 0x69:
    case 0x6b:
        overwrite(out, d->reg);
        break;
    case 0x81:
    case 0x83:
        interpret_number(d, out);
        break;
    case 0x87:
        overwrite(out, d->reg);
        if (is_register)
            overwrite(out, d->reg == RSP ? d->reg : d->rm);
        break;
    case 0x89:
        if (is_register)
            set_register(out, d->rm, d->reg, true, 0);
        break;
    case 0x8b:
        set_register(out, d->reg, d->rm, is_register, 0);
        break;
    case 0x8d:
        set_register(out, d->reg, d->base, !d->has_index, d->displacement);
        break;
    case 0xc1:
    case 0xc7:
    case 0xd1:
    case 0xd3:
        if (is_register)
            overwrite(out, d->rm);
        break;
    case 0xf7:
        if (is_register && ((d->reg & 7) == 2 || (d->reg & 7) == 3))
            overwrite(out, d->rm);
        break;
    default:
        break;
    }
}

/* Each opcode has an effect in at most one of these functions. */
static void interpret_one_byte(const decoder *d, sp_x86_instruction *out)
{
    interpret_flow(d, out);
    interpret_stack(d, out);
    interpret_registers(d, out);
    if (d->opcode == 0xff)
        interpret_group5(d, out);
}

static void interpret_two_byte(const decoder *d, sp_x86_instruction *out)
{
    unsigned opcode = d->opcode;
    if (opcode >= 0x80 && opcode <= 0x8f)
        go_to(out, SP_X86_BRANCH, d->immediate);
    else if (opcode == 0x0b || opcode == 0xb9 || opcode == 0xff)
        out->flow = SP_X86_STOP;
    else if (opcode == 0xa0 || opcode == 0xa8)
        add_to_sp(out, -8);
    else if (opcode == 0xa1 || opcode == 0xa9)
        add_to_sp(out, 8);
    else if ((opcode & 0xf0) == 0x40 || opcode == 0xaf ||
             (opcode >= 0xb6 && opcode <= 0xbf && opcode != 0xba))
        overwrite(out, d->reg);
}

bool sp_x86_decode(const uint8_t *code, size_t length, sp_x86_instruction *out)
{
    decoder d = {.code = code, .length = length < SP_X86_BYTES_MAX ? length : SP_X86_BYTES_MAX};
    *out = (sp_x86_instruction){0};
    take_opcode(&d);
    if (!d.failed)
        take_rest(&d);
    if (d.failed)
        return false;
    out->length = (uint8_t)d.at;
    if (!d.is_vector && d.map == 1)
        interpret_one_byte(&d, out);
    else if (!d.is_vector && d.map == 2)
        interpret_two_byte(&d, out);
    return true;
}
