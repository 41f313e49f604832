/* SPDX-License-Identifier: Apache-2.0 */
/* How a frame pointer is searched. If the code determines its position, one place on the stack is
 * checked. If the code determines a range (a realigned frame), a few places are checked. If the
 * code determines nothing (alloca), all places from sp up to SCAN_BYTES are checked. Each place has
 * to hold a return address. The call before that address decides its kind:
 *
 *     OURS     a direct call, or one through a slot in memory, whose target is this function or
 *              jumps to it, also through the procedure linkage table
 *     ANYONES  an indirect call: perhaps of this function
 *     UNSURE   a direct call of another function, which jumps to an address that it computes
 *     OTHERS   a direct call of another function, which does not jump here
 *     NOTHING  no call is before it, the call leads to no module, or it is not in code
 *
 * A position that the code determines is accepted with any of the first three, because a return
 * address has to be there, and one is. When several positions are possible, more is needed, because
 * the dynamic part of a frame is not cleared and may hold return addresses of earlier calls. The
 * right position leads to a complete stack in which each direct call is of the next function, and
 * each frame has the size that its code says. The lowest position that does so is accepted if it is
 * OURS, if all other positions that do so are return addresses of that same stack, and if that
 * stack does not go through this function again. An indirect call is no proof there: it may be left
 * from an earlier function at the same place on the stack, and the stack from it is complete,
 * too. */
#include "unwind/frame_pointer.h"

#if defined(__x86_64__)
#include <stdlib.h>
#include <string.h>

#include "unwind/frame_depth.h"
#include "unwind/generation_sig.h"
#include "unwind/walk_x86_64_sig.h"
#include "unwind/x86_instruction.h"

enum {
    PLACES = 2048, /* powers of two */
    VERDICTS = 2048,
    RANGES = 2048,
    SCAN_BYTES = 60 << 10,
    DEPTH_MAX = 256,
    OTHERS_MAX = 24,
    JUMPS_MAX = 8,   /* from function to function; a path through the linkage table counts twice */
    LEADS_MAX = 100, /* functions and stubs that are decoded */
    STUB_BYTES = 16,
};

typedef enum verdict { NOTHING = 1, OTHERS, UNSURE, ANYONES, OURS } verdict;

/* What is known about a pc whose frame needs fp. */
typedef struct place {
    uint64_t key; /* pc * 2 + exact; 0: empty */
    sp_function_range function;
    sp_function_range entered; /* the function that calls enter: `function`, or its parent */
    sp_frame_depth depth;
} place;

typedef struct known_verdict {
    uint64_t begin, return_address; /* of the function; 0: empty */
    verdict verdict;
} known_verdict;

typedef struct known_range {
    uint64_t address; /* 0: empty */
    sp_function_range range;
} known_range;

struct sp_fp_finder {
    uint32_t generation; /* of the modules that the caches below describe; 0: none */
    bool is_nested;
    sp_depth_finder *depths;
    place places[PLACES];
    known_verdict verdicts[VERDICTS];
    known_range ranges[RANGES];
    uint64_t pcs[DEPTH_MAX], sps[DEPTH_MAX]; /* the stack of the last candidate */
};

/* One search for a frame pointer. */
typedef struct search {
    sp_fp_finder *finder;
    sp_walk *walk;
    sp_outside *outside;
    const sp_generation *generation;
    uint64_t sp;
    sp_unwind_rule rule;
    place place; /* a copy: a nested search may overwrite the cache */
} search;

/* A frame pointer that may be the right one. */
typedef struct candidate {
    uint64_t fp;
    uint64_t return_address;
    uint64_t cfa;
    verdict verdict;
} candidate;

/* The rule of the code before the address AFTER. */
static void look_up_rule(const sp_generation *generation, uint64_t after, sp_unwind_rule *out)
{
    uint32_t packed = sp_generation_rule(generation, after);
    if (packed & SP_PACKED_FLAG)
        sp_packed_expand(packed, out);
    else
        *out = generation->rules->rules[sp_packed_number(packed)];
}

static bool load(sp_outside *outside, uint64_t address, uint64_t *out)
{
    if (address % 8 ||
        ((address < outside->low || address >= outside->high) && !outside->reach(outside, address)))
        return false;
    memcpy(out, (const void *)(uintptr_t)(address + outside->delta), sizeof *out); // NOLINT
    return true;
}

/* --- Does a call lead here? ------------------------------------------------------------------- */

typedef struct lead {
    const search *search;
    uint32_t jumps, looked_at;
    bool is_unsure; /* there was a jump to a computed address */
} lead;

static bool leads_here(lead *lead, uint64_t target);

static bool visit_jump(void *user, uint64_t target)
{
    lead *lead = user;
    lead->is_unsure |= target == 0;
    return target && leads_here(lead, target);
}

/* Where the jump of an entry of the linkage table begins. Before it may be `endbr64`, and, in
 * mold's entries, `mov $number, %r11d`. */
static size_t skip_to_jump(const uint8_t code[STUB_BYTES])
{
    size_t at = memcmp(code, "\xf3\x0f\x1e\xfa", 4) == 0 ? 4 : 0;
    return memcmp(code + at, "\x41\xbb", 2) == 0 ? at + 6 : at;
}

/* The code range whose jumps show where a call of TARGET leads. If TARGET is an entry of the
 * linkage table, which only jumps, the range is that entry alone, because the frame information may
 * describe all entries as one function. Else it is the function at TARGET. */
static bool find_jumper(const search *s, uint64_t target, sp_function_range *out)
{
    uint8_t code[STUB_BYTES];
    sp_x86_instruction first;
    if (!s->outside->read(s->outside, code, target, sizeof code))
        return false;
    size_t start = skip_to_jump(code);
    bool is_stub = sp_x86_decode(code + start, sizeof code - start, &first) &&
                   (first.flow == SP_X86_JUMP || first.flow == SP_X86_JUMP_INDIRECT);
    if (!is_stub)
        return sp_function_range_find(s->outside, s->generation, target, out);
    out->begin = target + start;
    out->end = out->begin + first.length;
    return true;
}

/* Whether code at TARGET leads into the function, directly or by jumps. */
static bool leads_here(lead *lead, uint64_t target)
{
    const search *s = lead->search;
    sp_function_range jumper;
    if (sp_function_holds(&s->place.entered, target) ||
        sp_function_holds(&s->place.function, target))
        return true;
    if (lead->jumps >= JUMPS_MAX || lead->looked_at >= LEADS_MAX)
        return false;
    lead->jumps++;
    lead->looked_at++;
    bool is_found = find_jumper(s, target, &jumper) &&
                    sp_jumps_visit(s->finder->depths, s->outside, &jumper, visit_jump, lead);
    lead->jumps--;
    return is_found;
}

/* The target of the direct call, or of the call through memory, that ends at RETURN_ADDRESS; BEFORE
 * has the bytes before that address. */
static bool find_target(const search *s, const uint8_t *before, uint64_t return_address,
                        bool *is_indirect, uint64_t *target)
{
    sp_x86_instruction call;
    *is_indirect = false;
    for (size_t length = 2; length <= SP_MACHINE_CALL_BYTES; length++) {
        if (!sp_x86_decode(before + SP_MACHINE_CALL_BYTES - length, length, &call) ||
            call.length != length || call.flow != SP_X86_CALL_INDIRECT)
            continue;
        *is_indirect = true;
        uint64_t slot = return_address + (uint64_t)(int64_t)call.target;
        if (call.has_slot && s->outside->read(s->outside, target, slot, sizeof *target))
            return true;
    }
    if (before[SP_MACHINE_CALL_BYTES - 5] != 0xe8)
        return false;
    int32_t distance;
    memcpy(&distance, before + SP_MACHINE_CALL_BYTES - 4, sizeof distance);
    *target = return_address + (uint64_t)(int64_t)distance;
    return true;
}

/* Classify the call before RETURN_ADDRESS. */
static verdict judge(const search *s, uint64_t return_address)
{
    uint8_t before[SP_MACHINE_CALL_BYTES];
    bool is_indirect;
    uint64_t target;
    if (!sp_generation_find(s->generation, return_address - 1) ||
        !s->outside->read(s->outside, before, return_address - sizeof before, sizeof before))
        return NOTHING;
    bool has_target = find_target(s, before, return_address, &is_indirect, &target);
    if (!has_target)
        return is_indirect ? ANYONES : NOTHING;
    if (!sp_generation_find(s->generation, target))
        return is_indirect ? ANYONES : NOTHING;
    lead lead = {.search = s};
    if (leads_here(&lead, target))
        return OURS;
    return is_indirect ? ANYONES : lead.is_unsure ? UNSURE : OTHERS;
}

static verdict judge_known(const search *s, uint64_t return_address)
{
    uint64_t begin = s->place.function.begin;
    known_verdict *known =
        &s->finder->verdicts[(return_address ^ return_address >> 11 ^ begin >> 4) & (VERDICTS - 1)];
    if (known->begin != begin || known->return_address != return_address)
        *known = (known_verdict){
            .begin = begin, .return_address = return_address, .verdict = judge(s, return_address)};
    return known->verdict;
}

/* --- Candidates ------------------------------------------------------------------------------- */

/* Whether the stack fits the rule if FP is the frame pointer. Fills in OUT. A realigned frame
 * begins with a copy of the return address. */
static bool check_frame(const search *s, uint64_t fp, candidate *out)
{
    const sp_unwind_rule *rule = &s->rule;
    uint64_t cfa = fp + (uint64_t)(int64_t)rule->cfa_offset, copy;
    *out = (candidate){.fp = fp};
    if (rule->cfa_kind == SP_CFA_DEREF) {
        if (!load(s->outside, cfa, &cfa))
            return false;
        cfa += (uint64_t)(int64_t)rule->cfa_addend;
    }
    if (cfa <= fp || cfa - fp > SCAN_BYTES || rule->ra.kind != SP_SAVED_AT_CFA ||
        !load(s->outside, cfa + (uint64_t)(int64_t)rule->ra.offset, &out->return_address))
        return false;
    if (rule->cfa_kind == SP_CFA_DEREF &&
        (!load(s->outside, fp + 8, &copy) || copy != out->return_address))
        return false;
    out->cfa = cfa;
    out->verdict = judge_known(s, out->return_address);
    return true;
}

static place find_place(const search *s, uint64_t pc, bool is_exact);

static const sp_function_range *find_range(const search *s, uint64_t address)
{
    known_range *known = &s->finder->ranges[(address ^ address >> 11) & (RANGES - 1)];
    if (known->address != address) {
        known->address = address;
        if (!sp_function_range_find(s->outside, s->generation, address, &known->range))
            known->range = (sp_function_range){.begin = address, .end = address + 1};
    }
    return &known->range;
}

/* Whether the call before RETURN_ADDRESS may have led to the frame of the function at ADDRESS. Any
 * call may lead to parts of functions, and to code whose beginning is not known. */
static bool may_link(const search *s, uint64_t address, uint64_t return_address)
{
    search link = *s;
    sp_unwind_rule entry;
    link.place.function = link.place.entered = *find_range(s, address);
    look_up_rule(s->generation, link.place.function.begin + 1, &entry);
    verdict verdict = judge_known(&link, return_address);
    bool is_entered = entry.cfa_register == SP_DWARF_SP && entry.cfa_offset == 8;
    return verdict >= UNSURE || (!is_entered && verdict == OTHERS);
}

/* Whether frame NUMBER of the stack that was followed has the size that its code says. True if the
 * code does not say. */
static bool has_right_size(const search *s, uint32_t number)
{
    const sp_fp_finder *finder = s->finder;
    uint64_t after = finder->pcs[number] + 1;
    sp_unwind_rule rule;
    look_up_rule(s->generation, after, &rule);
    if (rule.cfa_kind != SP_CFA_REGISTER || rule.cfa_register != SP_DWARF_FP)
        return true;
    sp_frame_depth depth = find_place(s, after, false).depth;
    uint64_t bytes =
        finder->sps[number + 1] - finder->sps[number] - (uint64_t)(int64_t)rule.cfa_offset;
    uint64_t below = (uint64_t)depth.below;
    return depth.is_assumed || depth.slack == SP_DEPTH_ANY ||
           (bytes >= below && bytes <= below + (uint64_t)depth.slack);
}

/* Walk the stack from the caller on, assuming that ONE is right, into the finder's pcs and sps.
 * Returns its length; 0 if it is incomplete, or a call in it leads to another function. */
static uint32_t follow(const search *s, const candidate *one)
{
    sp_fp_finder *finder = s->finder;
    sp_walk walk = {.generation = s->generation,
                    .outside = s->outside,
                    .pcs = finder->pcs,
                    .max_depth = DEPTH_MAX,
                    .registers = {.pc = one->return_address - 1, .sp = one->cfa}};
    uint64_t at = s->rule.fp.kind == SP_SAVED_AT_REGISTER ? one->fp : one->cfa;
    walk.registers.has_fp =
        load(s->outside, at + (uint64_t)(int64_t)s->rule.fp.offset, &walk.registers.fp);
    finder->is_nested = true;
    s->outside->sps = finder->sps;
    sp_walk_stack(&walk);
    s->outside->sps = NULL;
    finder->is_nested = false;
    if (walk.end != SP_WALK_COMPLETE || walk.omitted)
        return 0;
    for (uint32_t i = 1; i < walk.count; i++)
        if (!has_right_size(s, i - 1) || !may_link(s, finder->pcs[i - 1], finder->pcs[i] + 1))
            return 0;
    return walk.count;
}

/* Whether the stack of DEPTH frames that was followed goes through the function. */
static bool occurs_again(const search *s, uint32_t depth)
{
    for (uint32_t i = 0; i < depth; i++)
        if (sp_function_holds(&s->place.function, s->finder->pcs[i]) ||
            sp_function_holds(&s->place.entered, s->finder->pcs[i]))
            return true;
    return false;
}

static bool is_on_stack(const search *s, uint32_t depth, const candidate *one)
{
    for (uint32_t i = 0; i < depth; i++)
        if (s->finder->sps[i] == one->cfa)
            return true;
    return false;
}

/* Choose the lowest of FOUND that leads to a complete stack, if no other one could be right. */
static bool choose(const search *s, const candidate *found, uint32_t count, candidate *out)
{
    bool leads[OTHERS_MAX];
    uint32_t chosen = count;
    for (uint32_t i = count; i-- > 0;) {
        leads[i] = follow(s, &found[i]) > 0;
        chosen = leads[i] ? i : chosen;
    }
    uint32_t depth = chosen < count ? follow(s, &found[chosen]) : 0;
    if (!depth || found[chosen].verdict != OURS || occurs_again(s, depth))
        return false;
    for (uint32_t i = chosen + 1; i < count; i++)
        if (leads[i] && !is_on_stack(s, depth, &found[i]))
            return false;
    *out = found[chosen];
    return true;
}

/* Collect possible frames from LOW to HIGH, both multiples of 16, as all frame pointers are.
 * Candidates with a verdict below UNSURE are left out. UINT32_MAX: there are too many. */
static uint32_t collect(const search *s, uint64_t low, uint64_t high, candidate *found)
{
    uint32_t count = 0;
    candidate one;
    uint64_t word;
    for (uint64_t fp = low; fp <= high && load(s->outside, fp + 8, &word); fp += 16) {
        if (!sp_generation_find(s->generation, word) || !check_frame(s, fp, &one) ||
            one.verdict < UNSURE)
            continue;
        if (count == OTHERS_MAX)
            return UINT32_MAX;
        found[count++] = one;
    }
    return count;
}

static bool search_range(const search *s, candidate *out)
{
    candidate found[OTHERS_MAX];
    const sp_frame_depth *depth = &s->place.depth;
    bool is_bounded = depth->slack != SP_DEPTH_ANY && !depth->is_assumed;
    uint64_t below = depth->is_assumed ? 0 : (uint64_t)depth->below;
    uint64_t span = is_bounded ? (uint64_t)depth->slack : SCAN_BYTES;
    uint64_t low = (s->sp + below + 15) & ~UINT64_C(15);
    uint32_t count = collect(s, low, s->sp + below + span, found);
    if (count == UINT32_MAX)
        return false;
    if (is_bounded && count == 1) {
        *out = found[0];
        return found[0].verdict != UNSURE;
    }
    return !s->finder->is_nested && choose(s, found, count, out);
}

static bool search_stack(const search *s, candidate *out)
{
    const sp_frame_depth *depth = &s->place.depth;
    if (depth->slack || depth->is_assumed)
        return search_range(s, out);
    return check_frame(s, s->sp + (uint64_t)depth->below, out) && out->verdict >= UNSURE;
}

/* --- Places ----------------------------------------------------------------------------------- */

typedef struct parent_search {
    const search *search;
    sp_function_range *parent;
} parent_search;

/* A part of a function at another address jumps back into the middle of its function. A jump to the
 * beginning of a function is a tail call. */
static bool visit_exit(void *user, uint64_t target)
{
    const parent_search *p = user;
    const search *s = p->search;
    return target && sp_function_range_find(s->outside, s->generation, target, p->parent) &&
           target != p->parent->begin;
}

/* Find the function of PC, the function that calls enter, and the depth at PC. */
static void study(const search *s, uint64_t pc, bool is_exact, place *out)
{
    static const sp_frame_depth unknown = {.slack = SP_DEPTH_ANY};
    sp_unwind_rule entry;
    out->depth = unknown;
    out->function = (sp_function_range){.begin = pc - !is_exact, .end = pc + is_exact};
    sp_function_range_find(s->outside, s->generation, pc - !is_exact, &out->function);
    out->entered = out->function;
    look_up_rule(s->generation, out->function.begin + 1, &entry);
    bool is_part = entry.cfa_kind != SP_CFA_NONE && entry.cfa_register == SP_DWARF_FP;
    sp_function_range parent;
    parent_search search = {.search = s, .parent = &parent};
    if (is_part &&
        !sp_jumps_visit(s->finder->depths, s->outside, &out->function, visit_exit, &search))
        return;
    if (is_part)
        out->entered = parent;
    out->depth = sp_frame_depth_find(s->finder->depths, s->outside, &out->function,
                                     is_part ? &parent : NULL, pc, is_exact);
}

static place find_place(const search *s, uint64_t pc, bool is_exact)
{
    uint64_t key = pc * 2 + is_exact;
    place *place = &s->finder->places[(pc ^ pc >> 11) & (PLACES - 1)];
    if (place->key != key) {
        study(s, pc, is_exact, place);
        place->key = key;
    }
    return *place;
}

static void forget_other_generations(sp_fp_finder *finder, const sp_generation *generation)
{
    if (finder->generation == generation->number)
        return;
    finder->generation = generation->number;
    memset(finder->places, 0, sizeof finder->places);
    memset(finder->verdicts, 0, sizeof finder->verdicts);
    memset(finder->ranges, 0, sizeof finder->ranges);
}

static void count_found(sp_walk *walk, const candidate *found, bool is_found)
{
    walk->fp_not_found += !is_found;
    walk->fp_by_call += is_found && found->verdict == OURS;
    walk->fp_by_return += is_found && found->verdict != OURS;
}

bool sp_fp_find(sp_fp_finder *finder, sp_walk *walk, const sp_registers *frame, bool pc_is_exact,
                uint64_t *fp)
{
    candidate found = {0};
    search s = {.finder = finder,
                .walk = walk,
                .outside = walk->outside,
                .generation = walk->generation,
                .sp = frame->sp};
    bool is_found = false;
    if (s.generation && frame->sp % 8 == 0) {
        forget_other_generations(finder, s.generation);
        look_up_rule(s.generation, frame->pc + pc_is_exact, &s.rule);
        s.place = find_place(&s, frame->pc, pc_is_exact);
        is_found = search_stack(&s, &found);
    }
    count_found(walk, &found, is_found);
    *fp = found.fp;
    return is_found;
}

sp_fp_finder *sp_fp_finder_create(void)
{
    sp_fp_finder *finder = calloc(1, sizeof *finder);
    if (finder)
        finder->depths = sp_depth_finder_create();
    if (!finder || !finder->depths) {
        free(finder);
        return NULL;
    }
    return finder;
}

void sp_fp_finder_destroy(sp_fp_finder *finder)
{
    if (!finder)
        return;
    sp_depth_finder_destroy(finder->depths);
    free(finder);
}
#endif
