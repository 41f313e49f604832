/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of a JSON text that fit into no 64 bits and no double. */
#ifndef SP_TOOL_READ_JSON_NUMBERS_H
#define SP_TOOL_READ_JSON_NUMBERS_H

#include <stddef.h>

#include "core/buffer.h"

/* Append TEXT to OUT with [[]] for each such number, which no field of a message takes. Returns how
 * many there were. */
size_t sp_json_replace_huge(sp_buffer *out, const char *text, size_t length);

#endif
