/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol/elf_debugdata.h"

#include <lzma.h>
#include <stdlib.h>

#include "symbol/elf_check.h"

/* DECODER_BYTES limits the decoder's own memory: xz -9 needs 65 MiB. */
enum { FIRST_BYTES = 64 * 1024, DECODER_BYTES = 80 * 1024 * 1024 };

/* Double the room for STREAM's output; false when it would be too much, or memory is short. */
static bool grow(lzma_stream *stream, char **image, size_t *capacity)
{
    size_t used = (size_t)stream->total_out;
    size_t wanted = *capacity ? *capacity * 2 : FIRST_BYTES;
    char *grown = wanted <= SP_DEBUGDATA_MAX ? realloc(*image, wanted) : NULL;
    if (!grown)
        return false;
    *image = grown;
    *capacity = wanted;
    stream->next_out = (uint8_t *)grown + used;
    stream->avail_out = wanted - used;
    return true;
}

/* Inflate into *IMAGE, which the caller frees. Returns the number of bytes; 0 with *PROBLEM set
 * when it fails. */
static size_t inflate(char **image, const void *xz, size_t length, const char **problem)
{
    lzma_stream stream = LZMA_STREAM_INIT;
    size_t capacity = 0, bytes = 0;
    lzma_ret result = lzma_stream_decoder(&stream, DECODER_BYTES, 0);
    stream.next_in = xz;
    stream.avail_in = length;
    *problem = NULL;
    while (result == LZMA_OK && !*problem) {
        if (stream.avail_out == 0 && !grow(&stream, image, &capacity))
            *problem = "its .gnu_debugdata is larger than 64 MiB, or memory is short";
        else
            result = lzma_code(&stream, LZMA_FINISH);
    }
    if (result == LZMA_STREAM_END)
        bytes = (size_t)stream.total_out;
    else if (!*problem)
        *problem = "its .gnu_debugdata is damaged";
    lzma_end(&stream);
    return bytes;
}

const char *sp_elf_debugdata_open(sp_elf_debugdata *debugdata, const void *xz, size_t length)
{
    const char *problem;
    *debugdata = (sp_elf_debugdata){0};
    size_t bytes = inflate(&debugdata->image, xz, length, &problem);
    if (!problem) {
        elf_version(EV_CURRENT);
        debugdata->elf = elf_memory(debugdata->image, bytes);
        if (sp_elf_problem(debugdata->elf, bytes))
            problem = "its .gnu_debugdata holds no ELF image, or a damaged one";
    }
    if (problem)
        sp_elf_debugdata_close(debugdata);
    return problem;
}

void sp_elf_debugdata_close(sp_elf_debugdata *debugdata)
{
    elf_end(debugdata->elf);
    free(debugdata->image);
    *debugdata = (sp_elf_debugdata){0};
}
