/* SPDX-License-Identifier: Apache-2.0 */
/* Base64 as RFC 4648 defines it, with padding. Threads: any. */
#ifndef SP_CORE_BASE64_H
#define SP_CORE_BASE64_H

#include "core/buffer.h"

/* Append COUNT bytes in base64 to OUT. */
void sp_base64_add(sp_buffer *out, const uint8_t *bytes, size_t count);

#endif
