/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/draw/flame.h"

#include <stdlib.h>

#include "core/compiler.h"
#include "tool/model/sum.h"
#include "core/reach.h"

/* While the tree grows: which node is frame NAME below PARENT. Number n of the table is node n + 1.
 */
typedef struct node_key {
    uint32_t parent, name;
} node_key;

typedef struct tree_builder {
    sp_flame_tree *tree;
    sp_intern keys;
    size_t capacity;
} tree_builder;

static bool reserve_node(tree_builder *builder)
{
    return SP_REACH(builder->tree->nodes, builder->tree->count, builder->capacity, 1024);
}

/* The node of frame NAME below PARENT; 0, which is nobody's child, when memory is short. */
static uint32_t child_of(tree_builder *builder, uint32_t parent, uint32_t name)
{
    sp_flame_tree *tree = builder->tree;
    node_key key = {parent, name};
    bool is_new;
    if (!reserve_node(builder))
        return 0;
    uint32_t number = sp_intern_put(&builder->keys, &key, sizeof key, &is_new);
    if (number == SP_INTERN_FAILED)
        return 0;
    if (is_new) {
        tree->nodes[tree->count++] =
            (sp_flame_node){.name = name,
                            .depth = tree->nodes[parent].depth + 1,
                            .first_child = SP_MODEL_NONE,
                            .next_sibling = tree->nodes[parent].first_child,
                            .parent = parent};
        tree->nodes[parent].first_child = number + 1;
    }
    return number + 1;
}

uint32_t sp_flame_frame(const sp_model *model, const uint32_t *frames, size_t count, size_t i,
                        bool reverse)
{
    if (!reverse || i < model->root_frames)
        return frames[count - 1 - i];
    return frames[i - model->root_frames];
}

static bool add_sample(tree_builder *builder, uint32_t number, bool reverse)
{
    static const uint32_t no_stack[] = {SP_MODEL_NONE};
    sp_flame_tree *tree = builder->tree;
    const sp_model *model = tree->selection->model;
    const sp_model_sample *sample = &model->samples[number];
    const sp_intern_entry *stack = &model->stacks.entries[sample->stack];
    size_t count = stack->length / sizeof(uint32_t);
    const uint32_t *frames = count ? stack->key : no_stack;
    count = count ? count : SP_ARRAY_LENGTH(no_stack);
    size_t kept = count < SP_FLAME_MAX_DEPTH ? count : SP_FLAME_MAX_DEPTH;
    tree->cut_frames += (uint32_t)(count - kept);
    uint32_t node = 0, leaf = 0;
    sp_sum_add(&tree->nodes[0].value, sample->value);
    sp_sum_add(&tree->nodes[0].count, sample->count);
    for (size_t i = 0; i < kept; i++) {
        node = child_of(builder, node, sp_flame_frame(model, frames, count, i, reverse));
        if (node == 0)
            return false;
        sp_sum_add(&tree->nodes[node].value, sample->value);
        sp_sum_add(&tree->nodes[node].count, sample->count);
        if (i <= model->root_frames || !reverse)
            leaf = node;
    }
    tree->ends[number] = node;
    sp_sum_add(&tree->nodes[leaf].self, sample->value);
    return true;
}

/* qsort takes no argument of its own. */
static const sp_flame_tree *sorted_tree;

static int compare_nodes(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    const sp_flame_node *left = &sorted_tree->nodes[x], *right = &sorted_tree->nodes[y];
    if (left->value != right->value)
        return left->value > right->value ? -1 : 1;
    return x < y ? -1 : x > y;
}

/* All nodes by value, then prepended to their parents' lists from the smallest to the largest. */
static bool sort_children(sp_flame_tree *tree)
{
    uint32_t *order = malloc(tree->count * sizeof *order);
    if (!order)
        return false;
    for (uint32_t i = 0; i < tree->count; i++) {
        order[i] = i;
        tree->nodes[i].first_child = SP_MODEL_NONE;
    }
    sorted_tree = tree;
    qsort(order, tree->count, sizeof *order, compare_nodes);
    for (uint32_t i = tree->count; i-- > 0;) {
        sp_flame_node *node = &tree->nodes[order[i]];
        if (order[i] == 0)
            continue;
        node->next_sibling = tree->nodes[node->parent].first_child;
        tree->nodes[node->parent].first_child = order[i];
    }
    free(order);
    return true;
}

bool sp_flame_tree_build(sp_flame_tree *tree, const sp_selection *selection,
                         const sp_flame_options *options)
{
    *tree = (sp_flame_tree){.selection = selection};
    tree_builder builder = {.tree = tree};
    tree->ends = malloc((selection->model->sample_index.count + (size_t)1) * sizeof *tree->ends);
    bool done = tree->ends && reserve_node(&builder);
    if (done)
        tree->nodes[tree->count++] = (sp_flame_node){
            .first_child = SP_MODEL_NONE, .next_sibling = SP_MODEL_NONE, .parent = SP_MODEL_NONE};
    const sp_model *model = selection->model;
    for (uint32_t i = 0; done && i < model->sample_index.count; i++)
        if (sp_selection_has(selection, &model->samples[i]))
            done = add_sample(&builder, i, options->reverse);
    sp_intern_deinit(&builder.keys);
    return done && sort_children(tree) && sp_flame_shares(tree, options->min_percent);
}

const char *sp_flame_node_name(const sp_flame_tree *tree, const sp_flame_node *node)
{
    return node->name == SP_MODEL_NONE ? SP_FLAME_NO_STACK
                                       : sp_model_text(tree->selection->model, node->name);
}

void sp_flame_tree_deinit(sp_flame_tree *tree)
{
    free(tree->nodes);
    free(tree->ends);
    free(tree->sums);
    free(tree->where_ns);
    *tree = (sp_flame_tree){0};
}
