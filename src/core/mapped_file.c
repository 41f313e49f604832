/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel writes a path as it is, blanks included, with two exceptions. A newline becomes
 * "\012", and " (deleted)" follows the path of a file that was removed or replaced. Both could also
 * be part of a file's name, so the file system decides. */
#include "core/mapped_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

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

/* Take LINE if it maps a file in [START, END). */
static bool take_line(char *line, uint64_t start, uint64_t end, sp_mapped_file *out)
{
    uint64_t low, high, inode;
    unsigned major_number, minor_number;
    int path = 0;
    if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %*x %x:%x %" SCNu64 " %n", &low, &high,
               &major_number, &minor_number, &inode, &path) < 5)
        return false;
    if (!path || line[path] != '/' || high <= start || low >= end)
        return false;
    line[strcspn(line, "\n")] = 0;
    *out = (sp_mapped_file){.device = makedev(major_number, minor_number), .inode = (ino_t)inode};
    take_path(out, line + path);
    return true;
}

bool sp_mapped_file_find(uint64_t start, uint64_t end, sp_mapped_file *out)
{
    FILE *map = fopen(map_path, "re");
    if (!map)
        return false;
    char *line = NULL;
    size_t capacity = 0;
    bool found = false;
    while (!found && getline(&line, &capacity, map) > 0)
        found = take_line(line, start, end, out);
    free(line);
    (void)fclose(map);
    return found;
}
