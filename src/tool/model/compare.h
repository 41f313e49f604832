/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the functions that take more, or less, in one selection than in another, beyond chance.
 * docs/design/diff.md has the reasons. */
#ifndef SP_TOOL_MODEL_COMPARE_H
#define SP_TOOL_MODEL_COMPARE_H

#include "tool/model/functions.h"

/* What a function's value is divided by. */
typedef enum sp_compare_by {
    SP_BY_SAMPLES = 0, /* the whole of the side: values are shares */
    SP_BY_SPANS,       /* the number of requests: values are averages per request */
    SP_BY_TIME,        /* the seconds of the recording */
} sp_compare_by;

/* The change from A to B. All values are in hundredths of the whole of A; with SP_BY_SAMPLES they
 * are percentages and percentage points. */
typedef struct sp_change {
    double a, b;
    double a_low, a_high; /* the 95 % intervals of a and b; NAN: too few events */
    double b_low, b_high;
    double change;    /* b - a */
    double low, high; /* the 95 % interval of the change; infinite: too few events */
    double sure_low;  /* the interval that holds for all questions at once */
    double sure_high;
    double p;      /* how often chance alone makes a change as large, for all questions at once */
    bool is_asked; /* false: too few events to tell anything */
} sp_change;

static inline bool sp_change_is_move(const sp_change *change)
{
    return change->is_asked && change->p <= 0.05;
}

/* Whether zero is outside the interval that holds for all questions at once. */
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
    sp_change whole;           /* per request or per second; unused with SP_BY_SAMPLES */
    sp_function_change *items; /* functions of A or B; moves first, the largest first */
    size_t count;
    size_t asked; /* questions: changes that have enough events */
    size_t moves; /* items for which sp_change_is_move is true of `total` or `self` */
} sp_comparison;

/* The least number of samples that a function needs for an interval of its share, and that a
 * selection needs for reliable shares. Samples are counted and not their values, because a sample
 * of allocated bytes stands for a varying number of bytes. */
enum { SP_SHARE_EVENTS_LEAST = 3, SP_SHARES_EVENTS_LEAST = 20 };

/* The 95 % interval of the share of SUM in SIDE, in hundredths. Of SIDE, only the sums over all
 * functions are read. Returns false when SUM has too few samples. */
bool sp_share_interval(const sp_functions *side, const sp_function_sum *sum, double *low,
                       double *high);

/* Compare the selections A and B, which must outlive COMPARISON. Returns SP_TOOL_DONE, or
 * SP_TOOL_NO after a message about what the files lack. Free COMPARISON by sp_comparison_deinit in
 * any case. */
int sp_compare(sp_comparison *comparison, const sp_selection *a, const sp_selection *b,
               sp_compare_by by);
void sp_comparison_deinit(sp_comparison *comparison);

/* Questions that are answered together. A zero-initialised list is empty. Free `items` by
 * free(). */
typedef struct sp_questions {
    struct sp_question *items;
    size_t count, capacity;
} sp_questions;

/* Ask how much something changes that has the sum IN_A in A and IN_B in B. Of COMPARISON, only `by`
 * and the sums over all functions of both sides are read. CHANGE must outlive LIST, and is complete
 * after sp_answer_all. Returns false when memory is short. */
bool sp_ask(sp_questions *list, const sp_comparison *comparison, sp_change *change,
            const sp_function_sum *in_a, const sp_function_sum *in_b);
bool sp_answer_all(sp_questions *list, const sp_comparison *comparison);

#endif
