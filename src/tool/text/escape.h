/* SPDX-License-Identifier: Apache-2.0 */
/* Names come from programs and requests, so any client may choose them: they are made harmless
 * where they are shown. */
#ifndef SP_TOOL_TEXT_ESCAPE_H
#define SP_TOOL_TEXT_ESCAPE_H

#include <stdbool.h>

#include "core/buffer.h"

/* Append TEXT for a terminal: control characters, and what reorders text or breaks lines in
 * Unicode, as \xNN or \u{NNNN}; bytes that are not UTF-8 as \xNN. */
bool sp_escape_terminal(sp_buffer *out, const char *text);
/* Append TEXT as HTML text or as the value of a quoted attribute. */
bool sp_escape_html(sp_buffer *out, const char *text);
/* Append JSON (LENGTH bytes) so that it may stand in a script element: no <, >, & and no line
 * separators of JavaScript. */
bool sp_escape_script_json(sp_buffer *out, const char *json, size_t length);

/* How many columns TEXT, already escaped for a terminal, takes. */
unsigned sp_text_columns(const char *text);
/* Append at most COLUMNS columns of TEXT; a cut is shown by ELLIPSIS (one column). */
bool sp_text_fit(sp_buffer *out, const char *text, unsigned columns, const char *ellipsis);

/* Append all of TEXT in lines of at most COLUMNS columns, as far as its words allow. */
void sp_text_wrap(sp_buffer *out, const char *text, unsigned columns);

#endif
