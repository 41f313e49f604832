/* SPDX-License-Identifier: Apache-2.0 */
/* The walk: from the registers of an interrupted thread to its program counters, leaf first, by the
 * unwind tables of the generation, with frame pointers as the fallback. Runs in the signal handler:
 * no lock, no allocation, no libc, no TLS.
 *
 * Addresses it yields are for lookup: the leaf is the pc itself, a caller is its return address
 * minus one (it lies inside the call instruction), a frame that a signal interrupted is its pc. The
 * trampoline to which a signal handler returns was never called: the byte before its address
 * belongs to another function. So SP_PC_SIGNAL_HANDLER (context/ring_sig.h) replaces it. */
#ifndef SP_UNWIND_WALK_SIG_H
#define SP_UNWIND_WALK_SIG_H

#include "unwind/module.h"

/* How a walk ended. COMPLETE and TRUNCATED mean that all frames are certain; with the others, the
 * frames that were found are. Whether frames are missing in the middle is in sp_walk.omitted. */
typedef enum sp_walk_end {
    /* Reached the outermost frame (its return address is undefined, or zero). */
    SP_WALK_COMPLETE = 0,
    /* Deeper than SP_WALK_STEPS_MAX, or than a max_depth below 4: the root end is missing. */
    SP_WALK_TRUNCATED = 1,
    SP_WALK_NO_TABLE = 2,    /* a pc without unwind rule, and no frame pointer chain either */
    SP_WALK_BAD_MEMORY = 3,  /* the stack could not be read where a rule says */
    SP_WALK_NO_PROGRESS = 4, /* the frame does not lie above the one it called */
    SP_WALK_NO_REGISTER = 5, /* the rule needs a register that is not known in this frame */

    /* Not set by a walk: */

    /* The next frame is in a library that was unloaded meanwhile. Another may be in its place. */
    SP_WALK_UNLOADED = 6,
    /* The thread ran while it was visited, so its frames are not certain. */
    SP_WALK_WOKE = 7,
    /* The collector dropped the frames, because its window was full. */
    SP_WALK_FOLDED = 8,
} sp_walk_end;

/* A frame's registers, as far as they are known. */
typedef struct sp_registers {
    uint64_t pc, sp;
    uint64_t fp;
    uint64_t base; /* see unwind/unwind_rule.h */
    uint64_t link; /* the link register, where a machine has one */
    bool has_fp;   /* false where only pc and sp are known (/proc/…/syscall) */
    bool has_base;
    bool has_link;    /* only of interrupted code: a call overwrites the caller's value */
    uint64_t context; /* address of the ucontext, which has all registers; 0: none. Rules of
                         interrupted code may need other registers. */
} sp_registers;

/* Memory that may be read without a guard, because it is this thread's own stack: [low, high). low
 * == high: none is known, each load is guarded (process_vm_readv, 1.3 us a KiB). Only for the
 * calling thread's own stack: another's may be unmapped. */
typedef struct sp_stack_bounds {
    uint64_t low, high;
} sp_stack_bounds;

typedef struct sp_walk sp_walk;

#define SP_WALK_STEPS_MAX                                                                          \
    16384 /* a recursion without end must not hold the thread up for longer than 0.1 ms or so */

/* The memory that a walk of another thread's stack reads (outside_walk.h). Never in a handler.
 * [low, high) of that stack, both multiples of 8, is copied: the word of ADDRESS is at ADDRESS +
 * delta. SP_OUTSIDE_MARGIN bytes before the copy may be read, and mean nothing. The functions
 * change low, high and delta. */
typedef struct sp_outside sp_outside;
struct sp_outside {
    uint64_t low, high, delta;
    uint64_t *sps; /* NULL, or room for max_depth: gets the stack pointer of each frame in pcs */
    /* Make the copy contain the word at ADDRESS, a multiple of 8. False: it cannot be read. */
    bool (*reach)(sp_outside *outside, uint64_t address);
    /* Copy BYTES at ADDRESS, of any memory, to OUT. False: not all of them can be read. */
    bool (*read)(sp_outside *outside, void *out, uint64_t address, uint64_t bytes);
    /* The frame pointer of FRAME, whose rule needs it. PC_IS_EXACT: it is not a return address.
     * False: it is not found. */
    bool (*find_fp)(sp_outside *outside, sp_walk *walk, const sp_registers *frame, bool pc_is_exact,
                    uint64_t *fp);
};

#define SP_OUTSIDE_MARGIN 256

/* A stack of more than max_depth frames keeps both its ends: the leaf, which shows where the thread
 * works, and the root, by which stacks are grouped.
 *
 *     pcs:  leaf … | … root      count == max_depth, of which a quarter is after the gap
 *                  ^             the gap is at leaf_count; `omitted` frames are missing there
 *
 * omitted == 0: leaf_count == count, no gap. */
struct sp_walk {
    const sp_generation *generation; /* may be NULL: frame pointers only */
    sp_registers registers;
    sp_stack_bounds bounds;
    sp_stack_bounds fiber; /* of the fiber that runs: its first frame has no caller. Empty: none */
    sp_outside *outside;   /* NULL: the calling thread's own stack. Else bounds are {0} */
    uint64_t *pcs;         /* room for max_depth */
    uint32_t max_depth;    /* >= 1 */
    uint32_t count;        /* out: of pcs */
    uint32_t leaf_count;   /* out: pcs before the gap */
    uint32_t omitted;      /* out: frames missing in the gap */
    /* out: how many callers were found by frame pointers. They are right if the code maintains
     * frame pointers. */
    uint32_t by_frame_pointer;
    sp_walk_end end; /* out */
    /* In a walk from outside: how frame pointers that no frame further down had saved were found
     * (frame_pointer.h). The walk adds to these counts. */
    uint32_t fp_by_call; /* the call before the return address leads to this function */
    /* A return address was where the code says, after a call to an unknown target. */
    uint32_t fp_by_return;
    uint32_t fp_not_found; /* neither: the walk ends with SP_WALK_NO_REGISTER */
};

/* Fill in pcs[0 .. count) and the members marked `out`. registers.pc is always the first. */
SP_SIGSAFE void sp_walk_stack(sp_walk *walk);

/* The registers that UCONTEXT (the third argument of a SA_SIGINFO handler) holds. The result refers
 * to it. */
SP_SIGSAFE sp_registers sp_registers_from_ucontext(const void *ucontext);

#endif
