/* SPDX-License-Identifier: Apache-2.0 */
/* The frame information of modules without .eh_frame_hdr. Linkers leave out that index with
 * --no-eh-frame-hdr, and gcc does for -static. Then only the section headers of the file say where
 * .eh_frame lies in memory. Threads: one at a time.  Signals: not safe. */
#ifndef SP_UNWIND_FRAME_SECTION_H
#define SP_UNWIND_FRAME_SECTION_H

#include "unwind/module_image.h"

/* Where .eh_frame is, in the file and in ELF virtual addresses. */
typedef struct sp_frame_section {
    uint64_t address;
    uint64_t offset;
    uint64_t length;
} sp_frame_section;

#define SP_FRAME_SECTION_MAX ((uint64_t)256 << 20) /* bytes; no library has nearly as many */

/* Find .eh_frame by the section headers of the file FD. The file may have any content. False: it
 * has no such section, or is damaged. */
bool sp_frame_section_find(int fd, sp_frame_section *out);

/* Set IMAGE's section by its file, if the file is the loaded one, has the section, and memory has
 * the same bytes. */
void sp_frame_section_add(sp_module_image *image);

#endif
