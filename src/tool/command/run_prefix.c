/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the prefix of a run's files. If another program is writing files with the prefix that the
 * user wants, this run uses a prefix of its own, as the SDK does. Otherwise the answer at the end
 * would show the data of the other program. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

#include "core/regular_file.h"
#include "core/run_files.h"
#include "export/exporter.h"
#include "tool/command/run.h"
#include "tool/text/messages.h"

/* Whether a process is writing the file PATH: then it holds the lock of the file (flock). */
static bool is_written(const char *path)
{
    int fd = sp_regular_file_open(path, O_RDONLY, NULL);
    if (fd < 0)
        return false;
    bool is_locked = flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    close(fd);
    return is_locked;
}

static bool is_in_use(const char *prefix)
{
    enum { FILES = SP_RUN_FILE_SIGNALS * SP_RUN_FILE_FORMATS };
    bool found = false;
    for (uint8_t i = 0; i < FILES && !found; i++) {
        sp_run_file file = {.signal = i % SP_RUN_FILE_SIGNALS, .format = i / SP_RUN_FILE_SIGNALS};
        char path[PATH_MAX], ending[SP_RUN_FILE_ENDING];
        int length = snprintf(path, sizeof path, "%s%s", prefix, sp_run_file_ending(ending, file));
        found = length < (int)sizeof path && is_written(path);
    }
    return found;
}

const char *sp_run_free_prefix(char own[PATH_MAX], const char *prefix)
{
    if (!is_in_use(prefix))
        return prefix;
    sp_file_own_prefix(own, PATH_MAX, prefix, getpid());
    sp_tool_note("run: another program writes %s.* now: this run writes %s.*; -o PREFIX names "
                 "another",
                 prefix, own);
    return own;
}
