/* SPDX-License-Identifier: Apache-2.0 */
/* The flamegraphs of both sides of a comparison. Two frames are compared when the paths of names
 * from the root to them are equal. All frames are tested together (docs/design/diff.md). */
#include <stdlib.h>

#include "tool/draw/diff.h"

static const sp_function_sum nothing;

/* ---- one side ---- */

/* Reduce the selection to samples that are linked to a span. */
static bool leave_unlinked_out(sp_diff_tree *side)
{
    sp_selection *selection = &side->selection;
    size_t count = selection->model->links.count; /* includes link 0, which means no span */
    side->links = malloc(count * sizeof *side->links);
    if (!side->links)
        return false;
    for (size_t i = 0; i < count; i++)
        side->links[i] = i > 0 && (!selection->links || selection->links[i]);
    selection->links = side->links;
    return true;
}

static bool build_side(sp_diff_tree *side, const sp_selection *selection,
                       const sp_functions *functions, sp_compare_by by)
{
    const sp_flame_options whole = {0};
    side->selection = *selection;
    bool done = by != SP_BY_SPANS || leave_unlinked_out(side);
    done = done && sp_flame_tree_build(&side->tree, &side->selection, &whole);
    if (!done)
        return false;
    side->tree.whole.requests = functions->requests;
    side->tree.whole.seconds = functions->seconds;
    side->changes = calloc(side->tree.count, sizeof *side->changes);
    return side->changes != NULL;
}

/* ---- the same path in the other tree ---- */

typedef struct path_key {
    uint32_t parent, name;
} path_key;

/* Put the key of each node into PATHS, except for the root. No two nodes have the same key, so
 * entry n is node n + 1. */
static bool index_paths(sp_intern *paths, const sp_flame_tree *tree)
{
    for (uint32_t i = 1; i < tree->count; i++) {
        const path_key key = {tree->nodes[i].parent, tree->nodes[i].name};
        if (sp_intern_put(paths, &key, sizeof key, NULL) == SP_INTERN_FAILED)
            return false;
    }
    return true;
}

static uint32_t find_child(const sp_intern *paths, const sp_flame_tree *a, uint32_t parent,
                           const sp_flame_tree *b, uint32_t name)
{
    if (parent == SP_MODEL_NONE)
        return SP_MODEL_NONE;
    if (name != SP_MODEL_NONE)
        name = sp_model_same_string(a->selection->model, b->selection->model, name);
    const path_key key = {parent, name};
    uint32_t found = sp_intern_find(paths, &key, sizeof key);
    return found == SP_INTERN_FAILED ? SP_MODEL_NONE : found + 1;
}

/* For each node of B: the node of A with the same path, or SP_MODEL_NONE. Parents come before their
 * children, so the node of the parent is already known. NULL when memory is short. */
static uint32_t *find_twins(const sp_flame_tree *a, const sp_flame_tree *b)
{
    sp_intern paths = {0};
    uint32_t *twins = calloc(b->count, sizeof *twins);
    bool done = twins && index_paths(&paths, a);
    for (uint32_t i = 1; done && i < b->count; i++)
        twins[i] = find_child(&paths, a, twins[b->nodes[i].parent], b, b->nodes[i].name);
    sp_intern_deinit(&paths);
    if (done)
        return twins;
    free(twins);
    return NULL;
}

/* ---- the questions ---- */

/* Add a question for each frame of B, and for each frame of A that B does not have. Sets IS_IN_B,
 * by node of A. */
static bool ask_all(sp_questions *list, sp_diff_trees *trees, const sp_comparison *comparison,
                    const uint32_t *twins, bool *is_in_b)
{
    const sp_flame_tree *a = &trees->a.tree, *b = &trees->b.tree;
    bool done = true;
    for (uint32_t i = 0; done && i < b->count; i++) {
        bool has_twin = twins[i] != SP_MODEL_NONE;
        if (has_twin)
            is_in_b[twins[i]] = true;
        done = sp_ask(list, comparison, &trees->b.changes[i],
                      has_twin ? &a->sums[twins[i]] : &nothing, &b->sums[i]);
    }
    for (uint32_t i = 0; done && i < a->count; i++)
        if (!is_in_b[i])
            done = sp_ask(list, comparison, &trees->a.changes[i], &a->sums[i], &nothing);
    return done;
}

/* Copy the changes of frames that both sides have to A, and count the sure changes of B. */
static void copy_to_a(sp_diff_trees *trees, const uint32_t *twins)
{
    for (uint32_t i = 0; i < trees->b.tree.count; i++) {
        trees->sure += sp_change_is_sure(&trees->b.changes[i]);
        if (twins[i] != SP_MODEL_NONE)
            trees->a.changes[twins[i]] = trees->b.changes[i];
    }
}

static void count_only_in_a(sp_diff_trees *trees, const bool *is_in_b)
{
    for (uint32_t i = 0; i < trees->a.tree.count; i++)
        trees->sure += !is_in_b[i] && sp_change_is_sure(&trees->a.changes[i]);
}

static bool compare_sides(sp_diff_trees *trees, sp_compare_by by)
{
    const sp_comparison comparison = {.by = by, .a = trees->a.tree.whole, .b = trees->b.tree.whole};
    sp_questions list = {0};
    uint32_t *twins = find_twins(&trees->a.tree, &trees->b.tree);
    bool *is_in_b = calloc(trees->a.tree.count, sizeof *is_in_b);
    bool done = twins && is_in_b && ask_all(&list, trees, &comparison, twins, is_in_b) &&
                sp_answer_all(&list, &comparison);
    trees->asked = list.count;
    if (done) {
        copy_to_a(trees, twins);
        count_only_in_a(trees, is_in_b);
    }
    free(list.items);
    free(twins);
    free(is_in_b);
    return done;
}

bool sp_diff_trees_build(sp_diff_trees *trees, const sp_diff_answer *answer)
{
    const sp_comparison *comparison = answer->comparison;
    *trees = (sp_diff_trees){0};
    return build_side(&trees->a, answer->a.selection, &comparison->a, comparison->by) &&
           build_side(&trees->b, answer->b.selection, &comparison->b, comparison->by) &&
           compare_sides(trees, comparison->by);
}

static void forget_side(sp_diff_tree *side)
{
    sp_flame_tree_deinit(&side->tree);
    free(side->changes);
    free(side->links);
}

void sp_diff_trees_deinit(sp_diff_trees *trees)
{
    forget_side(&trees->a);
    forget_side(&trees->b);
    *trees = (sp_diff_trees){0};
}
