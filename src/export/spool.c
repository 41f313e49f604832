/* SPDX-License-Identifier: Apache-2.0 */
/* Requests in files, one each, so that they outlive the process. docs/design/spool.md has the
 * layout and why. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "core/append.h"
#include "core/counted.h"
#include "core/log.h"
#include "core/regular_file.h"
#include "export/export_internal.h"

enum { NAME_DIGITS = 20, SERVICE_SHOWN = 64, DEFAULT_BYTES = 256 * 1024 * 1024 };

static const char *const suffixes[] = {"traces", "profiles"};
static const char magic[8] = "SPSPOOL1";

/* The head of a file, before the body. Numbers are in this machine's byte order. */
typedef struct file_head {
    char magic[8];
    uint32_t crc; /* of all that follows */
    uint8_t signal, format, gzip, zero;
    uint64_t items;
    uint64_t body_bytes;
} file_head;

_Static_assert(sizeof(file_head) == 32, "no padding");

static uint32_t crc_of(const file_head *head, const uint8_t *body)
{
    const size_t covered = offsetof(file_head, signal);
    uLong crc = crc32(0, (const Bytef *)head + covered, (uInt)(sizeof *head - covered));
    return (uint32_t)(head->body_bytes ? crc32_z(crc, body, head->body_bytes) : crc);
}

typedef struct file_path {
    char text[PATH_MAX];
} file_path;

/* A path that is too long for the kernel becomes "", which finds no file. */
static const char *path_in(file_path *path, const char *folder, const char *name)
{
    int length = snprintf(path->text, sizeof path->text, "%s/%s", folder, name);
    if (length < 0 || (size_t)length >= sizeof path->text)
        path->text[0] = '\0';
    return path->text;
}

static void name_of(char out[SP_SPOOL_NAME], uint64_t number, sp_telemetry_signal signal)
{
    snprintf(out, SP_SPOOL_NAME, "%0*llu.%s", NAME_DIGITS, (unsigned long long)number,
             suffixes[signal]);
}

/* ---- Setting up ---- */

/* The begin of the names of SERVICE's directories: its name, with "_" for characters that may not
 * be in a file's name, and a hash of the whole name. */
static void prefix_of(char *out, size_t size, const char *service)
{
    /* FNV-1a, and not sp_hash_bytes: later versions, whose tables may be hashed in another way,
     * have to find the folder by its name. */
    uint32_t hash = 2166136261;
    char shown[SERVICE_SHOWN + 1];
    size_t length = 0;
    for (const char *c = service; *c; c++) {
        bool plain = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
                     (*c >= '0' && *c <= '9') || *c == '_' || *c == '-';
        hash = (hash ^ (uint8_t)*c) * 16777619;
        if (length < SERVICE_SHOWN)
            shown[length++] = plain ? *c : '_';
    }
    shown[length] = 0;
    snprintf(out, size, "%s-%08x.", shown, hash);
}

/* Keeps errno. */
static void close_quietly(int fd)
{
    int error = errno;
    if (fd >= 0)
        close(fd);
    errno = error;
}

/* Whether PATH still names the file that FD is open for. */
static bool is_same_file(int fd, const char *path)
{
    struct stat own, named;
    return fstat(fd, &own) == 0 && stat(path, &named) == 0 && own.st_dev == named.st_dev &&
           own.st_ino == named.st_ino;
}

/* Open PATH for writing, for this user alone whatever the umask is. -1 with errno. */
static int open_private(const char *path, int flags)
{
    int fd = sp_append_open(path, O_NOFOLLOW | flags);
    if (fd >= 0)
        fchmod(fd, 0600);
    return fd;
}

/* Take the lock of FOLDER. Returns its descriptor, or -1 with errno: EAGAIN when another process
 * has it. A fork's child does not inherit POSIX locks. The process that had the lock until now may
 * have removed its file after it was opened here: such a lock is useless, because the next process
 * locks a new file. */
static int take_lock(const char *folder)
{
    struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    file_path path;
    int fd = open_private(path_in(&path, folder, "lock"), 0);
    if (fd < 0)
        return -1;
    bool locked = fcntl(fd, F_SETLK, &all) == 0;
    if (locked && is_same_file(fd, path.text))
        return fd;
    if (locked)
        errno = EAGAIN;
    close_quietly(fd);
    return -1;
}

/* Remove FOLDER, whose lock this process has, and the files in it that are no requests. When it has
 * requests, the folder stays. */
static void remove_folder(const char *folder)
{
    static const char *const own[] = {"new", "lock"};
    file_path path;
    for (size_t i = 0; i < SP_ARRAY_LENGTH(own); i++)
        unlink(path_in(&path, folder, own[i]));
    rmdir(folder);
}

static bool make_one_folder(sp_spool *spool, const char *directory, const char *prefix)
{
    unsigned long long now = sp_clock_realtime_ns();
    free(spool->folder);
    if (asprintf(&spool->folder, "%s/%s%d.%llx", directory, prefix, (int)getpid(), now) < 0) {
        spool->folder = NULL;
        errno = ENOMEM;
        return false;
    }
    if (mkdir(spool->folder, 0700) != 0)
        return false;
    spool->lock_fd = take_lock(spool->folder);
    if (spool->lock_fd < 0 && errno != EAGAIN && errno != ENOENT) {
        int error = errno;
        remove_folder(spool->folder);
        errno = error;
    }
    return spool->lock_fd >= 0;
}

/* Another process may take the folder over before it is locked, or a process of another PID
 * namespace may have made one with the same name: then another one is made. */
static bool make_folder(sp_spool *spool, const char *directory, const char *prefix)
{
    enum { TRIES = 100 };
    for (int i = 0; i < TRIES; i++) {
        if (make_one_folder(spool, directory, prefix))
            return true;
        if (errno != EAGAIN && errno != ENOENT && errno != EEXIST)
            return false;
    }
    return false;
}

/* Make DIRECTORY if it is missing. Returns its absolute path, which a later chdir of the host does
 * not change. For free(), or NULL with errno. */
static char *find_directory(const char *directory)
{
    if (mkdir(directory, 0700) != 0 && errno != EEXIST)
        return NULL;
    return realpath(directory, NULL);
}

/* ---- Files ---- */

/* Whether NAME is that of a request, and of which signal. */
static bool is_request(const char *name, uint64_t *number, sp_telemetry_signal *signal)
{
    char *end;
    if (strspn(name, "0123456789") != NAME_DIGITS || name[NAME_DIGITS] != '.')
        return false;
    *number = strtoull(name, &end, 10);
    if (*number > INT64_MAX) /* after the year 2262: not ours, and there must be a next number */
        return false;
    for (int i = 0; i < 2; i++) {
        if (strcmp(end + 1, suffixes[i]) == 0) {
            *signal = (sp_telemetry_signal)i;
            return true;
        }
    }
    return false;
}

static bool read_head(int fd, file_head *head)
{
    struct stat status;
    return pread(fd, head, sizeof *head, 0) == (ssize_t)sizeof *head &&
           memcmp(head->magic, magic, sizeof magic) == 0 && fstat(fd, &status) == 0 &&
           head->body_bytes == (uint64_t)status.st_size - sizeof *head;
}

/* Read the body that belongs to HEAD into BODY, which is empty. */
static sp_spool_found read_body(int fd, const file_head *head, uint64_t maximum, sp_buffer *body)
{
    if (head->body_bytes > maximum)
        return SP_SPOOL_LOST; /* not our file: it would have exceeded the spool's bound */
    *body = (sp_buffer)SP_BUFFER_INIT(head->body_bytes);
    uint8_t *room = head->body_bytes ? sp_buffer_reserve(body, head->body_bytes) : NULL;
    if (!room && head->body_bytes)
        return SP_SPOOL_LATER;
    body->length = head->body_bytes;
    if ((room && pread(fd, room, body->length, sizeof *head) != (ssize_t)body->length) ||
        crc_of(head, room) != head->crc) {
        sp_buffer_deinit(body);
        return SP_SPOOL_LOST;
    }
    if (room)
        room[body->length] = 0; /* every sp_buffer ends with a NUL */
    return SP_SPOOL_WHOLE;
}

/* ---- What ended processes have left ---- */

/* Whether the request at PATH can be sent. A damaged one counts as sendable, so that it is counted
 * as lost later. One of another format is counted as foreign. */
static bool is_sendable(sp_spool *spool, const char *path, sp_telemetry_signal signal)
{
    file_head head;
    sp_buffer body = {0};
    int fd = sp_regular_file_open(path, O_NOFOLLOW, NULL);
    if (fd < 0)
        return false;
    sp_spool_found foreign = SP_SPOOL_LOST;
    if (read_head(fd, &head) && head.format != spool->formats[signal])
        foreign = read_body(fd, &head, spool->maximum_bytes, &body);
    spool->foreign += foreign == SP_SPOOL_WHOLE;
    sp_buffer_deinit(&body);
    close(fd);
    return foreign == SP_SPOOL_LOST;
}

/* A free path in SPOOL for a request with NUMBER, or with the next number that is free. */
static const char *free_path(file_path *path, const sp_spool *spool, uint64_t number,
                             sp_telemetry_signal signal)
{
    char name[SP_SPOOL_NAME];
    do {
        name_of(name, number++, signal);
        path_in(path, spool->folder, name);
    } while (access(path->text, F_OK) == 0);
    return path->text;
}

static void take_over_request(sp_spool *spool, const char *folder, const char *name)
{
    uint64_t number;
    sp_telemetry_signal signal;
    file_path old, own;
    if (is_request(name, &number, &signal) && spool->wanted[signal] &&
        is_sendable(spool, path_in(&old, folder, name), signal))
        rename(old.text, free_path(&own, spool, number, signal));
}

/* Take over the requests in FOLDER, whose process has ended. Those that cannot be sent stay there.
 */
static void take_over(sp_spool *spool, const char *folder)
{
    const struct dirent *entry;
    DIR *list = opendir(folder);
    if (!list)
        return;
    while ((entry = readdir(list)))
        take_over_request(spool, folder, entry->d_name);
    closedir(list);
    remove_folder(folder);
}

static void try_to_take_over(sp_spool *spool, const char *folder)
{
    struct stat status;
    if (lstat(folder, &status) != 0 || !S_ISDIR(status.st_mode))
        return;
    int lock = take_lock(folder);
    if (lock >= 0) {
        take_over(spool, folder);
        close(lock);
    } else if (errno != EAGAIN && errno != ENOENT) {
        sp_log_info("export", "%s cannot be taken over: %s", folder, strerror(errno));
    }
}

static void take_over_all(sp_spool *spool, const char *directory, const char *prefix)
{
    const struct dirent *entry;
    const char *own = strrchr(spool->folder, '/') + 1;
    file_path folder;
    DIR *list = opendir(directory);
    while (list && (entry = readdir(list)))
        if (strncmp(entry->d_name, prefix, strlen(prefix)) == 0 && strcmp(entry->d_name, own) != 0)
            try_to_take_over(spool, path_in(&folder, directory, entry->d_name));
    if (list)
        closedir(list);
}

static void say_foreign(const sp_spool *spool, const char *directory)
{
    if (spool->foreign)
        sp_log_warn("export",
                    "SPANPROF_SPOOL=%s: %s there in another format than "
                    "OTEL_EXPORTER_OTLP_PROTOCOL's: left there",
                    directory, SP_COUNTED(spool->foreign, "request"));
}

bool sp_spool_open(sp_spool *spool, const char *directory, const char *service, size_t maximum)
{
    char prefix[SERVICE_SHOWN + 16];
    prefix_of(prefix, sizeof prefix, service);
    spool->lock_fd = -1;
    spool->maximum_bytes = maximum ? maximum : DEFAULT_BYTES;
    char *found = find_directory(directory);
    bool made = found && make_folder(spool, found, prefix);
    if (made) {
        take_over_all(spool, found, prefix);
        say_foreign(spool, directory);
    } else {
        sp_log_warn("export", "SPANPROF_SPOOL=%s: %s: going on without a spool", directory,
                    strerror(errno));
        free(spool->folder);
        *spool = (sp_spool){.lock_fd = -1};
    }
    free(found);
    return made;
}

void sp_spool_close(sp_spool *spool)
{
    if (!spool->folder)
        return;
    if (spool->used_bytes == 0)
        remove_folder(spool->folder);
    close(spool->lock_fd);
    free(spool->folder);
    *spool = (sp_spool){.lock_fd = -1};
}

/* ---- Requests ---- */

static sp_request *request_in(const sp_spool *spool, const char *name)
{
    struct stat status;
    file_path path;
    if (stat(path_in(&path, spool->folder, name), &status) != 0)
        return NULL;
    sp_request *request = calloc(1, sizeof *request);
    if (!request)
        return NULL;
    memcpy(request->spooled, name, strnlen(name, SP_SPOOL_NAME - 1));
    request->spooled_bytes = (uint64_t)status.st_size;
    return request;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

sp_request *sp_spool_list(sp_spool *spool, sp_telemetry_signal signal)
{
    struct dirent **entries;
    sp_request *first = NULL, **last = &first;
    int count = scandir(spool->folder, &entries, NULL, by_name);
    for (int i = 0; i < count; i++) {
        uint64_t number;
        sp_telemetry_signal of;
        if (is_request(entries[i]->d_name, &number, &of) && of == signal &&
            (*last = request_in(spool, entries[i]->d_name))) {
            spool->used_bytes += (*last)->spooled_bytes;
            spool->last_number = sp_max_u64(spool->last_number, number);
            last = &(*last)->next;
        }
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
    return first;
}

/* 0, or errno. */
static int write_whole(const char *path, const file_head *head, const sp_buffer *body)
{
    struct iovec parts[] = {{(void *)(uintptr_t)head, sizeof *head}, {body->data, body->length}};
    uint64_t written = 0;
    int fd = open_private(path, O_TRUNC);
    if (fd < 0)
        return errno;
    int error = sp_append_write(fd, parts, 2, &written);
    if (close(fd) != 0 && !error)
        error = errno;
    return error;
}

/* Write the file NAME of SPOOL. 0, or errno. */
static int put_file(const sp_spool *spool, const char *name, const file_head *head,
                    const sp_buffer *body)
{
    file_path fresh, path;
    path_in(&fresh, spool->folder, "new");
    int error = write_whole(fresh.text, head, body);
    if (!error && rename(fresh.text, path_in(&path, spool->folder, name)) != 0)
        error = errno;
    if (error)
        unlink(fresh.text);
    return error;
}

bool sp_spool_put(sp_spool *spool, sp_request *request, sp_telemetry_signal signal)
{
    file_head head = {.signal = (uint8_t)signal,
                      .format = (uint8_t)spool->formats[signal],
                      .gzip = request->gzip,
                      .items = request->items,
                      .body_bytes = request->body.length};
    uint64_t bytes = sizeof head + head.body_bytes;
    memcpy(head.magic, magic, sizeof magic);
    head.crc = crc_of(&head, request->body.data);
    spool->last_number = sp_max_u64(sp_clock_realtime_ns(), spool->last_number + 1);
    name_of(request->spooled, spool->last_number, signal);
    int error = EDQUOT;
    if (bytes <= spool->maximum_bytes && spool->used_bytes <= spool->maximum_bytes - bytes)
        error = put_file(spool, request->spooled, &head, &request->body);
    if (error)
        request->spooled[0] = 0;
    request->spooled_bytes = error ? 0 : bytes;
    spool->used_bytes += request->spooled_bytes;
    errno = error;
    return !error;
}

/* Whether HEAD fits the file NAME, and has the format in which this process sends. */
static bool is_own_head(const sp_spool *spool, const char *name, const file_head *head)
{
    uint64_t number;
    sp_telemetry_signal signal;
    return is_request(name, &number, &signal) && head->signal == signal &&
           head->format == spool->formats[signal];
}

sp_spool_found sp_spool_get(sp_spool *spool, sp_request *request)
{
    file_path path;
    file_head head;
    sp_spool_found found = SP_SPOOL_LOST;
    int fd =
        sp_regular_file_open(path_in(&path, spool->folder, request->spooled), O_NOFOLLOW, NULL);
    if (fd < 0)
        return errno == EMFILE || errno == ENFILE || errno == ENOMEM ? SP_SPOOL_LATER : found;
    if (read_head(fd, &head) && is_own_head(spool, request->spooled, &head))
        found = read_body(fd, &head, spool->maximum_bytes, &request->body);
    close(fd);
    request->items = found == SP_SPOOL_WHOLE ? head.items : 0;
    request->gzip = found == SP_SPOOL_WHOLE && head.gzip;
    return found;
}

bool sp_spool_remove(sp_spool *spool, sp_request *request)
{
    file_path path;
    if (!request->spooled[0])
        return true;
    if (unlink(path_in(&path, spool->folder, request->spooled)) != 0 && errno != ENOENT)
        return false;
    spool->used_bytes -= request->spooled_bytes;
    request->spooled[0] = 0;
    return true;
}
