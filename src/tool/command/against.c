/* SPDX-License-Identifier: Apache-2.0 */
/* `spanprof flame --against`: what takes longer in the slow spans than in the rest, told as
 * `spanprof diff` tells it. */
#include "tool/command/against.h"

#include <stdio.h>

#include "core/counted.h"
#include "tool/draw/diff.h"
#include "tool/text/messages.h"

enum { ROWS = 20 };

static int write_answer(const sp_diff_answer *answer, const char *out_path, bool json)
{
    if (json)
        return sp_output_write_json(sp_diff_json(answer), out_path);
    sp_buffer out = SP_BUFFER_INIT(SP_OUTPUT_MAX_BYTES);
    sp_terminal terminal = sp_terminal_get(out_path != NULL);
    sp_diff_text(&out, answer, &terminal);
    return sp_output_write(&out, out_path);
}

static int compare(const sp_selection *slow, const sp_selection *rest, const char *out, bool json)
{
    char least[SP_DURATION_LENGTH], slow_name[128], rest_name[128];
    sp_format_duration(least, slow->slow.least_ns);
    snprintf(slow_name, sizeof slow_name, "%s, from %s", SP_COUNTED(slow->match_count, "slow span"),
             least);
    snprintf(rest_name, sizeof rest_name, "the rest, %s", SP_COUNTED(rest->match_count, "span"));
    sp_comparison comparison = {0};
    int status = sp_compare(&comparison, rest, slow, SP_BY_SPANS);
    const sp_diff_answer answer = {
        .a = {rest_name, rest}, .b = {slow_name, slow}, .comparison = &comparison, .limit = ROWS};
    if (status == SP_TOOL_DONE)
        status = write_answer(&answer, out, json);
    sp_comparison_deinit(&comparison);
    return status;
}

int sp_flame_against(const sp_selection *slow, const sp_select_options *options, const char *out,
                     bool json)
{
    sp_selection rest = {0};
    sp_select_options others = *options;
    others.rest = true;
    int status = sp_select(&rest, slow->model, &others);
    if (status == SP_TOOL_DONE && !sp_selection_subtract(&rest, slow))
        status = sp_tool_no("the spans beside the slow ones have no samples of their own");
    if (status == SP_TOOL_DONE)
        status = compare(slow, &rest, out, json);
    sp_selection_deinit(&rest);
    return status;
}
