/* SPDX-License-Identifier: Apache-2.0 */
/* Where in a JSON text a value stands. simdjson's values do not have their position, and error
 * messages name it. Threads: any. */
#ifndef SP_TOOL_READ_JSON_LOCATE_H
#define SP_TOOL_READ_JSON_LOCATE_H

#include <stdbool.h>
#include <stddef.h>

/* One step from a value to a value within it. */
typedef struct sp_json_step {
    const char *key; /* of an object; NULL: element INDEX of an array */
    size_t index;
} sp_json_step;

/* The position of the value that PATH (COUNT steps from the outermost value) leads to in TEXT,
 * LENGTH bytes of valid JSON. A step that is not found, such as a key that is written with escapes,
 * gives the position of the value around it. */
size_t sp_json_locate(const char *text, size_t length, const sp_json_step *path, size_t count);
/* The line, counted from 1, of byte POSITION of TEXT. */
size_t sp_json_line(const char *text, size_t position);
/* PATH, followed by a colon and a space, as "resourceSpans[0].schemaUrl: ", in OUT, which has SIZE
 * (at least 16) bytes. A longer path is cut, and ends in "...". Nothing when COUNT is 0. Returns
 * the bytes written without the NUL. */
size_t sp_json_path_print(char *out, size_t size, const sp_json_step *path, size_t count);

#endif
