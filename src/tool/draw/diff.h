/* SPDX-License-Identifier: Apache-2.0 */
/* The output forms of `spanprof diff`. They append to OUT. */
#ifndef SP_TOOL_DRAW_DIFF_H
#define SP_TOOL_DRAW_DIFF_H

#include "tool/draw/flame.h"
#include "tool/model/compare.h"
#include "tool/model/durations.h"
#include "tool/text/output.h"

/* One side of the comparison: its name, and what was selected. */
typedef struct sp_diff_side {
    const char *name;
    const sp_selection *selection;
    sp_durations durations; /* of its requests; zero: they are not compared */
} sp_diff_side;

typedef struct sp_diff_answer {
    sp_diff_side a, b;
    const sp_comparison *comparison;
    size_t limit; /* the most functions that are shown; 0: all */
} sp_diff_answer;

extern const char *const sp_compare_by_names[]; /* by sp_compare_by; NULL at the end */
/* By sp_compare_by: what the percentages refer to, for people. */
extern const char *const sp_compare_wholes[];

/* The flamegraph of one side, and for each of its frames how the sides differ. */
typedef struct sp_diff_tree {
    sp_selection selection; /* what is compared; with SP_BY_SPANS, only samples of spans */
    bool *links;            /* SP_BY_SPANS: the selection's links; else NULL */
    sp_flame_tree tree;
    sp_change *changes; /* by node */
} sp_diff_tree;

typedef struct sp_diff_trees {
    sp_diff_tree a, b;
    size_t asked; /* how many frames (a frame is a path from the root) have enough events */
    size_t sure;  /* how many of them differ by more than chance */
} sp_diff_trees;

/* False when memory is short. In both cases the caller frees TREES with sp_diff_trees_deinit. */
bool sp_diff_trees_build(sp_diff_trees *trees, const sp_diff_answer *answer);
void sp_diff_trees_deinit(sp_diff_trees *trees);

/* A line about SIDE: "A: before: cpu 1.23 s in 124 samples, 7 requests". */
enum { SP_DIFF_LINE_LENGTH = 512 };
void sp_diff_side_line(char out[SP_DIFF_LINE_LENGTH], char letter, const sp_diff_side *side,
                       const sp_functions *functions);
/* A line about the whole: what one request, or one second, takes. Empty with SP_BY_SAMPLES, or when
 * there are too few events. */
void sp_diff_whole_line(char out[SP_DIFF_LINE_LENGTH], const sp_comparison *comparison);
/* A line about the durations of requests. Empty when a side has none. */
void sp_diff_durations_line(char out[SP_DIFF_LINE_LENGTH], const sp_diff_answer *answer);

/* The flamegraphs of B and of A, as a page or as an SVG. Colours show the changes. */
bool sp_diff_picture(sp_buffer *out, const sp_diff_answer *answer, bool is_html);
bool sp_diff_text(sp_buffer *out, const sp_diff_answer *answer, const sp_terminal *terminal);
json_t *sp_diff_json(const sp_diff_answer *answer);

#endif
