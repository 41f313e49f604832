/* SPDX-License-Identifier: Apache-2.0 */
/* The bars in the tree of a trace: when each span ran, and how much of this time was CPU time. */
#include <string.h>

#include "tool/command/spans.h"

enum { LEAST = 16, MOST = 40, GAP = 2 };

sp_waterfall sp_waterfall_find(const sp_model *model, const uint32_t *list, size_t count,
                               unsigned room)
{
    sp_waterfall found = {.start_ns = UINT64_MAX};
    for (size_t i = 0; i < count; i++) {
        const sp_model_span *span = &model->spans[list[i]];
        found.start_ns = span->start_ns < found.start_ns ? span->start_ns : found.start_ns;
        found.end_ns = span->end_ns > found.end_ns ? span->end_ns : found.end_ns;
    }
    uint32_t type = sp_model_cpu_type(model, true);
    if (type != SP_MODEL_NONE && type == sp_model_time_type(model))
        found.shades = &model->types[type];
    if (room >= LEAST + GAP)
        found.columns = room - GAP < MOST ? room - GAP : MOST;
    return found;
}

unsigned sp_waterfall_width(const sp_waterfall *waterfall)
{
    return waterfall->columns ? waterfall->columns + GAP : 0;
}

void sp_waterfall_head(sp_buffer *out, const sp_waterfall *waterfall)
{
    if (waterfall->columns)
        sp_buffer_printf(out, "%-*s  ", (int)waterfall->columns, "when");
}

/* The boundary between columns that is nearest to TIME_NS: 0 is before the first column. */
static unsigned column_of(const sp_waterfall *waterfall, uint64_t time_ns)
{
    double whole = (double)(waterfall->end_ns - waterfall->start_ns);
    double part = (double)(time_ns - waterfall->start_ns);
    unsigned column = whole > 0 ? (unsigned)(part / whole * waterfall->columns + 0.5) : 0;
    return column < waterfall->columns ? column : waterfall->columns;
}

/* How many of WIDTH columns are CPU time. With several threads at once, CPU time may be longer than
 * the span; then it is all columns. */
static unsigned shaded(const sp_waterfall *waterfall, const sp_model_span *span, unsigned width)
{
    double duration = (double)(span->end_ns - span->start_ns), cpu = (double)span->total_value;
    if (!waterfall->shades || cpu <= 0)
        return 0;
    return cpu >= duration ? width : (unsigned)(cpu / duration * width + 0.5);
}

static void repeat(sp_buffer *out, const char *text, unsigned count)
{
    while (count--)
        sp_buffer_add_string(out, text);
}

void sp_waterfall_cell(sp_buffer *out, const sp_waterfall *waterfall, const sp_model_span *span,
                       const sp_terminal *terminal)
{
    if (!waterfall->columns)
        return;
    unsigned start = column_of(waterfall, span->start_ns);
    unsigned end = column_of(waterfall, span->end_ns);
    start = start < waterfall->columns ? start : waterfall->columns - 1;
    end = end > start ? end : start + 1; /* even the shortest span has a column */
    unsigned cpu = shaded(waterfall, span, end - start);
    repeat(out, " ", start);
    repeat(out, terminal->utf8 ? "█" : "#", cpu);
    repeat(out, terminal->utf8 ? "░" : "-", end - start - cpu);
    repeat(out, " ", waterfall->columns - end + GAP);
}

void sp_waterfall_key(sp_buffer *out, const sp_waterfall *waterfall, const sp_terminal *terminal)
{
    char duration[SP_DURATION_LENGTH];
    if (!waterfall->columns)
        return;
    sp_format_duration(duration, waterfall->end_ns - waterfall->start_ns);
    sp_buffer_printf(out, "when: %s from left to right", duration);
    if (waterfall->shades)
        sp_buffer_printf(out, "; %s is the share of CPU time, %s the rest",
                         terminal->utf8 ? "█" : "#", terminal->utf8 ? "░" : "-");
    if (waterfall->shades && waterfall->shades->hides_inner)
        sp_buffer_add_string(out, " or not known");
    sp_buffer_add_char(out, '\n');
}
