/* SPDX-License-Identifier: Apache-2.0 */
/* Requests in files, one record each: OTLP/JSON a line, or protobuf behind its length as a varint. A record is in the file wholly
 * or not at all, also when the disk is full in the middle of it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "core/log.h"
#include "export/internal.h"

static const char *const signal_names[] = {"traces", "profiles"};

bool sp_file_init(sp_file *file, const char *prefix, sp_telemetry_signal signal,
                  sp_otlp_format format)
{
    const char *suffix = format == SP_OTLP_JSON ? "jsonl" : "binpb";
    *file = (sp_file){.fd = -1, .format = format};
    if (asprintf(&file->path, "%s.%s.%s", prefix, signal_names[signal], suffix) < 0) {
        file->path = NULL;
        return false;
    }
    /* Not blocking, lest a FIFO of that name without a reader holds up the start. */
    file->fd =
        open(file->path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0666);
    if (file->fd < 0) {
        sp_log_warn("export", "creating %s: %s: its %s are dropped", file->path, strerror(errno),
                    signal_names[signal]);
        return true;
    }
    if (file->fd <=
        STDERR_FILENO) { /* the host has closed those, and its own words must not land in our file */
        int low = file->fd;
        file->fd = fcntl(low, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
        close(low);
    }
    fcntl(file->fd, F_SETFL, O_APPEND);
    return true;
}

void sp_file_deinit(sp_file *file)
{
    if (file->path && file->fd >= 0 && close(file->fd) != 0)
        sp_log_warn("export", "closing %s: %s: its last records may be missing", file->path,
                    strerror(errno));
    free(file->path);
    file->path = NULL;
    file->fd = -1;
}

/* The length as a protobuf varint in OUT; returns its bytes. */
static size_t varint(uint8_t out[10], uint64_t value)
{
    size_t bytes = 0;
    for (; value >= 128; value >>= 7)
        out[bytes++] = (uint8_t)(value | 128);
    out[bytes++] = (uint8_t)value;
    return bytes;
}

/* Take WRITTEN bytes off the front of the COUNT ranges. */
static void advance(struct iovec *ranges, int count, size_t written)
{
    for (int i = 0; i < count && written; i++) {
        size_t part = written < ranges[i].iov_len ? written : ranges[i].iov_len;
        ranges[i].iov_base = (uint8_t *)ranges[i].iov_base + part;
        ranges[i].iov_len -= part;
        written -= part;
    }
}

/* 0, or errno; *DONE is how much was written anyhow. */
static int write_all(int fd, struct iovec *ranges, int count, uint64_t bytes, uint64_t *done)
{
    for (*done = 0; *done < bytes;) {
        ssize_t written = writev(fd, ranges, count);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return written < 0 ? errno : EIO;
        advance(ranges, count, (size_t)written);
        *done += (uint64_t)written;
    }
    return 0;
}

/* Take the first BYTES of a record back. Where that is impossible (a pipe), nothing more is written, for it would be misread. */
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
    close(file->fd);
    file->fd = -1;
}

bool sp_file_write(sp_file *file, const sp_buffer *body, uint64_t *written)
{
    if (file->fd < 0)
        return false;
    uint8_t prefix[10];
    bool json = file->format == SP_OTLP_JSON;
    struct iovec ranges[] = {
        {.iov_base = prefix, .iov_len = json ? 0 : varint(prefix, body->length)},
        {.iov_base = body->data, .iov_len = body->length},
        {.iov_base = (char[]){'\n'}, .iov_len = json ? 1 : 0}};
    *written = ranges[0].iov_len + ranges[1].iov_len + ranges[2].iov_len;
    uint64_t done;
    int error = write_all(file->fd, ranges, 3, *written, &done);
    if (error) {
        if (sp_repeat_allows(&file->failure, sp_clock_monotonic_ns()))
            sp_log_warn("export", "writing %s: %s: what does not fit is dropped and counted",
                        file->path, strerror(error));
        undo(file, done);
        return false;
    }
    return true;
}
