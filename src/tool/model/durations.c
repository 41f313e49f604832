/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/model/durations.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Fewer do not show how much requests differ. */
enum { DURATIONS_LEAST = 10 };

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Fill LIST, which has room for each span, with the durations of the requests. Returns their
 * number. */
static size_t list_durations(uint64_t *list, const sp_selection *selection)
{
    const sp_model *model = selection->model;
    size_t count = 0;
    for (uint32_t i = 0; i < model->span_index.count; i++) {
        const sp_model_span *span = &model->spans[i];
        bool is_request = selection->by_where
                              ? selection->matches[i]
                              : sp_model_is_local_root(model, i) &&
                                    sp_selection_takes_trace(selection, span->id.trace_id);
        if (is_request)
            list[count++] = span->end_ns - span->start_ns;
    }
    return count;
}

/* How many of the values lie below the true median is a binomial number, so two ranks around the
 * middle hold it: sqrt(count) / 2 is its standard deviation. */
static void find_median(sp_durations *out, uint64_t *list, size_t count)
{
    *out = (sp_durations){.count = count, .high = INFINITY};
    if (count == 0)
        return;
    qsort(list, count, sizeof *list, by_value);
    out->median = ((double)list[(count - 1) / 2] + (double)list[count / 2]) / 2;
    if (count < DURATIONS_LEAST)
        return;
    const double deviations = 1.96;
    size_t below = (size_t)((double)count / 2 - deviations * sqrt((double)count) / 2);
    out->low = (double)list[below ? below - 1 : 0];
    out->high = (double)list[below ? count - below : count - 1];
}

bool sp_durations_find(sp_durations *out, const sp_selection *selection)
{
    uint64_t *list = malloc((selection->model->span_index.count + (size_t)1) * sizeof *list);
    *out = (sp_durations){.high = INFINITY};
    if (!list)
        return false;
    find_median(out, list, list_durations(list, selection));
    free(list);
    return true;
}

sp_durations_change sp_durations_compare(const sp_durations *a, const sp_durations *b)
{
    return (sp_durations_change){.change = 100 * (b->median / a->median - 1),
                                 .low = 100 * (b->low / a->high - 1),
                                 .high = 100 * (b->high / a->low - 1)};
}
