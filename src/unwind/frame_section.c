/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes are copied from memory and compared with the whole section of the file. So the table is
 * right even if the check of the file was wrong, and a section that the loader has relocated is not
 * used. */
#include "unwind/frame_section.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/regular_file.h"
#include "unwind/file_bytes.h"
#include "unwind/loader_snapshot.h"
#include "unwind/module_file.h"

#define SECTIONS_MAX 65536 /* a loadable file has some dozens */

/* The header of section 0 has the numbers that do not fit into the ELF header. */
static bool read_counts(int fd, const ElfW(Ehdr) * header, uint64_t *count, uint64_t *names)
{
    ElfW(Shdr) first;
    if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_shoff == 0 ||
        header->e_shentsize != sizeof first ||
        !sp_file_read(fd, header->e_shoff, &first, sizeof first))
        return false;
    *count = header->e_shnum ? header->e_shnum : first.sh_size;
    *names = header->e_shstrndx == SHN_XINDEX ? first.sh_link : header->e_shstrndx;
    return *count > 0 && *count <= SECTIONS_MAX && *names < *count;
}

static bool is_frame_section(int fd, const ElfW(Shdr) * section, const ElfW(Shdr) * names)
{
    static const char wanted[] = ".eh_frame";
    if (!(section->sh_flags & SHF_ALLOC) || (section->sh_flags & SHF_COMPRESSED) ||
        section->sh_type == SHT_NOBITS || names->sh_size < sizeof wanted ||
        section->sh_name > names->sh_size - sizeof wanted ||
        names->sh_offset > INT64_MAX - names->sh_size)
        return false;
    return sp_file_equals(fd, names->sh_offset + section->sh_name, wanted, sizeof wanted);
}

static bool find_among(int fd, const ElfW(Shdr) * sections, uint64_t count, uint64_t names,
                       sp_frame_section *out)
{
    for (uint64_t i = 1; i < count; i++) {
        const ElfW(Shdr) *section = &sections[i];
        if (!is_frame_section(fd, section, &sections[names]))
            continue;
        *out = (sp_frame_section){section->sh_addr, section->sh_offset, section->sh_size};
        return section->sh_size > 0 && section->sh_size <= SP_FRAME_SECTION_MAX;
    }
    return false;
}

bool sp_frame_section_find(int fd, sp_frame_section *out)
{
    ElfW(Ehdr) header;
    uint64_t count, names;
    if (!sp_file_read(fd, 0, &header, sizeof header) || !read_counts(fd, &header, &count, &names))
        return false;
    ElfW(Shdr) *sections = malloc(count * sizeof *sections);
    bool found = sections && sp_file_read(fd, header.e_shoff, sections, count * sizeof *sections) &&
                 find_among(fd, sections, count, names, out);
    free(sections);
    return found;
}

static bool copy_section(int fd, sp_module_image *image, const sp_frame_section *section)
{
    uint64_t address = image->bias + section->address;
    uint8_t *copy = malloc(section->length);
    if (!copy || !sp_loader_copy(image, address, section->length, copy) ||
        !sp_file_equals(fd, section->offset, copy, section->length)) {
        free(copy);
        return false;
    }
    image->section_copy = copy;
    image->section = (sp_cfi_section){.data = copy,
                                      .length = section->length,
                                      .address = address,
                                      .module_start = image->start,
                                      .module_end = image->end,
                                      .is_exact = true};
    return true;
}

static bool add_from(const char *path, sp_module_image *image)
{
    sp_frame_section section;
    int fd = sp_regular_file_open(path, O_RDONLY, NULL);
    if (fd < 0)
        return false;
    bool is_added = sp_module_file_matches(fd, image) && sp_frame_section_find(fd, &section) &&
                    copy_section(fd, image, &section);
    close(fd);
    return is_added;
}

void sp_frame_section_add(sp_module_image *image)
{
    if (!add_from(image->path, image) && !image->loader_name[0])
        add_from("/proc/self/exe", image);
}
