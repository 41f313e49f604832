/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a function's frame program. Its state is one sp_unwind_rule, so only the registers of a rule
 * are tracked. Expressions are recognized by their form; keeping them would need an interpreter in
 * the handler. The forms are those that compilers, the linker (PLT) and libc (signal return) write;
 * any other makes the rule unsupported. */
#include "unwind/cfi.h"

#include <string.h>

#define REMEMBER_MAX 16 /* compilers nest states one or two deep */

enum { /* DWARF 5 table 7.29; the first three have their operand in the low six bits */
       CFA_ADVANCE_LOC = 0x40,
       CFA_OFFSET = 0x80,
       CFA_RESTORE = 0xc0,
       CFA_NOP = 0x00,
       CFA_SET_LOC = 0x01,
       CFA_ADVANCE_LOC1 = 0x02,
       CFA_ADVANCE_LOC2 = 0x03,
       CFA_ADVANCE_LOC4 = 0x04,
       CFA_OFFSET_EXTENDED = 0x05,
       CFA_RESTORE_EXTENDED = 0x06,
       CFA_UNDEFINED = 0x07,
       CFA_SAME_VALUE = 0x08,
       CFA_REGISTER = 0x09,
       CFA_REMEMBER_STATE = 0x0a,
       CFA_RESTORE_STATE = 0x0b,
       CFA_DEF_CFA = 0x0c,
       CFA_DEF_CFA_REGISTER = 0x0d,
       CFA_DEF_CFA_OFFSET = 0x0e,
       CFA_DEF_CFA_EXPRESSION = 0x0f,
       CFA_EXPRESSION = 0x10,
       CFA_OFFSET_EXTENDED_SF = 0x11,
       CFA_DEF_CFA_SF = 0x12,
       CFA_DEF_CFA_OFFSET_SF = 0x13,
       CFA_VAL_OFFSET = 0x14,
       CFA_VAL_OFFSET_SF = 0x15,
       CFA_VAL_EXPRESSION = 0x16,
       CFA_AARCH64_NEGATE_RA_STATE_WITH_PC = 0x2c,
       CFA_AARCH64_NEGATE_RA_STATE = 0x2d,
       CFA_GNU_ARGS_SIZE = 0x2e,
       CFA_GNU_NEGATIVE_OFFSET_EXTENDED = 0x2f,
};

enum { /* DWARF 5 table 7.9 */
       OP_DEREF = 0x06,
       OP_CONST1U = 0x08,
       OP_AND = 0x1a,
       OP_PLUS = 0x22,
       OP_PLUS_UCONST = 0x23,
       OP_SHL = 0x24,
       OP_GE = 0x2a,
       OP_LIT0 = 0x30,
       OP_BREG0 = 0x70,
};

typedef struct program {
    sp_cfi_reader reader;
    const sp_cfi_section *section;
    const sp_cfi_common *common;
    sp_unwind_rule rule;
    sp_unwind_rule initial; /* the rule after the common entry's program, for DW_CFA_restore */
    sp_unwind_rule remembered[REMEMBER_MAX];
    unsigned remembered_count;
    uint64_t offset; /* from the module's start */
    uint64_t end;
    const sp_cfi_sink *sink; /* NULL while the common entry's program runs */
} program;

/* The member of RULE for the register with number COLUMN; NULL: it has none. */
static sp_saved *saved_in(sp_unwind_rule *rule, uint64_t column)
{
    switch (column) {
    case SP_DWARF_RA:
        return &rule->ra;
    case SP_DWARF_FP:
        return &rule->fp;
    case SP_DWARF_BASE:
        return &rule->base;
    default:
        return NULL;
    }
}

static void set_saved(program *p, uint64_t column, sp_saved_kind kind, uint64_t base,
                      int64_t offset)
{
    sp_saved *saved = saved_in(&p->rule, column);
    if (!saved)
        return;
    if (SP_LINK_REGISTER && column == SP_DWARF_RA && kind == SP_SAVED_UNCHANGED)
        *saved = (sp_saved){.kind = SP_SAVED_IN_REGISTER, .base = SP_DWARF_RA};
    else if (offset != (int32_t)offset || base >= SP_DWARF_REGISTERS)
        *saved = (sp_saved){.kind = SP_SAVED_UNKNOWN};
    else
        *saved =
            (sp_saved){.kind = (uint8_t)kind, .base = (uint8_t)base, .offset = (int32_t)offset};
}

static void restore_saved(program *p, uint64_t column)
{
    sp_saved *saved = saved_in(&p->rule, column);
    if (saved)
        *saved = *saved_in(&p->initial, column);
}

static void set_cfa(program *p, sp_cfa_kind kind, uint64_t base, int64_t offset, int64_t addend)
{
    bool fits = offset == (int32_t)offset && addend == (int16_t)addend && base < SP_DWARF_GENERAL;
    p->rule.cfa_kind = (uint8_t)(fits ? kind : SP_CFA_UNSUPPORTED);
    p->rule.cfa_register = fits ? (uint8_t)base : 0;
    p->rule.cfa_offset = fits ? (int32_t)offset : 0;
    p->rule.cfa_addend = fits ? (int16_t)addend : 0;
}

/* OFFSET times the data alignment factor, with wrap-around on overflow. */
static int64_t factored(const program *p, uint64_t offset)
{
    return (int64_t)(offset * (uint64_t)p->common->data_alignment);
}

/* Return a reader of the expression at P (a length, then that many bytes), and move P to the byte
 * after it. */
static sp_cfi_reader take_expression(program *p)
{
    uint64_t length = sp_cfi_read_uleb(&p->reader);
    sp_cfi_reader expression = p->reader;
    sp_cfi_skip(&p->reader, length);
    expression.length = p->reader.position;
    expression.failed = p->reader.failed;
    return expression;
}

/* "register + offset", the beginning of all forms. */
static bool read_base(sp_cfi_reader *expression, uint64_t *base, int64_t *offset)
{
    *base = sp_cfi_read_unsigned(expression, 1) - OP_BREG0;
    *offset = sp_cfi_read_sleb(expression);
    return !expression->failed && *base < SP_DWARF_REGISTERS;
}

static bool at_end(const sp_cfi_reader *expression)
{
    return !expression->failed && expression->position == expression->length;
}

/* pc + 0; 15; and; N; ge; 3; shl; plus: the linker's description of a lazy PLT entry, in which a
 * word is pushed from offset N on. */
static bool read_plt_rest(sp_cfi_reader *expression, int64_t *threshold)
{
    uint64_t pc_register;
    int64_t pc_offset;
    if (!read_base(expression, &pc_register, &pc_offset) || pc_register != SP_DWARF_PC ||
        pc_offset != 0)
        return false;
    uint8_t ops[7];
    for (size_t i = 0; i < sizeof ops; i++)
        ops[i] = (uint8_t)sp_cfi_read_unsigned(expression, 1);
    *threshold = ops[2] - OP_LIT0;
    ops[2] = 0;
    static const uint8_t expected[7] = {OP_LIT0 + 15, OP_AND, 0,      OP_GE,
                                        OP_LIT0 + 3,  OP_SHL, OP_PLUS};
    return at_end(expression) && *threshold >= 0 && *threshold < 16 &&
           memcmp(ops, expected, sizeof ops) == 0;
}

/* The addend after a deref: nothing, plus_uconst N, const1u N plus, or litN plus. */
static bool read_addend(sp_cfi_reader *expression, int64_t *addend)
{
    *addend = 0;
    if (at_end(expression))
        return true;
    uint64_t op = sp_cfi_read_unsigned(expression, 1);
    if (op == OP_PLUS_UCONST) {
        *addend = (int64_t)sp_cfi_read_uleb(expression);
        return at_end(expression);
    }
    if (op == OP_CONST1U)
        *addend = (int64_t)sp_cfi_read_unsigned(expression, 1);
    else if (op >= OP_LIT0 && op < OP_LIT0 + 32)
        *addend = (int64_t)(op - OP_LIT0);
    else
        return false;
    return sp_cfi_read_unsigned(expression, 1) == OP_PLUS && at_end(expression);
}

static void set_cfa_expression(program *p)
{
    sp_cfi_reader expression = take_expression(p);
    uint64_t base;
    int64_t offset, addend = 0;
    set_cfa(p, SP_CFA_UNSUPPORTED, 0, 0, 0);
    if (!read_base(&expression, &base, &offset))
        return;
    if (at_end(&expression)) {
        set_cfa(p, SP_CFA_REGISTER, base, offset, 0);
        return;
    }
    sp_cfi_reader rest = expression;
    if (sp_cfi_read_unsigned(&rest, 1) == OP_DEREF && read_addend(&rest, &addend))
        set_cfa(p, SP_CFA_DEREF, base, offset, addend);
    else if (base == SP_DWARF_SP && read_plt_rest(&expression, &addend))
        set_cfa(p, SP_CFA_PLT, base, offset, addend);
}

static void set_saved_expression(program *p)
{
    uint64_t column = sp_cfi_read_uleb(&p->reader);
    sp_cfi_reader expression = take_expression(p);
    uint64_t base;
    int64_t offset;
    if (read_base(&expression, &base, &offset) && at_end(&expression))
        set_saved(p, column, SP_SAVED_AT_REGISTER, base, offset);
    else
        set_saved(p, column, SP_SAVED_UNKNOWN, 0, 0);
}

/* SAVED is relative to a CFA that moves up by BYTES: correct its offset. */
static void lower(sp_saved *saved, int32_t bytes)
{
    if (saved->kind != SP_SAVED_AT_CFA)
        return;
    if (saved->offset < INT32_MIN + bytes)
        *saved = (sp_saved){.kind = SP_SAVED_UNKNOWN};
    else
        saved->offset -= bytes;
}

/* A lazy PLT entry of aarch64 pushes two words, the second of which is the link register, and jumps
 * to the loader. The loader's frame information uses the stack pointer after the push as the CFA:
 * "the return address is at CFA + 8". But the CFA has to be the caller's stack pointer, below which
 * a frame saves its registers. After the words are popped, the link register has the return address
 * again. */
static sp_unwind_rule without_pushed_words(sp_unwind_rule rule)
{
    enum { PUSHED_BYTES = 16 };
    if (!SP_LINK_REGISTER || rule.is_signal_frame || rule.cfa_kind != SP_CFA_REGISTER ||
        rule.ra.kind != SP_SAVED_AT_CFA || rule.ra.offset != 8 ||
        rule.cfa_offset > INT32_MAX - PUSHED_BYTES)
        return rule;
    rule.cfa_offset += PUSHED_BYTES;
    lower(&rule.ra, PUSHED_BYTES);
    lower(&rule.fp, PUSHED_BYTES);
    lower(&rule.base, PUSHED_BYTES);
    if (rule.cfa_register == SP_DWARF_SP && rule.cfa_offset <= 0)
        rule.ra = (sp_saved){.kind = SP_SAVED_IN_REGISTER, .base = SP_DWARF_RA};
    return rule;
}

static bool emit_row(const program *p)
{
    sp_unwind_rule rule = without_pushed_words(p->rule);
    return p->sink->row(p->sink->user, (uint32_t)p->offset, &rule);
}

static bool advance_to(program *p, uint64_t offset)
{
    if (!p->sink || offset < p->offset)
        return false;
    if (offset == p->offset)
        return true;
    if (p->offset < p->end && !emit_row(p))
        return false;
    p->offset = offset;
    return true;
}

static bool advance_by(program *p, uint64_t count)
{
    uint64_t bytes;
    if (__builtin_mul_overflow(count, p->common->code_alignment, &bytes) || bytes > UINT32_MAX)
        return false;
    return advance_to(p, p->offset + bytes);
}

static bool set_location(program *p)
{
    uint64_t address =
        sp_cfi_read_pointer(&p->reader, p->common->pointer_encoding, p->section->header_address);
    return !p->reader.failed && address >= p->section->module_start &&
           advance_to(p, address - p->section->module_start);
}

static bool remember(program *p)
{
    if (p->remembered_count == REMEMBER_MAX)
        return false;
    p->remembered[p->remembered_count++] = p->rule;
    return true;
}

static bool recall(program *p)
{
    if (p->remembered_count == 0)
        return false;
    p->rule = p->remembered[--p->remembered_count];
    return true;
}

/* DW_CFA_def_cfa_offset and _register change one half of a register + offset rule, and are an error
 * for another rule. An unsupported rule stays unsupported. */
static bool has_plain_cfa(const program *p)
{
    return p->rule.cfa_kind == SP_CFA_REGISTER || p->rule.cfa_kind == SP_CFA_UNSUPPORTED;
}

static bool change_cfa_offset(program *p, int64_t offset)
{
    if (p->rule.cfa_kind == SP_CFA_REGISTER)
        set_cfa(p, SP_CFA_REGISTER, p->rule.cfa_register, offset, 0);
    return has_plain_cfa(p);
}

static bool change_cfa_register(program *p, uint64_t base)
{
    if (p->rule.cfa_kind == SP_CFA_REGISTER)
        set_cfa(p, SP_CFA_REGISTER, base, p->rule.cfa_offset, 0);
    return has_plain_cfa(p);
}

/* Run an instruction that changes the CFA; false for an unknown one. */
static bool run_cfa_instruction(program *p, unsigned instruction)
{
    sp_cfi_reader *r = &p->reader;
    uint64_t first;
    switch (instruction) {
    case CFA_DEF_CFA:
        first = sp_cfi_read_uleb(r);
        set_cfa(p, SP_CFA_REGISTER, first, (int64_t)sp_cfi_read_uleb(r), 0);
        return true;
    case CFA_DEF_CFA_SF:
        first = sp_cfi_read_uleb(r);
        set_cfa(p, SP_CFA_REGISTER, first, factored(p, (uint64_t)sp_cfi_read_sleb(r)), 0);
        return true;
    case CFA_DEF_CFA_REGISTER:
        return change_cfa_register(p, sp_cfi_read_uleb(r));
    case CFA_DEF_CFA_OFFSET:
        return change_cfa_offset(p, (int64_t)sp_cfi_read_uleb(r));
    case CFA_DEF_CFA_OFFSET_SF:
        return change_cfa_offset(p, factored(p, (uint64_t)sp_cfi_read_sleb(r)));
    case CFA_DEF_CFA_EXPRESSION:
        set_cfa_expression(p);
        return true;
    default:
        return false;
    }
}

/* Run an instruction that changes the rule; false for an unknown one. */
static bool run_rule_instruction(program *p, unsigned instruction)
{
    sp_cfi_reader *r = &p->reader;
    uint64_t first;
    switch (instruction) {
    case CFA_NOP:
        return true;
    case CFA_AARCH64_NEGATE_RA_STATE: /* ignored: a walk strips the signature of every return
                                         address */
    case CFA_AARCH64_NEGATE_RA_STATE_WITH_PC:
        return SP_LINK_REGISTER;
    case CFA_GNU_ARGS_SIZE:
        sp_cfi_read_uleb(r);
        return true;
    case CFA_OFFSET_EXTENDED:
        first = sp_cfi_read_uleb(r);
        set_saved(p, first, SP_SAVED_AT_CFA, 0, factored(p, sp_cfi_read_uleb(r)));
        return true;
    case CFA_OFFSET_EXTENDED_SF:
        first = sp_cfi_read_uleb(r);
        set_saved(p, first, SP_SAVED_AT_CFA, 0, factored(p, (uint64_t)sp_cfi_read_sleb(r)));
        return true;
    case CFA_GNU_NEGATIVE_OFFSET_EXTENDED:
        first = sp_cfi_read_uleb(r);
        set_saved(p, first, SP_SAVED_AT_CFA, 0, factored(p, 0 - sp_cfi_read_uleb(r)));
        return true;
    case CFA_RESTORE_EXTENDED:
        restore_saved(p, sp_cfi_read_uleb(r));
        return true;
    case CFA_UNDEFINED:
        set_saved(p, sp_cfi_read_uleb(r), SP_SAVED_UNDEFINED, 0, 0);
        return true;
    case CFA_SAME_VALUE:
        set_saved(p, sp_cfi_read_uleb(r), SP_SAVED_UNCHANGED, 0, 0);
        return true;
    case CFA_REGISTER:
        first = sp_cfi_read_uleb(r);
        set_saved(p, first, SP_SAVED_IN_REGISTER, sp_cfi_read_uleb(r), 0);
        return true;
    case CFA_EXPRESSION:
        set_saved_expression(p);
        return true;
    case CFA_VAL_OFFSET:
    case CFA_VAL_OFFSET_SF:
        first = sp_cfi_read_uleb(r);
        sp_cfi_read_uleb(r);
        set_saved(p, first, SP_SAVED_UNKNOWN, 0, 0);
        return true;
    case CFA_VAL_EXPRESSION:
        first = sp_cfi_read_uleb(r);
        take_expression(p);
        set_saved(p, first, SP_SAVED_UNKNOWN, 0, 0);
        return true;
    default:
        return run_cfa_instruction(p, instruction);
    }
}

static bool run_instruction(program *p)
{
    unsigned instruction = (unsigned)sp_cfi_read_unsigned(&p->reader, 1);
    unsigned operand = instruction & 0x3f;
    switch (instruction & 0xc0) {
    case CFA_ADVANCE_LOC:
        return advance_by(p, operand);
    case CFA_OFFSET:
        set_saved(p, operand, SP_SAVED_AT_CFA, 0, factored(p, sp_cfi_read_uleb(&p->reader)));
        return true;
    case CFA_RESTORE:
        restore_saved(p, operand);
        return true;
    default:
        break;
    }
    switch (instruction) {
    case CFA_ADVANCE_LOC1:
        return advance_by(p, sp_cfi_read_unsigned(&p->reader, 1));
    case CFA_ADVANCE_LOC2:
        return advance_by(p, sp_cfi_read_unsigned(&p->reader, 2));
    case CFA_ADVANCE_LOC4:
        return advance_by(p, sp_cfi_read_unsigned(&p->reader, 4));
    case CFA_SET_LOC:
        return set_location(p);
    case CFA_REMEMBER_STATE:
        return remember(p);
    case CFA_RESTORE_STATE:
        return recall(p);
    default:
        return run_rule_instruction(p, instruction);
    }
}

static bool run_until(program *p, size_t position, size_t end)
{
    p->reader.position = position;
    p->reader.length = end;
    while (p->reader.position < end)
        if (!run_instruction(p) || p->reader.failed)
            return false;
    return true;
}

bool sp_cfi_run(const sp_cfi_section *section, const sp_cfi_common *common,
                const sp_cfi_function *function, const sp_cfi_sink *sink)
{
    program p = {.reader = {.data = section->data, .address = section->address},
                 .section = section,
                 .common = common,
                 .offset = function->begin,
                 .end = function->end};
    p.rule.is_signal_frame = common->is_signal_frame;
    p.rule.cfa_kind = SP_CFA_UNSUPPORTED;
    set_saved(&p, SP_DWARF_RA, SP_SAVED_UNCHANGED, 0, 0);
    if (!run_until(&p, common->instructions, common->instructions_end))
        return false;
    p.initial = p.rule;
    p.remembered_count = 0;
    p.sink = sink;
    if (!run_until(&p, function->instructions, function->instructions_end))
        return false;
    return p.offset >= p.end || emit_row(&p);
}
