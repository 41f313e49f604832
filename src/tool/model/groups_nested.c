/* SPDX-License-Identifier: Apache-2.0 */
/* Finds spans below a span of the same group. The time of the outer span includes the time of the
 * inner one, so a sum over both would count the inner time twice. */
#include <stdlib.h>

#include "tool/model/groups.h"

typedef struct walk {
    const uint32_t *group_of;
    uint32_t *open; /* by group: how many of its spans are on the path from the root to `at` */
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

/* Visit the tree depth first, without recursion: a trace may be too deep for our stack. */
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
