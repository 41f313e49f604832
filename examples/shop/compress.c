/* SPDX-License-Identifier: Apache-2.0 */
#include "compress.h"

#include <stdlib.h>
#include <zlib.h>

enum { GZIP_WINDOW = 15 + 16 }; /* the largest window (15); 16 more means gzip instead of zlib */

static bool deflate_all(z_stream *stream, const page *from, page *to)
{
    to->capacity = deflateBound(stream, from->length);
    to->text = malloc(to->capacity);
    if (!to->text)
        return false;
    stream->next_in = (Bytef *)from->text;
    stream->avail_in = (uInt)from->length;
    stream->next_out = (Bytef *)to->text;
    stream->avail_out = (uInt)to->capacity;
    int result = deflate(stream, Z_FINISH);
    to->length = stream->total_out;
    return result == Z_STREAM_END;
}

bool compress_page(page *page)
{
    z_stream stream = {0};
    struct page packed = {0};
    if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        return false;
    bool done = deflate_all(&stream, page, &packed);
    deflateEnd(&stream);
    if (!done) {
        page_deinit(&packed);
        return false;
    }
    page_deinit(page);
    *page = packed;
    return true;
}
