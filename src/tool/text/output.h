/* SPDX-License-Identifier: Apache-2.0 */
/* Writes answers, and formats the numbers in them. */
#ifndef SP_TOOL_TEXT_OUTPUT_H
#define SP_TOOL_TEXT_OUTPUT_H

#include <limits.h>
#include <stdbool.h>
#include <jansson.h>

#include "core/buffer.h"

/* The limit is high, because an answer may be as large as its input. */
#define SP_OUTPUT_MAX_BYTES ((size_t)4 << 30)

/* What is known about the place that text is written to. If it is not a terminal, it has 100
 * columns (or COLUMNS) and no colours. */
typedef struct sp_terminal {
    unsigned columns;
    /* it is a terminal, or COLUMNS is set; false: lines may be longer than `columns` */
    bool has_width;
    bool is_terminal;
    bool color;
    bool utf8; /* the encoding of the locale is UTF-8 */
} sp_terminal;

/* The properties of standard output, or with TO_FILE of a file. */
sp_terminal sp_terminal_get(bool to_file);
/* How long a name at the end of a line may be: COLUMNS, what is left of the line; or of any length,
 * where lines may be longer. */
static inline unsigned sp_terminal_name_columns(const sp_terminal *terminal, unsigned columns)
{
    return terminal->has_width ? columns : UINT_MAX;
}

/* Write OUT to PATH, or to standard output when PATH is NULL or "-", and free its contents. Returns
 * SP_TOOL_DONE, or SP_TOOL_WRONG after a message. */
int sp_output_write(sp_buffer *out, const char *path);
/* Write one JSON object and a newline in the same way. Takes ownership of JSON, which may be NULL:
 * then memory was short. */
int sp_output_write_json(json_t *json, const char *path);

/* Find the format of an answer: ASKED, or if NULL the format for the extension of the file PATH
 * (may be NULL), or "text" if there is no extension. Returns SP_TOOL_DONE, or SP_TOOL_WRONG after a
 * message of COMMAND that the extension is not one of ENDS. */
int sp_output_format_find(const char *command, const char *asked, const char *path,
                          const char *ends, const char **format);

/* Format NS for people: three digits and a unit ("1.23 ms"). */
#define SP_DURATION_LENGTH 32
void sp_format_duration(char out[SP_DURATION_LENGTH], uint64_t ns);
/* Format VALUE in UNIT: nanoseconds as a duration, bytes in KiB and so on, and other units as the
 * number and the unit. */
#define SP_VALUE_LENGTH 64
void sp_format_value(char out[SP_VALUE_LENGTH], uint64_t value, const char *unit);

#endif
