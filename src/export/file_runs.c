/* SPDX-License-Identifier: Apache-2.0 */
/* The files of earlier runs with the same prefix. PREFIX.traces.jsonl and its siblings are those of run 0, which is the current or the
 * last one; PREFIX.1.traces.jsonl and its siblings are those of the run before, and so on up to SP_FILE_RUNS_KEPT.
 *
 * 1. A start never writes into a file that has content: it moves run 0 to 1 first, 1 to 2 before that, up to the first free number.
 * 2. Each process holds a lock (flock) on the files that it writes. A start that finds one of them locked leaves the prefix alone.
 * 3. A run is moved by links: first each file gets its new name beside the old one, then the old names go. A crash in between leaves
 *    a run with names of two numbers, which the next start recognizes by the equal inodes and completes. A file system without links
 *    gets renames, where a crash may leave a run's files under two numbers.
 * 4. PREFIX.1 to PREFIX.3 are runs and never processes: what a process with so small a PID has for itself is PREFIX.pid1 to PREFIX.pid3.
 *
 * Threads: the exporter's. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/log.h"
#include "export/export_internal.h"

static const char *const endings[] = {"traces.jsonl", "profiles.jsonl", "traces.binpb",
                                      "profiles.binpb"};
enum { ENDINGS = SP_ARRAY_LENGTH(endings), FREE = -1 };

typedef struct file_name {
    char text[PATH_MAX];
} file_name;

/* A name that is too long for the kernel is empty, as which no file is found. */
static const char *name_of(file_name *name, const char *prefix, unsigned run, size_t ending)
{
    int length =
        run ? snprintf(name->text, sizeof name->text, "%s.%u.%s", prefix, run, endings[ending])
            : snprintf(name->text, sizeof name->text, "%s.%s", prefix, endings[ending]);
    if (length < 0 || (size_t)length >= sizeof name->text)
        name->text[0] = '\0';
    return name->text;
}

/* ---- locks ---- */

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

int sp_file_runs_lock(int fd, const char *path)
{
    struct stat own, named;
    if (fstat(fd, &own) != 0 || !S_ISREG(own.st_mode))
        return 0;
    if (flock(fd, LOCK_EX | LOCK_NB) != 0)
        return errno == EWOULDBLOCK ? EWOULDBLOCK : 0;
    /* Another start may have moved the file since it was opened, and has begun its own. */
    return stat(path, &named) == 0 && is_same(&own, &named) ? 0 : EWOULDBLOCK;
}

/* Lock the file PATH until *FD is closed; FREE: there is none that can be locked. Returns 0, or EWOULDBLOCK. */
static int lock_file(const char *path, int *fd)
{
    struct stat status;
    *fd = FREE;
    /* A FIFO must not be opened: its writer would take us for the reader. */
    if (stat(path, &status) != 0 || !S_ISREG(status.st_mode))
        return 0;
    *fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    return *fd < 0 ? 0 : sp_file_runs_lock(*fd, path);
}

static void unlock_all(int fds[ENDINGS])
{
    for (size_t i = 0; i < ENDINGS; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

/* Returns 0, or EWOULDBLOCK when another process has one of RUN's files. FDS are for unlock_all in any case. */
static int lock_all(const char *prefix, unsigned run, int fds[ENDINGS])
{
    file_name name;
    int error = 0;
    for (size_t i = 0; i < ENDINGS; i++)
        fds[i] = FREE;
    for (size_t i = 0; i < ENDINGS && !error; i++)
        error = lock_file(name_of(&name, prefix, run, i), &fds[i]);
    return error;
}

/* ---- moving ---- */

static bool has_content(const char *prefix)
{
    file_name name;
    struct stat status;
    bool found = false;
    for (size_t i = 0; i < ENDINGS; i++)
        found |= stat(name_of(&name, prefix, 0, i), &status) == 0 && S_ISREG(status.st_mode) &&
                 status.st_size > 0;
    return found;
}

/* Whether RUN has the file with this ending. */
static bool has_file(const char *prefix, unsigned run, size_t ending, struct stat *status)
{
    file_name name;
    return lstat(name_of(&name, prefix, run, ending), status) == 0;
}

static bool is_there(const char *prefix, unsigned run)
{
    struct stat status;
    bool found = false;
    for (size_t i = 0; i < ENDINGS; i++)
        found |= has_file(prefix, run, i, &status);
    return found;
}

/* Whether one of RUN's files has the name that it gets as RUN + 1 already. */
static bool has_new_name(const char *prefix, unsigned run, size_t ending)
{
    struct stat from, to;
    return has_file(prefix, run, ending, &from) && has_file(prefix, run + 1, ending, &to) &&
           is_same(&from, &to);
}

static bool is_half_moved(const char *prefix, unsigned run)
{
    bool found = false;
    for (size_t i = 0; i < ENDINGS; i++)
        found |= has_new_name(prefix, run, i);
    return found;
}

/* Returns 0, or errno. */
static int add_new_name(const char *prefix, unsigned run, size_t ending)
{
    file_name from, to;
    struct stat status;
    if (!has_file(prefix, run, ending, &status) || has_new_name(prefix, run, ending))
        return 0;
    name_of(&from, prefix, run, ending);
    if (link(from.text, name_of(&to, prefix, run + 1, ending)) == 0)
        return 0;
    return errno != EEXIST && rename(from.text, to.text) == 0 ? 0 : errno;
}

/* RUN becomes RUN + 1, which is free but for what an interrupted move of the same files has left. Returns 0, or errno. */
static int move_run(const char *prefix, unsigned run)
{
    file_name name;
    int error = 0;
    for (size_t i = 0; i < ENDINGS && !error; i++)
        error = add_new_name(prefix, run, i);
    for (size_t i = 0; i < ENDINGS && !error; i++)
        if (has_new_name(prefix, run, i) && unlink(name_of(&name, prefix, run, i)) != 0)
            error = errno;
    return error;
}

/* Returns 0, or errno: EWOULDBLOCK when a process still writes it. */
static int remove_run(const char *prefix, unsigned run)
{
    file_name name;
    int fds[ENDINGS], error = lock_all(prefix, run, fds);
    for (size_t i = 0; i < ENDINGS && !error; i++)
        if (unlink(name_of(&name, prefix, run, i)) != 0 && errno != ENOENT)
            error = errno;
    unlock_all(fds);
    return error;
}

/* Move RUN and those before it up, up to the first free number. *REMOVED: there was none. Returns 0, or errno. */
static int make_free(const char *prefix, unsigned run, bool *removed)
{
    if (!is_there(prefix, run))
        return 0;
    if (run == SP_FILE_RUNS_KEPT) {
        *removed = true;
        return remove_run(prefix, run);
    }
    int error = is_half_moved(prefix, run) ? 0 : make_free(prefix, run + 1, removed);
    return error ? error : move_run(prefix, run);
}

static void say_kept(const char *prefix, bool removed)
{
    if (removed)
        sp_log_warn("export",
                    "%s: the run before is kept as %s.1, and %s.%d, the oldest, is removed: move "
                    "away what you want to keep longer",
                    prefix, prefix, prefix, SP_FILE_RUNS_KEPT);
    else
        sp_log_info("export", "%s: the run before is kept as %s.1", prefix, prefix);
}

int sp_file_runs_keep(const char *prefix)
{
    int fds[ENDINGS], error = lock_all(prefix, 0, fds);
    bool removed = false;
    if (!error && has_content(prefix)) {
        error = make_free(prefix, 0, &removed);
        if (!error)
            say_kept(prefix, removed);
    }
    unlock_all(fds);
    return error;
}

/* ---- the files of this run ---- */

/* False when memory is short. */
static bool init_files(sp_file files[2], const sp_export_config *config,
                       sp_export_counters *counters)
{
    for (int i = 0; i < 2; i++) {
        if (i == SP_TRACES && !config->traces_enabled)
            continue;
        if (!sp_file_init(&files[i], config, (sp_telemetry_signal)i, counters))
            return false;
    }
    return true;
}

void sp_file_own_prefix(char *out, size_t size, const char *prefix, long pid)
{
    snprintf(out, size, "%s.%s%ld", prefix, pid <= SP_FILE_RUNS_KEPT ? "pid" : "", pid);
}

/* As a forked child has it. False when memory is short. */
static bool use_own_prefix(sp_export_config *config, int error)
{
    size_t size = strlen(config->file_prefix) + sizeof ".pid-9223372036854775808";
    char *prefix = malloc(size);
    if (!prefix)
        return false;
    sp_file_own_prefix(prefix, size, config->file_prefix, getpid());
    if (error == EWOULDBLOCK)
        sp_log_warn("export",
                    "%s: another process, or an earlier run of this one, writes these files: this "
                    "run writes to %s",
                    config->file_prefix, prefix);
    else
        sp_log_warn("export",
                    "%s: the files of the run before cannot be moved: %s: this run writes to %s",
                    config->file_prefix, strerror(error), prefix);
    free(config->file_prefix);
    config->file_prefix = prefix;
    return true;
}

bool sp_file_runs_open(sp_file files[2], sp_export_config *config, sp_export_counters *counters)
{
    int error = sp_file_runs_keep(config->file_prefix);
    if (!error && !init_files(files, config, counters))
        return false;
    if (!error && !files[SP_TRACES].in_use && !files[SP_PROFILES].in_use)
        return true;
    for (int i = 0; i < 2; i++)
        sp_file_deinit(&files[i]);
    if (!use_own_prefix(config, error ? error : EWOULDBLOCK))
        return false;
    error = sp_file_runs_keep(config->file_prefix);
    if (error)
        sp_log_warn("export", "%s: %s: what this run has for these files is dropped",
                    config->file_prefix, strerror(error));
    return init_files(files, config, counters);
}
