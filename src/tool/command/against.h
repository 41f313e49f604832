/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_TOOL_COMMAND_AGAINST_H
#define SP_TOOL_COMMAND_AGAINST_H

#include "tool/model/select.h"

/* Compare SLOW, selected by OPTIONS with a percentile, with the other spans that match, and write
 * that to OUT in FORMAT, one of `spanprof diff`. An exit code. */
int sp_flame_against(const sp_selection *slow, const sp_select_options *options, const char *out,
                     const char *format);

#endif
