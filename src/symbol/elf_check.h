/* SPDX-License-Identifier: Apache-2.0 */
/* Whether an ELF file is consistent.  Collector thread only. */
#ifndef SP_SYMBOL_ELF_CHECK_H
#define SP_SYMBOL_ELF_CHECK_H

#include <gelf.h>

#include "core/compiler.h"

/* Describes in a few words what is wrong with ELF, a file or image of SIZE bytes. NULL when its
 * headers, sections and symbol tables are consistent, so that reading it stays inside the file and
 * allocates no more than the file's size. ELF may be NULL. This reads only headers and the last
 * byte of each table of strings. */
const char *sp_elf_problem(Elf *elf, uint64_t size);

#endif
