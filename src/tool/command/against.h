/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_TOOL_COMMAND_AGAINST_H
#define SP_TOOL_COMMAND_AGAINST_H

#include "tool/draw/flame.h"

/* Compare SLOW, which the options of SHOWN with a percentile selected, with the other spans that
 * match, and write the answer in FORMAT, one of the formats of `spanprof diff`. Returns an exit
 * code. */
int sp_flame_against(const sp_selection *slow, const sp_flame_options *shown, const char *format);

#endif
