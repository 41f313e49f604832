/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the position of a value in a JSON text. Error messages name the position, but simdjson's
 * values do not have it. Threads: any. */
#ifndef SP_TOOL_READ_JSON_LOCATE_H
#define SP_TOOL_READ_JSON_LOCATE_H

#include <stdbool.h>
#include <stddef.h>

/* One step from a value to a value within it. */
typedef struct sp_json_step {
    const char *key; /* into an object; NULL: to element INDEX of an array */
    size_t index;
} sp_json_step;

/* The position of a value in TEXT, LENGTH bytes of valid JSON. PATH leads to the value in COUNT
 * steps from the outermost value. If a step is not found, such as a key that is written with
 * escapes, the result is the position of the value where this step begins. */
size_t sp_json_locate(const char *text, size_t length, const sp_json_step *path, size_t count);
/* The line of byte POSITION of TEXT, counted from 1. */
size_t sp_json_line(const char *text, size_t position);
/* Write PATH, such as "resourceSpans[0].schemaUrl: ", to OUT, which has SIZE (at least 16) bytes. A
 * longer path is cut and ends in "...: ". When COUNT is 0, the text is empty. Returns the length of
 * the text without the NUL. */
size_t sp_json_path_print(char *out, size_t size, const sp_json_step *path, size_t count);

#endif
