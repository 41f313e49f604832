/* SPDX-License-Identifier: Apache-2.0 */
/* The flamegraphs of a comparison: the widths show one side, the colours show what changed. */
#include <stdio.h>

#include "tool/draw/diff.h"

static void fill_confidence(sp_flame_legend *legend, const sp_diff_answer *answer)
{
    uint64_t a = answer->a.selection->count, b = answer->b.selection->count;
    uint64_t least = a < b ? a : b;
    if (least < SP_SHARES_EVENTS_LEAST)
        snprintf(legend->confidence, sizeof legend->confidence,
                 "only %llu sample%s in %c: too few to see what changed; record for longer",
                 (unsigned long long)least, least == 1 ? "" : "s", a < b ? 'A' : 'B');
}

static sp_flame_legend legend_of(const sp_diff_answer *answer, const sp_diff_trees *trees)
{
    const sp_comparison *comparison = answer->comparison;
    sp_flame_legend legend = {0};
    char whole[SP_DIFF_LINE_LENGTH];
    snprintf(legend.subject, sizeof legend.subject, "From %.200s (A) to %.200s (B)", answer->a.name,
             answer->b.name);
    sp_diff_side_line(legend.details, 'A', &answer->a, &comparison->a);
    sp_diff_side_line(legend.amount, 'B', &answer->b, &comparison->b);
    sp_diff_whole_line(whole, comparison);
    snprintf(legend.where, sizeof legend.where,
             "%.150s%s%zu of %zu frames changed beyond chance; changes are %s", whole,
             *whole ? "; " : "", trees->sure, trees->asked, sp_compare_wholes[comparison->by]);
    fill_confidence(&legend, answer);
    return legend;
}

bool sp_diff_picture(sp_buffer *out, const sp_diff_answer *answer, bool is_html)
{
    sp_diff_trees trees;
    bool done = sp_diff_trees_build(&trees, answer);
    if (done) {
        const sp_flame_options options = {0};
        sp_flame_graph b = {.tree = &trees.b.tree, .changes = trees.b.changes};
        b.legend = legend_of(answer, &trees);
        sp_flame_graph a = {.tree = &trees.a.tree, .changes = trees.a.changes, .legend = b.legend};
        b.label = "widths of B";
        a.label = "widths of A";
        done = is_html ? sp_flame_html(out, &b, &a, &options) : sp_flame_svg(out, &b, &a, 0);
    }
    sp_diff_trees_deinit(&trees);
    return done;
}
