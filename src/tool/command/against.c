/* SPDX-License-Identifier: Apache-2.0 */
/* `spanprof flame --against`: what takes longer in the slow spans than in the rest. The answer has
 * the form of `spanprof diff`. */
#include "tool/command/against.h"

#include <stdio.h>

#include "core/counted.h"
#include "tool/command/diff_answer.h"
#include "tool/text/messages.h"

enum { ROWS = 20 };

static int compare(const sp_selection *slow, const sp_selection *rest,
                   const sp_flame_options *shown, const char *format)
{
    char least[SP_DURATION_LENGTH], slow_name[128], rest_name[128];
    sp_format_duration(least, slow->slow.least_ns);
    snprintf(slow_name, sizeof slow_name, "%s, from %s", SP_COUNTED(slow->match_count, "slow span"),
             least);
    snprintf(rest_name, sizeof rest_name, "the rest, %s", SP_COUNTED(rest->match_count, "span"));
    sp_comparison comparison = {0};
    int status = sp_compare(&comparison, rest, slow, SP_BY_SPANS);
    const sp_diff_answer answer = {.a = {.name = rest_name, .selection = rest},
                                   .b = {.name = slow_name, .selection = slow},
                                   .comparison = &comparison,
                                   .limit =
                                       shown->limit == SP_FLAME_NO_LIMIT ? ROWS : shown->limit};
    if (status == SP_TOOL_DONE)
        status = sp_diff_answer_write(&answer, format, shown->out);
    sp_comparison_deinit(&comparison);
    return status;
}

int sp_flame_against(const sp_selection *slow, const sp_flame_options *shown, const char *format)
{
    sp_selection rest = {0};
    sp_select_options others = shown->select;
    others.rest = true;
    int status = sp_select(&rest, slow->model, &others);
    if (status == SP_TOOL_DONE && !sp_selection_subtract(&rest, slow))
        status = sp_tool_no("the spans beside the slow ones have no samples of their own");
    if (status == SP_TOOL_DONE)
        status = compare(slow, &rest, shown, format);
    sp_selection_deinit(&rest);
    return status;
}
