/* SPDX-License-Identifier: Apache-2.0 */
#include "attach/thread_list.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/reach.h"

void sp_attach_thread_list_take(sp_attach_thread_list *list, pid_t pid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *folder = opendir(path);
    list->count = 0;
    if (!folder)
        return;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;)
        if (entry->d_name[0] != '.' && SP_REACH(list->tids, list->count, list->capacity, 64))
            list->tids[list->count++] = (pid_t)strtol(entry->d_name, NULL, 10);
    closedir(folder);
}
