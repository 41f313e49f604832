/* SPDX-License-Identifier: Apache-2.0 */
/* Base64 as RFC 4648 defines it. Threads: any. */
#ifndef SP_CORE_BASE64_H
#define SP_CORE_BASE64_H

#include "core/buffer.h"

/* Append COUNT bytes in base64, with padding, to OUT. */
void sp_base64_add(sp_buffer *out, const uint8_t *bytes, size_t count);
/* Decode LENGTH characters of TEXT, in either alphabet, with or without padding, into OUT, which
 * has room for 3 bytes for each 4 of them. Sets *COUNT to the number of bytes. False when TEXT is
 * not base64. */
bool sp_base64_decode(uint8_t *out, size_t *count, const char *text, size_t length);

#endif
