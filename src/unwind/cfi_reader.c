/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/cfi_reader.h"

static bool has(sp_cfi_reader *reader, uint64_t bytes)
{
    if (!reader->failed && bytes <= reader->length - reader->position)
        return true;
    reader->failed = true;
    return false;
}

uint64_t sp_cfi_read_unsigned(sp_cfi_reader *reader, unsigned bytes)
{
    if (!has(reader, bytes))
        return 0;
    uint64_t value = 0;
    for (unsigned i = 0; i < bytes; i++)
        value |= (uint64_t)reader->data[reader->position + i] << (8 * i);
    reader->position += bytes;
    return value;
}

int64_t sp_cfi_read_signed(sp_cfi_reader *reader, unsigned bytes)
{
    unsigned unused_bits = 64 - 8 * bytes;
    return (int64_t)(sp_cfi_read_unsigned(reader, bytes) << unused_bits) >> unused_bits;
}

/* Read a LEB128 number, and set *SHIFT to the number of its bits. Bits above 64 are dropped,
 * because no valid number has them. */
static uint64_t read_leb(sp_cfi_reader *reader, unsigned *shift)
{
    uint64_t value = 0;
    *shift = 0;
    while (has(reader, 1)) {
        uint8_t byte = reader->data[reader->position++];
        if (*shift < 64)
            value |= (uint64_t)(byte & 0x7f) << *shift;
        *shift += 7;
        if (!(byte & 0x80))
            return value;
        if (*shift > 140) /* so many continuation bytes are not a number */
            reader->failed = true;
    }
    return 0;
}

uint64_t sp_cfi_read_uleb(sp_cfi_reader *reader)
{
    unsigned shift;
    return read_leb(reader, &shift);
}

int64_t sp_cfi_read_sleb(sp_cfi_reader *reader)
{
    unsigned shift;
    uint64_t value = read_leb(reader, &shift);
    if (shift > 0 && shift < 64 && value >> (shift - 1) & 1)
        value |= UINT64_MAX << shift;
    return (int64_t)value;
}

void sp_cfi_skip(sp_cfi_reader *reader, uint64_t bytes)
{
    if (has(reader, bytes))
        reader->position += bytes;
}

static uint64_t read_format(sp_cfi_reader *reader, unsigned format)
{
    switch (format) {
    case SP_PE_ABSOLUTE:
    case SP_PE_UDATA8:
    case SP_PE_SDATA8:
        return sp_cfi_read_unsigned(reader, 8);
    case SP_PE_ULEB128:
        return sp_cfi_read_uleb(reader);
    case SP_PE_UDATA2:
        return sp_cfi_read_unsigned(reader, 2);
    case SP_PE_UDATA4:
        return sp_cfi_read_unsigned(reader, 4);
    case SP_PE_SLEB128:
        return (uint64_t)sp_cfi_read_sleb(reader);
    case SP_PE_SDATA2:
        return (uint64_t)sp_cfi_read_signed(reader, 2);
    case SP_PE_SDATA4:
        return (uint64_t)sp_cfi_read_signed(reader, 4);
    default:
        reader->failed = true;
        return 0;
    }
}

uint64_t sp_cfi_read_pointer(sp_cfi_reader *reader, unsigned encoding, uint64_t header_address)
{
    uint64_t itself = reader->address + reader->position;
    uint64_t value = read_format(reader, encoding & SP_PE_FORMAT);
    switch (encoding & SP_PE_RELATIVE) {
    case 0:
        return value;
    case SP_PE_TO_ITSELF:
        return itself + value;
    case SP_PE_TO_HEADER:
        return header_address + value;
    default:
        reader->failed = true;
        return 0;
    }
}
