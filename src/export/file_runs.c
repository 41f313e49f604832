/* SPDX-License-Identifier: Apache-2.0 */
/* The files of earlier runs with the same prefix. PREFIX.traces.jsonl and its siblings are those of
 * run 0, which is the current or the last one; PREFIX.1.traces.jsonl and its siblings are those of
 * the run before, and so on up to SP_RUNS_KEPT.
 *
 * 1. A start never writes into a file that has content: it moves run 0 to 1 first, 1 to 2 before
 * that, up to the first free number. Files without content are no run: it removes them.
 * 2. Each process holds a lock (flock) on the files that it writes. A start that finds one of them
 * locked leaves the prefix alone. Starts come one after the other (file_claim.c).
 * 3. A run is moved by links: first each file gets its new name beside the old one, then the old
 * names go. A crash in between leaves a run with names of two numbers, which the next start
 * recognizes by the equal inodes and completes. A file system without links gets renames, where a
 * crash may leave a run's files under two numbers.
 * 4. PREFIX.1 to PREFIX.3 are runs and never processes: a process with such a small PID uses
 * PREFIX.pid1 to PREFIX.pid3.
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
#include "core/regular_file.h"
#include "core/run_files.h"
#include "export/export_internal.h"

enum { LOCKS = SP_RUN_FILE_SIGNALS * SP_RUN_FILE_FORMATS, NO_FILE = -1 };

/* One run, and the files that it had when find_run searched them. */
typedef struct file_run {
    const char *prefix;
    unsigned number; /* 0: the current or the last one */
    sp_run_files files;
} file_run;

typedef struct file_name {
    char text[PATH_MAX];
} file_name;

/* Put PREFIX, the run's NUMBER (none for 0) and ENDING together. A name that is too long for the
 * kernel becomes "", which finds no file. */
static const char *put_name(file_name *name, const char *prefix, unsigned number,
                            const char *ending)
{
    int length = number ? snprintf(name->text, sizeof name->text, "%s.%u%s", prefix, number, ending)
                        : snprintf(name->text, sizeof name->text, "%s%s", prefix, ending);
    if (length < 0 || (size_t)length >= sizeof name->text)
        name->text[0] = '\0';
    return name->text;
}

/* The name of RUN's FILE when the run's number is higher by LATER. */
static const char *name_of(file_name *name, const file_run *run, const sp_run_file *file,
                           unsigned later)
{
    char ending[SP_RUN_FILE_ENDING];
    return put_name(name, run->prefix, run->number + later, sp_run_file_ending(ending, *file));
}

/* Returns 0, or ENOMEM. */
static int find_run(file_run *run, const char *prefix, unsigned number)
{
    file_name name;
    *run = (file_run){.prefix = prefix, .number = number};
    return sp_run_files_find(&run->files, put_name(&name, prefix, number, "")) ? 0 : ENOMEM;
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

/* Lock the file PATH until *FD is closed. *FD is NO_FILE when there is no file that can be locked.
 * Returns 0, or EWOULDBLOCK. */
static int lock_file(const char *path, int *fd)
{
    *fd = sp_regular_file_open(path, O_RDWR, NULL);
    if (*fd < 0 && errno == EACCES) /* another user's file: flock works without write access */
        *fd = sp_regular_file_open(path, O_RDONLY, NULL);
    return *fd < 0 ? 0 : sp_file_runs_lock(*fd, path);
}

static void unlock_all(int fds[LOCKS])
{
    for (size_t i = 0; i < LOCKS; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

/* Lock the files of run NUMBER that have no number of a part: only these are written to. Returns 0,
 * or EWOULDBLOCK when another process has locked one. Call unlock_all with FDS in both cases. */
static int lock_all(const char *prefix, unsigned number, int fds[LOCKS])
{
    file_run run = {.prefix = prefix, .number = number};
    file_name name;
    int error = 0;
    for (size_t i = 0; i < LOCKS; i++)
        fds[i] = NO_FILE;
    for (uint8_t i = 0; i < LOCKS && !error; i++) {
        sp_run_file file = {.signal = i % SP_RUN_FILE_SIGNALS, .format = i / SP_RUN_FILE_SIGNALS};
        error = lock_file(name_of(&name, &run, &file, 0), &fds[i]);
    }
    return error;
}

/* ---- moving ---- */

static bool has_content(const file_run *run)
{
    file_name name;
    struct stat status;
    bool found = false;
    for (size_t i = 0; i < run->files.count; i++)
        found |= stat(name_of(&name, run, &run->files.items[i], 0), &status) == 0 &&
                 S_ISREG(status.st_mode) && status.st_size > 0;
    return found;
}

/* Whether FILE already has the name with the next number, too. */
static bool has_new_name(const file_run *run, const sp_run_file *file)
{
    file_name name;
    struct stat from, to;
    return lstat(name_of(&name, run, file, 0), &from) == 0 &&
           lstat(name_of(&name, run, file, 1), &to) == 0 && is_same(&from, &to);
}

static bool is_half_moved(const file_run *run)
{
    bool found = false;
    for (size_t i = 0; i < run->files.count; i++)
        found |= has_new_name(run, &run->files.items[i]);
    return found;
}

/* Returns 0, or errno. */
static int add_new_name(const file_run *run, const sp_run_file *file)
{
    file_name from, to;
    if (has_new_name(run, file))
        return 0;
    name_of(&from, run, file, 0);
    if (link(from.text, name_of(&to, run, file, 1)) == 0)
        return 0;
    return errno != EEXIST && rename(from.text, to.text) == 0 ? 0 : errno;
}

/* Give RUN the next number. Only an interrupted move of the same files may have left files there.
 * Returns 0, or errno. */
static int move_run(const file_run *run)
{
    file_name name;
    int error = 0;
    for (size_t i = 0; i < run->files.count && !error; i++)
        error = add_new_name(run, &run->files.items[i]);
    for (size_t i = 0; i < run->files.count && !error; i++)
        if (has_new_name(run, &run->files.items[i]) &&
            unlink(name_of(&name, run, &run->files.items[i], 0)) != 0)
            error = errno;
    return error;
}

/* Returns 0, or errno: EWOULDBLOCK when a process still writes it. */
static int remove_run(const file_run *run)
{
    file_name name;
    int fds[LOCKS], error = lock_all(run->prefix, run->number, fds);
    for (size_t i = 0; i < run->files.count && !error; i++)
        if (unlink(name_of(&name, run, &run->files.items[i], 0)) != 0 && errno != ENOENT)
            error = errno;
    unlock_all(fds);
    return error;
}

static int make_free(const char *prefix, unsigned number, bool *removed);

/* Give RUN, which has files, the next number. *REMOVED: no number was free, so the oldest run was
 * removed. Returns 0, or errno. */
static int age_run(const file_run *run, bool *removed)
{
    if (run->number == SP_RUNS_KEPT) {
        *removed = true;
        return remove_run(run);
    }
    int error = is_half_moved(run) ? 0 : make_free(run->prefix, run->number + 1, removed);
    return error ? error : move_run(run);
}

/* Make NUMBER free: the runs from NUMBER up to the first free number get the next number each.
 * Returns 0, or errno. */
static int make_free(const char *prefix, unsigned number, bool *removed)
{
    file_run run;
    int error = find_run(&run, prefix, number);
    if (!error && run.files.count)
        error = age_run(&run, removed);
    sp_run_files_deinit(&run.files);
    return error;
}

static void say_kept(const char *prefix, bool removed)
{
    if (removed)
        sp_log_warn("export",
                    "%s: the run before is kept as %s.1, and %s.%d, the oldest, is removed: move "
                    "away what you want to keep longer",
                    prefix, prefix, prefix, SP_RUNS_KEPT);
    else
        sp_log_info("export", "%s: the run before is kept as %s.1", prefix, prefix);
}

/* Remove the empty files of PREFIX, so that this run makes new ones: the command takes the time at
 * which a file was made for the beginning of the run. Another user's file, and one with a second
 * name, stays. FDS: as lock_all left them. A file that cannot be locked stays, too: another process
 * may have it open. */
static void remove_empty(const char *prefix, const int fds[LOCKS])
{
    const file_run run = {.prefix = prefix};
    file_name name;
    struct stat status;
    for (uint8_t i = 0; i < LOCKS; i++) {
        sp_run_file file = {.signal = i % SP_RUN_FILE_SIGNALS, .format = i / SP_RUN_FILE_SIGNALS};
        if (fds[i] >= 0 && flock(fds[i], LOCK_EX | LOCK_NB) == 0 &&
            lstat(name_of(&name, &run, &file, 0), &status) == 0 && S_ISREG(status.st_mode) &&
            status.st_size == 0 && status.st_nlink == 1 && status.st_uid == geteuid())
            unlink(name.text);
    }
}

/* Called with the locks held, which are FDS. */
static int keep_locked(const char *prefix, const int fds[LOCKS])
{
    file_run run;
    bool removed = false;
    int error = find_run(&run, prefix, 0);
    if (!error && (has_content(&run) || is_half_moved(&run))) {
        error = age_run(&run, &removed);
        if (!error)
            say_kept(prefix, removed);
    } else if (!error) {
        remove_empty(prefix, fds);
    }
    sp_run_files_deinit(&run.files);
    return error;
}

int sp_file_runs_keep(const char *prefix)
{
    int fds[LOCKS], error = lock_all(prefix, 0, fds);
    if (!error)
        error = keep_locked(prefix, fds);
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
    snprintf(out, size, "%s.%s%ld", prefix, pid <= SP_RUNS_KEPT ? "pid" : "", pid);
}

/* Give this run a prefix with its PID, as a forked child has, because of ERROR. False when memory
 * is short. */
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

/* Called with the directory claimed. */
static bool open_claimed(sp_file files[2], sp_export_config *config, sp_export_counters *counters)
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

bool sp_file_runs_open(sp_file files[2], sp_export_config *config, sp_export_counters *counters)
{
    int claim = sp_file_claim_begin(config->file_prefix);
    bool ok = open_claimed(files, config, counters);
    sp_file_claim_end(claim);
    return ok;
}
