/* SPDX-License-Identifier: Apache-2.0 */
/* Gathers the files of a run: a run has one pair of files, which its first process writes. Each
 * other process writes its own files, and here they are appended to those of the first process.
 * Files of both formats can be appended, because they are sequences of requests. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tool/command/run.h"
#include "tool/read/wire.h"
#include "tool/text/messages.h"

static const char *const kinds[] = {".traces.", ".profiles."};

/* Write the ending of NAME without the number of a part, such as ".traces.jsonl", to OUT. Returns
 * false when NAME is not a file of traces or profiles. */
static bool ending_of(const char *name, char out[32])
{
    const char *format = strrchr(name, '.');
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strstr(name, kinds[i]))
            return format && snprintf(out, 32, "%s%s", kinds[i], format + 1) < 32;
    return false;
}

static off_t whole_lines(int fd, off_t size)
{
    char last;
    while (size > 0 && pread(fd, &last, 1, size - 1) == 1 && last != '\n')
        size--;
    return size;
}

/* The bytes of whole messages. Each message follows its length, a varint. */
static off_t whole_messages(int fd, off_t size)
{
    uint8_t head[10];
    for (off_t at = 0;;) {
        ssize_t got = pread(fd, head, sizeof head, at);
        uint64_t length = 0, left = (uint64_t)(size - at);
        size_t used = 0;
        if (got <= 0 || !sp_wire_varint(head, (size_t)got, &used, &length) || used > left ||
            length > left - used)
            return at;
        at += (off_t)(used + length);
    }
}

/* The number of bytes of FD that are whole requests. A process that was killed while it wrote
 * leaves a part of a request at the end, and readers refuse a file that has such a part in the
 * middle. */
static off_t whole_bytes(int fd, const char *ending)
{
    struct stat status;
    if (fstat(fd, &status) != 0)
        return 0;
    bool lines = strcmp(strrchr(ending, '.'), ".jsonl") == 0;
    return lines ? whole_lines(fd, status.st_size) : whole_messages(fd, status.st_size);
}

/* Find the end of the last whole request in TO, where the next request belongs, and cut off the
 * bytes after it. If a process still writes TO, it holds the lock, and its last write may be
 * incomplete: then nothing is cut off. */
static off_t end_of_requests(int to, const char *ending)
{
    off_t end = lseek(to, 0, SEEK_END);
    bool is_free = flock(to, LOCK_EX | LOCK_NB) == 0;
    off_t whole = is_free ? whole_bytes(to, ending) : end;
    return whole < end && ftruncate(to, whole) == 0 ? whole : end;
}

/* Append the whole requests of FROM to the file PATH. Returns 0 or an errno. */
static int append(int from, const char *ending, const char *path)
{
    int to = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    char block[1 << 16];
    int error = to < 0 ? errno : 0;
    off_t size = whole_bytes(from, ending);
    off_t before = to < 0 || size == 0 ? 0 : end_of_requests(to, ending);
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
    if (to >= 0 && size > 0 && error &&
        ftruncate(to, before) != 0) /* a part of a request would make the whole file unreadable */
        error = errno;
    if (to >= 0 && close(to) != 0 && !error)
        error = errno;
    return error;
}

/* Append PATH to the file of PREFIX with ENDING, and remove PATH. Returns 0, EWOULDBLOCK when a
 * process still writes PATH, or another errno. */
static int move_behind(const char *path, const char *ending, const char *prefix)
{
    char target[PATH_MAX];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno;
    int error = flock(fd, LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
    if (!error && snprintf(target, sizeof target, "%s%s", prefix, ending) >= (int)sizeof target)
        error = ENAMETOOLONG;
    if (!error)
        error = append(fd, ending, target);
    if (!error)
        unlink(path);
    close(fd);
    return error;
}

static int is_listed(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* Append a file to those of PREFIX. A file without an ending is a mark: it says that a process of
 * the run was recorded. Marks stay in the folder. */
static void take(sp_run_files_left *left, const char *folder, const char *name, const char *prefix)
{
    char path[PATH_MAX], ending[32];
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
        return;
    if (!ending_of(name, ending)) {
        left->processes++;
        return;
    }
    int error = move_behind(path, ending, prefix);
    if (error == EWOULDBLOCK)
        left->running++;
    else if (error)
        sp_tool_note("run: %s: %s: it stays where it is", path, strerror(error));
}

/* The file `first` says that the prefix of the run has its process, so it goes last: a later
 * process must not take this prefix. When another process has come in between, `first` is made
 * again. */
static void remove_folder(const sp_run *run, struct dirent *const *names, int count)
{
    char path[PATH_MAX + NAME_MAX + 2], ending[32];
    for (int i = 0; i < count; i++) {
        snprintf(path, sizeof path, "%s/%s", run->folder, names[i]->d_name);
        if (!ending_of(names[i]->d_name, ending) && strcmp(names[i]->d_name, "first") != 0)
            unlink(path);
    }
    snprintf(path, sizeof path, "%s/first", run->folder);
    if (unlink(path) == 0 && rmdir(run->folder) != 0 && errno == ENOTEMPTY)
        close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    else
        rmdir(run->folder);
}

/* Whether process MARK lives and has no file yet. A mark is PID, or PID.2 and so on. */
static bool is_starting(const char *mark, struct dirent *const *names, int count)
{
    size_t length = strlen(mark);
    char ending[32];
    long pid = strtol(mark, NULL, 10);
    for (int i = 0; i < count; i++)
        if (strncmp(names[i]->d_name, mark, length) == 0 && ending_of(names[i]->d_name, ending))
            return false;
    return pid > 0 && kill((pid_t)pid, 0) == 0;
}

/* While a process writes a file in the folder, or is about to, all marks stay, so that later
 * processes choose names that no other process has. */
static void gather_folder(sp_run_files_left *left, const sp_run *run)
{
    struct dirent **names;
    int count = scandir(run->folder, &names, is_listed, alphasort);
    for (int i = 0; i < count; i++)
        take(left, run->folder, names[i]->d_name, run->prefix);
    for (int i = 0; i < count; i++)
        left->running += is_starting(names[i]->d_name, names, count);
    if (!left->running)
        remove_folder(run, names, count);
    for (int i = 0; i < count; i++)
        free(names[i]);
    if (count >= 0)
        free(names);
}

/* ---- forked children of the first process ---- */

/* Whether NUMBER, the part of a name after the prefix and a dot, is PID.traces.jsonl or the
 * like. */
static bool is_of_a_child(const char *number)
{
    size_t digits = strspn(number, "0123456789.");
    char ending[32];
    return digits > 1 && number[digits - 1] == '.' && ending_of(number + digits - 1, ending);
}

/* Whether a file existed before the run. Files of earlier runs may have names of children, too, and
 * the first process may have renamed them. Times are no help: clocks are set back, and a file
 * server has its own clock. */
static bool was_there_before(const sp_run_before *before, const struct stat *status)
{
    for (size_t i = 0; i < before->count; i++) {
        const sp_run_known_file *file = &before->files[i];
        if (file->device == status->st_dev && file->inode == status->st_ino &&
            file->bytes == status->st_size)
            return true;
    }
    return false;
}

/* Call VISIT for each regular file with PREFIX, which is absolute. */
static void visit_files(const char *prefix, void *user,
                        void (*visit)(void *user, const char *name, const struct stat *status))
{
    char folder[PATH_MAX], path[PATH_MAX];
    const char *base = strrchr(prefix, '/') + 1;
    size_t length = strlen(base);
    struct stat status;
    struct dirent **names;
    snprintf(folder, sizeof folder, "%.*s", (int)(base - prefix), prefix);
    int count = scandir(folder, &names, is_listed, alphasort);
    for (int i = 0; i < count; i++) {
        const char *name = names[i]->d_name;
        if (strncmp(name, base, length) == 0 && name[length] == '.' &&
            snprintf(path, sizeof path, "%s%s", folder, name) < (int)sizeof path &&
            stat(path, &status) == 0 && S_ISREG(status.st_mode))
            visit(user, name, &status);
        free(names[i]);
    }
    if (count >= 0)
        free(names);
}

static void keep_in_mind(void *user, const char *name, const struct stat *status)
{
    sp_run_before *before = user;
    (void)name;
    sp_run_known_file *files = reallocarray(before->files, before->count + 1, sizeof *files);
    if (!files)
        return;
    before->files = files;
    files[before->count++] = (sp_run_known_file){status->st_dev, status->st_ino, status->st_size};
}

void sp_run_look_before(sp_run *run)
{
    visit_files(run->prefix, &run->before, keep_in_mind);
}

typedef struct gathering {
    const sp_run *run;
    sp_run_files_left *left;
} gathering;

static void take_of_a_child(void *user, const char *name, const struct stat *status)
{
    const gathering *all = user;
    const char *base = strrchr(all->run->prefix, '/') + 1;
    char folder[PATH_MAX];
    if (!is_of_a_child(name + strlen(base) + 1) || was_there_before(&all->run->before, status))
        return;
    snprintf(folder, sizeof folder, "%.*s", (int)(base - all->run->prefix), all->run->prefix);
    all->left->processes += strstr(name, kinds[0]) != NULL;
    take(all->left, folder, name, all->run->prefix);
}

sp_run_files_left sp_run_gather(const sp_run *run)
{
    sp_run_files_left left = {0};
    gather_folder(&left, run);
    visit_files(run->prefix, &(gathering){.run = run, .left = &left}, take_of_a_child);
    return left;
}
