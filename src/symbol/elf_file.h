/* SPDX-License-Identifier: Apache-2.0 */
/* ELF files opened for reading, after a look at whether they hold together.  Collector thread only.
 */
#ifndef SP_SYMBOL_ELF_FILE_H
#define SP_SYMBOL_ELF_FILE_H

#include <gelf.h>

#include "core/compiler.h"
#include "symbol/file_mark.h"

/* Above this sum of sp_elf_inflated_bytes a file's debug information is left alone. */
#define SP_ELF_LARGEST_INFLATED ((uint64_t)100 * 1024 * 1024)

/* elf is NULL when it could not be opened, or not be used. No descriptor stays open. A host that
 * closes all unknown descriptors may reuse its number for a file of its own, which we would then
 * close. */
typedef struct sp_elf_file {
    Elf *elf;
    int error;           /* errno of open; 0 when it could be opened */
    const char *problem; /* in a few words, when it was opened but cannot be used */
    sp_file_mark mark;   /* what it was when it was opened */
} sp_elf_file;

#define SP_ELF_FILE_NONE ((sp_elf_file){0})

/* Map the file at PATH. Only a regular file is opened. */
sp_elf_file sp_elf_file_open(const char *path);
/* Leaves none. */
void sp_elf_file_close(sp_elf_file *file);
/* Take the Elf, NULL for none, and its mark out of FILE. The caller ends the one and deinits the
 * other. */
Elf *sp_elf_file_keep(const sp_elf_file *file, sp_file_mark *mark);

/* The section NAME, with its header in *HEADER; NULL when there is none. */
Elf_Scn *sp_elf_find_section(Elf *elf, const char *name, GElf_Shdr *header);

/* Whether ADDRESS is in what ELF's segments for data that is written take of memory. */
bool sp_elf_has_data_at(Elf *elf, uint64_t address);

/* What libdw would inflate: the sizes that compressed sections claim, added up. */
uint64_t sp_elf_inflated_bytes(Elf *elf);

/* Whether ELF carries the build id ID of LENGTH bytes. */
bool sp_elf_has_build_id(Elf *elf, const void *id, size_t length);

#endif
