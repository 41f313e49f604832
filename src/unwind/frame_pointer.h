/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the frame pointer of a blocked thread, of which the kernel reports only pc and sp. The
 * unwind rules of code with frame pointers, without optimization, or with dynamic or realigned
 * frames, depend on it. If no frame further down has saved it, its value follows from its distance
 * to sp, which the code determines (frame_depth.h). The value is accepted only if the stack has a
 * return address where that frame needs one: an address after a call that leads to this function or
 * to an unknown target, but not to another function.
 *
 * Results about code are cached as long as the generation is the same.
 * Threads: one at a time.  Signals: not safe. */
#ifndef SP_UNWIND_FRAME_POINTER_H
#define SP_UNWIND_FRAME_POINTER_H

#include "unwind/walk_sig.h"

typedef struct sp_fp_finder sp_fp_finder;

/* NULL: memory is short. Some 300 KiB. */
sp_fp_finder *sp_fp_finder_create(void);
void sp_fp_finder_destroy(sp_fp_finder *finder);

/* Implements sp_outside.find_fp, and counts the result in WALK. Finds nothing on machines other
 * than x86-64. */
bool sp_fp_find(sp_fp_finder *finder, sp_walk *walk, const sp_registers *frame, bool pc_is_exact,
                uint64_t *fp);

#endif
