/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/detect.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "core/buffer.h"
#include "core/clock.h"
#include "core/compiler.h"
#include "core/hex.h"
#include "core/mapped_file.h"
#include "core/regular_file.h"
#include "trace/container.h"

/* --- files ------------------------------------------------------------------------------------ */

/* FILE_MAX has room for a table of ten thousand mounts. */
enum { FILE_MAX = 4 << 20, PIECE = 16 << 10 };

static bool read_all(int fd, sp_buffer *out)
{
    for (;;) {
        uint8_t *to = sp_buffer_reserve(out, PIECE);
        ssize_t got = to ? read(fd, to, PIECE - 1) : -1;
        if (got < 0 && to && errno == EINTR)
            continue;
        if (got < 0)
            return false;
        to[got] = 0;
        if (got == 0)
            return true;
        out->length += (size_t)got;
    }
}

/* Read the file PATH below ROOT as a string, which the caller frees. Returns "" when the file
 * cannot be read whole, NULL when there is no memory even for that. */
static char *read_file(const char *root, const char *path)
{
    char name[PATH_MAX];
    sp_buffer text = SP_BUFFER_INIT(FILE_MAX);
    int length = snprintf(name, sizeof name, "%s%s", root, path);
    int fd = length < PATH_MAX ? sp_regular_file_open(name, O_RDONLY, NULL) : -1;
    bool is_read = fd >= 0 && read_all(fd, &text);
    if (fd >= 0)
        close(fd);
    if (is_read)
        return (char *)text.data;
    sp_buffer_deinit(&text);
    return strdup("");
}

/* --- process ---------------------------------------------------------------------------------- */

/* The target of the link ends in " (deleted)" if the file was replaced after the start. */
static const char *executable_of_link(sp_resource *resource, const char *root)
{
    static const char deleted[] = " (deleted)";
    const size_t tail = sizeof deleted - 1;
    char name[PATH_MAX], path[PATH_MAX];
    int given = snprintf(name, sizeof name, "%s/proc/self/exe", root);
    ssize_t read = given < PATH_MAX ? readlink(name, path, sizeof path) : -1;
    if (read <= 0 || read == (ssize_t)sizeof path)
        return NULL;
    size_t length = (size_t)read;
    if (length > tail && memcmp(path + length - tail, deleted, tail) == 0)
        length -= tail;
    return sp_arena_strndup(&resource->memory, path, length);
}

/* If a program was started through the loader, /proc/self/exe is the loader. The program is the
 * file that its program headers are mapped from. */
const char *sp_detect_executable(sp_resource *resource, const char *root)
{
    uint64_t headers = getauxval(AT_PHDR);
    sp_mapped_file program;
    if (*root || !headers || !sp_mapped_file_find(headers, headers + 1, &program))
        return executable_of_link(resource, root);
    return sp_arena_strndup(&resource->memory, program.path, strlen(program.path));
}

/* The name of a user in /etc/passwd: other sources of names (LDAP, SSSD) may wait for a network,
 * which a start must not do. */
static void offer_owner(sp_resource *resource, const char *root)
{
    char name[PATH_MAX], line[4096];
    struct passwd entry, *found;
    snprintf(name, sizeof name, "%s/etc/passwd", root);
    FILE *file = fopen(name, "re");
    if (!file)
        return;
    uid_t user = geteuid();
    while (fgetpwent_r(file, &entry, line, sizeof line, &found) == 0)
        if (found->pw_uid == user) {
            sp_resource_offer(resource, "process.owner", found->pw_name);
            break;
        }
    fclose(file);
}

/* Read field 22. Fields are counted from the last parenthesis, because the name in field 2 may
 * contain blanks and parentheses. */
static bool read_start_ticks(const char *stat, uint64_t *ticks)
{
    const char *field = strrchr(stat, ')');
    for (int i = 2; field && i < 22; i++) {
        field = strchr(field, ' ');
        field = field ? field + 1 : NULL;
    }
    if (!field || *field < '0' || *field > '9')
        return false;
    *ticks = strtoull(field, NULL, 10);
    return true;
}

bool sp_detect_creation_time(char out[SP_ISO_TIME_BYTES], const char *stat, uint64_t realtime_ns,
                             uint64_t boot_ns, uint64_t ticks_hz)
{
    uint64_t ticks;
    if (!read_start_ticks(stat, &ticks) || ticks_hz == 0)
        return false;
    uint64_t since_boot =
        ticks / ticks_hz * SP_NS_PER_S + ticks % ticks_hz * SP_NS_PER_S / ticks_hz;
    if (since_boot > boot_ns || boot_ns - since_boot > realtime_ns)
        return false;
    uint64_t began = realtime_ns - (boot_ns - since_boot);
    time_t seconds = (time_t)(began / SP_NS_PER_S);
    struct tm day;
    if (!gmtime_r(&seconds, &day) || strftime(out, SP_ISO_TIME_BYTES, "%Y-%m-%dT%H:%M:%S", &day) !=
                                         strlen("2026-01-01T00:00:00"))
        return false;
    unsigned milliseconds = (unsigned)(began % SP_NS_PER_S / SP_NS_PER_MS);
    snprintf(out + strlen(out), SP_ISO_TIME_BYTES - strlen(out), ".%03uZ", milliseconds % 1000);
    return true;
}

static uint64_t clock_boot_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_BOOTTIME, &time);
    return (uint64_t)time.tv_sec * SP_NS_PER_S + (uint64_t)time.tv_nsec;
}

static void offer_process(sp_resource *resource, const char *root)
{
    sp_resource_offer_int(resource, "process.pid", getpid());
    sp_resource_offer(resource, "process.executable.path", sp_detect_executable(resource, root));
    char *command = read_file(root, "/proc/self/cmdline"); /* up to its first NUL */
    sp_resource_offer(resource, "process.command", command);
    free(command);
    offer_owner(resource, root);
    char *stat = read_file(root, "/proc/self/stat"), began[SP_ISO_TIME_BYTES];
    if (stat && sp_detect_creation_time(began, stat, sp_clock_realtime_ns(), clock_boot_ns(),
                                        (uint64_t)sysconf(_SC_CLK_TCK)))
        sp_resource_offer(resource, "process.creation.time", began);
    free(stat);
}

/* --- host, container, operating system -------------------------------------------------------- */

/* The name that the semantic conventions have for MACHINE, else MACHINE itself. */
static const char *arch_name(const char *machine)
{
    static const char *const names[][2] = {
        {"x86_64", "amd64"}, {"aarch64", "arm64"}, {"armv7l", "arm32"}, {"armv6l", "arm32"},
        {"i386", "x86"},     {"i686", "x86"},      {"ppc64le", "ppc64"}};
    for (size_t i = 0; i < SP_ARRAY_LENGTH(names); i++)
        if (strcmp(machine, names[i][0]) == 0)
            return names[i][1];
    return machine;
}

static void offer_host(sp_resource *resource)
{
    struct utsname host;
    if (uname(&host) != 0)
        return;
    sp_resource_offer(resource, "host.name", host.nodename);
    sp_resource_offer(resource, "host.arch", arch_name(host.machine));
}

/* The file has 32 hex digits, or "uninitialized" while a host boots for the first time. */
static bool offer_host_id(sp_resource *resource, const char *root, const char *path)
{
    char *text = read_file(root, path);
    uint8_t id[16];
    bool is_id =
        text && strcspn(text, "\n") == 2 * sizeof id && sp_hex_decode(id, text, sizeof id, false);
    if (is_id) {
        text[2 * sizeof id] = 0;
        sp_resource_offer(resource, "host.id", text);
    }
    free(text);
    return is_id;
}

static bool exists(const char *root, const char *path)
{
    char name[PATH_MAX];
    return snprintf(name, sizeof name, "%s%s", root, path) < PATH_MAX && access(name, F_OK) == 0;
}

/* Returns whether this process is in a container. Its id may still be unknown. */
static bool offer_container(sp_resource *resource, const char *root)
{
    char id[SP_CONTAINER_ID_MAX + 1];
    char *cgroup = read_file(root, "/proc/self/cgroup");
    char *mounts = read_file(root, "/proc/self/mountinfo");
    bool has_id = (cgroup && sp_container_of_cgroup(id, cgroup)) ||
                  (mounts && sp_container_of_mountinfo(id, mounts));
    if (has_id)
        sp_resource_offer(resource, "container.id", id);
    bool is_pod = mounts && sp_container_is_pod(mounts);
    free(cgroup);
    free(mounts);
    return has_id || is_pod || exists(root, "/.dockerenv") || exists(root, "/run/.containerenv");
}

/* The value if LINE of os-release(5) is KEY=value, else NULL. The file has shell syntax: quotes,
 * and backslashes that escape a character, are removed in place. */
static char *os_release_value(char *line, const char *key)
{
    size_t length = strlen(key);
    if (strncmp(line, key, length) != 0 || line[length] != '=')
        return NULL;
    char *value = line + length + 1, *to = value;
    for (const char *from = value; *from; from++) {
        if (*from == '\\' && from[1])
            *to++ = *++from;
        else if (*from != '"' && *from != '\'')
            *to++ = *from;
    }
    *to = 0;
    return value;
}

static void offer_os(sp_resource *resource, const char *root)
{
    sp_resource_offer(resource, "os.type", "linux");
    const char *path = exists(root, "/etc/os-release") ? "/etc/os-release" : "/usr/lib/os-release";
    char *text = read_file(root, path), *rest = text;
    for (char *line; rest && (line = strsep(&rest, "\n"));) {
        sp_resource_offer(resource, "os.name", os_release_value(line, "NAME"));
        sp_resource_offer(resource, "os.version", os_release_value(line, "VERSION_ID"));
    }
    free(text);
}

void sp_detect(sp_resource *resource, const char *root)
{
    offer_host(resource);
    bool is_container = offer_container(resource, root);
    offer_process(resource, root);
    if (!is_container && !offer_host_id(resource, root, "/etc/machine-id"))
        offer_host_id(resource, root, "/var/lib/dbus/machine-id");
    offer_os(resource, root);
}
