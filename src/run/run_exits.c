/* SPDX-License-Identifier: Apache-2.0 */
/* The ways in which a program ends, or becomes another, without its exit handlers: _exit, the exec
 * family, and signals that it does not handle. Each first ends the process's span, then does what
 * it always did.
 *
 * All are safe in signal handlers, and in children of fork and vfork, as POSIX has it. */
#include "run/run_exits.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cpu/host_sigaction.h"
#include "run/keeper.h"

#define EXPORTED __attribute__((visibility("default")))

typedef char *const *words;

static struct {
    void (*exit)(int);
    int (*execv)(const char *, words);
    int (*execve)(const char *, words, words);
    int (*execvp)(const char *, words);
    int (*execvpe)(const char *, words, words);
    int (*fexecve)(int, words, words);
    int (*sigaction)(int, const struct sigaction *, struct sigaction *);
} next;

static bool handles_signals; /* set before main */

/* Before main, and in another library's constructor when that comes first. */
static void find_next(void)
{
    *(void **)&next.exit = dlsym(RTLD_NEXT, "_exit");
    *(void **)&next.execv = dlsym(RTLD_NEXT, "execv");
    *(void **)&next.execve = dlsym(RTLD_NEXT, "execve");
    *(void **)&next.execvp = dlsym(RTLD_NEXT, "execvp");
    *(void **)&next.execvpe = dlsym(RTLD_NEXT, "execvpe");
    *(void **)&next.sigaction = dlsym(RTLD_NEXT, "sigaction");
    *(void **)&next.fexecve = dlsym(RTLD_NEXT, "fexecve"); /* the last: then all are there */
}

static void prepare(void)
{
    if (!next.fexecve)
        find_next();
}

void sp_run_prepare_exits(void)
{
    prepare();
    sp_host_sigaction_begin(next.sigaction);
}

static void prepare_exec(void)
{
    prepare();
    sp_keeper_end();
}

/* What an exec that has failed returned. */
static int resume_after_failed_exec(int result)
{
    sp_keeper_resume();
    return result;
}

EXPORTED _Noreturn void _exit(int code)
{
    prepare();
    sp_keeper_exit(code);
    next.exit(code);
    for (;;)
        syscall(SYS_exit_group, code);
}

EXPORTED _Noreturn void _Exit(int code)
{
    _exit(code);
}

EXPORTED int execv(const char *path, words arguments)
{
    prepare_exec();
    return resume_after_failed_exec(next.execv(path, arguments));
}

EXPORTED int execve(const char *path, words arguments, words environment)
{
    prepare_exec();
    return resume_after_failed_exec(next.execve(path, arguments, environment));
}

EXPORTED int execvp(const char *file, words arguments)
{
    prepare_exec();
    return resume_after_failed_exec(next.execvp(file, arguments));
}

EXPORTED int execvpe(const char *file, words arguments, words environment)
{
    prepare_exec();
    return resume_after_failed_exec(next.execvpe(file, arguments, environment));
}

EXPORTED int fexecve(int fd, words arguments, words environment)
{
    prepare_exec();
    return resume_after_failed_exec(next.fexecve(fd, arguments, environment));
}

/* ---- those that take their arguments one by one ---- */

/* How many there are behind FIRST, the NULL at the end included. */
static size_t count_words(const char *first, va_list list)
{
    size_t count = 1;
    for (const char *word = first; word; word = va_arg(list, const char *))
        count++;
    return count;
}

static void take_words(char **out, const char *first, va_list list)
{
    *out = (char *)(uintptr_t)first;
    while (*out)
        *++out = va_arg(list, char *);
}

/* An array of the words from FIRST on, on the stack: nothing may be allocated here. LIST is behind
 * its NULL then. */
#define WORDS_FROM(first, list)                                                                    \
    va_list list##_copy;                                                                           \
    va_start(list, first);                                                                         \
    va_copy(list##_copy, list);                                                                    \
    char *arguments[count_words(first, list##_copy)];                                              \
    va_end(list##_copy);                                                                           \
    take_words(arguments, first, list)

EXPORTED int execl(const char *path, const char *first, ...)
{
    va_list list;
    WORDS_FROM(first, list);
    va_end(list);
    return execv(path, arguments);
}

EXPORTED int execlp(const char *file, const char *first, ...)
{
    va_list list;
    WORDS_FROM(first, list);
    va_end(list);
    return execvp(file, arguments);
}

EXPORTED int execle(const char *path, const char *first, ...)
{
    va_list list;
    WORDS_FROM(first, list);
    words environment = va_arg(list, words);
    va_end(list);
    return execve(path, arguments, environment);
}

/* ---- signals ---- */

/* The program must not see our handlers: interpreters install theirs only where they find the
 * default, and give back what they found. So sigaction and signal say SIG_DFL for ours of this
 * file, and who asks for SIG_DFL gets it. At the signal of a tick the SDK answers
 * (cpu/host_sigaction.h). */

static bool is_ours(int number)
{
    return number == SIGHUP || number == SIGINT || number == SIGPIPE || number == SIGTERM;
}

static void set_default(int number)
{
    struct sigaction standard = {.sa_handler = SIG_DFL};
    next.sigaction(number, &standard, NULL);
}

void sp_run_end_by(int number)
{
    set_default(number);
    kill(getpid(), number);
}

/* The thread may hold any lock, which the SDK may need for its end: so the thread goes on, and the
 * keeper ends the process. A second signal does it at once, and so does SIGPIPE, behind which the
 * program would go on with a failed write: there the thread is in a system call of its own. */
static void end_and_raise(int number)
{
    int error = errno;
    if (number == SIGPIPE)
        sp_keeper_end();
    if (number == SIGPIPE || !sp_keeper_end_by(number)) {
        set_default(number);
        raise(number); /* comes when this returns */
    }
    errno = error;
}

static const struct sigaction our_action = {.sa_handler = end_and_raise,
                                            .sa_flags = SA_ONSTACK | SA_RESTART};

static bool asks_for_default(const struct sigaction *action)
{
    return !(action->sa_flags & SA_SIGINFO) && action->sa_handler == SIG_DFL;
}

EXPORTED int sigaction(int number, const struct sigaction *action, struct sigaction *before)
{
    prepare();
    if (handles_signals && !is_ours(number))
        return sp_host_sigaction(number, action, before);
    bool is_default = handles_signals && action && asks_for_default(action);
    int result = next.sigaction(number, is_default ? &our_action : action, before);
    if (result == 0 && before && before->sa_handler == end_and_raise)
        *before = (struct sigaction){.sa_handler = SIG_DFL};
    return result;
}

static sighandler_t set_handler(int number, sighandler_t handler, struct sigaction action)
{
    struct sigaction before;
    action.sa_handler = handler;
    if (handler == SIG_ERR) {
        errno = EINVAL;
        return SIG_ERR;
    }
    return sigaction(number, &action, &before) == 0 ? before.sa_handler : SIG_ERR;
}

/* As BSD and the C library have it: calls that the signal interrupts go on. */
EXPORTED sighandler_t signal(int number, sighandler_t handler)
{
    struct sigaction action = {.sa_flags = SA_RESTART};
    sigaddset(&action.sa_mask, number);
    return set_handler(number, handler, action);
}

EXPORTED sighandler_t bsd_signal(int number, sighandler_t handler)
{
    return signal(number, handler);
}

EXPORTED sighandler_t ssignal(int number, sighandler_t handler)
{
    return signal(number, handler);
}

/* What signal is in a program that asks for strict POSIX or ISO C. */
EXPORTED sighandler_t __sysv_signal(int number, sighandler_t handler)
{
    static const struct sigaction once = {.sa_flags = (int)(SA_RESETHAND | SA_NODEFER)};
    return set_handler(number, handler, once);
}

EXPORTED sighandler_t sysv_signal(int number, sighandler_t handler)
{
    return __sysv_signal(number, handler);
}

void sp_run_handle_signals(void)
{
    static const int numbers[] = {SIGHUP, SIGINT, SIGPIPE, SIGTERM};
    handles_signals = true;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        struct sigaction before;
        if (next.sigaction(numbers[i], NULL, &before) == 0 && before.sa_handler == SIG_DFL)
            next.sigaction(numbers[i], &our_action, NULL);
    }
}
