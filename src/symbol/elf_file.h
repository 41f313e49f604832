/* SPDX-License-Identifier: Apache-2.0 */
/* Opens ELF files for reading, and checks first whether they are consistent.  Collector thread
 * only. */
#ifndef SP_SYMBOL_ELF_FILE_H
#define SP_SYMBOL_ELF_FILE_H

#include <gelf.h>

#include "core/compiler.h"
#include "symbol/file_mark.h"

/* Debug information is not read from a file whose sp_elf_inflated_bytes are more than this. */
#define SP_ELF_LARGEST_INFLATED ((uint64_t)100 * 1024 * 1024)

/* elf is NULL when the file could not be opened or used. No descriptor stays open: a host that
 * closes all descriptors it did not open may then get the same number for a file of its own, which
 * we would close. */
typedef struct sp_elf_file {
    Elf *elf;
    int error;           /* errno of open, or EINVAL: not a regular file; 0: opened */
    const char *problem; /* in a few words, when it was opened but cannot be used */
    sp_file_mark mark;   /* the file as it was when it was opened */
} sp_elf_file;

#define SP_ELF_FILE_NONE ((sp_elf_file){0})

/* Map the file at PATH. A file of another kind is closed at once, unread. */
sp_elf_file sp_elf_file_open(const char *path);
/* FILE is SP_ELF_FILE_NONE afterwards. */
void sp_elf_file_close(sp_elf_file *file);
/* Take the Elf (NULL: none) and its mark out of FILE. The caller calls elf_end and
 * sp_file_mark_deinit for them. FILE is SP_ELF_FILE_NONE afterwards. */
Elf *sp_elf_file_take(sp_elf_file *file, sp_file_mark *mark);

/* The section NAME, with its header in *HEADER; NULL when there is none. */
Elf_Scn *sp_elf_find_section(Elf *elf, const char *name, GElf_Shdr *header);

/* Whether the virtual ADDRESS is in a writable segment of ELF, which contains data. */
bool sp_elf_has_data_at(Elf *elf, uint64_t address);

/* How many bytes libdw would inflate: the sum of the sizes that compressed sections claim. */
uint64_t sp_elf_inflated_bytes(Elf *elf);

/* Whether ELF carries the build id ID of LENGTH bytes. */
bool sp_elf_has_build_id(Elf *elf, const void *id, size_t length);

#endif
