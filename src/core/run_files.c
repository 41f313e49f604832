/* SPDX-License-Identifier: Apache-2.0 */
#include "core/run_files.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/path.h"

static const char *const signals[] = {"traces", "profiles"};
static const char *const formats[] = {"jsonl", "binpb"};

const char *sp_run_file_ending(char out[SP_RUN_FILE_ENDING], sp_run_file file)
{
    const char *signal = signals[file.signal], *format = formats[file.format];
    if (file.part)
        snprintf(out, SP_RUN_FILE_ENDING, ".%s.%04u.%s", signal, file.part, format);
    else
        snprintf(out, SP_RUN_FILE_ENDING, ".%s.%s", signal, format);
    return out;
}

static bool add(sp_run_files *files, sp_run_file file)
{
    if ((files->count & (files->count - 1)) == 0) {
        size_t room = files->count ? 2 * files->count : 1;
        sp_run_file *items = realloc(files->items, room * sizeof *items);
        if (!items)
            return false;
        files->items = items;
    }
    files->items[files->count++] = file;
    return true;
}

static bool is_there(const char *prefix, sp_run_file file)
{
    char path[PATH_MAX], ending[SP_RUN_FILE_ENDING];
    struct stat status;
    int length = snprintf(path, sizeof path, "%s%s", prefix, sp_run_file_ending(ending, file));
    return length > 0 && (size_t)length < sizeof path && lstat(path, &status) == 0;
}

static bool add_unnumbered(sp_run_files *files, const char *prefix)
{
    bool done = true;
    for (uint8_t format = 0; format < SP_RUN_FILE_FORMATS; format++)
        for (uint8_t signal = 0; signal < SP_RUN_FILE_SIGNALS; signal++) {
            sp_run_file file = {.signal = signal, .format = format};
            if (done && is_there(prefix, file))
                done = add(files, file);
        }
    return done;
}

/* Whether ENDING is the ending of a numbered part; if so, it is parsed into *FILE. */
static bool is_part(const char *ending, sp_run_file *file)
{
    char again[SP_RUN_FILE_ENDING];
    for (uint8_t i = 0; i < SP_RUN_FILE_SIGNALS * SP_RUN_FILE_FORMATS; i++) {
        size_t length = strlen(signals[i % 2]);
        if (ending[0] != '.' || strncmp(ending + 1, signals[i % 2], length) != 0 ||
            ending[1 + length] != '.')
            continue;
        *file = (sp_run_file){.signal = i % 2,
                              .format = i / 2,
                              .part = (uint32_t)strtoul(ending + length + 2, NULL, 10)};
        if (file->part && strcmp(sp_run_file_ending(again, *file), ending) == 0)
            return true;
    }
    return false;
}

static bool add_parts(sp_run_files *files, DIR *folder, const char *name)
{
    size_t length = strlen(name);
    bool done = true;
    for (const struct dirent *entry; done && (entry = readdir(folder));) {
        sp_run_file file;
        if (strncmp(entry->d_name, name, length) == 0 && is_part(entry->d_name + length, &file))
            done = add(files, file);
    }
    return done;
}

/* Open the folder that PREFIX is in; NULL when it cannot be opened. */
static DIR *open_folder(const char *prefix)
{
    const char *slash = strrchr(prefix, '/');
    char path[PATH_MAX];
    int length = snprintf(path, sizeof path, "%.*s", slash ? (int)(slash - prefix) + 1 : 1,
                          slash ? prefix : ".");
    return length > 0 && (size_t)length < sizeof path ? opendir(path) : NULL;
}

static int by_age(const void *a, const void *b)
{
    const sp_run_file *one = a, *other = b;
    uint32_t part = one->part - 1, other_part = other->part - 1; /* 0 is sorted last */
    if (one->format != other->format)
        return one->format < other->format ? -1 : 1;
    if (one->signal != other->signal)
        return one->signal < other->signal ? -1 : 1;
    return (part > other_part) - (part < other_part);
}

bool sp_run_files_find(sp_run_files *out, const char *prefix)
{
    *out = (sp_run_files){0};
    bool done = add_unnumbered(out, prefix);
    DIR *folder = done ? open_folder(prefix) : NULL;
    if (folder) {
        done = add_parts(out, folder, sp_path_base(prefix));
        closedir(folder);
    }
    if (!done)
        sp_run_files_deinit(out);
    else if (out->count)
        qsort(out->items, out->count, sizeof *out->items, by_age);
    return done;
}

void sp_run_files_deinit(sp_run_files *files)
{
    free(files->items);
    *files = (sp_run_files){0};
}
