/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol/elf_file.h"

#include <elfutils/libdwelf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "core/regular_file.h"
#include "symbol/elf_check.h"

/* Map the whole file, or read it where it cannot be mapped. FD may be closed after that. */
static Elf *map(int fd)
{
    elf_version(EV_CURRENT);
    Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
    if (elf && elf_cntl(elf, ELF_C_FDREAD) == 0)
        return elf;
    elf_end(elf);
    return NULL;
}

sp_elf_file sp_elf_file_open(const char *path)
{
    struct stat status;
    sp_elf_file file = SP_ELF_FILE_NONE;
    int fd = sp_regular_file_open(path, O_RDONLY, &status);
    if (fd < 0) {
        file.error = errno;
        return file;
    }
    sp_file_mark_init(&file.mark, path, fd);
    file.elf = map(fd);
    close(fd);
    const char *problem = sp_elf_problem(file.elf, (uint64_t)status.st_size);
    if (problem)
        sp_elf_file_close(&file);
    file.problem = problem;
    return file;
}

void sp_elf_file_close(sp_elf_file *file)
{
    elf_end(file->elf);
    sp_file_mark_deinit(&file->mark);
    *file = SP_ELF_FILE_NONE;
}

Elf *sp_elf_file_take(sp_elf_file *file, sp_file_mark *mark)
{
    Elf *elf = file->elf;
    *mark = file->mark;
    *file = SP_ELF_FILE_NONE;
    return elf;
}

bool sp_elf_has_build_id(Elf *elf, const void *id, size_t length)
{
    const void *found;
    return dwelf_elf_gnu_build_id(elf, &found) == (ssize_t)length && memcmp(id, found, length) == 0;
}

Elf_Scn *sp_elf_find_section(Elf *elf, const char *name, GElf_Shdr *header)
{
    size_t names;
    if (elf_getshdrstrndx(elf, &names) != 0)
        return NULL;
    for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));) {
        const char *found =
            gelf_getshdr(section, header) ? elf_strptr(elf, names, header->sh_name) : NULL;
        if (found && strcmp(found, name) == 0)
            return section;
    }
    return NULL;
}

bool sp_elf_has_data_at(Elf *elf, uint64_t address)
{
    size_t count;
    if (elf_getphdrnum(elf, &count) != 0)
        return false;
    for (size_t i = 0; i < count; i++) {
        GElf_Phdr segment;
        if (gelf_getphdr(elf, (int)i, &segment) && segment.p_type == PT_LOAD &&
            (segment.p_flags & PF_W) && address - segment.p_vaddr < segment.p_memsz)
            return true;
    }
    return false;
}

uint64_t sp_elf_inflated_bytes(Elf *elf)
{
    uint64_t sum = 0;
    for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));) {
        GElf_Shdr header;
        GElf_Chdr compression;
        if (gelf_getshdr(section, &header) && (header.sh_flags & SHF_COMPRESSED) &&
            gelf_getchdr(section, &compression))
            sum += sp_min_u64(compression.ch_size,
                              UINT32_MAX); /* a forged size must not wrap the sum */
    }
    return sum;
}
