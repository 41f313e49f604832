/* SPDX-License-Identifier: Apache-2.0 */
/* Files that are limited in size: PREFIX.traces.jsonl is always the one that is written to. A
 * record for which it has no room begins a new one, and the full one is kept as the next part,
 * PREFIX.traces.0001.jsonl, PREFIX.traces.0002.jsonl and so on.
 *
 * 1. A record is in one file, whole. One that is larger than the limit has a file for itself.
 * 2. At each moment the file that is written to has its name and this process's lock: the new one
 * is made, and locked, under another name, the full one gets its number beside its name, and the
 * new one takes that name. A crash in between leaves the full file with both names. A file system
 * without links gets renames, where a crash may leave the full file with its number alone.
 * 3. When no new file can be made, writing goes on in the full one. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/append.h"
#include "core/log.h"
#include "core/run_files.h"
#include "export/export_internal.h"

typedef struct file_name {
    char text[PATH_MAX];
} file_name;

/* FILE's path with the ending of part number PART. A name that is too long for the kernel becomes
 * "", which finds no file. */
static const char *part_of(file_name *name, const sp_file *file, uint32_t part)
{
    char ending[SP_RUN_FILE_ENDING];
    sp_run_file of = {.signal = (uint8_t)file->signal, .format = file->format != SP_OTLP_JSON};
    size_t prefix = strlen(file->path) - strlen(sp_run_file_ending(ending, of));
    of.part = part;
    int length = snprintf(name->text, sizeof name->text, "%.*s%s", (int)prefix, file->path,
                          sp_run_file_ending(ending, of));
    if (length < 0 || (size_t)length >= sizeof name->text)
        name->text[0] = '\0';
    return name->text;
}

/* The name of the next file until it takes the place of the full one. */
static const char *new_of(file_name *name, const sp_file *file)
{
    int length = snprintf(name->text, sizeof name->text, "%s.new", file->path);
    if (length < 0 || (size_t)length >= sizeof name->text)
        name->text[0] = '\0';
    return name->text;
}

/* Give the full file its number. *BESIDE: it has both names now; else it was renamed. Returns 0, or
 * errno. */
static int number_full(sp_file *file, bool *beside)
{
    file_name part;
    while (!(*beside = link(file->path, part_of(&part, file, file->parts + 1)) == 0)) {
        if (errno == EEXIST && file->parts + 1 < SP_FILE_PARTS_MAX)
            file->parts++;
        else
            return errno != EEXIST && rename(file->path, part.text) == 0 ? 0 : errno;
    }
    return 0;
}

static void undo_number(const sp_file *file, bool beside)
{
    file_name part;
    part_of(&part, file, file->parts + 1);
    if (beside)
        unlink(part.text);
    else
        rename(part.text, file->path);
}

/* Put the new file NAME in the place of the full one. Returns 0, or errno. */
static int replace_full(sp_file *file, const char *name)
{
    bool beside;
    int error = number_full(file, &beside);
    if (error)
        return error;
    if (rename(name, file->path) == 0) {
        file->parts++;
        return 0;
    }
    error = errno;
    undo_number(file, beside);
    return error;
}

/* Remove the oldest part when there are more than maximum_parts files, the current one included. */
static void remove_oldest(sp_file *file)
{
    file_name part;
    if (!file->maximum_parts || file->parts < file->maximum_parts)
        return;
    part_of(&part, file, file->parts + 1 - file->maximum_parts);
    if (unlink(part.text) != 0 && errno != ENOENT &&
        sp_repeat_allows(&file->stuck, sp_clock_monotonic_ns()))
        sp_log_warn("export", "removing %s: %s: remove it by hand", part.text, strerror(errno));
}

/* Returns 0, or errno. */
static int begin_part(sp_file *file, int *fd)
{
    file_name name;
    *fd = sp_append_open(new_of(&name, file), O_TRUNC | O_NOFOLLOW);
    if (*fd < 0)
        return errno;
    int error = sp_file_runs_lock(*fd, name.text);
    if (!error)
        error = replace_full(file, name.text);
    if (error) {
        unlink(name.text);
        close(*fd);
    }
    return error;
}

bool sp_file_begin_part(sp_file *file, int *fd)
{
    int error = begin_part(file, fd);
    if (!error) {
        remove_oldest(file);
        return true;
    }
    if (sp_repeat_allows(&file->stuck, sp_clock_monotonic_ns()))
        sp_log_warn("export",
                    "%s is full (SPANPROF_FILE_MAX_BYTES), and no new file can be begun: %s: it "
                    "grows on",
                    file->path, strerror(error));
    return false;
}

void sp_file_forget_new(const sp_file *file)
{
    file_name name;
    unlink(new_of(&name, file));
}
