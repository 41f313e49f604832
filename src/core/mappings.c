/* SPDX-License-Identifier: Apache-2.0 */
/* A line, as proc_pid_maps(5) describes it:
 *
 *     55d0c8a00000-55d0c8a2b000 r-xp 00001000 08:01 1311768          /usr/bin/name with blanks
 *
 * Numbers are hexadecimal but for the inode. A read usually returns whole lines, but it may end
 * anywhere, so the bytes after the last newline are kept for the next read. */
#include "core/mappings.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "core/hex.h"

enum { NUMBERS_BYTES = 96, LINE_BYTES = NUMBERS_BYTES + PATH_MAX };

/* bytes[begin] to bytes[end] have been read and are not used yet. */
typedef struct line_reader {
    int fd;
    size_t begin, end;
    bool at_end;
    bool is_cut; /* the last line did not fit: its rest is next */
    char bytes[LINE_BYTES];
} line_reader;

/* ---- a line ---- */

/* Parse a hexadecimal number at AT, which the character AFTER must follow, into *OUT. Returns the
 * text after both, or NULL when the text is different. If AT is NULL, returns NULL. */
static const char *take_hex(const char *at, char after, uint64_t *out)
{
    const char *first = at;
    int digit;
    for (*out = 0; at && (digit = sp_hex_digit(*at, true)) >= 0; at++)
        *out = *out << 4 | (unsigned)digit;
    return at && at > first && *at == after ? at + 1 : NULL;
}

static const char *take_inode(const char *at, uint64_t *out)
{
    const char *first = at;
    for (*out = 0; at && *at >= '0' && *at <= '9'; at++)
        *out = *out * 10 + (unsigned)(*at - '0');
    return at && at > first && (*at == ' ' || !*at) ? at : NULL;
}

static const char *take_permissions(const char *at, char out[5])
{
    if (!at || strcspn(at, " ") != 4 || at[4] != ' ')
        return NULL;
    memcpy(out, at, 4);
    out[4] = 0;
    return at + 5;
}

static bool parse_line(const char *line, sp_mapping *mapping)
{
    uint64_t device_major, device_minor;
    const char *at = take_hex(line, '-', &mapping->start);
    at = take_hex(at, ' ', &mapping->end);
    at = take_permissions(at, mapping->permissions);
    at = take_hex(at, ' ', &mapping->offset);
    at = take_hex(at, ':', &device_major);
    at = take_hex(at, ' ', &device_minor);
    at = take_inode(at, &mapping->inode);
    if (!at)
        return false;
    mapping->device = makedev((unsigned)device_major, (unsigned)device_minor);
    mapping->path = at + strspn(at, " ");
    return true;
}

/* ---- lines ---- */

/* Read more bytes after the unused ones. False on an error. */
static bool fill(line_reader *reader)
{
    memmove(reader->bytes, reader->bytes + reader->begin, reader->end - reader->begin);
    reader->end -= reader->begin;
    reader->begin = 0;
    ssize_t count;
    do
        count = read(reader->fd, reader->bytes + reader->end, LINE_BYTES - 1 - reader->end);
    while (count < 0 && errno == EINTR);
    reader->at_end = count <= 0;
    reader->end += count > 0 ? (size_t)count : 0;
    return count >= 0;
}

/* The next line, with a NUL in place of its newline. Of a line that does not fit, the part that
 * fits. NULL: another read is needed first. */
static const char *take_line(line_reader *reader)
{
    char *line = reader->bytes + reader->begin;
    size_t length = reader->end - reader->begin;
    const char *newline = memchr(line, '\n', length);
    bool is_full = length == LINE_BYTES - 1, is_last = reader->at_end && length > 0;
    if (!newline && !is_full && !is_last)
        return NULL;
    length = newline ? (size_t)(newline - line) : length;
    reader->begin += length + (newline != NULL);
    reader->is_cut = !newline;
    line[length] = 0;
    return line;
}

bool sp_mappings_of_descriptor(int fd, sp_mapping_each *each, void *user)
{
    line_reader reader;
    sp_mapping mapping;
    reader.fd = fd;
    reader.begin = reader.end = 0;
    reader.at_end = reader.is_cut = false;
    for (;;) {
        bool is_rest = reader.is_cut;
        const char *line = take_line(&reader);
        if (line && !is_rest && parse_line(line, &mapping) && !each(&mapping, user))
            return true;
        if (!line && reader.at_end)
            return true;
        if (!line && !fill(&reader))
            return false;
    }
}

bool sp_mappings_of_file(const char *path, sp_mapping_each *each, void *user)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool is_read = sp_mappings_of_descriptor(fd, each, user);
    int error = errno;
    close(fd);
    errno = error;
    return is_read;
}

bool sp_mappings_of_process(pid_t pid, sp_mapping_each *each, void *user)
{
    char path[32] = "/proc/self/maps";
    if (pid != 0 && pid != getpid())
        (void)snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    return sp_mappings_of_file(path, each, user);
}
