/* SPDX-License-Identifier: Apache-2.0 */
/* .gnu_debugdata ("MiniDebugInfo"): a small ELF image, compressed by xz inside a stripped file,
 * with the symbols that .dynsym lacks. Collector thread only. */
#ifndef SP_SYMBOL_ELF_DEBUGDATA_H
#define SP_SYMBOL_ELF_DEBUGDATA_H

#include <gelf.h>

#include "core/compiler.h"

/* The image larger than this is not read. */
#define SP_DEBUGDATA_MAX ((size_t)64 * 1024 * 1024)

/* elf lies in image; both NULL: there is none. Zero-initialised is none. */
typedef struct sp_elf_debugdata {
    Elf *elf;
    char *image;
} sp_elf_debugdata;

/* Inflate the LENGTH bytes at XZ and open what is in them. What is wrong comes back in a few words,
 * and DEBUGDATA is then none; NULL: nothing is. */
const char *sp_elf_debugdata_open(sp_elf_debugdata *debugdata, const void *xz, size_t length);
void sp_elf_debugdata_close(sp_elf_debugdata *debugdata);

#endif
