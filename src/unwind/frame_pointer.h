/* SPDX-License-Identifier: Apache-2.0 */
/* The frame pointer of a blocked thread, of which only pc and sp are told. Code with frame
 * pointers, without optimization, with dynamic or realigned frames, has rules that count from it.
 * Where no frame further down has saved it, its value follows from how far above sp the code has
 * put it (frame_depth.h), and it is believed only if the return address that has to be there is: it
 * is behind a call, and that call leads to this function, or to nobody knows where, but not
 * elsewhere.
 *
 * What was found out about code is kept for as long as the generation is the same.
 * Threads: one at a time.  Signals: not safe. */
#ifndef SP_UNWIND_FRAME_POINTER_H
#define SP_UNWIND_FRAME_POINTER_H

#include "unwind/walk_sig.h"

typedef struct sp_fp_finder sp_fp_finder;

/* NULL: memory is short. Some 300 KiB. */
sp_fp_finder *sp_fp_finder_create(void);
void sp_fp_finder_destroy(sp_fp_finder *finder);

/* What sp_outside.find_fp promises, counted in WALK. Nothing is found on machines other than
 * x86-64. */
bool sp_fp_find(sp_fp_finder *finder, sp_walk *walk, const sp_registers *frame, bool pc_is_exact,
                uint64_t *fp);

#endif
