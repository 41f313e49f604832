/* SPDX-License-Identifier: Apache-2.0 */
/* Packs and unpacks, at all levels, for ever. */
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { TEXT_BYTES = 60000, ROOM_BYTES = 80000 };

int main(void)
{
    static unsigned char text[TEXT_BYTES], packed[ROOM_BYTES], unpacked[TEXT_BYTES];
    for (unsigned round = 0;; round++) {
        for (unsigned i = 0; i < TEXT_BYTES; i++)
            text[i] = (unsigned char)("spans and stacks"[(i * i + round) % 16] + (i >> 9) % 7);
        uLongf size = ROOM_BYTES, back = TEXT_BYTES;
        if (compress2(packed, &size, text, TEXT_BYTES, (int)(round % 10)) != Z_OK ||
            uncompress(unpacked, &back, packed, size) != Z_OK ||
            memcmp(text, unpacked, TEXT_BYTES) != 0)
            abort();
        crc32(adler32(1, text, TEXT_BYTES), packed, (uInt)size);
    }
}
