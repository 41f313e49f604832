/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/draw/flame.h"

#include <stdlib.h>

#include "core/compiler.h"
#include "tool/model/sum.h"
#include "core/reach.h"

/* A key of the table that finds a node by its parent and its name. Entry n of the table is node
 * n + 1. */
typedef struct node_key {
    uint32_t parent, name;
} node_key;

typedef struct tree_builder {
    sp_flame_tree *tree;
    sp_intern keys;
    size_t capacity;
    uint32_t *end_of_stack; /* by stack: the node where it ends; 0: not yet known */
    bool reverse;
    bool *folds; /* by string: fold the recursive calls of this function; NULL: fold none */
} tree_builder;

static bool reserve_node(tree_builder *builder)
{
    return SP_REACH(builder->tree->nodes, builder->tree->count, builder->capacity, 1024);
}

/* The node of frame NAME below PARENT, which is made if needed. 0, which is never a child: memory
 * is short. */
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

/* The frames of a stack, leaf first, and how many of them the tree keeps. */
typedef struct stack_frames {
    const uint32_t *frames;
    size_t count, kept;
} stack_frames;

static stack_frames frames_of(const sp_model *model, uint32_t stack)
{
    static const uint32_t no_stack[] = {SP_MODEL_NONE};
    const sp_intern_entry *entry = &model->stacks.entries[stack];
    stack_frames found = {.frames = entry->key, .count = entry->length / sizeof(uint32_t)};
    if (!found.count)
        found = (stack_frames){.frames = no_stack, .count = SP_ARRAY_LENGTH(no_stack)};
    found.kept = found.count < SP_FLAME_MAX_DEPTH ? found.count : SP_FLAME_MAX_DEPTH;
    return found;
}

static bool folds_name(const tree_builder *builder, uint32_t name)
{
    return builder->folds && name != SP_MODEL_NONE && builder->folds[name];
}

/* Find the functions that call themselves several times in a row. Fewer than ROW_LEAST frames of
 * one name in a row do not count, because they may be different functions. */
static bool find_recursion(tree_builder *builder)
{
    enum { ROW_LEAST = 4 };
    const sp_model *model = builder->tree->selection->model;
    builder->folds = calloc(model->strings.count + (size_t)1, sizeof *builder->folds);
    for (uint32_t i = 0; builder->folds && i < model->stacks.count; i++) {
        const uint32_t *frames = model->stacks.entries[i].key;
        size_t count = model->stacks.entries[i].length / sizeof *frames, row = 1;
        for (size_t k = 1; k < count; k++) {
            row = frames[k] == frames[k - 1] ? row + 1 : 1;
            if (row >= ROW_LEAST)
                builder->folds[frames[k]] = true;
        }
    }
    return builder->folds != NULL;
}

/* Note that COUNT recursive calls of one stack were folded into NODE. */
static void note_folded(tree_builder *builder, uint32_t node, uint32_t count)
{
    sp_flame_node *noted = &builder->tree->nodes[node];
    noted->folded = count > noted->folded ? count : noted->folded;
}

/* The node where STACK ends. It is found once and then kept. 0: memory is short. */
static uint32_t find_end(tree_builder *builder, uint32_t stack, const stack_frames *of)
{
    const sp_model *model = builder->tree->selection->model;
    uint32_t node = builder->end_of_stack[stack];
    if (node)
        return node;
    uint32_t folded = 0;
    for (size_t i = 0; i < of->kept; i++) {
        uint32_t name = sp_flame_frame(model, of->frames, of->count, i, builder->reverse);
        if (i > model->root_frames && name == builder->tree->nodes[node].name &&
            folds_name(builder, name)) {
            folded++;
            continue;
        }
        note_folded(builder, node, folded);
        folded = 0;
        node = child_of(builder, node, name);
        if (node == 0)
            return 0;
    }
    note_folded(builder, node, folded);
    builder->end_of_stack[stack] = node;
    return node;
}

static void add_to_node(sp_flame_node *node, const sp_model_sample *sample)
{
    sp_sum_add(&node->value, sample->value);
    sp_sum_add(&node->count, sample->count);
}

static bool add_sample(tree_builder *builder, uint32_t number)
{
    sp_flame_tree *tree = builder->tree;
    const sp_model *model = tree->selection->model;
    const sp_model_sample *sample = &model->samples[number];
    stack_frames of = frames_of(model, sample->stack);
    uint32_t end = find_end(builder, sample->stack, &of);
    /* In a reversed stack the leaf comes first, directly after the frames of threads and spans. */
    if (end == 0)
        return false;
    size_t leaf_depth = tree->nodes[end].depth;
    if (builder->reverse && leaf_depth > model->root_frames + (size_t)1)
        leaf_depth = model->root_frames + (size_t)1;
    tree->cut_frames += (uint32_t)(of.count - of.kept);
    tree->ends[number] = end;
    for (uint32_t node = end; node != 0; node = tree->nodes[node].parent) {
        add_to_node(&tree->nodes[node], sample);
        if (tree->nodes[node].depth == leaf_depth)
            sp_sum_add(&tree->nodes[node].self, sample->value);
    }
    add_to_node(&tree->nodes[0], sample);
    return true;
}

/* For compare_nodes, because qsort passes no argument to it. */
static const sp_flame_tree *sorted_tree;

static int compare_nodes(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    const sp_flame_node *left = &sorted_tree->nodes[x], *right = &sorted_tree->nodes[y];
    if (left->value != right->value)
        return left->value > right->value ? -1 : 1;
    return x < y ? -1 : x > y;
}

/* Sort all nodes by value, then prepend each to its parent's list, from the smallest to the
 * largest. */
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
    const sp_model *model = selection->model;
    tree_builder builder = {.tree = tree, .reverse = options->reverse};
    builder.end_of_stack = calloc(model->stacks.count + (size_t)1, sizeof *builder.end_of_stack);
    tree->ends = malloc((model->sample_index.count + (size_t)1) * sizeof *tree->ends);
    bool done = builder.end_of_stack && tree->ends && reserve_node(&builder) &&
                (!options->folds_recursion || find_recursion(&builder));
    if (done)
        tree->nodes[tree->count++] = (sp_flame_node){
            .first_child = SP_MODEL_NONE, .next_sibling = SP_MODEL_NONE, .parent = SP_MODEL_NONE};
    for (uint32_t i = 0; done && i < model->sample_index.count; i++)
        if (sp_selection_has(selection, &model->samples[i]))
            done = add_sample(&builder, i);
    sp_intern_deinit(&builder.keys);
    free(builder.end_of_stack);
    free(builder.folds);
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
