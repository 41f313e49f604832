/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/container.h"

#include <string.h>

/* Numbers of hex digits. */
enum { ID = 64, FARGATE_TASK = 32 };

/* Not NUL-terminated. */
typedef struct text_part {
    const char *begin;
    size_t length;
} text_part;

/* Set *PART to the text of *REST before SEPARATOR, or to all of it, and *REST to the text after.
 * False when nothing is left. */
static bool next_part(text_part *rest, char separator, text_part *part)
{
    if (!rest->begin)
        return false;
    const char *end = memchr(rest->begin, separator, rest->length);
    part->begin = rest->begin;
    part->length = end ? (size_t)(end - rest->begin) : rest->length;
    rest->begin = end ? end + 1 : NULL;
    rest->length = end ? rest->length - part->length - 1 : 0;
    return true;
}

static bool is(text_part part, const char *text)
{
    return strlen(text) == part.length && memcmp(part.begin, text, part.length) == 0;
}

static bool has(text_part part, const char *text)
{
    return memmem(part.begin, part.length, text, strlen(text)) != NULL;
}

static size_t span_of(text_part part, const char *characters)
{
    size_t count = 0;
    while (count < part.length && strchr(characters, part.begin[count]))
        count++;
    return count;
}

static size_t count_hex(text_part part)
{
    return span_of(part, "0123456789abcdef");
}

static void copy(char id[SP_CONTAINER_ID_MAX + 1], text_part part)
{
    memcpy(id, part.begin, part.length);
    id[part.length] = 0;
}

/* --- cgroups ---------------------------------------------------------------------------------- */

/* 32 digits of the task, a hyphen, and a decimal number: AWS Fargate. */
static bool is_fargate(text_part part)
{
    if (part.length > SP_CONTAINER_ID_MAX || part.length < FARGATE_TASK + 2 ||
        count_hex(part) != FARGATE_TASK || part.begin[FARGATE_TASK] != '-')
        return false;
    text_part number = {part.begin + FARGATE_TASK + 1, part.length - FARGATE_TASK - 1};
    return span_of(number, "0123456789") == number.length;
}

/* The id in one directory of a cgroup's path: alone, or after the runtime's name
 * ("docker-ID.scope", "slice:cri-containerd:ID"). The process that monitors a container runs
 * outside it, in a cgroup of its own ("libpod-conmon-ID.scope"). */
static bool find_in_directory(text_part directory, text_part *id)
{
    static const char scope[] = ".scope";
    const size_t tail = sizeof scope - 1;
    if (directory.length > tail &&
        memcmp(directory.begin + directory.length - tail, scope, tail) == 0)
        directory.length -= tail;
    *id = directory;
    if (is_fargate(directory))
        return true;
    if (directory.length < ID || has(directory, "conmon"))
        return false;
    *id = (text_part){directory.begin + directory.length - ID, ID};
    bool is_apart = directory.length == ID || id->begin[-1] == '-' || id->begin[-1] == ':';
    return is_apart && count_hex(*id) == ID;
}

/* LINE is "hierarchy:controllers:path"; the innermost directory with an id counts. */
static bool find_in_path(text_part line, text_part *id)
{
    text_part directory, found;
    bool is_found = false;
    if (!next_part(&line, ':', &directory) || !next_part(&line, ':', &directory))
        return false;
    while (next_part(&line, '/', &directory))
        if (find_in_directory(directory, &found)) {
            *id = found;
            is_found = true;
        }
    return is_found;
}

bool sp_container_of_cgroup(char id[SP_CONTAINER_ID_MAX + 1], const char *text)
{
    text_part rest = {text, strlen(text)}, line, found;
    while (next_part(&rest, '\n', &line))
        if (find_in_path(line, &found)) {
            copy(id, found);
            return true;
        }
    return false;
}

/* --- mounts ----------------------------------------------------------------------------------- */

/* From "ID parent major:minor root mount-point …": proc(5). */
static bool read_mount(text_part line, text_part *root, text_part *mount_point)
{
    text_part field;
    for (int i = 0; i < 3; i++)
        if (!next_part(&line, ' ', &field))
            return false;
    return next_part(&line, ' ', root) && next_part(&line, ' ', mount_point);
}

bool sp_container_is_pod(const char *text)
{
    text_part rest = {text, strlen(text)}, line, root, mount_point;
    while (next_part(&rest, '\n', &line))
        if (read_mount(line, &root, &mount_point) &&
            (has(root, "/kubelet/") || has(mount_point, "/kubernetes.io/") ||
             (is(mount_point, "/etc/hosts") && has(root, "/etc-hosts"))))
            return true;
    return false;
}

/* Find the last directory of ROOT that is an id. An id after "sandboxes" is the id of a pod's
 * sandbox (containerd). */
static bool find_in_root(text_part root, text_part *id)
{
    text_part directory, before = {"", 0};
    bool is_found = false;
    while (next_part(&root, '/', &directory)) {
        if (directory.length == ID && count_hex(directory) == ID && !is(before, "sandboxes")) {
            *id = directory;
            is_found = true;
        }
        before = directory;
    }
    return is_found;
}

/* The runtime mounts the container's /etc/hostname from a directory that is named by the id. */
bool sp_container_of_mountinfo(char id[SP_CONTAINER_ID_MAX + 1], const char *text)
{
    text_part rest = {text, strlen(text)}, line, root, mount_point, found;
    if (sp_container_is_pod(text))
        return false;
    while (next_part(&rest, '\n', &line))
        if (read_mount(line, &root, &mount_point) && is(mount_point, "/etc/hostname") &&
            find_in_root(root, &found)) {
            copy(id, found);
            return true;
        }
    return false;
}
