/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the encodings of DWARF and of the LSB's exception frames from a bounded array of bytes. A
 * read past the end, or of an unknown encoding, gives 0 and sets `failed`, which stays set. So it
 * is enough to check it once after a group of reads. Threads: one at a time. Signals: not safe. */
#ifndef SP_UNWIND_CFI_READER_H
#define SP_UNWIND_CFI_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* position <= length. */
typedef struct sp_cfi_reader {
    const uint8_t *data;
    size_t length;
    size_t position;
    uint64_t address; /* where data[0] was mapped, for pointers relative to themselves */
    bool failed;
} sp_cfi_reader;

/* Pointer encodings (LSB, "DWARF Exception Header Encoding"): the low four bits are the format; the
 * bits above say what the pointer is relative to. */
#define SP_PE_ABSOLUTE  0x00u
#define SP_PE_ULEB128   0x01u
#define SP_PE_UDATA2    0x02u
#define SP_PE_UDATA4    0x03u
#define SP_PE_UDATA8    0x04u
#define SP_PE_SLEB128   0x09u
#define SP_PE_SDATA2    0x0au
#define SP_PE_SDATA4    0x0bu
#define SP_PE_SDATA8    0x0cu
#define SP_PE_FORMAT    0x0fu
#define SP_PE_RELATIVE  0x70u
#define SP_PE_TO_ITSELF 0x10u
#define SP_PE_TO_HEADER 0x30u
#define SP_PE_INDIRECT  0x80u
#define SP_PE_OMIT      0xffu

/* The unsigned little-endian number of BYTES (1 to 8) bytes. */
uint64_t sp_cfi_read_unsigned(sp_cfi_reader *reader, unsigned bytes);
int64_t sp_cfi_read_signed(sp_cfi_reader *reader, unsigned bytes);
uint64_t sp_cfi_read_uleb(sp_cfi_reader *reader);
int64_t sp_cfi_read_sleb(sp_cfi_reader *reader);
void sp_cfi_skip(sp_cfi_reader *reader, uint64_t bytes);

/* Read a pointer in ENCODING. HEADER_ADDRESS is the base of SP_PE_TO_HEADER. An indirect pointer is
 * read, not followed: the result is the address of the pointer. */
uint64_t sp_cfi_read_pointer(sp_cfi_reader *reader, unsigned encoding, uint64_t header_address);

#endif
