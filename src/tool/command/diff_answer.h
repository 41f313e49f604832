/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the answers of `spanprof diff` and `spanprof flame --against` in all their formats. */
#ifndef SP_TOOL_COMMAND_DIFF_ANSWER_H
#define SP_TOOL_COMMAND_DIFF_ANSWER_H

#include "tool/draw/diff.h"

/* Returns SP_TOOL_DONE when FORMAT is text, json, svg or html. Otherwise returns SP_TOOL_WRONG,
 * after a message of COMMAND that there is no such format, or that this build has no page. */
int sp_diff_format_find(const char *command, const char *format);
/* Write ANSWER in FORMAT to the file OUT; NULL: to standard output. Returns an exit code. */
int sp_diff_answer_write(const sp_diff_answer *answer, const char *format, const char *out);

#endif
