/* SPDX-License-Identifier: Apache-2.0 */
/* `spanprof diff`: its forms. They append to OUT. */
#ifndef SP_TOOL_DRAW_DIFF_H
#define SP_TOOL_DRAW_DIFF_H

#include "tool/draw/flame.h"
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
/* By sp_compare_by: whose hundredths the numbers are. */
extern const char *const sp_compare_wholes[];

/* One side's flamegraph, and how each of its frames differs between the sides. */
typedef struct sp_diff_tree {
    sp_selection selection; /* what is compared: by spans only what belongs to one */
    bool *links;            /* of the selection, when they are not those of the answer */
    sp_flame_tree tree;
    sp_change *changes; /* by node */
} sp_diff_tree;

typedef struct sp_diff_trees {
    sp_diff_tree a, b;
    size_t asked; /* frames, with the path to them, that have enough events */
    size_t sure;  /* of these those that differ beyond chance */
} sp_diff_trees;

/* False when memory is short; TREES is to be freed in any case. */
bool sp_diff_trees_build(sp_diff_trees *trees, const sp_diff_answer *answer);
void sp_diff_trees_deinit(sp_diff_trees *trees);

/* A line on SIDE: "A: before: cpu 1.23 s in 124 samples, 7 requests". */
enum { SP_DIFF_LINE_LENGTH = 512 };
void sp_diff_side_line(char out[SP_DIFF_LINE_LENGTH], char letter, const sp_diff_side *side,
                       const sp_functions *functions);
/* What a request, or a second, takes in all; empty where that is not compared. */
void sp_diff_whole_line(char out[SP_DIFF_LINE_LENGTH], const sp_comparison *comparison);

/* The flamegraph of B, and that of A, whose colours are the changes: a page, or an SVG. */
bool sp_diff_picture(sp_buffer *out, const sp_diff_answer *answer, bool is_html);
bool sp_diff_text(sp_buffer *out, const sp_diff_answer *answer, const sp_terminal *terminal);
json_t *sp_diff_json(const sp_diff_answer *answer);

#endif
