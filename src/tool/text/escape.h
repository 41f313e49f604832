/* SPDX-License-Identifier: Apache-2.0 */
/* Makes names harmless where they are shown. Names come from programs and requests, so any client
 * may choose them. */
#ifndef SP_TOOL_TEXT_ESCAPE_H
#define SP_TOOL_TEXT_ESCAPE_H

#include <stdbool.h>

#include "core/buffer.h"

/* Append TEXT for a terminal. Control characters, and Unicode characters that reorder text or break
 * lines, become \xNN or \u{NNNN}. Bytes that are not UTF-8 become \xNN. */
bool sp_escape_terminal(sp_buffer *out, const char *text);
/* Append TEXT as HTML text or as the value of a quoted attribute. */
bool sp_escape_html(sp_buffer *out, const char *text);
/* Append JSON (LENGTH bytes) in a form that is safe in a script element: without <, >, & and the
 * line separators of JavaScript. */
bool sp_escape_script_json(sp_buffer *out, const char *json, size_t length);

/* The number of columns of TEXT, which is already escaped for a terminal. */
unsigned sp_text_columns(const char *text);
/* Append at most COLUMNS columns of TEXT. If it is cut, ELLIPSIS (one column) is at its end. */
bool sp_text_fit(sp_buffer *out, const char *text, unsigned columns, const char *ellipsis);

/* Append all of TEXT in lines of at most COLUMNS columns. Words are not cut, so a long word makes a
 * longer line. */
void sp_text_wrap(sp_buffer *out, const char *text, unsigned columns);

#endif
