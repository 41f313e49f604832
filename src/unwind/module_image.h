/* SPDX-License-Identifier: Apache-2.0 */
/* Interprets the program headers of a loaded module, in this process or in another one. It reads
 * only memory that the caller passes. Threads: any. Signals: not safe. */
#ifndef SP_UNWIND_MODULE_IMAGE_H
#define SP_UNWIND_MODULE_IMAGE_H

#include <link.h>

#include "unwind/cfi_section.h"
#include "unwind/module.h"

/* One module. `known` is set when it is the very module that an earlier generation has; then names,
 * headers and section are not. */
typedef struct sp_module_image {
    uint64_t start, end, bias, file_offset;
    sp_module *known;
    const char *loader_name; /* "": the main program; "[vdso]"; in the snapshot's bytes */
    char *path;              /* of the file, see sp_module_file_find; owned */
    sp_module_origin origin;
    const uint8_t *headers; /* its program headers; in the snapshot's bytes */
    size_t headers_bytes;
    sp_cfi_section section;   /* length 0: no frame information; data in the snapshot's bytes */
    uint8_t *section_copy;    /* owned: section.data, if the file's section headers named it */
    uint64_t build_id_offset; /* of the build id in the file */
    uint32_t build_id_length;
    uint8_t build_id[SP_BUILD_ID_MAX];
} sp_module_image;

/* Set IMAGE's start, end, bias and file_offset. start >= end: it has no segments. */
void sp_image_find_range(const struct dl_phdr_info *info, sp_module_image *image);
/* The bytes from ADDRESS to the end of the readable segment that holds it, as far as the file fills
 * it. 0: none does. */
uint64_t sp_image_readable_from(const struct dl_phdr_info *info, uint64_t address);
/* Set IMAGE's build id, if the notes at DATA have one, and how far from DATA it is. */
void sp_image_take_build_id(const uint8_t *data, uint64_t length, uint64_t alignment,
                            sp_module_image *image);
/* What .eh_frame_hdr, of which LENGTH bytes that were at ADDRESS are at DATA, says of .eh_frame:
 * address and number of functions. False: nothing of use. */
bool sp_image_read_frame_header(const uint8_t *data, uint64_t length, uint64_t address,
                                sp_cfi_section *out);

#endif
