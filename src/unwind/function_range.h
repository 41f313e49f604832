/* SPDX-License-Identifier: Apache-2.0 */
/* Where the function at an address begins and ends: from the sorted table of functions that the
 * linker adds to the frame information (.eh_frame_hdr). It is read from memory by OUTSIDE's guarded
 * reads. Unwind tables keep the functions only for modules without that table. Threads: the one
 * that OUTSIDE belongs to. Signals: not safe. */
#ifndef SP_UNWIND_FUNCTION_RANGE_H
#define SP_UNWIND_FUNCTION_RANGE_H

#include "unwind/walk_sig.h"

/* [begin, end). A part of a function that the compiler put at another address counts as a function.
 * Padding after a function counts as part of it. */
typedef struct sp_function_range {
    uint64_t begin, end;
} sp_function_range;

static inline bool sp_function_holds(const sp_function_range *function, uint64_t address)
{
    return address >= function->begin && address < function->end;
}

/* The function that holds ADDRESS. False: no module is there, or its functions are not known. */
bool sp_function_range_find(sp_outside *outside, const sp_generation *generation, uint64_t address,
                            sp_function_range *out);

#endif
