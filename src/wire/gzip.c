/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/gzip.h"

#include <stdlib.h>

/* With level 6 our requests are 3 to 4 % smaller than with level 1, but take twice the CPU time,
 * which the application lacks then (docs/design/export.md). */
enum { GZIP_LEVEL = 1, GZIP_WINDOW = 15 + 16 /* a gzip header */, GZIP_MEMORY = 8 };

static bool make_ready(sp_gzip *gzip)
{
    if (gzip->ready)
        return deflateReset(&gzip->stream) == Z_OK;
    gzip->ready = deflateInit2(&gzip->stream, GZIP_LEVEL, Z_DEFLATED, GZIP_WINDOW, GZIP_MEMORY,
                               Z_DEFAULT_STRATEGY) == Z_OK;
    return gzip->ready;
}

bool sp_gzip_body(sp_gzip *gzip, sp_buffer *body)
{
    if (body->length > UINT32_MAX || !make_ready(gzip))
        return false;
    uLong bound = deflateBound(&gzip->stream, body->length);
    sp_buffer out = SP_BUFFER_INIT(bound);
    z_stream *stream = &gzip->stream;
    stream->next_out = sp_buffer_reserve(&out, bound);
    stream->avail_out = (uInt)bound;
    stream->next_in = body->data;
    stream->avail_in = (uInt)body->length;
    if (!stream->next_out || deflate(stream, Z_FINISH) != Z_STREAM_END) {
        sp_buffer_deinit(&out);
        return false;
    }
    out.length = bound - stream->avail_out;
    /* A request that waits in the queue should not keep the memory of its unpacked size. */
    uint8_t *smaller = realloc(out.data, out.length + 1);
    if (smaller) {
        out.data = smaller;
        out.capacity = out.length + 1;
    }
    sp_buffer_deinit(body);
    *body = out;
    return true;
}

void sp_gzip_deinit(sp_gzip *gzip)
{
    if (gzip->ready)
        deflateEnd(&gzip->stream);
    gzip->ready = false;
}

bool sp_gunzip(sp_buffer *out, const void *data, size_t length)
{
    enum { STEP_BYTES = 4096 };
    z_stream stream = {.next_in = (Bytef *)(uintptr_t)data, .avail_in = (uInt)length};
    int status = Z_OK;
    if (length > UINT32_MAX || inflateInit2(&stream, GZIP_WINDOW) != Z_OK)
        return false;
    while (status == Z_OK) {
        stream.next_out = sp_buffer_reserve(out, STEP_BYTES);
        stream.avail_out = STEP_BYTES;
        status = stream.next_out ? inflate(&stream, Z_NO_FLUSH) : Z_MEM_ERROR;
        out->length += stream.next_out ? STEP_BYTES - stream.avail_out : 0;
    }
    inflateEnd(&stream);
    return status == Z_STREAM_END;
}
