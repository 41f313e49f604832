/* SPDX-License-Identifier: Apache-2.0 */
/* Finds files of an earlier run with the same prefix. When the program starts, it renames them to
 * PREFIX.1. The user is told this at the end of the run, together with the names of the new
 * files. */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/compiler.h"
#include "tool/command/run.h"
#include "tool/text/messages.h"

static bool find_file(struct stat *status, const char *prefix, const char *between,
                      const char *ending)
{
    char path[PATH_MAX + 32];
    snprintf(path, sizeof path, "%.*s%s%s", PATH_MAX, prefix, between, ending);
    return stat(path, status) == 0 && S_ISREG(status->st_mode) && status->st_size > 0;
}

sp_run_earlier sp_run_earlier_find(const char *prefix)
{
    static const char *const endings[] = {".traces.jsonl", ".profiles.jsonl", ".traces.binpb",
                                          ".profiles.binpb"};
    struct stat status;
    for (size_t i = 0; i < SP_ARRAY_LENGTH(endings); i++)
        if (find_file(&status, prefix, "", endings[i]))
            return (sp_run_earlier){endings[i], status.st_dev, status.st_ino};
    return (sp_run_earlier){.ending = NULL};
}

void sp_run_earlier_say(const sp_run_earlier *earlier, const char *prefix)
{
    struct stat status;
    if (earlier->ending && find_file(&status, prefix, ".1", earlier->ending) &&
        status.st_dev == earlier->device && status.st_ino == earlier->inode)
        sp_tool_note("the files of the run before are kept as %s.1.*", prefix);
}
