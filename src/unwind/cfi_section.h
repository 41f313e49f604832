/* SPDX-License-Identifier: Apache-2.0 */
/* Where a module's frame information is. */
#ifndef SP_UNWIND_CFI_SECTION_H
#define SP_UNWIND_CFI_SECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A copy of frame information, as the loader mapped it at run time. */
typedef struct sp_cfi_section {
    const uint8_t *data; /* .eh_frame and perhaps more: a terminator or fde_limit ends it */
    size_t length;
    uint64_t address;        /* where data[0] was */
    uint64_t header_address; /* of .eh_frame_hdr, which some encodings are relative to */
    uint64_t module_start;   /* functions outside [module_start, module_end) are ignored */
    uint64_t module_end;
    uint64_t fde_limit; /* number of functions that the header promises; 0: not known */
    bool is_exact;      /* data is exactly .eh_frame: a terminator inside does not end it */
} sp_cfi_section;

#endif
