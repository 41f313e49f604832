/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/read/other_processes.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/run_files.h"

/* NAME is BASE.PID.traces.jsonl, or .binpb. */
static bool is_of_a_process(const char *name, const char *base)
{
    size_t length = strlen(base);
    if (strncmp(name, base, length) != 0 || name[length] != '.')
        return false;
    const char *digits = name + length + 1;
    size_t count = strspn(digits, "0123456789");
    bool is_pid = count > 0 && strtoull(digits, NULL, 10) > SP_RUNS_KEPT;
    return is_pid && (strcmp(digits + count, ".traces.jsonl") == 0 ||
                      strcmp(digits + count, ".traces.binpb") == 0);
}

static size_t count_in(DIR *folder, const char *base)
{
    size_t count = 0;
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;)
        count += is_of_a_process(entry->d_name, base);
    return count;
}

size_t sp_other_processes(const char *prefix)
{
    const char *slash = strrchr(prefix, '/');
    char *path = slash ? strndup(prefix, (size_t)(slash - prefix) + 1) : strdup(".");
    DIR *folder = path ? opendir(path) : NULL;
    size_t count = folder ? count_in(folder, slash ? slash + 1 : prefix) : 0;
    if (folder)
        closedir(folder);
    free(path);
    return count;
}
