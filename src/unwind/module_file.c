/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/module_file.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "core/mapped_file.h"
#include "core/regular_file.h"
#include "unwind/file_bytes.h"

bool sp_module_file_matches(int fd, const sp_module_image *image)
{
    ElfW(Ehdr) header;
    if (image->build_id_length)
        return sp_file_equals(fd, image->build_id_offset, image->build_id, image->build_id_length);
    return sp_file_read(fd, 0, &header, sizeof header) &&
           memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
           header.e_phnum * sizeof(ElfW(Phdr)) == image->headers_bytes &&
           sp_file_equals(fd, header.e_phoff, image->headers, image->headers_bytes);
}

/* If PATH is the file of IMAGE, set *ORIGIN and return true. Equal headers are enough while the
 * mapped file is not deleted, because on overlay file systems device and inode in the map differ
 * from those of stat. MAPPED may be NULL. */
static bool check_path(const sp_module_image *image, const sp_mapped_file *mapped, const char *path,
                       sp_module_origin *origin)
{
    struct stat status;
    int fd = sp_regular_file_open(path, O_RDONLY, &status);
    if (fd < 0)
        return false;
    bool is_same = (mapped && sp_mapped_file_is(mapped, &status)) ||
                   (!(mapped && mapped->is_deleted) && sp_module_file_matches(fd, image));
    close(fd);
    if (is_same)
        *origin = (sp_module_origin){SP_ORIGIN_SEEN, status.st_dev, status.st_ino};
    return is_same;
}

static void set_path(sp_module_file *file, const char *path)
{
    (void)snprintf(file->path, sizeof file->path, "%s", path);
}

/* The loader's absolute name is kept if it leads to the file, because users know that name; in the
 * map, links are resolved. */
static void take_mapped(const sp_module_image *image, const sp_mapped_file *mapped,
                        sp_module_file *out)
{
    bool is_absolute = image->loader_name[0] == '/';
    if (is_absolute && check_path(image, mapped, image->loader_name, &out->origin))
        return;
    if (check_path(image, mapped, mapped->path, &out->origin) || !is_absolute)
        set_path(out, mapped->path);
    if (out->origin.state == SP_ORIGIN_NOT_CHECKED)
        out->origin = (sp_module_origin){SP_ORIGIN_REPLACED, mapped->device, mapped->inode};
}

static bool take_candidate(const sp_module_image *image, const char *candidate, sp_module_file *out)
{
    char path[PATH_MAX];
    if (!candidate || !realpath(candidate, path) || !check_path(image, NULL, path, &out->origin))
        return false;
    set_path(out, path);
    return true;
}

/* For a module whose mapping names no file: /proc is not mounted, or the program has moved its code
 * to huge pages. */
static void take_named(const sp_module_image *image, sp_module_file *out)
{
    const char *program = (const char *)(uintptr_t)getauxval(AT_EXECFN); // NOLINT
    if (image->loader_name[0])
        take_candidate(image, image->loader_name, out);
    else if (!take_candidate(image, program, out))
        take_candidate(image, "/proc/self/exe", out);
}

void sp_module_file_find(const sp_module_image *image, sp_module_file *out)
{
    const char *name = image->loader_name;
    out->origin = (sp_module_origin){SP_ORIGIN_NOT_CHECKED, 0, 0};
    set_path(out, name);
    if (name[0] == '[' || (name[0] == '/' && image->build_id_length))
        return;
    sp_mapped_file mapped;
    if (sp_mapped_file_find(image->start, image->end, &mapped))
        take_mapped(image, &mapped, out);
    else
        take_named(image, out);
    if (image->build_id_length)
        out->origin = (sp_module_origin){SP_ORIGIN_NOT_CHECKED, 0, 0};
}
