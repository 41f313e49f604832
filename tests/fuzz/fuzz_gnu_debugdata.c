/* SPDX-License-Identifier: Apache-2.0 */
/* .gnu_debugdata: compressed bytes as they stand when the first byte is not 0; else the rest is the
 * image inside, which is packed here, for no mutation survives the checksums. What opens has
 * symbols that end inside the image. */
#include "fuzz/fuzz.h"

#include <lzma.h>

#include "symbol/elf_debugdata.h"
#include "symbol/elf_symbols.h"

static void open_and_read(const uint8_t *xz, size_t length)
{
    sp_elf_debugdata debugdata;
    const char *problem = sp_elf_debugdata_open(&debugdata, xz, length);
    FUZZ_CHECK((problem == NULL) == (debugdata.elf != NULL));
    FUZZ_CHECK((problem == NULL) == (debugdata.image != NULL));
    if (!problem) {
        sp_elf_symbols symbols;
        sp_elf_symbols_init(&symbols, SP_ELF_FUNCTIONS, NULL, debugdata.elf);
        for (size_t i = 0; i < symbols.count; i++) {
            FUZZ_CHECK(strlen(symbols.list[i].name) > 0);
            FUZZ_CHECK(sp_elf_symbols_find(&symbols, symbols.list[i].start));
        }
        sp_elf_symbols_deinit(&symbols);
    }
    sp_elf_debugdata_close(&debugdata);
}

/* A stream with IMAGE stored, not compressed: an encoder would take a hundred times as long. */
static void store_and_read(const uint8_t *image, size_t length)
{
    size_t room = lzma_stream_buffer_bound(length), used = LZMA_STREAM_HEADER_SIZE, index_bytes = 0;
    uint8_t *xz = malloc(room);
    lzma_stream_flags flags = {.check = LZMA_CHECK_NONE};
    lzma_options_lzma options = {.dict_size = LZMA_DICT_SIZE_MIN};
    lzma_filter filters[] = {{.id = LZMA_FILTER_LZMA2, .options = &options},
                             {.id = LZMA_VLI_UNKNOWN}};
    lzma_block block = {.check = LZMA_CHECK_NONE, .filters = filters};
    lzma_index *index = lzma_index_init(NULL);
    FUZZ_CHECK(xz && index && lzma_stream_header_encode(&flags, xz) == LZMA_OK);
    FUZZ_CHECK(lzma_block_uncomp_encode(&block, image, length, xz, &used, room) == LZMA_OK);
    FUZZ_CHECK(lzma_index_append(index, NULL, lzma_block_unpadded_size(&block),
                                 block.uncompressed_size) == LZMA_OK);
    FUZZ_CHECK(lzma_index_buffer_encode(index, xz + used, &index_bytes, room - used) == LZMA_OK);
    used += index_bytes;
    flags.backward_size = lzma_index_size(index);
    FUZZ_CHECK(lzma_stream_footer_encode(&flags, xz + used) == LZMA_OK);
    lzma_index_end(index, NULL);
    open_and_read(xz, used + LZMA_STREAM_HEADER_SIZE);
    free(xz);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
    if (length && data[0])
        open_and_read(data, length);
    else if (length)
        store_and_read(data + 1, length - 1);
    return 0;
}
