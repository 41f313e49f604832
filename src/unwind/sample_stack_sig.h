/* SPDX-License-Identifier: Apache-2.0 */
/* Completes a sample's record with the result of its walk. Signals: safe. */
#ifndef SP_UNWIND_SAMPLE_STACK_SIG_H
#define SP_UNWIND_SAMPLE_STACK_SIG_H

#include "context/ring_sig.h"
#include "unwind/walk_sig.h"

/* WALK has written its addresses into SAMPLE->pcs. Set the counts and sizes of SAMPLE
 * accordingly. */
SP_SIGSAFE static inline void sp_sample_take_walk(sp_sample_record *sample, const sp_walk *walk)
{
    sample->count = (uint16_t)walk->count;
    sample->leaf_count = (uint16_t)walk->leaf_count;
    sample->by_frame_pointer = (uint16_t)walk->by_frame_pointer;
    sample->end = (uint8_t)walk->end;
    sample->header.size = (uint32_t)(sizeof *sample + walk->count * sizeof walk->pcs[0]);
    sample->header.kind = SP_RECORD_SAMPLE;
}

#endif
