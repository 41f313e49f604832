/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of a selection as a table, sorted by their self values. */
#include <stdio.h>
#include <stdlib.h>

#include "tool/draw/flame.h"
#include "tool/model/functions.h"
#include "tool/text/escape.h"

enum { ROWS = 40, NUMBER_COLUMNS = 60 };

static const sp_functions *sorted_functions;

/* By self, then by total, then in the order of the files. */
static int compare_functions(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    const sp_function_sum *self = sorted_functions->self, *total = sorted_functions->total;
    if (self[x].value != self[y].value)
        return self[x].value > self[y].value ? -1 : 1;
    if (total[x].value != total[y].value)
        return total[x].value > total[y].value ? -1 : 1;
    return x < y ? -1 : x > y;
}

/* " 66.7%    48-81  ", or "?" when there are too few samples. */
static void write_share(sp_buffer *out, const sp_functions *functions, const sp_function_sum *sum)
{
    double low, high;
    char interval[16] = "";
    if (sum->value > 0 && !sp_share_interval(functions, sum, &low, &high)) {
        sp_buffer_printf(out, "%6s  %7s  ", "?", "");
        return;
    }
    if (sum->value > 0)
        snprintf(interval, sizeof interval, "%.0f-%.0f", low, high);
    sp_buffer_printf(out, "%5.1f%%  %7s  ", 100 * sum->value / functions->all.value, interval);
}

static void write_row(sp_buffer *out, const sp_functions *functions, uint32_t string,
                      const char *unit, const sp_terminal *terminal)
{
    double self = functions->self[string].value, total = functions->total[string].value;
    char self_value[SP_VALUE_LENGTH], total_value[SP_VALUE_LENGTH];
    sp_format_value(self_value, (uint64_t)self, unit);
    sp_format_value(total_value, (uint64_t)total, unit);
    write_share(out, functions, &functions->self[string]);
    sp_buffer_printf(out, "%11s  ", self_value);
    write_share(out, functions, &functions->total[string]);
    sp_buffer_printf(out, "%11s  ", total_value);
    sp_buffer name = SP_BUFFER_INIT(1 << 20);
    unsigned room =
        terminal->columns > NUMBER_COLUMNS + 24 ? terminal->columns - NUMBER_COLUMNS : 24;
    if (sp_escape_terminal(&name, sp_model_text(functions->model, string)))
        sp_text_fit(out, (const char *)name.data, sp_terminal_name_columns(terminal, room),
                    terminal->utf8 ? "…" : "~");
    sp_buffer_deinit(&name);
    sp_buffer_add_char(out, '\n');
}

static void write_rows(sp_buffer *out, const sp_functions *functions, uint32_t *order,
                       const sp_selection *selection, double min_percent,
                       const sp_terminal *terminal)
{
    const char *unit = selection->model->types[selection->type].unit;
    double minimum = functions->all.value * min_percent / 100;
    uint32_t count = 0, shown = 0;
    for (uint32_t i = 0; i < functions->model->strings.count; i++)
        if (functions->self[i].value > 0)
            order[count++] = i;
    sorted_functions = functions;
    qsort(order, count, sizeof *order, compare_functions);
    while (shown < count && shown < ROWS && functions->self[order[shown]].value >= minimum)
        write_row(out, functions, order[shown++], unit, terminal);
    if (shown < count)
        sp_buffer_printf(out, "(%u smaller)\n", count - shown);
}

bool sp_flame_table(sp_buffer *out, const sp_selection *selection, const sp_flame_options *options,
                    const sp_terminal *terminal)
{
    sp_functions functions;
    bool done = sp_functions_sum(&functions, selection, false);
    uint32_t *order = malloc((selection->model->strings.count + (size_t)1) * sizeof *order);
    if (done && order) {
        sp_flame_text_legend(out, selection, options, terminal);
        sp_buffer_printf(out, "\n%6s  %7s  %11s  %6s  %7s  %11s  %s\n", "self", "95 %", "", "total",
                         "95 %", "", "function");
        write_rows(out, &functions, order, selection, options->min_percent, terminal);
    }
    done = done && order && !out->failed;
    free(order);
    sp_functions_deinit(&functions);
    return done;
}
