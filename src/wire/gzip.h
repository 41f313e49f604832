/* SPDX-License-Identifier: Apache-2.0 */
/* Compresses requests and pprof with gzip, and unpacks answers. */
#ifndef SP_WIRE_GZIP_H
#define SP_WIRE_GZIP_H

#include <zlib.h>

#include "core/buffer.h"

/* One stream, used again for each body. Zero-initialised is unused.  Threads: one at a time. */
typedef struct sp_gzip {
    z_stream stream;
    bool ready;
} sp_gzip;

/* Replace BODY by its gzip form. False, and BODY as it was, when memory is short. */
bool sp_gzip_body(sp_gzip *gzip, sp_buffer *body);
/* Unpack the LENGTH bytes of gzip at DATA and append the result to OUT. False when they are no
 * gzip, OUT's maximum is reached, or memory is short. Any thread. */
bool sp_gunzip(sp_buffer *out, const void *data, size_t length);
void sp_gzip_deinit(sp_gzip *gzip);

#endif
