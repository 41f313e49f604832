/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces the huge numbers of a JSON text: integers that do not fit into 64 bits, and other
 * numbers that do not fit into a double. simdjson refuses a text with such a number. */
#ifndef SP_TOOL_READ_JSON_NUMBERS_H
#define SP_TOOL_READ_JSON_NUMBERS_H

#include <stddef.h>

#include "core/buffer.h"

/* Append TEXT to OUT, with [[]], a value that no field of a message accepts, in place of each huge
 * number. Returns how many numbers were replaced. */
size_t sp_json_replace_huge(sp_buffer *out, const char *text, size_t length);

#endif
