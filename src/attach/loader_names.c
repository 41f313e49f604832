/* SPDX-License-Identifier: Apache-2.0 */
#include "attach/loader_names.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/compiler.h"
#include "outside/memory.h"

/* Longer lists are of a damaged or malicious process, which could make them endless. PAGE: memory
 * is readable to the end of a page. */
enum { ENTRIES_MAX = 4096, SECTION_ENTRIES_MAX = 256, PAGE = 4096 };

static const ElfW(Phdr) * find_segment(const struct dl_phdr_info *module, uint32_t type)
{
    for (int i = 0; i < module->dlpi_phnum; i++)
        if (module->dlpi_phdr[i].p_type == type)
            return &module->dlpi_phdr[i];
    return NULL;
}

/* The loader writes the address into the dynamic section of the program. */
uint64_t sp_attach_loader_list(pid_t pid, const struct dl_phdr_info *program)
{
    const ElfW(Phdr) *segment = find_segment(program, PT_DYNAMIC);
    ElfW(Dyn) entry = {0};
    if (!segment || !find_segment(program, PT_INTERP))
        return 0;
    uint64_t address = program->dlpi_addr + segment->p_vaddr;
    for (int i = 0; i < SECTION_ENTRIES_MAX; i++) {
        if (!sp_outside_copy(pid, &entry, address + (uint64_t)i * sizeof entry, sizeof entry) ||
            entry.d_tag == DT_NULL)
            return 0;
        if (entry.d_tag == DT_DEBUG)
            return entry.d_un.d_ptr;
    }
    return 0;
}

static bool read_string(pid_t pid, uint64_t address, char out[PATH_MAX])
{
    for (size_t used = 0; used < PATH_MAX;) {
        size_t left = sp_min_u64(PATH_MAX - used, PAGE - (address + used) % PAGE);
        if (!sp_outside_copy(pid, out + used, address + used, left))
            return false;
        if (memchr(out + used, 0, left))
            return true;
        used += left;
    }
    return false;
}

static bool is_same_file(const char *one, const char *other)
{
    struct stat a, b;
    return stat(one, &a) == 0 && stat(other, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

static void rename_image(sp_module_image *image, const char *root, const char *name)
{
    char path[2 * PATH_MAX];
    (void)snprintf(path, sizeof path, "%s%s", root, name);
    if (strcmp(path, image->path) == 0 || !is_same_file(path, image->path))
        return;
    char *copy = strdup(path);
    if (!copy)
        return;
    free(image->path);
    image->path = copy;
}

static bool is_new(const sp_module_image *image)
{
    return !image->known && image->path && image->path[0] == '/';
}

static sp_module_image *find_image(const sp_loader_snapshot *snapshot, uint64_t bias)
{
    for (size_t i = 0; i < snapshot->image_count; i++)
        if (is_new(&snapshot->images[i]) && snapshot->images[i].bias == bias)
            return &snapshot->images[i];
    return NULL;
}

static bool has_new(const sp_loader_snapshot *snapshot)
{
    for (size_t i = 0; i < snapshot->image_count; i++)
        if (is_new(&snapshot->images[i]))
            return true;
    return false;
}

/* The first entry is the program. Its name differs between C libraries, and it has that of the
 * map. */
void sp_attach_loader_rename(pid_t pid, uint64_t list, const char *root,
                             sp_loader_snapshot *snapshot)
{
    struct r_debug head;
    struct link_map entry;
    char name[PATH_MAX];
    if (!list || !has_new(snapshot) || !sp_outside_copy(pid, &head, list, sizeof head))
        return;
    uint64_t address = (uintptr_t)head.r_map;
    for (int i = 0; address && i < ENTRIES_MAX; i++, address = (uintptr_t)entry.l_next) {
        if (!sp_outside_copy(pid, &entry, address, sizeof entry))
            return;
        sp_module_image *image = i > 0 ? find_image(snapshot, entry.l_addr) : NULL;
        if (image && read_string(pid, (uintptr_t)entry.l_name, name) && name[0] == '/')
            rename_image(image, root, name);
    }
}
