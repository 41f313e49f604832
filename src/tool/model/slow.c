/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/model/slow.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/counted.h"
#include "tool/text/messages.h"

/* In floating point, 100 - 99.9 is a little more than 0.1. Without this tolerance, two of 1,000
 * spans would be slow at p99.9, and not one. */
#define ROUNDING 1e-6

int sp_slow_parse(const char *text, sp_slow *out)
{
    char *end;
    const char *digits = text + (*text == 'p');
    out->percent = strtod(digits, &end);
    /* strtod accepts other forms, too, such as 0x10 */
    bool is_plain = digits[strspn(digits, "0123456789.")] == 0;
    if (!is_plain || *digits == '.' || *end != 0 || end == digits ||
        !(out->percent > 0 && out->percent < 100))
        return sp_tool_wrong("--percentile %s: a number above 0 and below 100 is needed, such as "
                             "p99",
                             text);
    return SP_TOOL_DONE;
}

static uint64_t duration_of(const sp_model_span *span)
{
    return span->end_ns - span->start_ns;
}

static int longest_first(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x < y) - (x > y);
}

bool sp_slow_keep(const sp_model *model, sp_slow *slow, bool rest, bool *marks)
{
    uint64_t *durations = malloc((model->span_index.count + (size_t)1) * sizeof *durations);
    if (!durations)
        return false;
    slow->all = 0;
    for (uint32_t i = 0; i < model->span_index.count; i++)
        if (marks[i])
            durations[slow->all++] = duration_of(&model->spans[i]);
    qsort(durations, slow->all, sizeof *durations, longest_first);
    double count = ceil(slow->all * (100 - slow->percent) / 100 - ROUNDING);
    if (slow->all)
        slow->least_ns = durations[count > 1 ? (uint32_t)count - 1 : 0];
    free(durations);
    for (uint32_t i = 0; i < model->span_index.count; i++)
        marks[i] = marks[i] && (duration_of(&model->spans[i]) >= slow->least_ns) != rest;
    return true;
}

int sp_slow_check(const sp_slow *slow)
{
    double needed = ceil(100 / (100 - slow->percent) - ROUNDING);
    if (slow->all == 0 || slow->all >= needed)
        return SP_TOOL_DONE;
    if (slow->all == 1)
        return sp_tool_no("1 span matches, and p%g needs at least %.0f: leave out --percentile",
                          slow->percent, needed);
    return sp_tool_no(
        "%s match, and p%g needs at least %.0f, so that one of them is slow: ask with "
        "--span for the slowest, which `spanprof spans` shows, or for p%d or less",
        SP_COUNTED(slow->all, "span"), slow->percent, needed, (int)(100 - 100.0 / slow->all));
}
