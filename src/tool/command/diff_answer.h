/* SPDX-License-Identifier: Apache-2.0 */
/* The answer of `spanprof diff` and of `spanprof flame --against`, in the formats that both have.
 */
#ifndef SP_TOOL_COMMAND_DIFF_ANSWER_H
#define SP_TOOL_COMMAND_DIFF_ANSWER_H

#include "tool/draw/diff.h"

/* SP_TOOL_DONE when FORMAT is text, json, svg or html; else SP_TOOL_WRONG, having said for COMMAND
 * that there is no such format, or that the page was not built. */
int sp_diff_format_find(const char *command, const char *format);
/* Write ANSWER to OUT, which may be NULL. An exit code. */
int sp_diff_answer_write(const sp_diff_answer *answer, const char *format, const char *out);

#endif
