/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces the functions by which a program ends, or becomes another program, without its exit
 * handlers: _exit and the exec family. (Signals are in run_signals.c.) Each function ends the
 * process's span and then calls the C library's function.
 *
 * All are safe in signal handlers, and in children of fork and vfork, as POSIX requires. */
#include "run/run_exits.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

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
} next;

/* Called before main, or by a constructor of another library that uses these functions earlier. */
static void find_next(void)
{
    *(void **)&next.exit = dlsym(RTLD_NEXT, "_exit");
    *(void **)&next.execv = dlsym(RTLD_NEXT, "execv");
    *(void **)&next.execve = dlsym(RTLD_NEXT, "execve");
    *(void **)&next.execvp = dlsym(RTLD_NEXT, "execvp");
    *(void **)&next.execvpe = dlsym(RTLD_NEXT, "execvpe");
    *(void **)&next.fexecve = dlsym(RTLD_NEXT, "fexecve"); /* the last one: prepare tests it */
}

static void prepare(void)
{
    if (!next.fexecve)
        find_next();
}

void sp_run_prepare_exits(void)
{
    prepare();
}

static void prepare_exec(void)
{
    prepare();
    sp_keeper_end();
}

/* Begin a new span. Returns RESULT, which the failed exec returned. */
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

/* ---- functions that take the program's arguments one by one ---- */

/* How many words there are from FIRST on, including the NULL at the end. */
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

/* Declares `arguments`, an array of the words from FIRST on. The array is on the stack, because a
 * signal handler or a child of vfork must not allocate memory. Afterwards LIST is after the NULL.
 */
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
