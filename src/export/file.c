/* SPDX-License-Identifier: Apache-2.0 */
/* Writes requests to files, one record each: a line of OTLP/JSON, or protobuf after its length as a
 * varint. A record is in the file wholly or not at all, also when the disk is full in the middle of
 * it. What a FIFO does not take at once waits in memory, up to the bound of the queue, because the
 * exporter's thread must not wait for a reader. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/append.h"
#include "core/atomic.h"
#include "core/log.h"
#include "export/export_internal.h"

enum { TRY_AGAIN_MS = 20 };

static const char *const signal_names[] = {"traces", "profiles"};

/* Files whose descriptors are in the host's table, by signal. A forked child closes its copies,
 * because they would keep the lock. fd -1: none. device and inode are set before fd. */
static struct {
    _Atomic int fd;
    dev_t device;
    ino_t inode;
} hosts_files[] = {{.fd = -1}, {.fd = -1}};

void sp_file_is_hosts(const sp_file *file)
{
    struct stat status;
    if (!file->path || file->fd < 0 || fstat(file->fd, &status) != 0)
        return;
    hosts_files[file->signal].device = status.st_dev;
    hosts_files[file->signal].inode = status.st_ino;
    atomic_store(&hosts_files[file->signal].fd, file->fd);
}

/* Device and inode are compared, because a host that closes descriptors it did not open may have
 * files of its own under these numbers. */
void sp_files_after_fork(void)
{
    for (size_t i = 0; i < SP_ARRAY_LENGTH(hosts_files); i++) {
        struct stat status;
        int fd = atomic_exchange(&hosts_files[i].fd, -1);
        if (fd >= 0 && fstat(fd, &status) == 0 && status.st_dev == hosts_files[i].device &&
            status.st_ino == hosts_files[i].inode)
            close(fd);
    }
}

/* Close FILE, and return as close does. First the number is removed from hosts_files: a forked
 * child must not close the file that gets it next. */
static int close_file(sp_file *file)
{
    int fd = file->fd;
    file->fd = -1;
    atomic_compare_exchange_strong(&hosts_files[file->signal].fd, &(int){fd}, -1);
    return close(fd);
}

/* Open the file as file->fd. Returns 0, or errno: EWOULDBLOCK when another process has the file, or
 * another run has written it. */
static int open_file(sp_file *file)
{
    struct stat status;
    file->fd = sp_append_open(file->path, 0);
    if (file->fd < 0)
        return errno;
    int error = sp_file_runs_lock(file->fd, file->path);
    /* Another run may have begun and ended after this start searched for files. */
    if (!error && fstat(file->fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0)
        error = EWOULDBLOCK;
    if (error)
        close_file(file);
    else
        sp_file_forget_new(file);
    return error;
}

bool sp_file_init(sp_file *file, const sp_export_config *config, sp_telemetry_signal signal,
                  sp_export_counters *counters)
{
    const char *suffix = config->file_format == SP_OTLP_JSON ? "jsonl" : "binpb";
    *file = (sp_file){.fd = -1,
                      .format = config->file_format,
                      .signal = signal,
                      .counters = counters,
                      .maximum_bytes = config->file_maximum_bytes,
                      .maximum_parts = config->file_maximum_parts,
                      .allowance = {.maximum_bytes = config->queue_maximum_bytes}};
    file->last = &file->first;
    if (asprintf(&file->path, "%s.%s.%s", config->file_prefix, signal_names[signal], suffix) < 0) {
        file->path = NULL;
        return false;
    }
    int error = open_file(file);
    file->in_use = error == EWOULDBLOCK;
    if (error && !file->in_use)
        sp_log_warn("export", "creating %s: %s: its %s are dropped", file->path, strerror(error),
                    signal_names[signal]);
    return true;
}

static void say_close_failed(const sp_file *file)
{
    sp_log_warn("export", "closing %s: %s: its last records may be missing", file->path,
                strerror(errno));
}

void sp_file_deinit(sp_file *file)
{
    if (file->path && file->fd >= 0 && close_file(file) != 0)
        say_close_failed(file);
    for (sp_request *next, *request = file->first; request; request = next) {
        next = request->next;
        sp_request_free(request);
    }
    free(file->path);
    *file = (sp_file){.fd = -1};
}

/* Write VALUE as a protobuf varint to OUT; returns how many bytes it takes. */
static size_t varint(uint8_t out[10], uint64_t value)
{
    size_t bytes = 0;
    for (; value >= 128; value >>= 7)
        out[bytes++] = (uint8_t)(value | 128);
    out[bytes++] = (uint8_t)value;
    return bytes;
}

/* Remove the first BYTES of a record, which are at the end of the file. Where that is impossible (a
 * pipe), nothing more is written, because readers would misread it. */
static void undo(sp_file *file, uint64_t bytes)
{
    struct stat status;
    if (bytes == 0)
        return;
    if (fstat(file->fd, &status) == 0 && S_ISREG(status.st_mode) &&
        (uint64_t)status.st_size >= bytes &&
        ftruncate(file->fd, status.st_size - (off_t)bytes) == 0)
        return;
    sp_log_warn("export",
                "%s: a record was cut off and cannot be taken back: nothing more is written to it",
                file->path);
    close_file(file);
}

/* Write the rest of BODY's record, of which *DONE bytes are written. Returns 0, or errno. */
static int continue_write(sp_file *file, const sp_buffer *body, uint64_t *done)
{
    uint8_t prefix[10];
    bool json = file->format == SP_OTLP_JSON;
    struct iovec ranges[] = {
        {.iov_base = prefix, .iov_len = json ? 0 : varint(prefix, body->length)},
        {.iov_base = body->data, .iov_len = body->length},
        {.iov_base = (char[]){'\n'}, .iov_len = json ? 1 : 0}};
    sp_append_skip(ranges, SP_ARRAY_LENGTH(ranges), *done);
    return sp_append_write(file->fd, ranges, SP_ARRAY_LENGTH(ranges), done);
}

/* Count a record whose writing has ended with ERROR (0: none) after DONE bytes. */
static void count_end(sp_file *file, int error, uint64_t done, uint64_t items)
{
    sp_export_counters *counters = file->counters;
    if (!error) {
        sp_count(&counters->requests, 1);
        sp_count(&counters->bytes, done);
        sp_count(file->signal == SP_TRACES ? &counters->spans : &counters->samples, items);
        return;
    }
    if (sp_repeat_allows(&file->failure, sp_clock_monotonic_ns()))
        sp_log_warn("export", "writing %s: %s: what does not fit is dropped and counted",
                    file->path, strerror(error));
    undo(file, done);
    sp_count(&counters->dropped_refused, 1);
}

/* A copy of request AS with a copy of BODY; NULL when the queue is full or memory is short. */
static sp_request *copy(sp_file *file, const sp_buffer *body, const sp_request *as)
{
    if (!sp_allowance_take(&file->allowance, body->length))
        return NULL;
    sp_request *request = calloc(1, sizeof *request);
    if (request)
        *request = *as;
    if (request && sp_buffer_add(&request->body, body->data, body->length))
        return request;
    sp_request_free(request);
    sp_allowance_give(&file->allowance, body->length);
    return NULL;
}

/* Let the rest of BODY's record wait; drop the record when there is no room. */
static void keep(sp_file *file, const sp_buffer *body, const sp_request *as)
{
    sp_request *request = copy(file, body, as);
    if (request) {
        *file->last = request;
        file->last = &request->next;
        return;
    }
    sp_count(&file->counters->dropped_queue_full, 1);
    undo(file, as->written_bytes);
}

/* Begin a new file when a record of BYTES has no room in this one. */
static void make_room(sp_file *file, uint64_t bytes)
{
    struct stat status;
    int fd;
    if (!file->maximum_bytes || fstat(file->fd, &status) != 0 || !S_ISREG(status.st_mode) ||
        status.st_size == 0 || (uint64_t)status.st_size + bytes <= file->maximum_bytes ||
        !sp_file_begin_part(file, &fd))
        return;
    bool is_hosts = atomic_load(&hosts_files[file->signal].fd) == file->fd;
    if (close_file(file) != 0)
        say_close_failed(file);
    file->fd = fd;
    if (is_hosts)
        sp_file_is_hosts(file);
}

/* The size of BODY's record in FILE. */
static uint64_t record_bytes(const sp_file *file, const sp_buffer *body)
{
    uint8_t prefix[10];
    return body->length + (file->format == SP_OTLP_JSON ? 1 : varint(prefix, body->length));
}

void sp_file_write(sp_file *file, const sp_buffer *body, uint64_t items, uint64_t sequence)
{
    sp_request as = {.body = SP_BUFFER_INIT(body->length),
                     .charged_bytes = body->length,
                     .items = items,
                     .sequence = sequence};
    if (file->fd < 0) {
        sp_count(&file->counters->dropped_refused, 1);
        return;
    }
    if (!file->first)
        make_room(file, record_bytes(file, body));
    int error = file->first ? EAGAIN : continue_write(file, body, &as.written_bytes);
    if (error != EAGAIN)
        count_end(file, error, as.written_bytes, items);
    else
        keep(file, body, &as);
}

static void remove_first(sp_file *file)
{
    sp_request *request = file->first;
    file->first = request->next;
    if (!file->first)
        file->last = &file->first;
    sp_allowance_give(&file->allowance, request->charged_bytes);
    sp_request_free(request);
}

uint64_t sp_file_step(sp_file *file, uint64_t now_ns)
{
    for (sp_request *request; (request = file->first); remove_first(file)) {
        if (file->fd < 0) {
            sp_count(&file->counters->dropped_refused, 1);
            continue;
        }
        int error = continue_write(file, &request->body, &request->written_bytes);
        if (error == EAGAIN)
            return now_ns + TRY_AGAIN_MS * SP_NS_PER_MS;
        count_end(file, error, request->written_bytes, request->items);
    }
    return UINT64_MAX;
}

bool sp_file_is_past(const sp_file *file, uint64_t sequence)
{
    return !file->first || file->first->sequence > sequence;
}

void sp_file_abandon(sp_file *file)
{
    uint64_t count = 0;
    for (; file->first; count++)
        remove_first(file);
    if (!count)
        return;
    sp_count(&file->counters->dropped_unreachable, count);
    sp_requests_say_abandoned(count, file->path, "");
}
