/* SPDX-License-Identifier: Apache-2.0 */
/* The walk. Each step finds the rule of the current pc and applies it: first the canonical frame address (CFA), which is the
 * caller's stack pointer, then where return address and frame pointer were saved.
 *
 * Every address here may be nonsense: a rule may be applied to a stack that the interrupted code did not make as it says,
 * and a frame pointer may be any number. So loads are direct only between the current stack pointer and the end of the
 * thread's own stack, which is mapped, and guarded everywhere else; each frame must lie above the one before; and without a
 * rule the first step along frame pointers is believed only when a call instruction stands in front of the return address.
 * Whatever does not hold ends the walk with a mark. Nothing is guessed. */
#include "sampler/walk_sig.h"

#include "module/unwind_table.h"
#include "sampler/guarded_load_sig.h"
#include "sampler/walk_x86_64_sig.h"

#define LOWEST_CODE  UINT64_C(4096)
#define HIGHEST_CODE (UINT64_C(1) << 56)

/* A chain of frame pointers that leaps further has left the stack: what was in the register is another stack's frame. */
#define FRAME_BYTES_MAX (UINT64_C(256) << 10)

typedef struct walker {
    sp_walk *walk;
    const sp_module *module; /* where the last pc was: callers are often in the same */
    sp_registers frame;      /* of the frame that the walk is at */
    bool pc_is_exact;        /* not a return address */
    bool in_chain;           /* the step before went along frame pointers */
    sp_walk_end end;         /* why a step failed */
    sp_guarded guarded;
} walker;

SP_SIGSAFE static bool fail(walker *w, sp_walk_end end)
{
    w->end = end;
    return false;
}

SP_SIGSAFE static bool load(walker *w, uint64_t address, uint64_t *out)
{
    const sp_stack_bounds *bounds = &w->walk->bounds;
    uint64_t sp = w->frame.sp;
    if (SP_LIKELY(sp >= bounds->low && address >= sp && address < bounds->high &&
                  bounds->high - address >= 8 && address % 8 == 0)) {
        *out = *(const uint64_t *)(uintptr_t)address; // NOLINT(performance-no-int-to-ptr)
        return true;
    }
    return sp_guarded_load(&w->guarded, address, out) || fail(w, SP_WALK_BAD_MEMORY);
}

SP_SIGSAFE static bool read_register(walker *w, unsigned number, uint64_t *out)
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
    if (!w->frame.context)
        return fail(w, SP_WALK_NO_REGISTER);
    return load(w, sp_machine_register_address(w->frame.context, number), out);
}

SP_SIGSAFE static const sp_unwind_rule *find_rule(walker *w)
{
    static const sp_unwind_rule none;
    uint64_t pc = w->frame.pc - !w->pc_is_exact;
    if (!w->walk->generation)
        return &none;
    if (!w->module || pc < w->module->start || pc >= w->module->end)
        w->module = sp_generation_find(w->walk->generation, pc);
    if (!w->module || !w->module->table)
        return &none;
    return sp_unwind_table_find(w->module->table, pc - w->module->start);
}

SP_SIGSAFE static bool find_cfa(walker *w, const sp_unwind_rule *rule, uint64_t *cfa)
{
    uint64_t base;
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
SP_SIGSAFE static bool find_saved(walker *w, sp_saved saved, uint64_t cfa, uint64_t *out)
{
    uint64_t address = cfa;
    if (saved.kind == SP_SAVED_IN_REGISTER)
        return read_register(w, saved.base, out);
    if (saved.kind == SP_SAVED_AT_REGISTER && !read_register(w, saved.base, &address))
        return false;
    return load(w, address + (uint64_t)(int64_t)saved.offset, out);
}

/* The same for a register that this frame may have left alone: *VALUE and *IS_KNOWN hold this frame's and get the caller's. One
 * that cannot be found is only missed if a rule further up wants it. */
SP_SIGSAFE static void find_kept(walker *w, sp_saved saved, uint64_t cfa, uint64_t *value,
                                 bool *is_known)
{
    if (saved.kind == SP_SAVED_UNCHANGED)
        return;
    *is_known = saved.kind != SP_SAVED_UNDEFINED && saved.kind != SP_SAVED_UNKNOWN &&
                find_saved(w, saved, cfa, value);
}

SP_SIGSAFE static bool step_by_rule(walker *w, const sp_unwind_rule *rule)
{
    sp_registers caller = w->frame;
    if (rule->ra.kind == SP_SAVED_UNDEFINED)
        return fail(w, SP_WALK_COMPLETE);
    if (rule->cfa_kind == SP_CFA_UNSUPPORTED)
        return fail(w, SP_WALK_NO_TABLE);
    if (!find_cfa(w, rule, &caller.sp))
        return false;
    /* A signal may have come on an alternate stack: then the frame below it lies anywhere. */
    if (caller.sp <= w->frame.sp && !rule->is_signal_frame)
        return fail(w, SP_WALK_NO_PROGRESS);
    if (!find_saved(w, rule->ra, caller.sp, &caller.pc))
        return false;
    find_kept(w, rule->fp, caller.sp, &caller.fp, &caller.has_fp);
    find_kept(w, rule->base, caller.sp, &caller.base, &caller.has_base);
    caller.context = rule->is_signal_frame ? sp_machine_signal_context(w->frame.sp) : 0;
    w->frame = caller;
    w->pc_is_exact = rule->is_signal_frame;
    w->in_chain = false;
    return true;
}

/* Where the return address is in a frame without a rule, and what the caller's fp is. */
SP_SIGSAFE static bool find_frame_by_shape(walker *w, uint64_t *ra_address, uint64_t *caller_fp)
{
    uint8_t code[SP_MACHINE_CODE_BYTES] = {0};
    sp_frame_shape shape = SP_FRAME_SET_UP;
    /* Only interrupted code can be elsewhere than behind a call, where the frame is set up. */
    if (w->pc_is_exact && sp_guarded_copy(&w->guarded, code, w->frame.pc, sizeof code))
        shape = sp_machine_frame_shape(code);
    if (shape == SP_FRAME_ENTERED) {
        *ra_address = w->frame.sp;
        *caller_fp = w->frame.fp;
        return true;
    }
    uint64_t at = shape == SP_FRAME_PUSHED ? w->frame.sp : w->frame.fp;
    if (shape == SP_FRAME_SET_UP && !w->frame.has_fp)
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
    return sp_guarded_copy(&w->guarded, before, pc - sizeof before, sizeof before) &&
           sp_machine_is_after_call(before);
}

SP_SIGSAFE static bool step_by_frame_pointer(walker *w)
{
    uint64_t ra_address = 0, caller_fp = 0, pc = 0;
    if (!find_frame_by_shape(w, &ra_address, &caller_fp) || !load(w, ra_address, &pc))
        return false;
    if (pc != 0 &&
        (pc < LOWEST_CODE || pc >= HIGHEST_CODE || (!w->in_chain && !follows_call(w, pc))))
        return fail(w, SP_WALK_NO_TABLE);
    w->frame.pc = pc;
    w->frame.sp = ra_address + 8;
    w->frame.fp = caller_fp;
    w->frame.has_base = false;
    w->frame.context = 0;
    w->pc_is_exact = false;
    w->in_chain = true;
    w->walk->by_frame_pointer++;
    return true;
}

/* A trampoline without frame information is recognized by its bytes. It is only ever returned to, from a handler that has
 * a rule, so frames in a chain are not asked: each would cost a system call. */
SP_SIGSAFE static bool is_trampoline(walker *w)
{
    uint8_t code[SP_MACHINE_CODE_BYTES] = {0};
    return !w->pc_is_exact && !w->in_chain &&
           sp_guarded_copy(&w->guarded, code, w->frame.pc, sizeof code) &&
           sp_machine_is_trampoline(code);
}

SP_SIGSAFE static bool step(walker *w)
{
    const sp_unwind_rule *rule = find_rule(w);
    if (SP_UNLIKELY(rule->cfa_kind == SP_CFA_NONE)) {
        sp_unwind_rule trampoline;
        if (!is_trampoline(w))
            return step_by_frame_pointer(w);
        sp_machine_signal_rule(&trampoline);
        return step_by_rule(w, &trampoline);
    }
    return step_by_rule(w, rule);
}

SP_SIGSAFE void sp_walk_stack(sp_walk *walk)
{
    walker w;
    w.walk = walk;
    w.module = 0;
    w.frame = walk->registers;
    w.pc_is_exact = true;
    w.in_chain = false;
    w.end = SP_WALK_COMPLETE;
    sp_guarded_init(&w.guarded);
    walk->by_frame_pointer = 0;
    walk->pcs[0] = w.frame.pc;
    walk->count = 1;
    while (step(&w)) {
        if (w.frame.pc == 0 || walk->count == walk->max_depth) {
            w.end = w.frame.pc == 0 ? SP_WALK_COMPLETE : SP_WALK_TRUNCATED;
            break;
        }
        walk->pcs[walk->count++] = w.frame.pc - !w.pc_is_exact;
    }
    walk->end = w.end;
}

SP_SIGSAFE sp_registers sp_registers_from_ucontext(const void *ucontext)
{
    return sp_machine_registers(ucontext);
}
