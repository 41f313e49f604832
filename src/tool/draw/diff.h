/* SPDX-License-Identifier: Apache-2.0 */
/* `spanprof diff`: its forms. They append to OUT. */
#ifndef SP_TOOL_DRAW_DIFF_H
#define SP_TOOL_DRAW_DIFF_H

#include "tool/model/compare.h"
#include "tool/text/output.h"

/* One side: how it is called, and what was selected of it. */
typedef struct sp_diff_side {
    const char *name;
    const sp_selection *selection;
} sp_diff_side;

typedef struct sp_diff_answer {
    sp_diff_side a, b;
    const sp_comparison *comparison;
    size_t limit; /* rows */
} sp_diff_answer;

extern const char *const sp_compare_by_names[]; /* by sp_compare_by; NULL at the end */

bool sp_diff_text(sp_buffer *out, const sp_diff_answer *answer, const sp_terminal *terminal);
json_t *sp_diff_json(const sp_diff_answer *answer);

#endif
