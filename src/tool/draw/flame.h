/* SPDX-License-Identifier: Apache-2.0 */
/* The tree and the output forms of `spanprof flame`. */
#ifndef SP_TOOL_DRAW_FLAME_H
#define SP_TOOL_DRAW_FLAME_H

#include "tool/model/compare.h"
#include "tool/model/queued.h"
#include "tool/text/output.h"

/* Trees leave out frames deeper than this, because a picture with them is not readable, and because
 * the code that draws trees recurses. The folded and json forms have all frames. */
#define SP_FLAME_MAX_DEPTH 1000

/* The limit on the frames of the text form: not given, and its default. A longer text is hard to
 * read. */
#define SP_FLAME_NO_LIMIT      UINT64_MAX
#define SP_FLAME_DEFAULT_LIMIT 100

typedef struct sp_flame_options {
    sp_select_options select;
    const char *format;
    const char *out;
    double min_percent;
    bool reverse;
    bool against;
    bool has_button;      /* the page has a button to show wall time */
    bool folds_recursion; /* a function that calls itself many times in a row is one frame */
    uint64_t limit;       /* frames of the text form; 0: all; SP_FLAME_NO_LIMIT: the default */
    sp_model_options model;
    const char *names;    /* a style: names.h; NULL: folded */
    const char *group_by; /* "span", or NULL */
} sp_flame_options;

/* A frame with the path to it. Node 0 is the root: all samples. Children are sorted by value, the
 * largest first. */
typedef struct sp_flame_node {
    uint32_t name;   /* string of the model; SP_MODEL_NONE: no stack. The root has none */
    uint32_t depth;  /* the root's depth is 0 */
    uint32_t folded; /* recursive calls that were folded into this frame: the most of any stack */
    uint32_t first_child, next_sibling, parent;
    uint64_t value; /* with all frames that this frame calls */
    uint64_t self;
    uint64_t count;
} sp_flame_node;

typedef struct sp_flame_tree {
    const sp_selection *selection;
    sp_flame_node *nodes;
    uint32_t count;
    uint32_t *ends;        /* by index of the sample: its last node that is shown */
    sp_functions whole;    /* sums over all samples; `total` and `self` are NULL */
    sp_function_sum *sums; /* by node */
    uint64_t *where_ns;    /* by node, then by class; NULL: the type has no classes */
    uint32_t cut_frames;   /* how many were left out because of SP_FLAME_MAX_DEPTH */
} sp_flame_tree;

/* Build the tree of SELECTION, which outlives TREE. With OPTIONS' reverse the leaf of each stack is
 * next to the root, and its callers are its children. Frames below OPTIONS' min_percent have no
 * interval. False when memory is short. In both cases the caller frees TREE with
 * sp_flame_tree_deinit. */
bool sp_flame_tree_build(sp_flame_tree *tree, const sp_selection *selection,
                         const sp_flame_options *options);
void sp_flame_tree_deinit(sp_flame_tree *tree);
/* Called by sp_flame_tree_build: compute the sums that the intervals need, and where_ns. */
bool sp_flame_shares(sp_flame_tree *tree, double percent);
/* The 95 % interval of NODE's share, in percent. False: NODE has too few samples. */
bool sp_flame_interval(const sp_flame_tree *tree, const sp_flame_node *node, double *low,
                       double *high);
/* The name of NODE, which is not the root. */
const char *sp_flame_node_name(const sp_flame_tree *tree, const sp_flame_node *node);

#define SP_FLAME_NO_STACK SP_MODEL_NO_STACK

/* The frame at place I of a stack of COUNT FRAMES, which are leaf first. Places are counted from
 * the root, or with REVERSE from the leaf. The frames of threads and spans come first in both
 * cases. */
uint32_t sp_flame_frame(const sp_model *model, const uint32_t *frames, size_t count, size_t i,
                        bool reverse);

/* The lines above a flamegraph: what was selected, how much it is, and whether there are enough
 * samples. */
typedef struct sp_flame_legend {
    char subject[512]; /* what was selected: "GET /report", "trace …", "all samples" */
    char details[512]; /* ids, service, duration, status; may be empty */
    char amount[512];  /* "cpu: 1.23 s in 124 samples …" */
    /* of wall time, its classes; of waits, the lock; of little CPU time, that the rest was waiting;
     * may be empty */
    char where[512];
    char queued[SP_QUEUED_LENGTH]; /* time in which no thread carried the span; may be empty */
    char confidence[640];          /* empty when there are enough samples */
} sp_flame_legend;

/* The time in which no thread carried the spans that SELECTION, of CPU or wall time, means. Its
 * queued_ns is 0 for other types. */
sp_queued sp_flame_queued(const sp_selection *selection);
void sp_flame_legend_fill(sp_flame_legend *legend, const sp_selection *selection,
                          const sp_flame_options *options);

/* One graph of a picture or a page. */
typedef struct sp_flame_graph {
    const sp_flame_tree *tree;
    sp_flame_legend legend;
    const sp_change *changes; /* by node: how two sides differ, which gives the colour; or NULL */
    const char *label;        /* the name of the graph where there are two; NULL: its type */
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
/* SP_TOOL_DONE, or SP_TOOL_WRONG after a message for COMMAND: this spanprof was built without the
 * page. */
int sp_flame_html_check(const char *command);
/* The legend of the text forms. */
void sp_flame_text_legend(sp_buffer *out, const sp_selection *selection,
                          const sp_flame_options *options, const sp_terminal *terminal);
/* The functions with the largest self values. */
bool sp_flame_table(sp_buffer *out, const sp_selection *selection, const sp_flame_options *options,
                    const sp_terminal *terminal);
bool sp_flame_folded(sp_buffer *out, const sp_selection *selection, bool reverse);
/* A trace in Perfetto's format. */
bool sp_flame_perfetto(sp_buffer *out, const sp_selection *selection);
json_t *sp_flame_json(const sp_selection *selection);

/* The strength of a change's colour, from 0 (white) to 1. */
double sp_flame_change_strength(const sp_change *change);

/* The page, made by web/embed.mjs; both are NULL when spanprof was built without it (page_none.c).
 * The data goes between head and tail, into a script element. */
extern const char *const sp_flame_page_head;
extern const char *const sp_flame_page_tail;

#endif
