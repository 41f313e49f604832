/* SPDX-License-Identifier: Apache-2.0 */
/* Whether an ELF file holds together.  Collector thread only. */
#ifndef SP_SYMBOL_ELF_CHECK_H
#define SP_SYMBOL_ELF_CHECK_H

#include <gelf.h>

#include "core/compiler.h"

/* What is wrong with ELF, a file or image of SIZE bytes, in a few words; NULL when its headers,
 * sections and symbol tables hold together, so that reading it stays inside the file and allocates
 * no more than the file is large. ELF may be NULL. Only the headers are read, and the last byte of
 * each table of strings. */
const char *sp_elf_problem(Elf *elf, uint64_t size);

#endif
