/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/read/run_folders.h"

#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/path.h"
#include "tool/text/messages.h"

enum { FOLDER_PATH = PATH_MAX, FILE_PATH = PATH_MAX + NAME_MAX + 2 };

/* Whether FOLDER has a file of traces or profiles with content that was written since BEGIN_NS.
 * *FORMAT is its ending. */
static bool has_files(const char *folder, uint64_t begin_ns, char format[8])
{
    char path[FILE_PATH];
    struct stat status;
    DIR *opened = opendir(folder);
    bool found = false;
    for (const struct dirent *entry; opened && !found && (entry = readdir(opened)) != NULL;) {
        const char *ending = strrchr(entry->d_name, '.');
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        found = ending && (strcmp(ending, ".jsonl") == 0 || strcmp(ending, ".binpb") == 0) &&
                stat(path, &status) == 0 && status.st_size > 0 &&
                (uint64_t)status.st_mtim.tv_sec >= begin_ns / 1000000000;
        if (found)
            snprintf(format, 8, "%s", ending + 1);
    }
    if (opened)
        closedir(opened);
    return found;
}

static bool is_named(const sp_operands *files, const char *folder)
{
    for (size_t i = 0; i < files->count; i++)
        if (strncmp(files->items[i], folder, strlen(folder)) == 0)
            return true;
    return false;
}

static void note_folder(const char *folder, const char *prefix, const sp_operands *files,
                        uint64_t begin_ns)
{
    char format[8];
    if (!is_named(files, folder) && has_files(folder, begin_ns, format))
        sp_tool_note("%s: processes that went on after the end of the run have files in %s: add "
                     "%s/*.%s to read them",
                     prefix, folder, folder, format);
}

static void note_prefix(const char *prefix, const sp_operands *files, uint64_t begin_ns)
{
    const char *base = sp_path_base(prefix);
    char folder[FOLDER_PATH];
    struct dirent **names;
    size_t length = strlen(base);
    snprintf(folder, sizeof folder, "%.*s", (int)(base - prefix), prefix);
    int count = scandir(base > prefix ? folder : ".", &names, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        const char *name = names[i]->d_name;
        if (strncmp(name, base, length) == 0 && strncmp(name + length, ".run-", 5) == 0 &&
            snprintf(folder, sizeof folder, "%.*s%s", (int)(base - prefix), prefix, name) <
                (int)sizeof folder)
            note_folder(folder, prefix, files, begin_ns);
        free(names[i]);
    }
    if (count >= 0)
        free(names);
}

void sp_run_folders_note(const sp_operands *files, uint64_t begin_ns)
{
    for (size_t i = 0; i < files->count; i++)
        note_prefix(files->items[i], files, begin_ns);
}
