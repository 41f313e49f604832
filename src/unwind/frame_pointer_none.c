/* SPDX-License-Identifier: Apache-2.0 */
/* For architectures whose instructions are not decoded: no frame pointer is found. */
#include "unwind/unwind_rule.h"

#if !defined(__x86_64__)
#include <stdlib.h>

#include "unwind/frame_pointer.h"

struct sp_fp_finder {
    char unused;
};

sp_fp_finder *sp_fp_finder_create(void)
{
    return calloc(1, sizeof(sp_fp_finder));
}

void sp_fp_finder_destroy(sp_fp_finder *finder)
{
    free(finder);
}

bool sp_fp_find(sp_fp_finder *finder, sp_walk *walk, const sp_registers *frame, bool pc_is_exact,
                uint64_t *fp)
{
    (void)finder, (void)frame, (void)pc_is_exact, (void)fp;
    walk->fp_not_found++;
    return false;
}
#endif
