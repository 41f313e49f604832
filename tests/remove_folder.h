/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_REMOVE_FOLDER_H
#define TESTS_REMOVE_FOLDER_H

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

/* Remove FOLDER with the files and the empty folders in it. 0, or -1 with errno. */
static inline int remove_folder(const char *folder)
{
    DIR *entries = opendir(folder);
    if (!entries)
        return -1;
    for (struct dirent *entry; (entry = readdir(entries));) {
        char path[PATH_MAX + NAME_MAX + 2];
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (entry->d_name[0] != '.')
            remove(path);
    }
    closedir(entries);
    return rmdir(folder);
}

#endif
