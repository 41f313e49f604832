/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel writes a path as it is, blanks included, with two exceptions. A newline becomes
 * "\012", and " (deleted)" follows the path of a file that was removed or replaced. Both could also
 * be part of a file's name, so the file system decides. */
#include "core/mapped_file.h"

#include <stdio.h>
#include <string.h>

#include "core/mappings.h"

static const char *map_path = "/proc/self/maps";

void sp_mapped_file_set_map(const char *path)
{
    map_path = path;
}

static void replace_escapes(char *path)
{
    char *to = path;
    for (const char *from = path; *from; from++) {
        bool is_newline = strncmp(from, "\\012", 4) == 0;
        *to++ = (char)(is_newline ? '\n' : *from);
        from += is_newline ? 3 : 0;
    }
    *to = 0;
}

static bool remove_deleted_mark(char *path)
{
    static const char mark[] = " (deleted)";
    size_t length = strlen(path), mark_length = sizeof mark - 1;
    if (length <= mark_length || strcmp(path + length - mark_length, mark) != 0)
        return false;
    path[length - mark_length] = 0;
    return true;
}

static void take_path(sp_mapped_file *mapped, const char *text)
{
    struct stat status;
    (void)snprintf(mapped->path, sizeof mapped->path, "%s", text);
    if (stat(mapped->path, &status) == 0 && sp_mapped_file_is(mapped, &status))
        return;
    replace_escapes(mapped->path);
    if (stat(mapped->path, &status) != 0 || !S_ISREG(status.st_mode))
        mapped->is_deleted = remove_deleted_mark(mapped->path);
}

typedef struct search {
    uint64_t start, end;
    sp_mapped_file *out;
    bool is_found;
} search;

static bool take_mapping(const sp_mapping *mapping, void *user)
{
    search *search = user;
    search->is_found =
        mapping->path[0] == '/' && mapping->end > search->start && mapping->start < search->end;
    if (!search->is_found)
        return true;
    *search->out = (sp_mapped_file){.device = mapping->device, .inode = (ino_t)mapping->inode};
    take_path(search->out, mapping->path);
    return false;
}

bool sp_mapped_file_find(uint64_t start, uint64_t end, sp_mapped_file *out)
{
    search search = {.start = start, .end = end, .out = out};
    return sp_mappings_of_file(map_path, take_mapping, &search) && search.is_found;
}
