/* SPDX-License-Identifier: Apache-2.0 */
/* `spanprof flame`: its tree and its forms. */
#ifndef SP_TOOL_DRAW_FLAME_H
#define SP_TOOL_DRAW_FLAME_H

#include "tool/model/compare.h"
#include "tool/text/output.h"

/* Frames deeper than this are left out of trees (not of the folded and json forms): no picture of
 * them can be read, and the code that draws trees recurses. */
#define SP_FLAME_MAX_DEPTH 1000

/* Frames that the text shows by default: longer texts are not read. */
#define SP_FLAME_NO_LIMIT      UINT64_MAX
#define SP_FLAME_DEFAULT_LIMIT 100

typedef struct sp_flame_options {
    sp_select_options select;
    const char *format;
    const char *out;
    double min_percent;
    bool reverse;
    bool against;
    bool folds_recursion; /* a function that calls itself again and again is one frame */
    uint64_t limit;       /* lines of text; 0: all; SP_FLAME_NO_LIMIT: not asked */
    sp_model_options model;
    const char *names;    /* a style: names.h; NULL: folded */
    const char *group_by; /* "span", or NULL */
} sp_flame_options;

/* A frame with the path to it. Node 0 is the root: all samples. Children stand with the largest
 * value first. */
typedef struct sp_flame_node {
    uint32_t name;   /* string of the model; SP_MODEL_NONE: no stack; not of the root */
    uint32_t depth;  /* of the root: 0 */
    uint32_t folded; /* how many calls of itself by itself are at most in this frame */
    uint32_t first_child, next_sibling, parent;
    uint64_t value; /* with what it calls */
    uint64_t self;
    uint64_t count;
} sp_flame_node;

typedef struct sp_flame_tree {
    const sp_selection *selection;
    sp_flame_node *nodes;
    uint32_t count;
    uint32_t *ends;        /* by number of sample: its last node that is shown */
    sp_functions whole;    /* of all samples; without arrays by function */
    sp_function_sum *sums; /* by node */
    uint64_t *where_ns;    /* by node, then by class; NULL: the type does not tell */
    uint32_t cut_frames;   /* left out because of SP_FLAME_MAX_DEPTH */
} sp_flame_tree;

/* OPTIONS' reverse: leaves at the root, so that callers show below. Frames below its percentage
 * have no interval. False when memory is short; TREE is to be freed in any case. */
bool sp_flame_tree_build(sp_flame_tree *tree, const sp_selection *selection,
                         const sp_flame_options *options);
void sp_flame_tree_deinit(sp_flame_tree *tree);
/* Part of the build: the sums. */
bool sp_flame_shares(sp_flame_tree *tree, double percent);
/* The interval of 95 % of NODE's share, in hundredths. False: it has too few samples. */
bool sp_flame_interval(const sp_flame_tree *tree, const sp_flame_node *node, double *low,
                       double *high);
/* What NODE, which is not the root, is called. */
const char *sp_flame_node_name(const sp_flame_tree *tree, const sp_flame_node *node);

#define SP_FLAME_NO_STACK SP_MODEL_NO_STACK

/* Of a stack of COUNT frames, leaf first, the one at place I from the root, or with REVERSE from
 * the leaf; frames of threads and spans come first in both. */
uint32_t sp_flame_frame(const sp_model *model, const uint32_t *frames, size_t count, size_t i,
                        bool reverse);

/* What stands over a flamegraph: lines that say whose it is, how much it is, and how far to trust
 * it. */
typedef struct sp_flame_legend {
    char subject[512];    /* whose: "GET /report", "trace …", "all samples" */
    char details[512];    /* ids, service, duration, status; may be empty */
    char amount[512];     /* "cpu: 1.23 s in 124 samples …" */
    char where[512];      /* of wall time the classes it went to, of waits the lock; may be empty */
    char confidence[640]; /* empty when there are enough samples */
} sp_flame_legend;

void sp_flame_legend_fill(sp_flame_legend *legend, const sp_selection *selection, bool self);

/* What a picture draws. */
typedef struct sp_flame_graph {
    const sp_flame_tree *tree;
    sp_flame_legend legend;
    /* By node: how it differs between two sides, which is its colour then; or NULL. */
    const sp_change *changes;
    const char *label; /* what the graph is called beside the other one; NULL: its type */
} sp_flame_graph;

/* The graph of a selection. */
sp_flame_graph sp_flame_graph_of(const sp_flame_tree *tree, const sp_flame_options *options);

/* The forms append to OUT. */
bool sp_flame_text(sp_buffer *out, const sp_flame_tree *tree, const sp_flame_options *options,
                   const sp_terminal *terminal);
/* OTHER: a second graph below the first, or NULL. */
bool sp_flame_svg(sp_buffer *out, const sp_flame_graph *graph, const sp_flame_graph *other,
                  double min_percent);
/* OTHER: a second graph to which the page can switch, or NULL. */
bool sp_flame_html(sp_buffer *out, const sp_flame_graph *graph, const sp_flame_graph *other,
                   const sp_flame_options *options);
/* SP_TOOL_WRONG, having said so for COMMAND, when the page was not built. */
int sp_flame_html_check(const char *command);
/* The legend of the text forms. */
void sp_flame_text_legend(sp_buffer *out, const sp_selection *selection,
                          const sp_flame_options *options, const sp_terminal *terminal);
/* The functions with the largest self values. */
bool sp_flame_table(sp_buffer *out, const sp_selection *selection, const sp_flame_options *options,
                    const sp_terminal *terminal);
bool sp_flame_folded(sp_buffer *out, const sp_selection *selection, bool reverse);
/* A trace for Perfetto. */
bool sp_flame_perfetto(sp_buffer *out, const sp_selection *selection);
json_t *sp_flame_json(const sp_selection *selection);

/* How strong the colour of a change is, from 0 to 1; 0: white. */
double sp_flame_change_strength(const sp_change *change);

/* The page, made by web/embed.mjs; NULL when built without it (page_none.c). Its data goes between
 * HEAD and TAIL, in a script element. */
extern const char *const sp_flame_page_head;
extern const char *const sp_flame_page_tail;

#endif
