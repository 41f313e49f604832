/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_REMOVE_FOLDER_H
#define TESTS_REMOVE_FOLDER_H

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

/* Remove FOLDER and everything in it, except names that begin with a dot. Returns 0, or -1 with
 * errno. */
static inline int remove_folder(const char *folder)
{
    DIR *entries = opendir(folder);
    if (!entries)
        return -1;
    for (struct dirent *entry; (entry = readdir(entries));) {
        char path[PATH_MAX + NAME_MAX + 2];
        int length = snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (entry->d_name[0] != '.' && length < (int)sizeof path && remove(path) != 0)
            remove_folder(path);
    }
    closedir(entries);
    return rmdir(folder);
}

#endif
