/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/read/other_processes.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/compiler.h"
#include "core/counted.h"
#include "core/path.h"
#include "core/reach.h"
#include "core/run_files.h"

enum { PID_TEXT = 32, NAMED_MOST = 6 };

/* One process that has files. */
typedef struct other {
    char pid[PID_TEXT]; /* "4711", or in a container "pid1" */
    uint64_t last_ns;   /* when the process last wrote one of its files; 0: not known */
} other;

typedef struct others {
    const char *base; /* the prefix without its folder */
    size_t base_length;
    int folder; /* descriptor */
    other *items;
    size_t count, capacity;
    const char *format; /* "jsonl" or "binpb": of the file that was found last */
} others;

/* The format of a file, by the END of its name after the prefix or the PID. NULL: no file of ours
 * ends so. */
static const char *format_of(const char *end)
{
    static const char *const signals[] = {".traces.", ".profiles."};
    static const char *const formats[] = {"jsonl", "binpb"};
    for (size_t i = 0; i < SP_ARRAY_LENGTH(signals); i++)
        for (size_t k = 0; k < SP_ARRAY_LENGTH(formats); k++)
            if (strncmp(end, signals[i], strlen(signals[i])) == 0 &&
                strcmp(end + strlen(signals[i]), formats[k]) == 0)
                return formats[k];
    return NULL;
}

/* Whether NAME may have content; *LAST_NS: when it was last written, or 0. */
static bool look_at(const others *others, const char *name, uint64_t *last_ns)
{
    struct stat status;
    *last_ns = 0;
    if (fstatat(others->folder, name, &status, 0) != 0)
        return true;
    *last_ns = (uint64_t)status.st_mtim.tv_sec * 1000000000 + (uint64_t)status.st_mtim.tv_nsec;
    return !S_ISREG(status.st_mode) || status.st_size > 0;
}

static other *find_pid(others *others, const char *pid, size_t length)
{
    for (size_t i = 0; i < others->count; i++)
        if (strncmp(others->items[i].pid, pid, length) == 0 && !others->items[i].pid[length])
            return &others->items[i];
    if (length >= PID_TEXT || !SP_REACH(others->items, others->count, others->capacity, 16))
        return NULL;
    other *made = &others->items[others->count++];
    *made = (other){.last_ns = 0};
    memcpy(made->pid, pid, length);
    return made;
}

/* Take the file NAME if it is not empty and is called BASE.PID.traces.jsonl, or the same with
 * profiles or binpb. */
static void take(others *others, const char *name)
{
    size_t length = others->base_length;
    if (strncmp(name, others->base, length) != 0 || name[length] != '.')
        return;
    const char *pid = name + length + 1;
    size_t word = strncmp(pid, "pid", 3) == 0 ? 3 : 0, digits = strspn(pid + word, "0123456789");
    bool is_pid = digits > 0 && (word || strtoull(pid, NULL, 10) > SP_RUNS_KEPT);
    const char *format = is_pid ? format_of(pid + word + digits) : NULL;
    uint64_t last_ns;
    if (!format || !look_at(others, name, &last_ns))
        return;
    other *found = find_pid(others, pid, word + digits);
    if (!found)
        return;
    found->last_ns = last_ns > found->last_ns ? last_ns : found->last_ns;
    others->format = format;
}

static int by_pid(const void *a, const void *b)
{
    const other *x = a, *y = b;
    return strverscmp(x->pid, y->pid);
}

static void find(others *others, const char *prefix)
{
    const char *slash = strrchr(prefix, '/');
    char *path = slash ? strndup(prefix, (size_t)(slash - prefix) + 1) : strdup(".");
    DIR *folder = path ? opendir(path) : NULL;
    others->base = sp_path_base(prefix);
    others->base_length = strlen(others->base);
    others->folder = folder ? dirfd(folder) : -1;
    for (const struct dirent *entry; folder && (entry = readdir(folder)) != NULL;)
        take(others, entry->d_name);
    if (folder)
        closedir(folder);
    free(path);
    if (others->count)
        qsort(others->items, others->count, sizeof *others->items, by_pid);
}

/* Whether one of FILES is of the process PID: "PREFIX.4711", or "PREFIX.4711.traces.jsonl". */
static bool is_named(const sp_operands *files, const char *prefix, const char *pid)
{
    size_t length = strlen(prefix), pid_length = strlen(pid);
    for (size_t i = 0; i < files->count; i++) {
        const char *name = files->items[i];
        if (strncmp(name, prefix, length) != 0 || name[length] != '.' ||
            strncmp(name + length + 1, pid, pid_length) != 0)
            continue;
        char after = name[length + 1 + pid_length];
        if (!after || after == '.')
            return true;
    }
    return false;
}

static void drop_named(others *others, const sp_operands *files, const char *prefix)
{
    size_t kept = 0;
    for (size_t i = 0; i < others->count; i++)
        if (!is_named(files, prefix, others->items[i].pid))
            others->items[kept++] = others->items[i];
    others->count = kept;
}

static bool has_ended(const other *other, uint64_t begin_ns)
{
    return begin_ns && other->last_ns && other->last_ns < begin_ns;
}

/* Remove the processes that had ended when this run began. Returns how many were removed. */
static size_t drop_earlier(others *others, uint64_t begin_ns)
{
    size_t kept = 0, before = others->count;
    for (size_t i = 0; i < before; i++)
        if (!has_ended(&others->items[i], begin_ns))
            others->items[kept++] = others->items[i];
    others->count = kept;
    return before - kept;
}

/* Whether the shell pattern of add_names matches the files of all processes. The pattern needs two
 * digits, so that it does not match earlier runs, PREFIX.1 to PREFIX.3. */
static bool have_pattern(const others *others)
{
    for (size_t i = 0; i < others->count; i++)
        if (strspn(others->items[i].pid, "0123456789") < 2)
            return false;
    return true;
}

/* Write what the user has to name to read the files of all processes: the names if they are few,
 * else a pattern. With EARLIER processes there is no pattern, because it would match these, too. */
static void add_names(char *out, size_t size, const others *others, const char *prefix,
                      size_t earlier)
{
    size_t used = 0;
    if (others->count > NAMED_MOST && !earlier && have_pattern(others)) {
        snprintf(out, size, "%.300s.[0-9][0-9]*.%s", prefix, others->format);
        return;
    }
    for (size_t i = 0; i < others->count && i < NAMED_MOST; i++)
        used += (size_t)snprintf(out + used, size - used, "%s%.300s.%s", i ? " " : "", prefix,
                                 others->items[i].pid);
    if (others->count > NAMED_MOST)
        snprintf(out + used, size - used, " and so on");
}

static void tell(char out[SP_OTHER_PROCESSES_TEXT], const others *others, const char *prefix,
                 size_t earlier)
{
    char names[SP_OTHER_PROCESSES_TEXT - 1000], left[128] = "";
    add_names(names, sizeof names, others, prefix, earlier);
    if (earlier)
        snprintf(left, sizeof left, "; those of %zu more ended before this run began", earlier);
    snprintf(out, SP_OTHER_PROCESSES_TEXT,
             "files of %s lie beside it, %.300s.PID.*: add %s to read all%s",
             SP_COUNTED(others->count, "other process"), prefix, names, left);
}

const char *sp_other_processes(char out[SP_OTHER_PROCESSES_TEXT], const char *prefix,
                               const sp_operands *files, uint64_t begin_ns)
{
    others others = {.count = 0};
    find(&others, prefix);
    drop_named(&others, files, prefix);
    size_t earlier = drop_earlier(&others, begin_ns);
    *out = 0;
    if (others.count)
        tell(out, &others, prefix, earlier);
    free(others.items);
    return out;
}

static size_t add_earlier(char *out, size_t used, const char *prefix, const char *pid)
{
    size_t room = SP_OTHER_PROCESSES_TEXT - used;
    int length = used > SP_OTHER_PROCESSES_TEXT / 2
                     ? 0
                     : snprintf(out + used, room, "%s%.300s.%s", used ? ", " : "", prefix, pid);
    return used + (size_t)length;
}

const char *sp_earlier_processes(char out[SP_OTHER_PROCESSES_TEXT], const char *prefix,
                                 const sp_operands *files, uint64_t begin_ns)
{
    others others = {.count = 0};
    size_t used = 0;
    *out = 0;
    for (int run = 1; run <= SP_RUNS_KEPT; run++) {
        char number[PID_TEXT];
        snprintf(number, sizeof number, "%d", run);
        if (is_named(files, prefix, number))
            used = add_earlier(out, used, prefix, number);
    }
    find(&others, prefix);
    for (size_t i = 0; i < others.count; i++)
        if (is_named(files, prefix, others.items[i].pid) && has_ended(&others.items[i], begin_ns))
            used = add_earlier(out, used, prefix, others.items[i].pid);
    free(others.items);
    return out;
}

size_t sp_prefix_length(const char *path)
{
    const char *name = strrchr(path, '/');
    for (const char *dot = name ? name : path; (dot = strchr(dot, '.')) != NULL; dot++)
        if (format_of(dot))
            return (size_t)(dot - path);
    return 0;
}
