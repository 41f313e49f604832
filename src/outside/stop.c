/* SPDX-License-Identifier: Apache-2.0 */
/* Stops a thread for a look. It is traced only for that time, because a traced thread stops at each
 * of its signals until its tracer continues it. A signal that arrives while the thread stops is
 * delivered when it continues. A group stop that something else requested stays in force. */
#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>

#include "outside/outside_internal.h"

/* Whether the thread has ended. For one that has ended and was not waited for, ptrace may fail with
 * "not permitted", too. */
static bool has_ended(pid_t pid, pid_t tid)
{
    char path[64], text[256];
    snprintf(path, sizeof path, "/proc/%d/task/%d/stat", (int)pid, (int)tid);
    FILE *file = fopen(path, "re");
    if (!file)
        return true;
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    (void)fclose(file);
    const char *state = strrchr(text, ')'); /* "PID (name) S …" */
    return state && (state[2] == 'Z' || state[2] == 'X');
}

static sp_outside_result say_errno(sp_outside_process *process, pid_t tid, const char *what)
{
    int error = errno;
    if (error == ESRCH || error == ECHILD || (error == EPERM && has_ended(process->pid, tid)))
        return sp_outside_say(process, SP_OUTSIDE_GONE, "thread %d has ended", (int)tid);
    return sp_outside_say(process, error == EPERM ? SP_OUTSIDE_DENIED : SP_OUTSIDE_FAILED,
                          "thread %d cannot be %s: %s%s", (int)tid, what, strerror(error),
                          error == EPERM ? " (somebody else traces it, or this needs "
                                           "CAP_SYS_PTRACE, or kernel.yama.ptrace_scope 0)"
                                         : "");
}

#if defined(__x86_64__)
/* Whether a signal that the thread does not block is pending, for it or for its process. */
static bool has_signal(pid_t pid, pid_t tid)
{
    char path[64], text[4096];
    uint64_t own = 0, shared = 0, blocked = 0;
    snprintf(path, sizeof path, "/proc/%d/task/%d/status", (int)pid, (int)tid);
    FILE *file = fopen(path, "re");
    if (!file)
        return true;
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    (void)fclose(file);
    const char *line = strstr(text, "\nSigPnd:");
    return !line ||
           sscanf(line, " SigPnd: %" SCNx64 " ShdPnd: %" SCNx64 " SigBlk: %" SCNx64, &own, &shared,
                  &blocked) != 3 ||
           ((own | shared) & ~blocked) != 0;
}

/* Some system calls (epoll_wait, receiving with a timeout …) end with EINTR when their thread is
 * stopped, although no signal arrived, and the program would notice. Such a call is started again,
 * in the way in which the kernel restarts other calls. */
static void restart_call(pid_t pid, const sp_outside_stopped *stopped,
                         struct user_regs_struct *registers)
{
    enum { CALL_BYTES = 2 };
    struct iovec area = {registers, sizeof *registers};
    if (stopped->signal || (int64_t)registers->orig_rax < 0 || (int64_t)registers->rax != -EINTR ||
        has_signal(pid, stopped->tid))
        return;
    registers->rax = registers->orig_rax;
    registers->rip -= CALL_BYTES;
    ptrace(PTRACE_SETREGSET, stopped->tid, (void *)NT_PRSTATUS, &area);
}
#else
/* Not possible here: the result of a call takes the register of its first argument, which is lost.
 */
static void restart_call(pid_t pid, const sp_outside_stopped *stopped,
                         struct user_regs_struct *registers)
{
    (void)pid, (void)stopped, (void)registers;
}
#endif

static bool read_registers(pid_t pid, sp_outside_stopped *out)
{
    struct user_regs_struct registers;
    struct iovec area = {&registers, sizeof registers};
    if (ptrace(PTRACE_GETREGSET, out->tid, (void *)NT_PRSTATUS, &area) != 0)
        return false;
    restart_call(pid, out, &registers);
#if defined(__x86_64__)
    out->pointer = registers.fs_base;
    out->registers = (sp_outside_registers){.pc = registers.rip,
                                            .sp = registers.rsp,
                                            .fp = registers.rbp,
                                            .base = registers.rbx,
                                            .in_call = (int64_t)registers.orig_rax >= 0};
    return true;
#elif defined(__aarch64__)
    out->registers = (sp_outside_registers){.pc = registers.pc,
                                            .sp = registers.sp,
                                            .fp = registers.regs[29],
                                            .base = registers.regs[19],
                                            .link = registers.regs[30]};
    area = (struct iovec){&out->pointer, sizeof out->pointer};
    return ptrace(PTRACE_GETREGSET, out->tid, (void *)NT_ARM_TLS, &area) == 0;
#else
#error "spanprof reads threads on x86-64 and aarch64"
#endif
}

/* Wait until the thread stops: because of PTRACE_INTERRUPT (*SIGNAL is 0 then), or because of a
 * signal that arrives just now (*SIGNAL). */
static bool wait_for_stop(pid_t tid, int *signal)
{
    int status;
    pid_t waited;
    while ((waited = waitpid(tid, &status, __WALL)) < 0 && errno == EINTR)
        ;
    if (waited != tid)
        return false;
    errno = ESRCH;
    *signal = status >> 16 == PTRACE_EVENT_STOP ? 0 : WSTOPSIG(status);
    return WIFSTOPPED(status);
}

sp_outside_result sp_outside_stop(sp_outside_process *process, pid_t tid, sp_outside_stopped *out)
{
    *out = (sp_outside_stopped){.tid = tid};
    if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) != 0)
        return say_errno(process, tid, "traced");
    if (ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) != 0 || !wait_for_stop(tid, &out->signal))
        return say_errno(process, tid, "stopped");
    if (read_registers(process->pid, out))
        return SP_OUTSIDE_OK;
    sp_outside_result result = say_errno(process, tid, "asked for its registers");
    sp_outside_continue(out);
    return result;
}

void sp_outside_continue(const sp_outside_stopped *stopped)
{
    ptrace(PTRACE_DETACH, stopped->tid, NULL,
           (void *)(intptr_t)stopped->signal); // NOLINT(performance-no-int-to-ptr)
}
