/* SPDX-License-Identifier: Apache-2.0 */
/* Where answers go, and how numbers read in them. */
#ifndef SP_TOOL_TEXT_OUTPUT_H
#define SP_TOOL_TEXT_OUTPUT_H

#include <stdbool.h>
#include <jansson.h>

#include "core/buffer.h"

/* An answer may be as large as what it was made from. */
#define SP_OUTPUT_MAX_BYTES ((size_t)4 << 30)

/* What is known of the place where text goes. Not a terminal: 100 columns (or COLUMNS), no colours.
 */
typedef struct sp_terminal {
    unsigned columns;
    bool has_width; /* it is a terminal, or COLUMNS is given; else lines may as well be longer */
    bool is_terminal;
    bool color;
    bool utf8; /* the locale's encoding */
} sp_terminal;

/* Of standard output; of a file when TO_FILE. */
sp_terminal sp_terminal_get(bool to_file);

/* Write OUT to PATH, or to standard output when PATH is NULL or "-", and empty it. Returns
 * SP_TOOL_DONE, or SP_TOOL_WRONG having said why. */
int sp_output_write(sp_buffer *out, const char *path);
/* The same for one JSON object and a newline. Takes JSON, which may be NULL (memory was short). */
int sp_output_write_json(json_t *json, const char *path);

/* *FORMAT becomes the format that was ASKED for, or (NULL) that which the end of the file PATH (may
 * be NULL) names; "text" where it has none. SP_TOOL_WRONG, having said in the name of COMMAND that
 * the end is none of ENDS. */
int sp_output_format_find(const char *command, const char *asked, const char *path,
                          const char *ends, const char **format);

/* NS for people: three digits and a unit ("1.23 ms"). */
#define SP_DURATION_LENGTH 32
void sp_format_duration(char out[SP_DURATION_LENGTH], uint64_t ns);
/* VALUE in UNIT: a duration for nanoseconds, KiB and so on for bytes, else the number with the
 * unit. */
#define SP_VALUE_LENGTH 64
void sp_format_value(char out[SP_VALUE_LENGTH], uint64_t value, const char *unit);

#endif
