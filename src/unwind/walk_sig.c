/* SPDX-License-Identifier: Apache-2.0 */
/* The walk. Each step finds the rule of the current pc and applies it: first the canonical frame
 * address (CFA), which is the caller's stack pointer, then where return address and frame pointer
 * were saved.
 *
 * Every address here may be wrong: the interrupted code's stack may not match its rule, and a frame
 * pointer may have any value. So loads are direct only between the current stack pointer and the
 * end of the thread's own stack, which is mapped, and guarded everywhere else; each frame must lie
 * above the one before; and without a rule the first step along frame pointers is accepted only
 * when a call instruction precedes the return address. If a check fails, the walk ends with a mark.
 * Nothing is guessed. */
#include "unwind/walk_sig.h"

#include "context/ring_sig.h"
#include "core/guarded_load_sig.h"
#include "unwind/generation_sig.h"
#if defined(__aarch64__)
#include "unwind/walk_aarch64_sig.h"
#else
#include "unwind/walk_x86_64_sig.h"
#endif

#define LOWEST_CODE  UINT64_C(4096)
#define HIGHEST_CODE (UINT64_C(1) << 56)

/* A larger step along frame pointers leaves the stack: the register pointed to a frame of another
 * stack. */
#define FRAME_BYTES_MAX (UINT64_C(256) << 10)

/* What makecontext and its like put above the first frame: arguments, the address to return to,
 * alignment. */
#define FIBER_TOP_BYTES 64

/* Compilers and C libraries align functions to it. */
#define FUNCTION_ALIGNMENT 16

/* The limit of nested signal handlers. More mean a damaged stack that leads back to itself. */
#define SIGNAL_FRAMES_MAX 32

typedef struct walker {
    sp_walk *walk;
    sp_registers frame; /* of the current frame */
    bool pc_is_exact;   /* not a return address */
    bool in_chain;      /* the last step followed a frame pointer */
    bool sp_is_floor;   /* frame.sp is only a lower bound */
    bool last_is_none;  /* the last address found is not a frame */
    sp_walk_end end;    /* why a step failed */
    uint32_t steps;     /* frames found */
    uint32_t signal_frames;
    uint32_t steps_max; /* the limit of steps */
    uint32_t next;      /* index in pcs of the next frame */
    sp_guarded guarded;
} walker;

SP_SIGSAFE static bool fail(walker *w, sp_walk_end end)
{
    w->end = end;
    return false;
}

/* The caller has checked that ADDRESS is in the used part of the stack, or in a copy of it. */
SP_SIGSAFE static inline uint64_t stack_word(uint64_t address)
{
    return *(const uint64_t *)(uintptr_t)address; // NOLINT(performance-no-int-to-ptr)
}

SP_SIGSAFE static bool load_outside(sp_outside *outside, uint64_t address, uint64_t *out)
{
    if (address % 8)
        return false;
    if ((address < outside->low || address >= outside->high) && !outside->reach(outside, address))
        return false;
    *out = stack_word(address + outside->delta);
    return true;
}

SP_SIGSAFE static bool load_guarded(walker *w, uint64_t address, uint64_t *out)
{
    sp_outside *outside = w->walk->outside;
    if (outside)
        return load_outside(outside, address, out) || fail(w, SP_WALK_BAD_MEMORY);
    return sp_guarded_load(&w->guarded, address, out) || fail(w, SP_WALK_BAD_MEMORY);
}

SP_SIGSAFE static inline bool load(walker *w, uint64_t address, uint64_t *out)
{
    const sp_stack_bounds *bounds = &w->walk->bounds;
    uint64_t sp = w->frame.sp;
    if (SP_LIKELY(sp >= bounds->low && address >= sp && address < bounds->high &&
                  bounds->high - address >= 8 && address % 8 == 0)) {
        *out = stack_word(address);
        return true;
    }
    return load_guarded(w, address, out);
}

/* Copy code, which may have been unmapped. */
SP_SIGSAFE static bool copy_code(walker *w, void *out, uint64_t address, uint64_t bytes)
{
    sp_outside *outside = w->walk->outside;
    return outside ? outside->read(outside, out, address, bytes)
                   : sp_guarded_copy(&w->guarded, out, address, bytes);
}

SP_SIGSAFE static inline bool read_register(walker *w, unsigned number, uint64_t *out)
{
    if (number == SP_DWARF_SP) {
        *out = w->frame.sp;
        return true;
    }
    if (number == SP_DWARF_FP && w->frame.has_fp) {
        *out = w->frame.fp;
        return true;
    }
    if (number == SP_DWARF_BASE && w->frame.has_base) {
        *out = w->frame.base;
        return true;
    }
    if (number == SP_DWARF_RA && w->frame.has_link) {
        *out = w->frame.link;
        return true;
    }
    if (!w->frame.context)
        return fail(w, SP_WALK_NO_REGISTER);
    return load(w, sp_machine_register_address(w->frame.context, number), out);
}

SP_SIGSAFE static void find_rule(const walker *w, sp_unwind_rule *rule)
{
    const sp_generation *generation = w->walk->generation;
    uint32_t packed = sp_packed_of_number(SP_RULE_NONE);
    if (generation)
        packed = sp_generation_rule(generation, w->frame.pc + w->pc_is_exact);
    if (packed & SP_PACKED_FLAG)
        sp_packed_expand(packed, rule);
    else if (sp_packed_number(packed) == SP_RULE_NONE)
        *rule = (sp_unwind_rule){.cfa_kind = SP_CFA_NONE};
    else
        *rule = generation->rules->rules[sp_packed_number(packed)];
}

/* After a frame without a rule, sp is unknown. The frame pointer points to the frame's record, and
 * the rule gives the distance of that record from the CFA. */
SP_SIGSAFE static bool find_cfa_by_record(walker *w, const sp_unwind_rule *rule, uint64_t *cfa)
{
    if (rule->cfa_kind != SP_CFA_REGISTER || rule->fp.kind != SP_SAVED_AT_CFA || !w->frame.has_fp)
        return fail(w, SP_WALK_NO_REGISTER);
    *cfa = w->frame.fp - (uint64_t)(int64_t)rule->fp.offset;
    return true;
}

/* Make a frame pointer known that a rule needs. If there is a ucontext, read_register reads it
 * there. In a walk from outside it is searched. */
SP_SIGSAFE static bool recover_fp(walker *w)
{
    sp_outside *outside = w->walk->outside;
    if (w->frame.context)
        return true;
    w->frame.has_fp =
        outside && outside->find_fp(outside, w->walk, &w->frame, w->pc_is_exact, &w->frame.fp);
    return w->frame.has_fp || fail(w, SP_WALK_NO_REGISTER);
}

SP_SIGSAFE static inline bool find_cfa(walker *w, const sp_unwind_rule *rule, uint64_t *cfa)
{
    uint64_t base;
    if (SP_UNLIKELY(w->sp_is_floor && rule->cfa_register == SP_DWARF_SP))
        return find_cfa_by_record(w, rule, cfa);
    if (SP_UNLIKELY(rule->cfa_register == SP_DWARF_FP && !w->frame.has_fp) && !recover_fp(w))
        return false;
    if (!read_register(w, rule->cfa_register, &base))
        return false;
    *cfa = base + (uint64_t)(int64_t)rule->cfa_offset;
    if (SP_LIKELY(rule->cfa_kind == SP_CFA_REGISTER))
        return true;
    if (rule->cfa_kind == SP_CFA_PLT) {
        *cfa += (w->frame.pc & 15) >= (uint64_t)rule->cfa_addend ? 8 : 0;
        return true;
    }
    if (!load(w, *cfa, cfa))
        return false;
    *cfa += (uint64_t)(int64_t)rule->cfa_addend;
    return true;
}

/* The caller's value of a register that this frame saved as SAVED says. */
SP_SIGSAFE static inline bool find_saved(walker *w, sp_saved saved, uint64_t cfa, uint64_t *out)
{
    uint64_t address = cfa;
    if (SP_LIKELY(saved.kind == SP_SAVED_AT_CFA))
        return load(w, address + (uint64_t)(int64_t)saved.offset, out);
    if (saved.kind == SP_SAVED_IN_REGISTER)
        return read_register(w, saved.base, out);
    if (saved.kind == SP_SAVED_AT_REGISTER && !read_register(w, saved.base, &address))
        return false;
    return load(w, address + (uint64_t)(int64_t)saved.offset, out);
}

/* The same for a register that this frame may have left unchanged. *VALUE is its value in this
 * frame, if IS_KNOWN, and becomes the caller's. Returns whether the caller's value is known. An
 * unknown one matters only if a rule further up needs it. */
SP_SIGSAFE static inline bool find_kept(walker *w, sp_saved saved, uint64_t cfa, bool is_known,
                                        uint64_t *value)
{
    if (saved.kind == SP_SAVED_UNCHANGED)
        return is_known;
    return saved.kind != SP_SAVED_UNDEFINED && saved.kind != SP_SAVED_UNKNOWN &&
           find_saved(w, saved, cfa, value);
}

/* Whether the current frame is on a fiber's stack, and a caller with the stack pointer SP would not
 * be. Then the frame is the fiber's first and has no caller. */
SP_SIGSAFE static bool is_first_of_fiber(const walker *w, uint64_t sp)
{
    const sp_stack_bounds *fiber = &w->walk->fiber;
    return w->frame.sp >= fiber->low && w->frame.sp <= fiber->high && sp > fiber->high;
}

/* Whether the walk is at the code that a fiber's first function returns to, at the top of the
 * fiber's stack, where there is no room for a caller. That code may have no table (__start_context
 * of glibc before its first instruction). */
SP_SIGSAFE static bool is_at_top_of_fiber(const walker *w)
{
    const sp_stack_bounds *fiber = &w->walk->fiber;
    return w->frame.sp >= fiber->low && w->frame.sp <= fiber->high &&
           fiber->high - w->frame.sp <= FIBER_TOP_BYTES && !w->pc_is_exact;
}

/* The address that was stored last is the trampoline to which a signal handler returns: replace it.
 * Code that was interrupted in the trampoline itself keeps its address. */
SP_SIGSAFE static void mark_trampoline(walker *w)
{
    if (!w->pc_is_exact)
        w->walk->pcs[w->next - 1] = SP_PC_SIGNAL_HANDLER;
}

SP_SIGSAFE static bool step_by_rule(walker *w, const sp_unwind_rule *rule)
{
    uint64_t cfa, pc, fp = w->frame.fp, base = w->frame.base;
    if (SP_UNLIKELY(rule->is_signal_frame))
        mark_trampoline(w);
    if (rule->ra.kind == SP_SAVED_UNDEFINED)
        return fail(w, SP_WALK_COMPLETE);
    if (rule->cfa_kind == SP_CFA_UNSUPPORTED)
        return fail(w, SP_WALK_NO_TABLE);
    if (!find_cfa(w, rule, &cfa))
        return false;
    if (SP_UNLIKELY(is_first_of_fiber(w, cfa)) && !rule->is_signal_frame)
        return fail(w, SP_WALK_COMPLETE);
    /* Where calls push nothing, interrupted code may have no frame. */
    bool may_stay = w->pc_is_exact && rule->ra.kind == SP_SAVED_IN_REGISTER;
    /* A signal handler may run on an alternate stack: then the interrupted frame may be at any
     * address, but this happens only a few times in one stack. */
    bool goes_up = cfa > w->frame.sp || (may_stay && cfa == w->frame.sp);
    if (rule->is_signal_frame ? ++w->signal_frames > SIGNAL_FRAMES_MAX : !goes_up)
        return fail(w, SP_WALK_NO_PROGRESS);
    if (!find_saved(w, rule->ra, cfa, &pc))
        return false;
    bool has_fp = find_kept(w, rule->fp, cfa, w->frame.has_fp, &fp);
    bool has_base = find_kept(w, rule->base, cfa, w->frame.has_base, &base);
    w->frame.context = rule->is_signal_frame ? sp_machine_signal_context(w->frame.sp) : 0;
    w->frame.pc = sp_machine_strip(pc);
    w->frame.sp = cfa;
    w->frame.fp = fp;
    w->frame.base = base;
    w->frame.has_fp = has_fp;
    w->frame.has_base = has_base;
    w->frame.has_link = false;
    w->pc_is_exact = rule->is_signal_frame;
    w->in_chain = false;
    w->sp_is_floor = false;
    return true;
}

/* Only interrupted code can be at a place where the frame is not set up; after a call, the frame is
 * set up. */
SP_SIGSAFE static sp_frame_shape find_shape(walker *w)
{
    uint8_t code[SP_MACHINE_CODE_BEFORE + SP_MACHINE_CODE_BYTES] = {0};
    uint8_t *at_pc = code + SP_MACHINE_CODE_BEFORE;
    if (!w->pc_is_exact || !copy_code(w, at_pc, w->frame.pc, SP_MACHINE_CODE_BYTES))
        return (sp_frame_shape){.kind = SP_FRAME_SET_UP};
    if (SP_MACHINE_CODE_BEFORE) /* a page may begin between the two */
        copy_code(w, code, w->frame.pc - SP_MACHINE_CODE_BEFORE, SP_MACHINE_CODE_BEFORE);
    return sp_machine_frame_shape(at_pc);
}

/* Find the place of the return address, and the caller's fp, in a frame without a rule. */
SP_SIGSAFE static bool find_frame_by_shape(walker *w, sp_frame_shape shape, uint64_t *ra_address,
                                           uint64_t *caller_fp)
{
    if (shape.kind == SP_FRAME_ENTERED) {
        *ra_address = w->frame.sp + shape.offset;
        *caller_fp = w->frame.fp;
        return true;
    }
    uint64_t at = shape.kind == SP_FRAME_PUSHED ? w->frame.sp + shape.offset : w->frame.fp;
    if (shape.kind == SP_FRAME_SET_UP && !w->frame.has_fp)
        return fail(w, SP_WALK_NO_REGISTER);
    if (at == 0 && w->in_chain)
        return fail(w, SP_WALK_COMPLETE);
    if (at == 0 || at % 8)
        return fail(w, SP_WALK_NO_TABLE);
    if (at < w->frame.sp || at - w->frame.sp > FRAME_BYTES_MAX)
        return fail(w, SP_WALK_NO_PROGRESS);
    *ra_address = at + 8;
    return load(w, at, caller_fp);
}

SP_SIGSAFE static bool follows_call(walker *w, uint64_t pc)
{
    uint8_t before[SP_MACHINE_CALL_BYTES] = {0};
    return copy_code(w, before, pc - sizeof before, sizeof before) &&
           sp_machine_is_after_call(before);
}

SP_SIGSAFE static bool is_trampoline_at(walker *w, uint64_t pc)
{
    uint8_t code[SP_MACHINE_CODE_BYTES] = {0};
    return copy_code(w, code, pc, sizeof code) && sp_machine_is_trampoline(code);
}

/* The same in a chain of frame pointers, where each read of code costs a system call. So the code
 * is read only at addresses where a function may begin; one return address in sixteen is such an
 * address by chance. */
SP_SIGSAFE static bool is_trampoline_in_chain(walker *w, uint64_t pc)
{
    return pc % FUNCTION_ALIGNMENT == 0 && is_trampoline_at(w, pc);
}

/* Whether a frame that was found by its frame pointer may return to PC. Only the first step must
 * also follow a call. */
SP_SIGSAFE static bool may_return_to(walker *w, uint64_t pc)
{
    if (pc < LOWEST_CODE || pc >= HIGHEST_CODE)
        return false;
    return w->in_chain || follows_call(w, pc) || is_trampoline_in_chain(w, pc);
}

SP_SIGSAFE static void leave_frame(walker *w, uint64_t pc, uint64_t sp, uint64_t fp)
{
    w->frame.pc = pc;
    w->frame.sp = sp;
    w->frame.fp = fp;
    w->frame.has_base = false;
    w->frame.has_link = false;
    w->frame.context = 0;
    w->pc_is_exact = false;
}

SP_SIGSAFE static bool is_in_record(walker *w, uint64_t link)
{
    uint64_t saved;
    return w->frame.has_fp && load(w, w->frame.fp + 8, &saved) && sp_machine_strip(saved) == link;
}

/* Step to the caller that the link register names, from a frame that has not saved that register.
 * The frame pointer is still the caller's, and so is the stack pointer if SHAPE is SP_FRAME_LINKED.
 * Code of unknown shape may have saved the register. Then its value is in the frame record, or the
 * code has made a call since, and the register points into this same code, which has no table. */
SP_SIGSAFE static bool step_by_link(walker *w, sp_frame_shape shape)
{
    const sp_registers callee = w->frame;
    const bool is_sure = shape.kind == SP_FRAME_LINKED;
    uint64_t link;
    if (!w->pc_is_exact || !read_register(w, SP_DWARF_RA, &link))
        return false;
    link = sp_machine_strip(link);
    if (!is_sure && is_in_record(w, link))
        return false;
    leave_frame(w, link, callee.sp, callee.fp);
    sp_unwind_rule rule;
    find_rule(w, &rule);
    if ((!is_sure && rule.cfa_kind == SP_CFA_NONE) || !follows_call(w, link)) {
        w->frame = callee;
        w->pc_is_exact = true;
        return fail(w, SP_WALK_NO_TABLE);
    }
    w->sp_is_floor = !is_sure;
    w->walk->by_frame_pointer++;
    return true;
}

SP_SIGSAFE static bool step_over_signal(walker *w)
{
    sp_unwind_rule trampoline;
    sp_machine_signal_rule(&trampoline);
    return step_by_rule(w, &trampoline);
}

SP_SIGSAFE static bool step_by_frame_pointer(walker *w)
{
    uint64_t ra_address = 0, caller_fp = 0, pc = 0;
    sp_frame_shape shape = find_shape(w);
    if (shape.kind == SP_FRAME_LINKED)
        return step_by_link(w, shape);
    if (shape.kind == SP_FRAME_SIGNAL)
        return step_over_signal(w);
    if (SP_LINK_REGISTER && shape.kind == SP_FRAME_SET_UP && step_by_link(w, shape))
        return true;
    if (!find_frame_by_shape(w, shape, &ra_address, &caller_fp))
        return false;
    if (SP_UNLIKELY(is_first_of_fiber(w, ra_address + 8)))
        return fail(w, SP_WALK_COMPLETE);
    if (!load(w, ra_address, &pc))
        return false;
    pc = sp_machine_strip(pc);
    if (pc != 0 && !may_return_to(w, pc))
        return fail(w, SP_WALK_NO_TABLE);
    leave_frame(w, pc, ra_address + 8, caller_fp);
    w->in_chain = true;
    w->sp_is_floor = !SP_MACHINE_RECORD_GIVES_SP && shape.kind != SP_FRAME_ENTERED;
    w->walk->by_frame_pointer++;
    return true;
}

/* A trampoline without frame information is recognized by its bytes. Only returns lead to it, so an
 * exact pc is not one. */
SP_SIGSAFE static bool is_trampoline(walker *w)
{
    if (w->pc_is_exact)
        return false;
    return w->in_chain ? is_trampoline_in_chain(w, w->frame.pc) : is_trampoline_at(w, w->frame.pc);
}

/* A wrong rule (of assembly that pushes without describing it) yields another word as the return
 * address. A word that has no table, and no call before it, is not a frame. */
SP_SIGSAFE static bool is_no_code(walker *w)
{
    return !w->pc_is_exact && !w->in_chain && !follows_call(w, w->frame.pc);
}

SP_SIGSAFE static bool step(walker *w)
{
    sp_unwind_rule rule;
    find_rule(w, &rule);
    bool has_rule = rule.cfa_kind != SP_CFA_NONE;
    if ((!has_rule || (SP_MACHINE_SIGNAL_BY_BYTES && rule.is_signal_frame)) && is_trampoline(w))
        return step_over_signal(w);
    if (has_rule)
        return step_by_rule(w, &rule);
    w->last_is_none = is_no_code(w);
    if (SP_UNLIKELY(w->last_is_none && is_at_top_of_fiber(w)))
        return fail(w, SP_WALK_COMPLETE);
    return w->last_is_none ? fail(w, SP_WALK_NO_TABLE) : step_by_frame_pointer(w);
}

SP_SIGSAFE static void reverse(uint64_t *values, uint32_t count)
{
    for (uint32_t i = 0; i < count / 2; i++) {
        uint64_t value = values[i];
        values[i] = values[count - 1 - i];
        values[count - 1 - i] = value;
    }
}

/* The last quarter of a full pcs is a ring that holds the latest frames. Turn it, so that they are
 * in order. */
SP_SIGSAFE static void turn_ring(walker *w, uint32_t first)
{
    uint64_t *pcs = w->walk->pcs;
    uint32_t end = w->walk->max_depth;
    reverse(pcs + first, w->next - first);
    reverse(pcs + w->next, end - w->next);
    reverse(pcs + first, end - first);
}

SP_SIGSAFE static void settle_frames(walker *w)
{
    sp_walk *walk = w->walk;
    bool is_deep = w->steps > walk->max_depth;
    bool has_root = is_deep && w->end != SP_WALK_TRUNCATED; /* else the latest are not the root */
    uint32_t first = walk->max_depth - walk->max_depth / 4;
    if (has_root)
        turn_ring(w, first);
    walk->count = has_root ? walk->max_depth : is_deep ? first : w->steps;
    walk->omitted = has_root ? w->steps - walk->max_depth : 0;
    walk->count -= w->last_is_none;
    walk->leaf_count = has_root ? first : walk->count;
}

SP_SIGSAFE static inline void put_frame(walker *w, uint64_t pc)
{
    const sp_walk *walk = w->walk;
    if (SP_UNLIKELY(w->next == walk->max_depth))
        w->next -= walk->max_depth / 4;
    if (SP_UNLIKELY(walk->outside && walk->outside->sps))
        walk->outside->sps[w->next] = w->frame.sp;
    walk->pcs[w->next++] = pc;
    w->steps++;
}

/* The memory for packed rules: [low, high) is the stack, nothing below floor is read, and the word
 * of ADDRESS is at ADDRESS + delta. */
typedef struct extent {
    uint64_t low, high, floor, delta;
} extent;

/* The floor is this handler's own frame if the handler runs on the same stack, because all memory
 * above it is mapped; else it is the interrupted code's stack pointer. */
SP_SIGSAFE static inline extent own_extent(const walker *w)
{
    sp_stack_bounds bounds = w->walk->bounds;
    uint64_t here = (uint64_t)(uintptr_t)__builtin_frame_address(0);
    bool is_here = here >= bounds.low && here < w->frame.sp;
    return (extent){.low = bounds.low, .high = bounds.high, .floor = is_here ? here : w->frame.sp};
}

SP_SIGSAFE static inline extent outside_extent(const walker *w)
{
    const sp_outside *outside = w->walk->outside;
    return (extent){.low = outside->low,
                    .high = outside->high,
                    .floor = outside->low - SP_PACKED_DEPTH_MAX,
                    .delta = outside->delta};
}

_Static_assert(SP_OUTSIDE_MARGIN >= SP_PACKED_DEPTH_MAX, "what is below the copy is readable");

/* Compiled once for each value of IS_OUTSIDE, because in a walk from outside (of another thread's
 * stack) the frame pointer is usually unknown at first. */
SP_SIGSAFE static inline __attribute__((always_inline)) void
run_in_extent(walker *w, const extent extent, const bool is_outside)
{
    const sp_generation *generation = w->walk->generation;
    uint64_t *const pcs = w->walk->pcs;
    const uint64_t high = extent.high, floor = extent.floor, delta = extent.delta;
    uint64_t after = w->frame.pc + w->pc_is_exact;
    uint64_t sp = w->frame.sp, fp = w->frame.fp, base = w->frame.base;
    uint32_t next = w->next, last = w->walk->max_depth, start = next;
    bool has_fp = w->frame.has_fp, has_base = w->frame.has_base;
    uint64_t *const sps = is_outside ? w->walk->outside->sps : NULL;
    if (w->steps + (last - next) > w->steps_max)
        last = next + (w->steps_max - w->steps);
    if (!generation || (!is_outside && (!has_fp || !has_base)) || w->sp_is_floor ||
        sp < extent.low || sp >= high)
        return;
    while (next < last) {
        uint32_t rule = sp_generation_rule(generation, after);
        uint64_t ra_at = (rule & SP_PACKED_BY_FP ? fp : sp) + sp_packed_ra_offset(rule);
        uint64_t cfa = ra_at + sp_packed_depth(rule, SP_PACKED_RA);
        if (!(rule & SP_PACKED_FLAG) || cfa - sp - 1 >= high - sp - 1 ||
            cfa - SP_PACKED_DEPTH_MAX < floor || cfa % 8)
            break;
        if (is_outside && rule & SP_PACKED_BY_FP && !has_fp)
            break;
        uint64_t ra = sp_machine_strip(stack_word(ra_at + delta));
        uint64_t fp_depth = sp_packed_depth(rule, SP_PACKED_FP);
        uint64_t base_depth = sp_packed_depth(rule, SP_PACKED_BASE);
        uint64_t saved_fp = stack_word(cfa - fp_depth + delta);
        uint64_t saved_base = stack_word(cfa - base_depth + delta);
        if (ra == 0)
            break;
        fp = fp_depth ? saved_fp : fp;
        base = base_depth ? saved_base : base;
        if (is_outside) {
            has_fp |= fp_depth != 0;
            has_base |= base_depth != 0;
        }
        sp = cfa;
        after = ra;
        if (is_outside && sps)
            sps[next] = cfa;
        pcs[next++] = ra - 1;
    }
    if (next == start)
        return;
    w->steps += next - start;
    w->next = next;
    w->frame = (sp_registers){
        .pc = after, .sp = sp, .fp = fp, .base = base, .has_fp = has_fp, .has_base = has_base};
    w->pc_is_exact = w->in_chain = false;
}

/* The fast path for nearly all frames: packed rules on one stack, applied one after the other, with
 * variables that fit into registers and few branches. A frame takes about 15 cycles, most of which
 * are the load of the next return address. It stops before the first frame of any other kind, also
 * before the outermost one, which step() handles. */
SP_SIGSAFE static void run_packed_rules(walker *w)
{
    if (SP_LIKELY(!w->walk->outside))
        run_in_extent(w, own_extent(w), false);
    else
        run_in_extent(w, outside_extent(w), true);
}

SP_SIGSAFE void sp_walk_stack(sp_walk *walk)
{
    walker w;
    w.walk = walk;
    w.frame = walk->registers;
    w.pc_is_exact = true;
    w.in_chain = false;
    w.sp_is_floor = w.last_is_none = false;
    w.end = SP_WALK_COMPLETE;
    w.steps = w.next = w.signal_frames = 0;
    w.steps_max = walk->max_depth < 4 ? walk->max_depth : SP_WALK_STEPS_MAX;
    sp_guarded_init(&w.guarded);
    walk->by_frame_pointer = 0;
    put_frame(&w, w.frame.pc);
    for (run_packed_rules(&w); step(&w); run_packed_rules(&w)) {
        if (w.frame.pc == 0 || w.steps == w.steps_max) {
            w.end = w.frame.pc == 0 ? SP_WALK_COMPLETE : SP_WALK_TRUNCATED;
            break;
        }
        put_frame(&w, w.frame.pc - !w.pc_is_exact);
    }
    walk->end = w.end;
    settle_frames(&w);
}

SP_SIGSAFE sp_registers sp_registers_from_ucontext(const void *ucontext)
{
    return sp_machine_registers(ucontext);
}
