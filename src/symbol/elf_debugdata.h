/* SPDX-License-Identifier: Apache-2.0 */
/* .gnu_debugdata ("MiniDebugInfo"): a small ELF image, compressed by xz inside a stripped file,
 * with the symbols that .dynsym lacks. Collector thread only. */
#ifndef SP_SYMBOL_ELF_DEBUGDATA_H
#define SP_SYMBOL_ELF_DEBUGDATA_H

#include <gelf.h>

#include "core/compiler.h"

/* A larger image is not read. */
#define SP_DEBUGDATA_MAX ((size_t)64 * 1024 * 1024)

/* elf is read from image. Both are NULL when there is none, as after zero-initialisation. */
typedef struct sp_elf_debugdata {
    Elf *elf;
    char *image;
} sp_elf_debugdata;

/* Inflate the LENGTH bytes at XZ and open the ELF image in them. Returns NULL; or, with DEBUGDATA
 * empty, a few words about what is wrong. */
const char *sp_elf_debugdata_open(sp_elf_debugdata *debugdata, const void *xz, size_t length);
void sp_elf_debugdata_close(sp_elf_debugdata *debugdata);

#endif
