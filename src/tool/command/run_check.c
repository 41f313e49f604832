/* SPDX-License-Identifier: Apache-2.0 */
/* Checks whether libraries can be loaded into a program. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "tool/command/run.h"
#include "tool/text/messages.h"

/* The kernel follows a chain of at most SCRIPTS_MAX scripts. */
enum { SCRIPTS_MAX = 5, HEAD_BYTES = 256 };

#if defined(__x86_64__)
enum { MACHINE = EM_X86_64 };
#else
enum { MACHINE = EM_AARCH64 };
#endif

typedef struct program {
    char path[PATH_MAX];
    uint8_t head[HEAD_BYTES];
    ssize_t length; /* of the head */
} program;

/* ---- where the program is ---- */

static bool is_program(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode) && access(path, X_OK) == 0;
}

/* Find NAME in PATH, as execvp does. */
static bool find_in_path(char out[PATH_MAX], const char *name)
{
    const char *rest = getenv("PATH");
    for (rest = rest ? rest : "/bin:/usr/bin"; rest; rest = strchr(rest, ':')) {
        rest += *rest == ':';
        int length = (int)strcspn(rest, ":");
        if (snprintf(out, PATH_MAX, "%.*s%s%s", length, rest, length ? "/" : "", name) < PATH_MAX &&
            is_program(out))
            return true;
    }
    return false;
}

static int find(char out[PATH_MAX], const char *name)
{
    struct stat status;
    if (!strchr(name, '/'))
        return find_in_path(out, name)
                   ? SP_TOOL_DONE
                   : sp_tool_wrong("run: %s is not found in PATH: name a program, or its path",
                                   name);
    snprintf(out, PATH_MAX, "%s", name);
    if (is_program(name))
        return SP_TOOL_DONE;
    if (stat(name, &status) != 0)
        return sp_tool_wrong("run: %s: %s: name a program, or its path", name, strerror(errno));
    return sp_tool_wrong("run: %s cannot be run: %s", name,
                         S_ISDIR(status.st_mode) ? "it is a directory"
                                                 : "it is no program, or chmod +x is missing");
}

/* ---- what kind of program it is ---- */

/* Whether the program gets other rights than its caller has: then the loader ignores LD_PRELOAD. */
static bool changes_rights(const char *path)
{
    struct stat status;
    if (stat(path, &status) != 0)
        return false;
    return ((status.st_mode & S_ISUID) && status.st_uid != geteuid()) ||
           ((status.st_mode & S_ISGID) && status.st_gid != getegid()) ||
           (geteuid() != 0 && getxattr(path, "security.capability", NULL, 0) > 0);
}

static bool is_script(const program *it)
{
    return it->length > 2 && it->head[0] == '#' && it->head[1] == '!';
}

/* Set the path to the word after "#!". */
static void take_interpreter(program *it)
{
    char line[HEAD_BYTES];
    memcpy(line, it->head + 2, sizeof line - 3);
    line[it->length - 2 < (ssize_t)sizeof line - 3 ? it->length - 2 : (ssize_t)sizeof line - 3] = 0;
    const char *word = line + strspn(line, " \t");
    snprintf(it->path, sizeof it->path, "%.*s", (int)strcspn(word, " \t\n"), word);
}

static bool read_head(program *it, int fd)
{
    it->length = pread(fd, it->head, sizeof it->head, 0);
    return it->length >= 0;
}

/* Write the loader that the program in FD with HEADER needs to OUT. Returns false when it needs
 * none. */
static bool read_loader(int fd, const Elf64_Ehdr *header, char out[PATH_MAX])
{
    Elf64_Phdr segment;
    for (int i = 0; i < header->e_phnum; i++) {
        off_t at = (off_t)(header->e_phoff + (uint64_t)i * header->e_phentsize);
        if (pread(fd, &segment, sizeof segment, at) != (ssize_t)sizeof segment)
            return false;
        if (segment.p_type != PT_INTERP || segment.p_filesz >= PATH_MAX)
            continue;
        ssize_t length = pread(fd, out, segment.p_filesz, (off_t)segment.p_offset);
        out[length > 0 ? length : 0] = 0;
        return true;
    }
    return false;
}

static bool is_own_machine(const Elf64_Ehdr *header)
{
    return header->e_ident[EI_CLASS] == ELFCLASS64 && header->e_machine == MACHINE;
}

static void remark_on_elf(const program *it, int fd)
{
    char loader[PATH_MAX];
    Elf64_Ehdr header;
    if (it->length < (ssize_t)sizeof header || memcmp(it->head, ELFMAG, SELFMAG) != 0)
        return;
    memcpy(&header, it->head, sizeof header);
    if (!is_own_machine(&header))
        sp_tool_note("run: %s is a program of another machine: it runs, and is not recorded",
                     it->path);
    else if (!read_loader(fd, &header, loader))
        sp_tool_note("run: %s is a static program, which takes no library: it runs, and only "
                     "programs that it starts are recorded; start it by itself, and sample it "
                     "with `spanprof run --attach PID`",
                     it->path);
    else if (!strstr(loader, "/ld-linux"))
        sp_tool_note("run: %s uses the C library of %s: only programs of the GNU C library are "
                     "recorded",
                     it->path, loader);
}

/* Check one program. If it is a script, IT becomes its interpreter, and *AGAIN is true. Returns
 * SP_TOOL_DONE, or SP_TOOL_WRONG after a message. */
static int check(program *it, bool *again)
{
    *again = false;
    if (changes_rights(it->path))
        return sp_tool_wrong("run: %s runs with other rights than yours (set-user-ID, or "
                             "capabilities), and takes no library then: run it as the user or "
                             "group that it becomes, or start it by itself, and sample it with "
                             "`sudo spanprof run --attach PID`",
                             it->path);
    int fd = open(it->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) /* we may run it, but not read it */
        return SP_TOOL_DONE;
    if (read_head(it, fd) && !is_script(it))
        remark_on_elf(it, fd);
    close(fd);
    *again = is_script(it);
    if (*again)
        take_interpreter(it);
    return SP_TOOL_DONE;
}

int sp_run_check_program(const char *file)
{
    program it = {0};
    int status = find(it.path, file);
    bool again = true;
    for (int i = 0; i < SCRIPTS_MAX && again && status == SP_TOOL_DONE; i++)
        status = check(&it, &again);
    return status;
}
