/* SPDX-License-Identifier: Apache-2.0 */
/* Spans below a span of the same group. The time of the outer one holds theirs, so a sum that adds
 * both counts it twice. */
#include <stdlib.h>

#include "tool/model/groups.h"

typedef struct walk {
    const uint32_t *group_of;
    uint32_t *open; /* by group: how many spans of it hold the current span, and it itself */
    bool *nested;
} walk;

static void enter(walk *walk, uint32_t span)
{
    uint32_t group = walk->group_of[span];
    if (group != SP_MODEL_NONE)
        walk->nested[span] = walk->open[group]++ > 0;
}

static void leave(walk *walk, uint32_t span)
{
    if (walk->group_of[span] != SP_MODEL_NONE)
        walk->open[walk->group_of[span]]--;
}

/* Depth first, without recursion: a trace may be deeper than the stack allows. */
static void visit_tree(walk *walk, const sp_model_span *spans, uint32_t top)
{
    uint32_t at = top;
    enter(walk, at);
    for (;;) {
        if (spans[at].first_child != SP_MODEL_NONE) {
            at = spans[at].first_child;
            enter(walk, at);
            continue;
        }
        leave(walk, at);
        while (at != top && spans[at].next_sibling == SP_MODEL_NONE) {
            at = spans[at].parent;
            leave(walk, at);
        }
        if (at == top)
            return;
        at = spans[at].next_sibling;
        enter(walk, at);
    }
}

bool sp_groups_find_nested(const sp_model *model, const uint32_t *group_of, size_t group_count,
                           bool *nested)
{
    walk walk = {
        .group_of = group_of, .open = calloc(group_count + 1, sizeof *walk.open), .nested = nested};
    for (uint32_t i = 0; walk.open && i < model->span_index.count; i++)
        if (model->spans[i].parent == SP_MODEL_NONE)
            visit_tree(&walk, model->spans, i);
    free(walk.open);
    return walk.open != NULL;
}
