/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/model/slow.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tool/text/messages.h"

int sp_slow_parse(const char *text, sp_slow *out)
{
    char *end;
    const char *digits = text + (*text == 'p');
    out->percent = strtod(digits, &end);
    bool is_plain = digits[strspn(digits, "0123456789.")] == 0; /* strtod takes 0x10, too */
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
    /* 100 - 99.9 is a little more than 0.1, and must not make two of one. */
    double count = ceil(slow->all * (100 - slow->percent) / 100 - 1e-6);
    if (slow->all)
        slow->least_ns = durations[count > 1 ? (uint32_t)count - 1 : 0];
    free(durations);
    for (uint32_t i = 0; i < model->span_index.count; i++)
        marks[i] = marks[i] && (duration_of(&model->spans[i]) >= slow->least_ns) != rest;
    return true;
}
