/* SPDX-License-Identifier: Apache-2.0 */
/* Requests in files, one each, so that they outlive the process. docs/design/spool.md has the layout and why. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "core/append.h"
#include "core/log.h"
#include "export/internal.h"

enum { NAME_DIGITS = 20, SERVICE_SHOWN = 64, DEFAULT_BYTES = 256 * 1024 * 1024 };

static const char *const suffixes[] = {"traces", "profiles"};
static const char magic[8] = "SPSPOOL1";

/* What stands in front of a body; numbers as this machine has them. */
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
    return (uint32_t)crc32_z(crc, body, head->body_bytes);
}

static char *path_in(const char *folder, const char *name)
{
    char *path = NULL;
    return asprintf(&path, "%s/%s", folder, name) < 0 ? NULL : path;
}

static void name_of(char out[SP_SPOOL_NAME], uint64_t number, sp_telemetry_signal signal)
{
    snprintf(out, SP_SPOOL_NAME, "%0*llu.%s", NAME_DIGITS, (unsigned long long)number,
             suffixes[signal]);
}

/* ---- Setting up ---- */

/* What the directories of SERVICE begin with: its name as far as a file's may have it, and a hash of the whole. */
static void prefix_of(char *out, size_t size, const char *service)
{
    uint32_t hash = 2166136261; /* FNV-1a */
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

/* The lock of FOLDER, or -1: another process has it. POSIX locks are not inherited by a fork's child. */
static int take_lock(const char *folder)
{
    struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    char *path = path_in(folder, "lock");
    int fd = path ? sp_append_open(path, 0) : -1;
    /* Who had the lock a moment ago may have removed the folder. */
    bool taken = fd >= 0 && fcntl(fd, F_SETLK, &all) == 0 && access(path, F_OK) == 0;
    free(path);
    if (taken)
        return fd;
    close_quietly(fd);
    return -1;
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
    return mkdir(spool->folder, 0700) == 0;
}

/* Another process may take the folder before it is locked: then another one is made. */
static bool make_folder(sp_spool *spool, const char *directory, const char *prefix)
{
    enum { TRIES = 10 };
    if (mkdir(directory, 0700) != 0 && errno != EEXIST)
        return false;
    for (int i = 0; i < TRIES && spool->lock_fd < 0; i++) {
        if (!make_one_folder(spool, directory, prefix))
            return false;
        spool->lock_fd = take_lock(spool->folder);
    }
    return spool->lock_fd >= 0;
}

/* ---- What others have left ---- */

/* Whether NAME is that of a request, and of which signal. */
static bool is_request(const char *name, uint64_t *number, sp_telemetry_signal *signal)
{
    char *end;
    if (strspn(name, "0123456789") != NAME_DIGITS || name[NAME_DIGITS] != '.')
        return false;
    *number = strtoull(name, &end, 10);
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

/* Whether the request at PATH, which is not whole for all that we know, is in another format than the one that is sent. */
static bool is_foreign(const sp_spool *spool, const char *path, sp_telemetry_signal signal)
{
    file_head head;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool is_foreign = fd >= 0 && read_head(fd, &head) && head.format != spool->formats[signal];
    if (fd >= 0)
        close(fd);
    return is_foreign;
}

/* A path in SPOOL for a request that came at NUMBER, in nanoseconds, or soon after. */
static char *free_path(const sp_spool *spool, uint64_t number, sp_telemetry_signal signal)
{
    char name[SP_SPOOL_NAME], *path;
    do {
        name_of(name, number++, signal);
        path = path_in(spool->folder, name);
        if (!path || access(path, F_OK) != 0)
            return path;
        free(path);
    } while (true);
}

static void take_over_request(sp_spool *spool, const char *folder, const char *name)
{
    uint64_t number;
    sp_telemetry_signal signal;
    if (!is_request(name, &number, &signal) || !spool->wanted[signal])
        return;
    char *old = path_in(folder, name), *own = NULL;
    if (old && is_foreign(spool, old, signal))
        spool->foreign++;
    else if (old && (own = free_path(spool, number, signal)))
        rename(old, own);
    free(old);
    free(own);
}

/* Take what lies in FOLDER, whose process is gone. Where something stays the folder does, too. */
static void take_over(sp_spool *spool, const char *folder)
{
    static const char *const own[] = {"new", "lock"};
    const struct dirent *entry;
    DIR *list = opendir(folder);
    if (!list)
        return;
    while ((entry = readdir(list)))
        take_over_request(spool, folder, entry->d_name);
    closedir(list);
    for (size_t i = 0; i < SP_ARRAY_LENGTH(own); i++) {
        char *path = path_in(folder, own[i]);
        if (path)
            unlink(path);
        free(path);
    }
    rmdir(folder);
}

static void take_over_all(sp_spool *spool, const char *directory, const char *prefix)
{
    const struct dirent *entry;
    const char *own = strrchr(spool->folder, '/') + 1;
    DIR *list = opendir(directory);
    while (list && (entry = readdir(list))) {
        if (strncmp(entry->d_name, prefix, strlen(prefix)) != 0 || strcmp(entry->d_name, own) == 0)
            continue;
        char *folder = path_in(directory, entry->d_name);
        int lock = folder ? take_lock(folder) : -1;
        if (lock >= 0) {
            take_over(spool, folder);
            close(lock);
        }
        free(folder);
    }
    if (list)
        closedir(list);
}

bool sp_spool_open(sp_spool *spool, const char *directory, const char *service, size_t maximum)
{
    char prefix[SERVICE_SHOWN + 16];
    prefix_of(prefix, sizeof prefix, service);
    spool->lock_fd = -1;
    spool->maximum_bytes = maximum ? maximum : DEFAULT_BYTES;
    if (!make_folder(spool, directory, prefix)) {
        sp_log_warn("export", "SPANPROF_SPOOL=%s: %s: going on without a spool", directory,
                    strerror(errno));
        sp_spool_close(spool);
        return false;
    }
    take_over_all(spool, directory, prefix);
    if (spool->foreign)
        sp_log_warn("export",
                    "SPANPROF_SPOOL=%s: %llu requests there are in another format than "
                    "OTEL_EXPORTER_OTLP_PROTOCOL's: left there",
                    directory, (unsigned long long)spool->foreign);
    return true;
}

void sp_spool_close(sp_spool *spool)
{
    static const char *const own[] = {"new", "lock"};
    for (size_t i = 0; i < SP_ARRAY_LENGTH(own) && spool->folder && spool->lock_fd >= 0; i++) {
        char *path = path_in(spool->folder, own[i]);
        if (path && (i == 0 || spool->used_bytes == 0))
            unlink(path);
        free(path);
    }
    if (spool->folder)
        rmdir(spool->folder); /* which fails when requests are left, as it should */
    if (spool->lock_fd >= 0)
        close(spool->lock_fd);
    free(spool->folder);
    *spool = (sp_spool){.lock_fd = -1};
}

/* ---- Requests ---- */

static sp_request *request_in(const sp_spool *spool, const char *name)
{
    struct stat status;
    sp_request *request = calloc(1, sizeof *request);
    char *path = path_in(spool->folder, name);
    if (request && path && stat(path, &status) == 0) {
        memcpy(request->spooled, name, strnlen(name, SP_SPOOL_NAME - 1));
        request->spooled_bytes = (uint64_t)status.st_size;
    } else {
        free(request);
        request = NULL;
    }
    free(path);
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
            last = &(*last)->next;
        }
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
    return first;
}

static bool write_whole(const char *path, const file_head *head, const sp_buffer *body)
{
    struct iovec parts[] = {{(void *)(uintptr_t)head, sizeof *head}, {body->data, body->length}};
    uint64_t written = 0;
    int fd = sp_append_open(path, O_TRUNC);
    if (fd < 0)
        return false;
    int error = sp_append_write(fd, parts, 2, &written);
    if (close(fd) != 0 && !error)
        error = errno;
    errno = error;
    return !error;
}

bool sp_spool_put(sp_spool *spool, sp_request *request, sp_telemetry_signal signal)
{
    file_head head = {.signal = (uint8_t)signal,
                      .format = (uint8_t)spool->formats[signal],
                      .gzip = request->gzip,
                      .items = request->items,
                      .body_bytes = request->body.length};
    uint64_t bytes = sizeof head + head.body_bytes;
    if (spool->used_bytes + bytes > spool->maximum_bytes) {
        errno = EDQUOT;
        return false;
    }
    memcpy(head.magic, magic, sizeof magic);
    head.crc = crc_of(&head, request->body.data);
    spool->last_number = sp_max_u64(sp_clock_realtime_ns(), spool->last_number + 1);
    name_of(request->spooled, spool->last_number, signal);
    char *fresh = path_in(spool->folder, "new"), *path = path_in(spool->folder, request->spooled);
    bool done =
        fresh && path && write_whole(fresh, &head, &request->body) && rename(fresh, path) == 0;
    int error = fresh && path ? errno : ENOMEM;
    if (!done) {
        request->spooled[0] = 0;
        if (fresh)
            unlink(fresh);
    }
    free(fresh);
    free(path);
    errno = error;
    request->spooled_bytes = done ? bytes : 0;
    spool->used_bytes += request->spooled_bytes;
    return done;
}

static bool read_whole(int fd, sp_request *request)
{
    file_head head;
    if (!read_head(fd, &head) || head.body_bytes > SIZE_MAX / 2)
        return false;
    request->body.maximum = head.body_bytes;
    uint8_t *room = sp_buffer_reserve(&request->body, head.body_bytes);
    if ((!room && head.body_bytes) ||
        pread(fd, room, head.body_bytes, sizeof head) != (ssize_t)head.body_bytes ||
        crc_of(&head, room) != head.crc)
        return false;
    request->body.length = head.body_bytes;
    request->items = head.items;
    request->gzip = head.gzip != 0;
    return true;
}

bool sp_spool_get(sp_spool *spool, sp_request *request)
{
    char *path = path_in(spool->folder, request->spooled);
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    bool done = fd >= 0 && read_whole(fd, request);
    if (fd >= 0)
        close(fd);
    free(path);
    return done;
}

void sp_spool_remove(sp_spool *spool, sp_request *request)
{
    if (!request->spooled[0])
        return;
    char *path = path_in(spool->folder, request->spooled);
    if (path)
        unlink(path);
    free(path);
    spool->used_bytes -= request->spooled_bytes;
    request->spooled[0] = 0;
}
