/* SPDX-License-Identifier: Apache-2.0 */
/* Interprets the program headers of a loaded module, in this process or in another one. It reads
 * only memory that the caller passes. Threads: any. Signals: not safe. */
#ifndef SP_UNWIND_MODULE_IMAGE_H
#define SP_UNWIND_MODULE_IMAGE_H

#include <link.h>

#include "unwind/cfi_section.h"
#include "unwind/module.h"

/* One module. If it is unchanged since an earlier generation, `known` is the module there, and
 * names, headers and section are not set. */
typedef struct sp_module_image {
    uint64_t start, end, bias, file_offset;
    sp_module *known;
    const char *loader_name; /* "": the main program; "[vdso]"; in the snapshot's bytes */
    char *path;              /* of the file, see sp_module_file_find; owned */
    sp_module_origin origin;
    const uint8_t *headers; /* its program headers; in the snapshot's bytes */
    size_t headers_bytes;
    sp_cfi_section section;   /* length 0: no frame information; data in the snapshot's bytes */
    uint8_t *section_copy;    /* owned: section.data, if found by the file's section headers */
    uint64_t build_id_offset; /* of the build id in the file */
    uint32_t build_id_length;
    uint8_t build_id[SP_BUILD_ID_MAX];
} sp_module_image;

/* Set IMAGE's start, end, bias and file_offset. start >= end: it has no segments. */
void sp_image_find_range(const struct dl_phdr_info *info, sp_module_image *image);
/* The bytes from ADDRESS to the end of the readable segment that holds it, as far as the file fills
 * it. 0: there is none. */
uint64_t sp_image_readable_from(const struct dl_phdr_info *info, uint64_t address);
/* If the notes at DATA have a build id, set IMAGE's build id, and build_id_offset counted from
 * DATA. */
void sp_image_take_build_id(const uint8_t *data, uint64_t length, uint64_t alignment,
                            sp_module_image *image);
/* Read .eh_frame_hdr: LENGTH bytes at DATA, which were mapped at ADDRESS. Sets address and number
 * of functions of .eh_frame in OUT. False: it is not usable. */
bool sp_image_read_frame_header(const uint8_t *data, uint64_t length, uint64_t address,
                                sp_cfi_section *out);
/* The bytes of .eh_frame, perhaps with what follows it. Its own end is not known: .eh_frame_hdr
 * ends it where it lies behind (mold and gold do that, and then comes .rodata), else its segment's
 * end. 0: it is not readable. */
uint64_t sp_image_section_length(const struct dl_phdr_info *info, const sp_cfi_section *section);

#endif
