/* SPDX-License-Identifier: Apache-2.0 */
/* Modules for tests of symbols and profiles: of this process, or invented. */
#ifndef SP_TEST_MODULE_H
#define SP_TEST_MODULE_H

#include <link.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "unwind/module.h"

static inline sp_module *test_module_make(const char *path, uint64_t start, uint64_t end,
                                          uint64_t bias)
{
    static uint32_t next_id = 1;
    size_t length = strlen(path);
    sp_module *module = calloc(1, sizeof *module + length + 1);
    module->start = start;
    module->end = end;
    module->bias = bias;
    module->id = next_id++;
    memcpy(module->path, path, length + 1);
    return module;
}

typedef struct test_module_search {
    uint64_t address;
    const char *path; /* the module's path; NULL: the loader's */
    sp_module *found;
} test_module_search;

static inline void test_module_read_notes(sp_module *module, uintptr_t at, size_t size)
{
    for (uintptr_t end = at + size; at + sizeof(ElfW(Nhdr)) < end;) {
        const ElfW(Nhdr) *note = (const void *)at;
        uintptr_t name = at + sizeof *note, description = name + ((note->n_namesz + 3u) & ~3u);
        if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 &&
            memcmp((void *)name, "GNU", 4) == 0 && note->n_descsz <= SP_BUILD_ID_MAX) {
            memcpy(module->build_id, (void *)description, note->n_descsz);
            module->build_id_length = note->n_descsz;
        }
        at = description + ((note->n_descsz + 3u) & ~3u);
    }
}

static inline int test_module_visit(struct dl_phdr_info *info, size_t size, void *user)
{
    test_module_search *search = user;
    uint64_t low = UINT64_MAX, high = 0;
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        if (header->p_type != PT_LOAD)
            continue;
        low = sp_min_u64(low, info->dlpi_addr + header->p_vaddr);
        high = sp_max_u64(high, info->dlpi_addr + header->p_vaddr + header->p_memsz);
    }
    if (search->address < low || search->address >= high)
        return 0;
    char self[PATH_MAX] = "";
    const char *path = search->path ? search->path : info->dlpi_name;
    if (!path[0] && readlink("/proc/self/exe", self, sizeof self - 1) > 0)
        path = self;
    if (low == getauxval(AT_SYSINFO_EHDR))
        path = "[vdso]";
    search->found = test_module_make(path, low, high, info->dlpi_addr);
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_NOTE)
            test_module_read_notes(search->found, info->dlpi_addr + info->dlpi_phdr[i].p_vaddr,
                                   info->dlpi_phdr[i].p_memsz);
    return 1;
}

/* The module of this process that has ADDRESS, with the path PATH (NULL: its real path). The caller
 * frees it. */
static inline sp_module *test_module_of(uint64_t address, const char *path)
{
    test_module_search search = {.address = address, .path = path};
    dl_iterate_phdr(test_module_visit, &search);
    return search.found;
}

#endif
