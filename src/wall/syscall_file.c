/* SPDX-License-Identifier: Apache-2.0 */
#include "wall/syscall_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/descriptors.h"

enum { SHARE_OF_DESCRIPTORS = 8, KEPT_MAX = 1024, LINE_BYTES = 256 };

#define DESCRIPTORS_MAX (UINT32_C(1) << 30)

/* The inode of FD, which identifies its file; 0: FD is closed. */
static uint64_t inode_of(int fd)
{
    struct stat now;
    return fstat(fd, &now) == 0 ? now.st_ino : 0;
}

/* Open the directory of threads if it is not open. A program may close all descriptors that it does
 * not know, and open its own under the same number; then the directory is opened again. */
static bool find_tasks(sp_syscall_files *files)
{
    if (files->tasks >= 0 && inode_of(files->tasks) == files->inode)
        return true;
    int fd = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    files->tasks = fd < 0 ? -1 : sp_descriptor_move_up(fd, DESCRIPTORS_MAX);
    if (files->tasks >= 0)
        files->inode = inode_of(files->tasks);
    return files->tasks >= 0;
}

bool sp_syscall_files_open(sp_syscall_files *files)
{
    uint32_t share = sp_descriptors_limit(DESCRIPTORS_MAX) / SHARE_OF_DESCRIPTORS;
    *files = (sp_syscall_files){.limit = share < KEPT_MAX ? share : KEPT_MAX,
                                .random = sp_clock_monotonic_ns() | 1};
    files->tasks = -1;
    if (!find_tasks(files))
        return false;
    files->kept = calloc(files->limit + 1, sizeof(sp_syscall_file *));
    if (files->kept)
        return true;
    sp_syscall_files_close(files);
    errno = ENOMEM;
    return false;
}

void sp_syscall_files_close(sp_syscall_files *files)
{
    while (files->count > 0)
        sp_syscall_file_close(files, files->kept[0]);
    if (files->tasks >= 0 && inode_of(files->tasks) == files->inode)
        close(files->tasks);
    free(files->kept);
    *files = (sp_syscall_files){.tasks = -1};
}

static bool is_ours(const sp_syscall_file *file)
{
    return inode_of(file->fd_plus_one - 1) == file->inode;
}

static void forget(sp_syscall_files *files, sp_syscall_file *file)
{
    files->kept[file->kept] = files->kept[--files->count];
    files->kept[file->kept]->kept = file->kept;
    *file = (sp_syscall_file){0};
}

void sp_syscall_file_close(sp_syscall_files *files, sp_syscall_file *file)
{
    if (!file->fd_plus_one)
        return;
    if (is_ours(file))
        close(file->fd_plus_one - 1);
    forget(files, file);
}

/* Close one of the kept files, chosen at random: when threads are visited in turns, the least
 * recently used file is the next one that is needed. */
static void make_room(sp_syscall_files *files)
{
    files->random = files->random * 6364136223846793005u + 1442695040888963407u;
    if (files->count == files->limit)
        sp_syscall_file_close(files, files->kept[(files->random >> 33) % files->limit]);
}

int sp_syscall_files_open_other(sp_syscall_files *files, pid_t tid, const char *name)
{
    char path[48];
    snprintf(path, sizeof path, "%d/%s", (int)tid, name);
    return find_tasks(files) ? openat(files->tasks, path, O_RDONLY | O_CLOEXEC) : -1;
}

/* Keep FD in FILES, or close it. */
static void keep(sp_syscall_files *files, sp_syscall_file *file, int fd)
{
    fd = sp_descriptor_move_up(fd, DESCRIPTORS_MAX);
    if (fd < 0)
        return;
    if (files->limit == 0) {
        close(fd);
        return;
    }
    make_room(files);
    *file = (sp_syscall_file){.fd_plus_one = fd + 1, .kept = files->count, .inode = inode_of(fd)};
    files->kept[files->count++] = file;
}

static bool take_number(const char **text, int base, uint64_t *out)
{
    char *end;
    errno = 0;
    *out = strtoull(*text, &end, base);
    bool taken = end != *text && errno == 0 && (*end == ' ' || *end == '\n' || *end == 0);
    *text = end + (*end != 0);
    return taken;
}

bool sp_syscall_line_parse(const char *text, sp_syscall_line *out)
{
    uint64_t number;
    memset(out, 0, sizeof *out);
    if (!take_number(&text, 10, &number))
        return false;
    out->number = (int64_t)number;
    for (int i = 0; out->number >= 0 && i < 6; i++)
        if (!take_number(&text, 16, &out->arguments[i]))
            return false;
    return take_number(&text, 16, &out->sp) && take_number(&text, 16, &out->pc) && *text == 0;
}

static sp_syscall_state read_line(int fd, sp_syscall_line *out)
{
    char text[LINE_BYTES];
    ssize_t length = pread(fd, text, sizeof text - 1, 0);
    if (length <= 0) /* the kernel returns an empty text for a thread that is ending */
        return length == 0 || errno == ESRCH ? SP_SYSCALL_GONE : SP_SYSCALL_FAILED;
    text[length] = 0;
    if (strcmp(text, "running\n") == 0)
        return SP_SYSCALL_RUNNING;
    if (sp_syscall_line_parse(text, out))
        return SP_SYSCALL_BLOCKED;
    errno = EPROTO;
    return SP_SYSCALL_FAILED;
}

sp_syscall_state sp_syscall_file_read(sp_syscall_files *files, sp_syscall_file *file, pid_t tid,
                                      sp_syscall_line *out)
{
    if (file->fd_plus_one && !is_ours(file))
        forget(files, file);
    if (file->fd_plus_one)
        return read_line(file->fd_plus_one - 1, out);
    int fd = sp_syscall_files_open_other(files, tid, "syscall");
    if (fd < 0)
        return errno == ENOENT || errno == ESRCH ? SP_SYSCALL_GONE : SP_SYSCALL_FAILED;
    sp_syscall_state state = read_line(fd, out);
    int error = errno;
    if (state == SP_SYSCALL_RUNNING || state == SP_SYSCALL_BLOCKED)
        keep(files, file, fd);
    else
        close(fd);
    errno = error;
    return state;
}
