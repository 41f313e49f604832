/* SPDX-License-Identifier: Apache-2.0 */
/* Which functions take more, or less, in one selection than in another, beyond chance.
 * docs/design/diff.md has the reasons. */
#ifndef SP_TOOL_MODEL_COMPARE_H
#define SP_TOOL_MODEL_COMPARE_H

#include "tool/model/functions.h"

/* What a function's value is divided by. */
typedef enum sp_compare_by {
    SP_BY_SAMPLES = 0, /* the whole: shares */
    SP_BY_SPANS,       /* requests: what one takes, on average */
    SP_BY_TIME,        /* seconds of the recording */
} sp_compare_by;

/* From A to B, all in hundredths of A's whole: of shares these are percentage points. */
typedef struct sp_change {
    double a, b;
    double a_low, a_high; /* the interval of 95 % of each; NAN where it has too few events */
    double b_low, b_high;
    double change;    /* b - a */
    double low, high; /* its interval of 95 %; infinite where too few events tell it */
    double sure_low;  /* one that holds for all functions at once */
    double sure_high;
    double p;      /* how often chance alone makes so large a change, for all functions at once */
    bool is_asked; /* false: too few events to tell anything */
} sp_change;

static inline bool sp_change_is_move(const sp_change *change)
{
    return change->is_asked && change->p <= 0.05;
}

/* Whether the interval that holds for all questions at once leaves zero out. */
static inline bool sp_change_is_sure(const sp_change *change)
{
    return change->is_asked && (change->sure_low > 0 || change->sure_high < 0);
}

typedef struct sp_function_change {
    const char *name;
    sp_change total, self;
} sp_function_change;

typedef struct sp_comparison {
    sp_compare_by by;
    sp_functions a, b;
    sp_change whole;           /* of a request, or of a second; of shares nothing */
    sp_function_change *items; /* those that are in A or in B; moves first, the largest first */
    size_t count;
    size_t asked; /* questions: totals and selves with enough events */
    size_t moves; /* functions */
} sp_comparison;

/* Fewer samples than this say nothing of a share; fewer in all say little of any. They are counted,
 * because each of allocated bytes stands for another number of these. */
enum { SP_SHARE_EVENTS_LEAST = 3, SP_SHARES_EVENTS_LEAST = 20 };

/* The interval of 95 % of SUM's share of SIDE, in hundredths. Of SIDE only the sums over all
 * functions are read. False when SUM has too few samples. */
bool sp_share_interval(const sp_functions *side, const sp_function_sum *sum, double *low,
                       double *high);

/* Both selections outlive COMPARISON, which is to be freed in any case. SP_TOOL_DONE, or
 * SP_TOOL_NO having said what the files do not tell. */
int sp_compare(sp_comparison *comparison, const sp_selection *a, const sp_selection *b,
               sp_compare_by by);
void sp_comparison_deinit(sp_comparison *comparison);

/* Questions that are asked at once. Zero-initialised there are none; `items` is for free(). */
typedef struct sp_questions {
    struct sp_question *items;
    size_t count, capacity;
} sp_questions;

/* Ask how what has the sum IN_A in A differs from what has IN_B in B; of COMPARISON only `by` and
 * the sums over all of both sides are read. CHANGE, which outlives LIST, is complete after
 * sp_answer_all. False when memory is short. */
bool sp_ask(sp_questions *list, const sp_comparison *comparison, sp_change *change,
            const sp_function_sum *in_a, const sp_function_sum *in_b);
bool sp_answer_all(sp_questions *list, const sp_comparison *comparison);

#endif
