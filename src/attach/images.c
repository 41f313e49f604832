/* SPDX-License-Identifier: Apache-2.0 */
#include "attach/images.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "attach/loader_names.h"
#include "core/compiler.h"
#include "core/mappings.h"
#include "core/reach.h"
#include "core/regular_file.h"
#include "outside/memory.h"
#include "unwind/frame_section.h"
#include "unwind/module_image.h"

enum { HEADERS_MAX = 512, NOTES_BYTES = 4096, FRAME_HEADER_BYTES = 64 };

typedef struct taking {
    sp_loader_snapshot *out;
    pid_t pid;
    const sp_generation *known;
    char root[32]; /* in front of paths when its files are in another mount namespace; or "" */
    uint64_t list; /* of the loader, see loader_names.h; 0: not found */
    size_t capacity;
    bool failed; /* memory is short */
} taking;

/* One module while it is read. */
typedef struct module {
    pid_t pid;
    const sp_mapping *mapping; /* the first of the file */
    ElfW(Phdr) headers[HEADERS_MAX];
    struct dl_phdr_info info;
    sp_module_image image;
} module;

/* ---- what memory has ---- */

/* Read the program headers, and set the load bias. */
static bool read_headers(module *m)
{
    ElfW(Ehdr) header;
    uint64_t low = m->mapping->start;
    if (!sp_outside_copy(m->pid, &header, low, sizeof header) ||
        memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
        header.e_phentsize != sizeof m->headers[0] || header.e_phnum > HEADERS_MAX ||
        !sp_outside_copy(m->pid, m->headers, low + header.e_phoff,
                         header.e_phnum * sizeof m->headers[0]))
        return false;
    m->info = (struct dl_phdr_info){.dlpi_phdr = m->headers, .dlpi_phnum = header.e_phnum};
    for (int i = 0; i < header.e_phnum; i++)
        if (m->headers[i].p_type == PT_LOAD) {
            m->info.dlpi_addr = low + m->headers[i].p_offset - m->headers[i].p_vaddr;
            return true;
        }
    return false;
}

/* False: it has no code, or what was read makes no sense. */
static bool find_range(module *m)
{
    sp_image_find_range(&m->info, &m->image);
    for (int i = 0; i < m->info.dlpi_phnum; i++)
        if (m->headers[i].p_type == PT_LOAD && (m->headers[i].p_flags & PF_X))
            return m->image.start < m->image.end;
    return false;
}

static void find_build_id(module *m)
{
    uint8_t notes[NOTES_BYTES];
    for (int i = 0; i < m->info.dlpi_phnum && !m->image.build_id_length; i++) {
        const ElfW(Phdr) *segment = &m->headers[i];
        uint64_t address = m->info.dlpi_addr + segment->p_vaddr;
        if (segment->p_type != PT_NOTE || segment->p_memsz > sizeof notes ||
            !sp_outside_copy(m->pid, notes, address, segment->p_memsz))
            continue;
        sp_image_take_build_id(notes, segment->p_memsz, segment->p_align, &m->image);
        m->image.build_id_offset += segment->p_offset;
    }
}

static void take_section(module *m, sp_cfi_section section)
{
    if (!section.length || section.length > SP_FRAME_SECTION_MAX)
        return;
    uint8_t *copy = malloc(section.length);
    if (!copy || !sp_outside_copy(m->pid, copy, section.address, section.length)) {
        free(copy);
        return;
    }
    section.data = m->image.section_copy = copy;
    section.module_start = m->image.start;
    section.module_end = m->image.end;
    m->image.section = section;
}

static void copy_section(module *m)
{
    uint8_t bytes[FRAME_HEADER_BYTES];
    for (int i = 0; i < m->info.dlpi_phnum; i++) {
        sp_cfi_section section;
        if (m->headers[i].p_type != PT_GNU_EH_FRAME)
            continue;
        uint64_t header = m->info.dlpi_addr + m->headers[i].p_vaddr;
        uint64_t length = sp_min_u64(sizeof bytes, sp_image_readable_from(&m->info, header));
        if (!sp_outside_copy(m->pid, bytes, header, length) ||
            !sp_image_read_frame_header(bytes, length, header, &section))
            continue;
        section.length = sp_image_section_length(&m->info, &section);
        take_section(m, section);
    }
}

/* ---- what only the file has ---- */

/* Whether the file at PATH is the mapped one, by its first page; *STATUS is then filled. */
static bool is_mapped_file(const module *m, const char *path, struct stat *status)
{
    char in_memory[4096], in_file[4096];
    int fd = sp_regular_file_open(path, O_RDONLY, status);
    if (fd < 0)
        return false;
    ssize_t count = pread(fd, in_file, sizeof in_file, 0);
    close(fd);
    return count > 0 && sp_outside_copy(m->pid, in_memory, m->mapping->start, (size_t)count) &&
           memcmp(in_memory, in_file, (size_t)count) == 0;
}

/* Set the path by which we can open the file. In another mount namespace it is below the process's
 * root. */
static bool set_path(const taking *t, module *m)
{
    char path[PATH_MAX];
    struct stat status;
    bool is_file = m->mapping->path[0] == '/';
    const char *root = is_file ? t->root : "";
    if (snprintf(path, sizeof path, "%s%s", root, m->mapping->path) >= (int)sizeof path)
        return false;
    if (is_file && !m->image.build_id_length)
        m->image.origin = is_mapped_file(m, path, &status)
                              ? (sp_module_origin){SP_ORIGIN_SEEN, status.st_dev, status.st_ino}
                              : (sp_module_origin){.state = SP_ORIGIN_REPLACED};
    m->image.path = strdup(path);
    return m->image.path != NULL;
}

/* Linkers leave out the index of .eh_frame in static programs, so the section is searched in the
 * file. */
static void find_section_in_file(module *m)
{
    struct stat status;
    sp_frame_section found;
    int fd = is_mapped_file(m, m->image.path, &status)
                 ? sp_regular_file_open(m->image.path, O_RDONLY, NULL)
                 : -1;
    if (fd < 0)
        return;
    if (sp_frame_section_find(fd, &found))
        take_section(m, (sp_cfi_section){.address = m->info.dlpi_addr + found.address,
                                         .length = found.length,
                                         .is_exact = true});
    close(fd);
}

/* ---- all of them ---- */

static sp_module *find_known(const taking *t, const module *m)
{
    const sp_module_image *image = &m->image;
    for (uint32_t i = 0; t->known && i < t->known->module_count; i++) {
        sp_module *known = t->known->modules[i];
        if (known->start == image->start && known->end == image->end &&
            known->bias == image->bias && image->build_id_length > 0 &&
            known->build_id_length == image->build_id_length &&
            memcmp(known->build_id, image->build_id, image->build_id_length) == 0)
            return known;
    }
    return NULL;
}

/* False: memory is short. */
static bool complete(const taking *t, module *m)
{
    m->image.known = find_known(t, m);
    if (m->image.known)
        return true;
    m->image.loader_name = "";
    if (!set_path(t, m))
        return false;
    copy_section(m);
    if (!m->image.section.length && m->image.path[0] == '/')
        find_section_in_file(m);
    return true;
}

static bool take_mapping(const sp_mapping *mapping, void *user)
{
    taking *t = user;
    module m = {.pid = t->pid, .mapping = mapping};
    bool may_be =
        mapping->offset == 0 && (mapping->path[0] == '/' || strcmp(mapping->path, "[vdso]") == 0);
    if (!may_be || !read_headers(&m) || !find_range(&m))
        return true;
    find_build_id(&m);
    if (!t->list)
        t->list = sp_attach_loader_list(t->pid, &m.info);
    t->failed = !SP_REACH(t->out->images, t->out->image_count, t->capacity, 64) || !complete(t, &m);
    if (!t->failed)
        t->out->images[t->out->image_count++] = m.image;
    return !t->failed;
}

static bool is_elsewhere(pid_t pid)
{
    char path[64];
    struct stat own, its;
    snprintf(path, sizeof path, "/proc/%d/ns/mnt", (int)pid);
    bool differs = stat("/proc/self/ns/mnt", &own) == 0 && stat(path, &its) == 0 &&
                   (own.st_ino != its.st_ino || own.st_dev != its.st_dev);
    snprintf(path, sizeof path, "/proc/%d/root", (int)pid);
    return differs || (stat("/", &own) == 0 && stat(path, &its) == 0 &&
                       (own.st_ino != its.st_ino || own.st_dev != its.st_dev));
}

bool sp_attach_images_take(sp_loader_snapshot *out, pid_t pid, const sp_generation *known)
{
    *out = (sp_loader_snapshot){0};
    taking t = {.out = out, .pid = pid, .known = known};
    if (is_elsewhere(pid))
        snprintf(t.root, sizeof t.root, "/proc/%d/root", (int)pid);
    if (sp_mappings_of_process(pid, take_mapping, &t) && !t.failed) {
        sp_attach_loader_rename(pid, t.list, t.root, out);
        return true;
    }
    sp_loader_snapshot_deinit(out);
    return false;
}
