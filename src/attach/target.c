/* SPDX-License-Identifier: Apache-2.0 */
#include "attach/target.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/compiler.h"
#include "core/kernel_setting.h"
#include "core/mappings.h"
#include "outside/memory.h"

/* PF_KTHREAD among the flags of /proc/PID/stat. */
#define KERNEL_THREAD UINT64_C(0x00200000)

/* From this kernel.yama.ptrace_scope on no process may trace another, and the setting cannot be
 * lowered again. */
enum { YAMA_FORBIDS = 3 };

bool sp_attach_read_proc(pid_t pid, const char *name, char *out, size_t size)
{
    char path[128];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t length = read(fd, out, size - 1);
    close(fd);
    out[length > 0 ? length : 0] = 0;
    return length > 0;
}

SP_PRINTF(2, 3)
static bool refuse(char problem[SP_ATTACH_PROBLEM], const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(problem, SP_ATTACH_PROBLEM, format, arguments);
    va_end(arguments);
    return false;
}

/* ---- which process ---- */

static bool read_pid(const char *text, pid_t *out, char problem[SP_ATTACH_PROBLEM])
{
    char *end;
    errno = 0;
    long number = strtol(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end || errno || number <= 0 || number > INT32_MAX)
        return refuse(problem, "\"%.40s\" is no process id: name one that runs, as ps shows it",
                      text);
    *out = (pid_t)number;
    return true;
}

/* The state in a line of /proc/PID/stat, "PID (name) S …"; 0: it is none. */
static char state_of(const char *stat)
{
    const char *end = strrchr(stat, ')');
    return (char)(end && end[1] == ' ' ? end[2] : 0);
}

/* The number in FIELD of such a line; fields are counted as in proc_pid_stat(5). */
static uint64_t number_of(const char *stat, int field)
{
    const char *rest = strrchr(stat, ')');
    for (int at = 2; rest && at < field; at++)
        rest = strchr(rest + 1, ' ');
    return rest ? strtoull(rest, NULL, 10) : 0;
}

static bool is_thread(pid_t pid, pid_t *leader)
{
    char status[4096];
    const char *line = sp_attach_read_proc(pid, "status", status, sizeof status)
                           ? strstr(status, "\nTgid:")
                           : NULL;
    *leader = line ? (pid_t)strtol(line + 6, NULL, 10) : pid;
    return *leader != pid;
}

static bool check_kind(pid_t pid, char problem[SP_ATTACH_PROBLEM])
{
    char stat[1024];
    pid_t leader;
    if (pid == getpid())
        return refuse(problem, "%d is this command itself: name another process", (int)pid);
    if (!sp_attach_read_proc(pid, "stat", stat, sizeof stat))
        return refuse(problem, "no process %d is running (or /proc hides it): name one that runs",
                      (int)pid);
    if (is_thread(pid, &leader))
        return refuse(problem, "%d is a thread of process %d: name the process", (int)pid,
                      (int)leader);
    if (state_of(stat) == 'Z' || state_of(stat) == 'X')
        return refuse(problem,
                      "process %d has ended already: only its parent has not waited for it",
                      (int)pid);
    if (number_of(stat, 9) & KERNEL_THREAD)
        return refuse(problem,
                      "%d is a thread of the kernel, which runs no program: name a process",
                      (int)pid);
    return true;
}

/* ---- whether we may ---- */

static bool is_other_users(pid_t pid)
{
    char status[4096];
    const char *line =
        sp_attach_read_proc(pid, "status", status, sizeof status) ? strstr(status, "\nUid:") : NULL;
    return line && (uid_t)strtoul(line + 5, NULL, 10) != geteuid();
}

bool sp_attach_say_denied(pid_t pid, bool is_another_users, long yama_scope,
                          char problem[SP_ATTACH_PROBLEM])
{
    if (yama_scope >= YAMA_FORBIDS)
        return refuse(problem,
                      "reading the memory of process %d is not permitted: "
                      "kernel.yama.ptrace_scope is %ld, which forbids it to all, root too, until "
                      "the next boot: run the program with `spanprof run -- PROGRAM`",
                      (int)pid, yama_scope);
    if (is_another_users)
        return refuse(problem,
                      "process %d belongs to another user, and reading its memory needs "
                      "CAP_SYS_PTRACE: run this as that user, or with sudo",
                      (int)pid);
    if (yama_scope > 0)
        return refuse(problem,
                      "reading the memory of process %d is not permitted: "
                      "kernel.yama.ptrace_scope is %ld, which asks for CAP_SYS_PTRACE: run this "
                      "with sudo, or set it to 0 (sysctl)",
                      (int)pid, yama_scope);
    return refuse(problem,
                  "reading the memory of process %d is not permitted: it has more rights than this "
                  "command, is not dumpable, or a seccomp filter or container forbids it: run this "
                  "with sudo (CAP_SYS_PTRACE), in the container with --cap-add SYS_PTRACE",
                  (int)pid);
}

static bool try_first(const sp_mapping *mapping, void *user)
{
    *(uint64_t *)user = mapping->start;
    return false;
}

static bool check_rights(pid_t pid, char problem[SP_ATTACH_PROBLEM])
{
    uint64_t address = 0, word;
    errno = 0;
    bool is_mapped = sp_mappings_of_process(pid, try_first, &address) && address;
    if (is_mapped && sp_outside_word(pid, address, &word))
        return true;
    if (errno == ESRCH || errno == ENOENT || (!is_mapped && errno == 0))
        return refuse(problem, "process %d ended while it was looked at", (int)pid);
    return sp_attach_say_denied(pid, is_other_users(pid),
                                sp_kernel_setting("kernel/yama/ptrace_scope", 0), problem);
}

/* ---- what it is ---- */

static void take_name(sp_attach_target *target)
{
    char path[64], comm[64];
    snprintf(path, sizeof path, "/proc/%d/exe", (int)target->pid);
    ssize_t length = readlink(path, target->executable, sizeof target->executable - 1);
    target->executable[length > 0 ? length : 0] = 0;
    char *removed = strstr(target->executable, " (deleted)");
    if (removed)
        *removed = 0;
    const char *slash = strrchr(target->executable, '/');
    snprintf(target->name, sizeof target->name, "%s", slash ? slash + 1 : "process");
    /* The process's own name is preferred, because the executable may be an interpreter. */
    if (sp_attach_read_proc(target->pid, "comm", comm, sizeof comm))
        snprintf(target->name, sizeof target->name, "%.*s", (int)strcspn(comm, "\n"), comm);
}

/* Set the start time, which the kernel gives in clock ticks since the boot. */
static void take_start(sp_attach_target *target)
{
    char stat[1024];
    struct timespec boot;
    if (!sp_attach_read_proc(target->pid, "stat", stat, sizeof stat) ||
        clock_gettime(CLOCK_BOOTTIME, &boot) != 0)
        return;
    uint64_t now_ns = (uint64_t)boot.tv_sec * SP_NS_PER_S + (uint64_t)boot.tv_nsec;
    uint64_t began_ns = number_of(stat, 22) * (SP_NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK));
    if (began_ns < now_ns)
        target->start_time_ns = sp_clock_realtime_ns() - (now_ns - began_ns);
}

bool sp_attach_target_open(sp_attach_target *target, const char *text,
                           char problem[SP_ATTACH_PROBLEM])
{
    *target = (sp_attach_target){.pidfd = -1};
    if (!read_pid(text, &target->pid, problem))
        return false;
    target->pidfd = (int)syscall(SYS_pidfd_open, target->pid, 0);
    if (check_kind(target->pid, problem) && check_rights(target->pid, problem)) {
        take_name(target);
        take_start(target);
        return true;
    }
    sp_attach_target_close(target);
    return false;
}

void sp_attach_target_close(sp_attach_target *target)
{
    if (target->pidfd >= 0)
        close(target->pidfd);
    target->pidfd = -1;
}

bool sp_attach_target_has_ended(const sp_attach_target *target)
{
    struct pollfd ended = {.fd = target->pidfd, .events = POLLIN};
    if (target->pidfd >= 0)
        return poll(&ended, 1, 0) > 0;
    char stat[1024];
    return !sp_attach_read_proc(target->pid, "stat", stat, sizeof stat) || state_of(stat) == 'Z';
}

/* Every user may read this clock. */
uint64_t sp_attach_target_cpu_ns(const sp_attach_target *target)
{
    struct timespec used;
    clockid_t clock;
    if (clock_getcpuclockid(target->pid, &clock) != 0 || clock_gettime(clock, &used) != 0)
        return 0;
    return (uint64_t)used.tv_sec * SP_NS_PER_S + (uint64_t)used.tv_nsec;
}
