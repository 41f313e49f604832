/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/read/other_processes.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/compiler.h"
#include "core/counted.h"
#include "core/run_files.h"

/* What was found. */
typedef struct others {
    size_t count;
    const char *format; /* of the last one */
} others;

/* Behind the PID. NULL: no end of a file of traces. */
static const char *format_of(const char *end)
{
    static const char *const formats[] = {"jsonl", "binpb"};
    if (strncmp(end, ".traces.", strlen(".traces.")) != 0)
        return NULL;
    for (size_t i = 0; i < SP_ARRAY_LENGTH(formats); i++)
        if (strcmp(end + strlen(".traces."), formats[i]) == 0)
            return formats[i];
    return NULL;
}

/* Count NAME when it is BASE.PID.traces.jsonl, or .binpb. In a container PID may be pid1. */
static void take(others *others, const char *name, const char *base)
{
    size_t length = strlen(base);
    if (strncmp(name, base, length) != 0 || name[length] != '.')
        return;
    const char *pid = name + length + 1;
    size_t word = strncmp(pid, "pid", 3) == 0 ? 3 : 0, digits = strspn(pid + word, "0123456789");
    bool is_pid = digits > 0 && (word || strtoull(pid, NULL, 10) > SP_RUNS_KEPT);
    const char *format = is_pid ? format_of(pid + word + digits) : NULL;
    others->count += format != NULL;
    others->format = format ? format : others->format;
}

static void find(others *others, const char *prefix)
{
    const char *slash = strrchr(prefix, '/');
    char *path = slash ? strndup(prefix, (size_t)(slash - prefix) + 1) : strdup(".");
    DIR *folder = path ? opendir(path) : NULL;
    for (const struct dirent *entry; folder && (entry = readdir(folder)) != NULL;)
        take(others, entry->d_name, slash ? slash + 1 : prefix);
    if (folder)
        closedir(folder);
    free(path);
}

const char *sp_other_processes(char out[SP_OTHER_PROCESSES_TEXT], const char *prefix)
{
    others others = {.count = 0};
    find(&others, prefix);
    *out = 0;
    if (others.count)
        snprintf(out, SP_OTHER_PROCESSES_TEXT,
                 "files of %s lie beside it, %.300s.PID.*: name %.300s.*.%s to read all",
                 SP_COUNTED(others.count, "other process"), prefix, prefix, others.format);
    return out;
}
