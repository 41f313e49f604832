/* SPDX-License-Identifier: Apache-2.0 */
/* These files can give any name to any address, and every user can write to /tmp. So a file is used
 * only when it is a regular file, not a link, and belongs to the user that this process runs as.
 * The files grow while they are read. They are never mapped, because access to a mapped file that
 * shrank would end the process by a signal.
 *
 * Names are looked up when a window has ended. The last name written by then is that of the code
 * that ran, unless the code was replaced in that window. */
#include "symbol/jit_names.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/compiler.h"
#include "core/log.h"
#include "core/mappings.h"
#include "core/regular_file.h"
#include "symbol/jitdump.h"
#include "symbol/perf_map.h"

enum {
    DUMPS_MAX = 4,
    READ_BYTES = 2 * SP_JITDUMP_RECORD_MAX,
    ROUND_BYTES = 32 * 1024 * 1024, /* of one file in one round: rings must be drained */
    MARK_BYTES = 64,
    SCAN_SHARE = 1000, /* the map of the process is read for 1/1000 of the time */
};

/* One file and how far it has been read. mark: the last bytes before `done`; they differ when the
 * file was written anew instead of appended to. warned: its warning was given. */
typedef struct grown_file {
    char *path;
    uid_t owner; /* the user that must own the file */
    dev_t device;
    ino_t inode;
    uint64_t done;
    uint8_t mark[MARK_BYTES];
    size_t mark_length;
    bool warned;
} grown_file;

typedef struct dump_file {
    grown_file file;
    sp_jitdump dump;
} dump_file;

struct sp_jit_names {
    grown_file map_file;
    sp_perf_map map;
    dump_file dumps[DUMPS_MAX];
    unsigned dump_count;
    pid_t process;
    bool has_read; /* the files were read in this round */
    uint64_t scanned_ns, scan_cost_ns;
};

/* READER's function that reads more of a file, with the arguments and result of sp_jitdump_read. */
typedef uint64_t read_more(void *reader, const uint8_t *data, size_t length, uint64_t available);
typedef void read_anew(void *reader);

typedef struct file_reader {
    read_more *more;
    read_anew *anew;
    void *reader;
    uint8_t *buffer; /* READ_BYTES */
} file_reader;

static void warn(grown_file *file, const char *problem)
{
    if (!file->warned)
        sp_log_warn("symbols", "reading %s: %s: its names are not used", file->path, problem);
    file->warned = true;
}

/* Open FILE and fill *STATUS. Returns a descriptor; -1 when there is no file, or when it is not to
 * be trusted. */
static int open_own(grown_file *file, struct stat *status)
{
    int fd = sp_regular_file_open(file->path, O_NOFOLLOW, status);
    if (fd >= 0 && status->st_uid == file->owner)
        return fd;
    if (fd >= 0 || errno == EINVAL)
        warn(file, "not a regular file of the user that the process runs as");
    else if (errno != ENOENT)
        warn(file, errno == ELOOP ? "a symbolic link" : strerror(errno));
    if (fd >= 0)
        close(fd);
    return -1;
}

/* Whether the file is the one that was read before and has only grown, as far as `mark` shows. */
static bool is_grown(const grown_file *file, int fd, const struct stat *status)
{
    uint8_t mark[MARK_BYTES];
    if (status->st_dev != file->device || status->st_ino != file->inode ||
        (uint64_t)status->st_size < file->done)
        return false;
    ssize_t length = pread(fd, mark, file->mark_length, (off_t)(file->done - file->mark_length));
    return length == (ssize_t)file->mark_length && memcmp(mark, file->mark, file->mark_length) == 0;
}

static void set_mark(grown_file *file, int fd)
{
    size_t wanted = file->done < MARK_BYTES ? (size_t)file->done : MARK_BYTES;
    ssize_t length = pread(fd, file->mark, wanted, (off_t)(file->done - wanted));
    file->mark_length = length == (ssize_t)wanted ? wanted : 0;
}

static void read_new(grown_file *file, int fd, uint64_t size, const file_reader *reader)
{
    uint64_t end = sp_min_u64(size, file->done + ROUND_BYTES);
    while (file->done < end) {
        size_t wanted = (size_t)sp_min_u64(size - file->done, READ_BYTES);
        ssize_t length = pread(fd, reader->buffer, wanted, (off_t)file->done);
        uint64_t done = length > 0 ? reader->more(reader->reader, reader->buffer, (size_t)length,
                                                  size - file->done)
                                   : 0;
        if (!done)
            return;
        file->done += done;
    }
}

/* Read the new part of FILE; all of it when it was replaced or written anew. */
static void follow(grown_file *file, const file_reader *reader)
{
    struct stat status;
    int fd = open_own(file, &status);
    if (fd < 0)
        return;
    if (!is_grown(file, fd, &status)) {
        reader->anew(reader->reader);
        file->device = status.st_dev;
        file->inode = status.st_ino;
        file->done = 0;
    }
    read_new(file, fd, (uint64_t)status.st_size, reader);
    set_mark(file, fd);
    close(fd);
}

static uint64_t read_map(void *reader, const uint8_t *data, size_t length, uint64_t available)
{
    (void)available;
    return sp_perf_map_read(reader, data, length);
}

static void empty_map(void *reader)
{
    sp_perf_map_deinit(reader);
}

static uint64_t read_dump(void *reader, const uint8_t *data, size_t length, uint64_t available)
{
    return sp_jitdump_read(reader, data, length, available);
}

static void empty_dump(void *reader)
{
    sp_jitdump_deinit(reader);
}

static void follow_map(sp_jit_names *names, uint8_t *buffer)
{
    file_reader reader = {
        .more = read_map, .anew = empty_map, .reader = &names->map, .buffer = buffer};
    follow(&names->map_file, &reader);
    if (names->map.table.full)
        warn(&names->map_file, "more names than are kept: the later ones");
}

/* A child after fork has its parent's dump mapped, which describes the code of the parent. */
static void follow_dump(dump_file *dump, pid_t process, uint8_t *buffer)
{
    file_reader reader = {
        .more = read_dump, .anew = empty_dump, .reader = &dump->dump, .buffer = buffer};
    follow(&dump->file, &reader);
    if (dump->dump.begun && dump->dump.process != (uint32_t)process)
        dump->dump.problem = "of another process";
    if (dump->dump.problem)
        warn(&dump->file, dump->dump.problem);
    else if (dump->dump.table.full)
        warn(&dump->file, "more names than are kept: the later ones");
}

/* ---- where the dumps are ---- */

static void add_dump(sp_jit_names *names, const char *path)
{
    for (unsigned i = 0; i < names->dump_count; i++)
        if (strcmp(names->dumps[i].file.path, path) == 0)
            return;
    char *copy = names->dump_count < DUMPS_MAX ? strdup(path) : NULL;
    if (copy)
        names->dumps[names->dump_count++].file =
            (grown_file){.path = copy, .owner = names->map_file.owner};
}

/* Compilers map their dump for the sole purpose that its path is in the map. */
static bool take_mapping(const sp_mapping *mapping, void *user)
{
    char wanted[32];
    sp_jit_names *names = user;
    size_t length = strlen(mapping->path);
    size_t count = (size_t)snprintf(wanted, sizeof wanted, "/jit-%d.dump", (int)names->process);
    if (mapping->path[0] == '/' && length >= count &&
        strcmp(mapping->path + length - count, wanted) == 0)
        add_dump(names, mapping->path);
    return true;
}

static void scan_maps(sp_jit_names *names)
{
    uint64_t cpu_before = sp_clock_own_cpu_ns();
    if (sp_clock_monotonic_ns() - names->scanned_ns < SCAN_SHARE * names->scan_cost_ns)
        return;
    (void)sp_mappings_of_process(names->process, take_mapping, names);
    names->scanned_ns = sp_clock_monotonic_ns();
    names->scan_cost_ns = sp_clock_own_cpu_ns() - cpu_before;
}

static void read_files(sp_jit_names *names)
{
    names->has_read = true;
    uint8_t *buffer = malloc(READ_BYTES);
    if (!buffer)
        return;
    scan_maps(names);
    follow_map(names, buffer);
    for (unsigned i = 0; i < names->dump_count; i++)
        follow_dump(&names->dumps[i], names->process, buffer);
    free(buffer);
}

static uid_t user_of(pid_t process)
{
    char path[32];
    struct stat status;
    snprintf(path, sizeof path, "/proc/%d", (int)process);
    return process != getpid() && stat(path, &status) == 0 ? status.st_uid : geteuid();
}

sp_jit_names *sp_jit_names_create(pid_t process)
{
    char path[64];
    sp_jit_names *names = calloc(1, sizeof *names);
    process = process ? process : getpid();
    (void)snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)process);
    if (names) {
        names->process = process;
        names->map_file.path = strdup(path);
        names->map_file.owner = user_of(process);
    }
    if (names && names->map_file.path)
        return names;
    free(names);
    return NULL;
}

void sp_jit_names_destroy(sp_jit_names *names)
{
    if (!names)
        return;
    sp_perf_map_deinit(&names->map);
    free(names->map_file.path);
    for (unsigned i = 0; i < names->dump_count; i++) {
        sp_jitdump_deinit(&names->dumps[i].dump);
        free(names->dumps[i].file.path);
    }
    free(names);
}

bool sp_jit_names_find(sp_jit_names *names, uint64_t address, sp_code_name *found)
{
    if (!names->has_read)
        read_files(names);
    for (unsigned i = 0; i < names->dump_count; i++)
        if (!names->dumps[i].dump.problem &&
            sp_code_table_find(&names->dumps[i].dump.table, address, found))
            return true;
    return sp_code_table_find(&names->map.table, address, found);
}

void sp_jit_names_rest(sp_jit_names *names)
{
    names->has_read = false;
}
