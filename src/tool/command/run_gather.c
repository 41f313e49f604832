/* SPDX-License-Identifier: Apache-2.0 */
/* One run has one pair of files. Its first process writes them; each other one writes files of its
 * own, which are put behind the first one's here. Files of both formats may be put one behind the
 * other: they are sequences of requests. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tool/command/run.h"
#include "tool/text/messages.h"

static const char *const kinds[] = {".traces.", ".profiles."};

/* What NAME is called behind the prefix, without the number of a part: ".traces.jsonl". False: it
 * is no file of traces or profiles. */
static bool ending_of(const char *name, char out[32])
{
    const char *format = strrchr(name, '.');
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strstr(name, kinds[i]))
            return format && snprintf(out, 32, "%s%s", kinds[i], format + 1) < 32;
    return false;
}

/* A process that was killed while it wrote leaves half a line: no reader takes it. */
static off_t whole_lines(int fd, off_t size)
{
    char last;
    while (size > 0 && pread(fd, &last, 1, size - 1) == 1 && last != '\n')
        size--;
    return size;
}

/* Returns 0, or errno. */
static int append(int from, off_t size, const char *path)
{
    int to = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    char block[1 << 16];
    int error = to < 0 ? errno : 0;
    off_t before = to < 0 ? 0 : lseek(to, 0, SEEK_END);
    for (off_t at = 0; at < size && !error;) {
        size_t most = size - at < (off_t)sizeof block ? (size_t)(size - at) : sizeof block;
        ssize_t length = pread(from, block, most, at);
        ssize_t written = length > 0 ? write(to, block, (size_t)length) : length;
        if (written < 0)
            error = errno;
        else if (length == 0)
            error = EIO;
        else
            at += written;
    }
    if (to >= 0 && error && ftruncate(to, before) != 0) /* half a request makes all unreadable */
        error = errno;
    if (to >= 0 && close(to) != 0 && !error)
        error = errno;
    return error;
}

/* Returns 0, EWOULDBLOCK when a process still writes PATH, or errno. */
static int move_behind(const char *path, const char *ending, const char *prefix)
{
    char target[PATH_MAX];
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno;
    int error = flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &status) == 0 ? 0 : errno;
    if (!error && snprintf(target, sizeof target, "%s%s", prefix, ending) >= (int)sizeof target)
        error = ENAMETOOLONG;
    if (!error) {
        bool lines = strcmp(strrchr(ending, '.'), ".jsonl") == 0;
        error = append(fd, lines ? whole_lines(fd, status.st_size) : status.st_size, target);
    }
    if (!error)
        unlink(path);
    close(fd);
    return error;
}

static int is_listed(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* A mark, which says that a process was here, has no ending. */
static void take(sp_run_files_left *left, const char *folder, const char *name, const char *prefix)
{
    char path[PATH_MAX], ending[32];
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
        return;
    if (!ending_of(name, ending)) {
        left->processes++;
        unlink(path);
        return;
    }
    int error = move_behind(path, ending, prefix);
    if (error == EWOULDBLOCK)
        left->running++;
    else if (error)
        sp_tool_note("run: %s: %s: it stays where it is", path, strerror(error));
}

sp_run_files_left sp_run_gather(const char *folder, const char *prefix)
{
    sp_run_files_left left = {0};
    struct dirent **names;
    int count = scandir(folder, &names, is_listed, alphasort);
    for (int i = 0; i < count; i++) {
        take(&left, folder, names[i]->d_name, prefix);
        free(names[i]);
    }
    if (count >= 0)
        free(names);
    rmdir(folder);
    return left;
}
