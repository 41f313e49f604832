/* SPDX-License-Identifier: Apache-2.0 */
/* A sweep processes the function's instructions in the order of their addresses, with the known
 * value of fp - sp at each. At a jump, the known value is recorded for the target (a label), and
 * joined with the values of other paths to it. Jumps may go backwards, so the function is
 * swept again until nothing changes. If two paths have different values (alloca in a loop), the
 * value has no upper bound. The instruction after a jump or a return gets the value of the jumps to
 * it; if none is known, the value of the jumps through a table. */
#include "unwind/frame_depth.h"

#include <stdlib.h>
#include <string.h>

#include "unwind/x86_instruction.h"

enum {
    CODE_BYTES = 4096,
    LABELS = 2048, /* a power of two, filled to three quarters */
    SWEEPS_MAX = 6,
    PROBE_INSTRUCTIONS = 3,
    FUNCTION_BYTES_MAX = 256 << 10,
};

typedef enum reach_kind {
    UNREACHED = 0, /* no path to here is known */
    FRAMELESS,     /* fp is not set up by this function, not yet set up, or restored */
    FRAMED,
} reach_kind;

/* The state at an instruction. `below` and `slack` are as in sp_frame_depth. */
typedef struct position {
    uint8_t kind; /* reach_kind */
    bool is_assumed;
    int32_t below, slack;
} position;

typedef struct label {
    uint64_t address; /* 0: none */
    position position;
} label;

typedef struct label_set {
    label labels[LABELS];
    uint32_t count;
    bool has_changed;
    bool is_full;
} label_set;

struct sp_depth_finder {
    sp_outside *outside;
    uint64_t code_low, code_high; /* [low, high) is in code */
    uint8_t code[CODE_BYTES];
    label_set inside; /* labels in the function that is swept */
    label_set across; /* labels in `part` */
    /* The part of the function at another address, while its parent is swept; else empty. */
    sp_function_range part;
};

typedef struct sweep {
    sp_depth_finder *finder;
    const sp_function_range *function;
    uint64_t pc;
    bool is_exact;
    position now;
    position at_pc;
    position table; /* the value of jumps through a table */
    position body;  /* the value at the first call or jump with a frame */
    position probe; /* the value after a loop that touches each page; UNREACHED: no such loop */
    uint8_t probe_register;
    uint8_t probe_age; /* instructions since the register was set */
    bool is_probing;   /* the previous instruction compared sp with the register */
    bool assumes;      /* an instruction without a known path gets the value of `body` */
} sweep;

/* --- Code ------------------------------------------------------------------------------------- */

static bool fill_code(sp_depth_finder *finder, uint64_t at, uint64_t end)
{
    uint64_t bytes = end - at < CODE_BYTES ? end - at : CODE_BYTES;
    uint64_t on_page = 4096 - at % 4096;
    finder->code_low = finder->code_high = at;
    if (!finder->outside->read(finder->outside, finder->code, at, bytes)) {
        if (on_page >= bytes || !finder->outside->read(finder->outside, finder->code, at, on_page))
            return false;
        bytes = on_page;
    }
    finder->code_high = at + bytes;
    return true;
}

/* The instruction at AT in FUNCTION. */
static bool decode_at(sp_depth_finder *finder, const sp_function_range *function, uint64_t at,
                      sp_x86_instruction *out)
{
    bool is_there = at >= finder->code_low && at < finder->code_high;
    bool is_whole = is_there && (finder->code_high - at >= SP_X86_BYTES_MAX ||
                                 finder->code_high >= function->end);
    if (!is_whole && !fill_code(finder, at, function->end))
        return false;
    return sp_x86_decode(finder->code + (at - finder->code_low), finder->code_high - at, out);
}

/* --- Labels ----------------------------------------------------------------------------------- */

static void clear_labels(label_set *set)
{
    memset(set, 0, sizeof *set);
}

static label *find_label(label_set *set, uint64_t address)
{
    uint32_t at = (uint32_t)(address ^ address >> 11) & (LABELS - 1);
    while (set->labels[at].address && set->labels[at].address != address)
        at = (at + 1) & (LABELS - 1);
    return &set->labels[at];
}

static bool is_same(position a, position b)
{
    return a.kind == b.kind && a.below == b.below && a.slack == b.slack &&
           a.is_assumed == b.is_assumed;
}

static position join(position a, position b)
{
    if (a.kind == UNREACHED || b.kind == UNREACHED)
        return a.kind == UNREACHED ? b : a;
    if (a.kind == b.kind && (a.kind == FRAMELESS || (a.below == b.below && a.slack == b.slack))) {
        a.is_assumed &= b.is_assumed;
        return a;
    }
    int32_t below = a.kind != b.kind || a.below < b.below ? a.below : b.below;
    return (position){.kind = FRAMED,
                      .below = a.kind != b.kind ? 0 : below,
                      .slack = SP_DEPTH_ANY,
                      .is_assumed = a.is_assumed && b.is_assumed};
}

/* Join NOW with the value of the label at ADDRESS, which is added if it is new. */
static void join_label(label_set *set, uint64_t address, position now)
{
    label *label = find_label(set, address);
    if (now.kind == UNREACHED)
        return;
    if (!label->address) {
        if (set->count >= LABELS / 4 * 3) {
            set->is_full = true;
            return;
        }
        set->count++;
        label->address = address;
    }
    position joined = join(label->position, now);
    set->has_changed |= !is_same(joined, label->position);
    label->position = joined;
}

/* --- What an instruction does ----------------------------------------------------------------- */

/* The value after sp += AMOUNT. */
static position moved(position now, int64_t amount)
{
    int64_t below = (int64_t)now.below - amount;
    if (now.kind != FRAMED)
        return now;
    if (below < 0 || below > SP_DEPTH_ANY / 2) {
        now.slack = SP_DEPTH_ANY;
        below = 0;
    }
    now.below = (int32_t)below;
    return now;
}

static position any_depth(position now)
{
    now.slack = SP_DEPTH_ANY;
    now.below = 0;
    return now;
}

/* The value after sp &= MASK. */
static position aligned(position now, int32_t mask)
{
    int32_t alignment = -mask;
    if (now.kind != FRAMED || now.slack == SP_DEPTH_ANY || alignment <= 8)
        return now;
    if (alignment > 4096 || now.slack > 4096)
        return any_depth(now);
    now.slack += alignment - 8;
    return now;
}

static void set_stack(position *now, const sp_x86_instruction *instruction)
{
    if (instruction->stack == SP_X86_SP_ADD)
        *now = moved(*now, instruction->amount);
    else if (instruction->stack == SP_X86_SP_ALIGN)
        *now = aligned(*now, instruction->amount);
    else if (instruction->stack == SP_X86_SP_UNKNOWN)
        *now = any_depth(*now);
    else if (instruction->stack == SP_X86_SP_FROM_FP && now->kind == FRAMED) {
        now->below = now->slack = 0;
        *now = moved(*now, instruction->amount);
    }
}

/* With -fstack-clash-protection, large frames are allocated page by page, in a loop until sp equals
 * a register that was set before the loop: lea -N(%rsp), %r11; 1: sub $0x1000, %rsp; orq $0,
 * (%rsp); cmp %r11, %rsp; jne 1b. */
static void watch_probe(sweep *s, const sp_x86_instruction *instruction)
{
    if (s->probe.kind != UNREACHED && ++s->probe_age > PROBE_INSTRUCTIONS)
        s->probe.kind = UNREACHED;
    if (instruction->copies_sp && instruction->amount < 0 && s->now.kind == FRAMED) {
        s->probe = moved(s->now, instruction->amount);
        s->probe_register = instruction->other;
        s->probe_age = 0;
    }
    s->is_probing = instruction->compares_sp && s->probe.kind == FRAMED &&
                    instruction->other == s->probe_register;
}

static void apply(sweep *s, const sp_x86_instruction *instruction)
{
    position *now = &s->now;
    watch_probe(s, instruction);
    if (now->kind == UNREACHED)
        return;
    if (instruction->frame == SP_X86_FP_FROM_SP) {
        *now = (position){.kind = FRAMED, .is_assumed = now->is_assumed};
        *now = moved(*now, -(int64_t)instruction->amount);
    }
    set_stack(now, instruction);
    if (instruction->frame == SP_X86_FP_LOST)
        *now = (position){.kind = FRAMELESS};
}

static bool never_falls_through(const sp_x86_instruction *instruction)
{
    return instruction->flow == SP_X86_JUMP || instruction->flow == SP_X86_JUMP_INDIRECT ||
           instruction->flow == SP_X86_STOP;
}

/* The value for the instruction after a jump. The jumps to that instruction are joined later, at
 * its label. */
static position value_after_jump(const sweep *s)
{
    position now = s->table;
    if (now.kind == UNREACHED && s->assumes) {
        now = s->body;
        now.is_assumed = true;
    }
    return now;
}

/* Apply the flow of INSTRUCTION, which ends at END and may continue at another address.
 * WAS_PROBING: it is the branch at the end of a loop over pages. */
static void follow_flow(sweep *s, const sp_x86_instruction *instruction, uint64_t end,
                        bool was_probing)
{
    sp_depth_finder *finder = s->finder;
    uint64_t target = end + (uint64_t)(int64_t)instruction->target;
    if (s->body.kind != FRAMED && s->now.kind == FRAMED)
        s->body = s->now;
    if (instruction->flow == SP_X86_BRANCH && was_probing) {
        s->now = s->probe;
    } else if (instruction->flow == SP_X86_BRANCH || instruction->flow == SP_X86_JUMP) {
        if (sp_function_holds(s->function, target))
            join_label(&finder->inside, target, s->now);
        else if (sp_function_holds(&finder->part, target))
            join_label(&finder->across, target, s->now);
    } else if (instruction->flow == SP_X86_JUMP_INDIRECT) {
        position joined = join(s->table, s->now);
        finder->inside.has_changed |= !is_same(joined, s->table);
        s->table = joined;
    }
    if (never_falls_through(instruction))
        s->now = value_after_jump(s);
}

/* One run through the function. False: the code could not be read or understood up to pc. */
static bool run_sweep(sweep *s, position entry)
{
    uint64_t at = s->function->begin;
    s->now = entry;
    s->at_pc = s->probe = (position){0};
    s->is_probing = false;
    while (at < s->function->end) {
        sp_x86_instruction instruction;
        const label *label = find_label(&s->finder->inside, at);
        bool was_probing = s->is_probing;
        if (label->address)
            s->now = join(s->now, label->position);
        if (at == s->pc && s->is_exact)
            s->at_pc = s->now;
        if (!decode_at(s->finder, s->function, at, &instruction))
            return at > s->pc;
        at += instruction.length;
        apply(s, &instruction);
        if (at == s->pc && !s->is_exact)
            s->at_pc = s->now;
        if (instruction.flow != SP_X86_NEXT)
            follow_flow(s, &instruction, at, was_probing);
    }
    return true;
}

/* Sweep until nothing changes. False: it still changes after SWEEPS_MAX sweeps, or the code is not
 * understood. */
static bool solve(sweep *s, const sp_function_range *function, position entry)
{
    label_set *labels = &s->finder->inside;
    s->function = function;
    s->table = (position){0};
    for (int i = 0; i < SWEEPS_MAX; i++) {
        labels->has_changed = false;
        if (!run_sweep(s, entry) || labels->is_full)
            return false;
        if (!labels->has_changed)
            return true;
    }
    return false;
}

/* Solve FUNCTION. If it is a part of PARENT, sweep PARENT first, because its jumps give the values
 * on entry. */
static bool solve_all(sweep *s, const sp_function_range *function, const sp_function_range *parent)
{
    sp_depth_finder *finder = s->finder;
    position entry = {.kind = FRAMELESS};
    clear_labels(&finder->inside);
    finder->part = (sp_function_range){0};
    if (parent) {
        clear_labels(&finder->across);
        finder->part = *function;
        if (!solve(s, parent, entry) || finder->across.is_full)
            return false;
        finder->part = (sp_function_range){0};
        finder->inside = finder->across;
        entry.kind = UNREACHED;
    }
    if (!solve(s, function, entry))
        return false;
    s->assumes = s->at_pc.kind == UNREACHED;
    return !s->assumes || run_sweep(s, entry);
}

sp_frame_depth sp_frame_depth_find(sp_depth_finder *finder, sp_outside *outside,
                                   const sp_function_range *function,
                                   const sp_function_range *parent, uint64_t pc, bool is_exact)
{
    static const sp_frame_depth any = {.slack = SP_DEPTH_ANY};
    sweep s = {.finder = finder, .pc = pc, .is_exact = is_exact};
    if (function->end - function->begin > FUNCTION_BYTES_MAX ||
        (parent && parent->end - parent->begin > FUNCTION_BYTES_MAX))
        return any;
    finder->outside = outside;
    finder->code_low = finder->code_high = 0;
    if (!solve_all(&s, function, parent) || s.at_pc.kind != FRAMED)
        return any;
    return (sp_frame_depth){
        .below = s.at_pc.below, .slack = s.at_pc.slack, .is_assumed = s.at_pc.is_assumed};
}

/* The current target of a jump through memory; 0: unknown. */
static uint64_t indirect_target(sp_outside *outside, const sp_x86_instruction *instruction,
                                uint64_t end)
{
    uint64_t slot = end + (uint64_t)(int64_t)instruction->target, target;
    bool is_read = instruction->has_slot && outside->read(outside, &target, slot, sizeof target);
    return is_read ? target : 0;
}

/* A table of addresses is used by a jump with an index. A table of distances is used by a jump to a
 * register, to which the instruction before adds a distance and the address of the table. */
static bool is_by_table(const sp_x86_instruction *instruction, bool was_sum)
{
    return instruction->has_index || (was_sum && !instruction->has_slot);
}

bool sp_jumps_visit(sp_depth_finder *finder, sp_outside *outside, const sp_function_range *function,
                    bool (*visit)(void *user, uint64_t target), void *user)
{
    sp_x86_instruction instruction = {0};
    uint64_t end = function->end - function->begin < FUNCTION_BYTES_MAX
                       ? function->end
                       : function->begin + FUNCTION_BYTES_MAX;
    finder->outside = outside;
    finder->code_low = finder->code_high = 0;
    for (uint64_t at = function->begin; at < end;) {
        bool was_sum = instruction.is_sum;
        if (!decode_at(finder, function, at, &instruction))
            return false;
        at += instruction.length;
        uint64_t target = at + (uint64_t)(int64_t)instruction.target;
        bool is_direct = instruction.flow == SP_X86_JUMP || instruction.flow == SP_X86_BRANCH;
        bool is_indirect =
            instruction.flow == SP_X86_JUMP_INDIRECT && !is_by_table(&instruction, was_sum);
        if (is_indirect)
            target = indirect_target(outside, &instruction, at);
        if ((is_direct || is_indirect) && !sp_function_holds(function, target) &&
            visit(user, target))
            return true;
    }
    return false;
}

sp_depth_finder *sp_depth_finder_create(void)
{
    return calloc(1, sizeof(sp_depth_finder));
}

void sp_depth_finder_destroy(sp_depth_finder *finder)
{
    free(finder);
}
