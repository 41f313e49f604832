/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/module_image.h"

#include <elf.h>
#include <string.h>

#include "unwind/cfi_reader.h"

#define PAGE_BYTES UINT64_C(4096)

uint64_t sp_image_readable_from(const struct dl_phdr_info *info, uint64_t address)
{
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        uint64_t offset = address - (info->dlpi_addr + segment->p_vaddr);
        if (segment->p_type == PT_LOAD && (segment->p_flags & PF_R) && offset < segment->p_filesz)
            return segment->p_filesz - offset;
    }
    return 0;
}

void sp_image_find_range(const struct dl_phdr_info *info, sp_module_image *image)
{
    image->bias = info->dlpi_addr;
    image->start = UINT64_MAX;
    bool has_code = false;
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type != PT_LOAD)
            continue;
        uint64_t begin = info->dlpi_addr + segment->p_vaddr;
        image->start = sp_min_u64(image->start, begin & ~(PAGE_BYTES - 1));
        image->end =
            sp_max_u64(image->end, (begin + segment->p_memsz + PAGE_BYTES - 1) & ~(PAGE_BYTES - 1));
        if ((segment->p_flags & PF_X) && !has_code) {
            image->file_offset = segment->p_offset;
            has_code = true;
        }
    }
}

/* A note has the sizes of name and content, a type, then name and content, padded to ALIGNMENT. */
void sp_image_take_build_id(const uint8_t *data, uint64_t length, uint64_t alignment,
                            sp_module_image *image)
{
    const uint8_t *begin = data;
    if (alignment != 8)
        alignment = 4;
    ElfW(Nhdr) note;
    while (length >= sizeof note) {
        memcpy(&note, data, sizeof note);
        uint64_t content = (sizeof note + note.n_namesz + alignment - 1) & ~(alignment - 1);
        uint64_t next = (content + note.n_descsz + alignment - 1) & ~(alignment - 1);
        if (content + note.n_descsz > length)
            return;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
            note.n_descsz <= SP_BUILD_ID_MAX && memcmp(data + sizeof note, "GNU", 4) == 0) {
            memcpy(image->build_id, data + content, note.n_descsz);
            image->build_id_length = note.n_descsz;
            image->build_id_offset = (uint64_t)(data - begin) + content;
            return;
        }
        if (next >= length)
            return;
        data += next;
        length -= next;
    }
}

bool sp_image_read_frame_header(const uint8_t *data, uint64_t length, uint64_t address,
                                sp_cfi_section *out)
{
    sp_cfi_reader reader = {.data = data, .length = length, .address = address};
    uint64_t version = sp_cfi_read_unsigned(&reader, 1);
    unsigned frame_encoding = (unsigned)sp_cfi_read_unsigned(&reader, 1);
    unsigned count_encoding = (unsigned)sp_cfi_read_unsigned(&reader, 1);
    sp_cfi_read_unsigned(&reader, 1);
    uint64_t begin = sp_cfi_read_pointer(&reader, frame_encoding, address);
    if (reader.failed || version != 1 || (frame_encoding & SP_PE_INDIRECT))
        return false;
    uint64_t count = sp_cfi_read_pointer(&reader, count_encoding, address);
    bool is_counted = !reader.failed && count_encoding == SP_PE_UDATA4;
    *out = (sp_cfi_section){
        .address = begin, .header_address = address, .fde_limit = is_counted ? count : 0};
    return true;
}

uint64_t sp_image_section_length(const struct dl_phdr_info *info, const sp_cfi_section *section)
{
    uint64_t length = sp_image_readable_from(info, section->address);
    if (section->header_address <= section->address)
        return length;
    return sp_min_u64(length, section->header_address - section->address);
}
