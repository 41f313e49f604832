/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/model/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/reach.h"
#include "tool/model/statistics.h"
#include "tool/text/messages.h"

/* Fewer events on both sides together cannot show a change: if both sides are equal, five events
 * are all on one side by chance in 1 of 16 cases. */
enum { EVENTS_LEAST = 6 };

static const double level = 0.95;

/* ---- rates ---- */

/* What the values of a side are divided by. */
static double exposure_of(const sp_functions *side, sp_compare_by by)
{
    return by == SP_BY_SAMPLES ? side->all.value
           : by == SP_BY_SPANS ? (double)side->requests
                               : side->seconds;
}

/* The value of one event, on average; large events count more. */
static double event_of(const sp_functions *side)
{
    return side->all.value > 0 ? side->event_squares / side->all.value : 0;
}

/* A factor for a variance that is estimated from few clusters. Such a variance is uncertain itself,
 * and it is too small more often than too large. The factor is about what Student's distribution
 * gives at the small probabilities that many questions need. A few large clusters among many small
 * ones count as few. */
static double for_few_clusters(const sp_functions *side, const sp_function_sum *sum)
{
    double of_function = sum->squares / (sum->value * sum->value);
    double of_all = side->all.squares / (side->all.value * side->all.value);
    return 1 + 5 * fmax(of_function, of_all);
}

/* The variance of a share, as the ratio of two sums over clusters. */
static double variance_of_share(const sp_functions *side, const sp_function_sum *sum)
{
    double whole = side->all.value, share = sum->value / whole;
    double clustered = sum->squares - 2 * share * sum->cross + share * share * side->all.squares;
    double by_events = share * (1 - share) * side->event_squares;
    return fmax(clustered * for_few_clusters(side, sum), by_events) / (whole * whole);
}

/* The variance of the value per request, or per second. */
static double variance_of_rate(const sp_functions *side, const sp_function_sum *sum,
                               sp_compare_by by)
{
    double n = exposure_of(side, by), squares = sum->squares;
    if (by == SP_BY_SPANS && n > 1 && side->clusters >= SP_CLUSTERS_LEAST)
        squares = (squares - sum->value * sum->value / n) * n / (n - 1);
    return fmax(squares * for_few_clusters(side, sum), sum->value * event_of(side)) / (n * n);
}

/* The exposure of SIDE in events, if all events were independent. */
static double plain_exposure(const sp_functions *side, sp_compare_by by)
{
    return exposure_of(side, by) / event_of(side);
}

/* The share of independent information in the events of SIDE, from 0 to 1. It is 1 when the events
 * are independent, and less when they come in clusters. */
static double sureness_of(const sp_functions *side, const sp_function_sum *sum, sp_compare_by by)
{
    double rate = sum->value / exposure_of(side, by), exposure;
    if (rate <= 0 || (by == SP_BY_SAMPLES && rate >= 1 - 1e-12))
        return 1;
    if (by == SP_BY_SAMPLES)
        exposure = rate * (1 - rate) / variance_of_share(side, sum);
    else
        exposure = rate / variance_of_rate(side, sum, by);
    return fmin(1, exposure / plain_exposure(side, by));
}

/* SUM as a rate of independent events: as many as give the same certainty. */
static sp_rate rate_of(const sp_functions *side, const sp_function_sum *sum, sp_compare_by by,
                       double sureness)
{
    sp_rate made = {.exposure = plain_exposure(side, by) * sureness,
                    .is_share = by == SP_BY_SAMPLES};
    made.events = sum->value / exposure_of(side, by) * made.exposure;
    return made;
}

/* ---- changes ---- */

static double events_of(const sp_functions *side, const sp_function_sum *sum)
{
    return sum->value / event_of(side);
}

/* The variance of the value of SUM minus SHARE of the value of all, for a share near that of SUM:
 * what the sampling makes, or if BY_REQUEST and that is more, what the requests show. */
static double variance_near(const sp_functions *side, const sp_function_sum *sum, double share,
                            bool by_request)
{
    double by_sampling = sum->variance * (1 - 2 * share) + share * share * side->all.variance;
    double own = sum->value / side->all.value;
    if (!by_request || own <= 0 || own >= 1 - 1e-12)
        return by_sampling;
    double clustered = sum->squares - 2 * own * sum->cross + own * own * side->all.squares;
    clustered *= for_few_clusters(side, sum) * share * (1 - share) / (own * (1 - own));
    return fmax(by_sampling, clustered);
}

/* Fill the interval of a share, from 0 to 1. As in statistics.c, Z² / 2 events are added on both
 * sides. With events of one value the interval is that of sp_rate_interval. Otherwise each function
 * has the error of its own events, and the added ones have the least value, because larger ones
 * would hardly have been missed. */
static void fill_share(const sp_functions *side, const sp_function_sum *sum, double *low,
                       double *high)
{
    /* The samples of a few requests are treated as independent events, because so few requests do
     * not show how requests differ. */
    bool by_request = side->clusters >= SP_CLUSTERS_LEAST;
    double event = side->unseen_event > 0 ? side->unseen_event : event_of(side);
    double z = sp_normal_quantile((1 + level) / 2), more = z * z / 2;
    event /= by_request ? sureness_of(side, sum, SP_BY_SAMPLES) : 1;
    double whole = side->all.value + 2 * more * event;
    double share = (sum->value + more * event) / whole;
    double added = more * event * event * (1 - 2 * share + 2 * share * share);
    double half = z * sqrt(variance_near(side, sum, share, by_request) + added) / whole;
    *low = fmax(0, share - half);
    *high = fmin(1, share + half);
}

/* The interval of the rate of SUM in SIDE, in hundredths of WHOLE. False when SUM has too few
 * samples. */
static bool interval_of(const sp_functions *side, const sp_function_sum *sum, sp_compare_by by,
                        double whole, double *low, double *high)
{
    if (side->all.value <= 0 || sum->samples < SP_SHARE_EVENTS_LEAST)
        return false;
    if (by == SP_BY_SAMPLES) {
        fill_share(side, sum, low, high);
    } else {
        bool by_request = side->clusters >= SP_CLUSTERS_LEAST;
        sp_rate rate = rate_of(side, sum, by, by_request ? sureness_of(side, sum, by) : 1);
        sp_rate_interval(&rate, level, low, high);
    }
    *low *= 100 / whole;
    *high *= 100 / whole;
    return true;
}

bool sp_share_interval(const sp_functions *side, const sp_function_sum *sum, double *low,
                       double *high)
{
    return interval_of(side, sum, SP_BY_SAMPLES, 1, low, high);
}

static double whole_of(const sp_comparison *comparison)
{
    return comparison->a.all.value / exposure_of(&comparison->a, comparison->by);
}

typedef struct sp_question {
    sp_rate a, b;
    sp_change *change;
} sp_question;

/* Whether there are enough independent events for an interval. The samples of a few requests that
 * differ much count as fewer events. */
static bool tells_interval(const sp_question *asked)
{
    return asked->a.events + asked->b.events >= EVENTS_LEAST;
}

/* Limit a change to what is possible: no change takes away more than the whole of A, and no share
 * grows by more than the whole. */
static double possible(double hundredths, sp_compare_by by)
{
    return fmax(-100, by == SP_BY_SAMPLES ? fmin(100, hundredths) : hundredths);
}

static void fill_change(sp_question *asked, const sp_comparison *comparison, double sure_level)
{
    sp_rate_change one = sp_rate_compare(&asked->a, &asked->b, level);
    sp_rate_change sure = sp_rate_compare(&asked->a, &asked->b, sure_level);
    sp_change *change = asked->change;
    double scale = 100 / whole_of(comparison);
    change->p = one.p;
    change->low = possible(scale * one.low, comparison->by);
    change->high = possible(scale * one.high, comparison->by);
    change->sure_low = possible(scale * sure.low, comparison->by);
    change->sure_high = possible(scale * sure.high, comparison->by);
}

static const sp_function_sum nothing;

static void fill_intervals(const sp_comparison *comparison, sp_change *change,
                           const sp_function_sum *in_a, const sp_function_sum *in_b)
{
    double whole = whole_of(comparison);
    change->a_low = change->a_high = change->b_low = change->b_high = NAN;
    interval_of(&comparison->a, in_a, comparison->by, whole, &change->a_low, &change->a_high);
    interval_of(&comparison->b, in_b, comparison->by, whole, &change->b_low, &change->b_high);
}

bool sp_ask(sp_questions *list, const sp_comparison *comparison, sp_change *change,
            const sp_function_sum *in_a, const sp_function_sum *in_b)
{
    const sp_functions *a = &comparison->a, *b = &comparison->b;
    sp_compare_by by = comparison->by;
    double whole = whole_of(comparison);
    *change = (sp_change){.a = 100 * in_a->value / exposure_of(a, by) / whole,
                          .b = 100 * in_b->value / exposure_of(b, by) / whole,
                          .p = 1};
    fill_intervals(comparison, change, in_a, in_b);
    change->change = change->b - change->a;
    change->low = change->sure_low = -INFINITY;
    change->high = change->sure_high = INFINITY;
    change->is_asked = events_of(a, in_a) + events_of(b, in_b) >= EVENTS_LEAST;
    if (!change->is_asked)
        return true;
    if (!SP_REACH(list->items, list->count, list->capacity, 256))
        return false;
    /* Both sides get the smaller of the two values. Two equal programs have equal clusters, but the
     * samples of one side may show few of them by chance. */
    double sureness = fmin(sureness_of(a, in_a, by), sureness_of(b, in_b, by));
    list->items[list->count++] =
        (sp_question){rate_of(a, in_a, by, sureness), rate_of(b, in_b, by, sureness), change};
    return true;
}

/* P is adjusted for all questions at once. A change that is not significant, and has too few
 * independent events, gets no interval. */
static void end_question(sp_question *asked, double p)
{
    sp_change *change = asked->change;
    change->p = p;
    if (sp_change_is_move(change) || tells_interval(asked))
        return;
    change->low = change->sure_low = -INFINITY;
    change->high = change->sure_high = INFINITY;
}

/* All questions are answered at once, because a sure change has to hold for all of them
 * together. */
bool sp_answer_all(sp_questions *list, const sp_comparison *comparison)
{
    double *p = malloc((list->count + 1) * sizeof *p);
    for (size_t i = 0; p && i < list->count; i++) {
        fill_change(&list->items[i], comparison, 1 - (1 - level) / (double)list->count);
        p[i] = list->items[i].change->p;
    }
    bool done = p && sp_adjust_probabilities(p, list->count);
    for (size_t i = 0; done && i < list->count; i++)
        end_question(&list->items[i], p[i]);
    free(p);
    return done;
}

/* ---- functions of both sides ---- */

static sp_function_change *add_item(sp_comparison *comparison, const char *name)
{
    sp_function_change *item = &comparison->items[comparison->count++];
    *item = (sp_function_change){.name = name};
    return item;
}

static bool ask_function(sp_questions *list, sp_comparison *comparison, uint32_t in_a,
                         uint32_t in_b)
{
    const sp_functions *a = &comparison->a, *b = &comparison->b;
    const sp_model *named = in_a == SP_INTERN_FAILED ? b->model : a->model;
    sp_function_change *item =
        add_item(comparison, sp_model_text(named, in_a == SP_INTERN_FAILED ? in_b : in_a));
    const sp_function_sum *total_a = in_a == SP_INTERN_FAILED ? &nothing : &a->total[in_a];
    const sp_function_sum *total_b = in_b == SP_INTERN_FAILED ? &nothing : &b->total[in_b];
    const sp_function_sum *self_a = in_a == SP_INTERN_FAILED ? &nothing : &a->self[in_a];
    const sp_function_sum *self_b = in_b == SP_INTERN_FAILED ? &nothing : &b->self[in_b];
    return sp_ask(list, comparison, &item->total, total_a, total_b) &&
           sp_ask(list, comparison, &item->self, self_a, self_b);
}

static bool ask_functions(sp_questions *list, sp_comparison *comparison)
{
    const sp_functions *a = &comparison->a, *b = &comparison->b;
    bool done = true;
    for (uint32_t i = 0; done && i < a->model->strings.count; i++) {
        uint32_t other = sp_model_same_string(b->model, a->model, i);
        bool is_in_b = other != SP_INTERN_FAILED && b->total[other].value > 0;
        if (a->total[i].value > 0 || is_in_b)
            done = ask_function(list, comparison, i, is_in_b ? other : SP_INTERN_FAILED);
    }
    for (uint32_t i = 0; done && i < b->model->strings.count; i++)
        if (b->total[i].value > 0 &&
            sp_model_same_string(a->model, b->model, i) == SP_INTERN_FAILED)
            done = ask_function(list, comparison, SP_INTERN_FAILED, i);
    return done;
}

static double size_of_move(const sp_function_change *item)
{
    double total = sp_change_is_move(&item->total) ? fabs(item->total.change) : 0;
    double self = sp_change_is_move(&item->self) ? fabs(item->self.change) : 0;
    return fmax(total, self);
}

static int compare_items(const void *a, const void *b)
{
    const sp_function_change *x = a, *y = b;
    double left = size_of_move(x), right = size_of_move(y);
    if (left == right) {
        left = fabs(x->total.change);
        right = fabs(y->total.change);
    }
    return left != right ? (left > right ? -1 : 1) : strcmp(x->name, y->name);
}

static void sort_items(sp_comparison *comparison)
{
    qsort(comparison->items, comparison->count, sizeof *comparison->items, compare_items);
    while (comparison->moves < comparison->count &&
           size_of_move(&comparison->items[comparison->moves]) > 0)
        comparison->moves++;
}

static bool compare_all(sp_comparison *comparison)
{
    sp_questions list = {0};
    size_t most = (size_t)comparison->a.model->strings.count + comparison->b.model->strings.count;
    comparison->items = malloc((most + 1) * sizeof *comparison->items);
    bool done = comparison->items != NULL;
    if (done && comparison->by != SP_BY_SAMPLES)
        done =
            sp_ask(&list, comparison, &comparison->whole, &comparison->a.all, &comparison->b.all);
    done = done && ask_functions(&list, comparison) && sp_answer_all(&list, comparison);
    comparison->asked = list.count;
    free(list.items);
    if (done)
        sort_items(comparison);
    return done;
}

static int check_side(const sp_functions *side, sp_compare_by by, char name)
{
    if (side->all.value <= 0)
        return sp_tool_no("%c has no samples that belong to a span: leave out --by spans", name);
    if (by == SP_BY_SPANS && side->requests == 0)
        return sp_tool_no("%c has no spans to divide by: give its .traces file too, or leave out "
                          "--by spans",
                          name);
    if (by == SP_BY_TIME && side->seconds <= 0)
        return sp_tool_no("the profiles of %c do not say how long they took: leave out --by time",
                          name);
    return SP_TOOL_DONE;
}

int sp_compare(sp_comparison *comparison, const sp_selection *a, const sp_selection *b,
               sp_compare_by by)
{
    *comparison = (sp_comparison){.by = by};
    if (!sp_functions_sum(&comparison->a, a, by == SP_BY_SPANS) ||
        !sp_functions_sum(&comparison->b, b, by == SP_BY_SPANS))
        return sp_tool_no_memory();
    int status = check_side(&comparison->a, by, 'A');
    if (status == SP_TOOL_DONE)
        status = check_side(&comparison->b, by, 'B');
    if (status == SP_TOOL_DONE && !compare_all(comparison))
        status = sp_tool_no_memory();
    return status;
}

void sp_comparison_deinit(sp_comparison *comparison)
{
    sp_functions_deinit(&comparison->a);
    sp_functions_deinit(&comparison->b);
    free(comparison->items);
    *comparison = (sp_comparison){0};
}
