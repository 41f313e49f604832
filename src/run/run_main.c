/* SPDX-License-Identifier: Apache-2.0 */
/* Registers our exit handler just before main. Only handlers of on_exit get the exit code of a
 * process. Our handler has to run before the SDK's exit handler, which ends the recording. The
 * loader's exit handler calls the SDK's handler, and is registered after all constructors. Handlers
 * run in reverse order, so our handler has to be registered after the constructors. */
#include <dlfcn.h>
#include <stddef.h>

#include "run/keeper.h"

typedef int (*main_function)(int, char **, char **);
typedef void (*hook)(void);
typedef int (*start_main)(main_function, int, char **, hook, hook, hook, void *);

static main_function program_main;

static int main_of_program(int count, char **words, char **environment)
{
    sp_keeper_take_exit_code();
    return program_main(count, words, environment);
}

/* Replaces the function of the C library that every program calls first. */
__attribute__((visibility("default"))) int __libc_start_main(main_function program, int count,
                                                             char **words, hook init, hook fini,
                                                             hook loader_fini, void *stack_end)
{
    start_main next;
    *(void **)&next = dlsym(RTLD_NEXT, "__libc_start_main");
    program_main = program;
    return next(main_of_program, count, words, init, fini, loader_fini, stack_end);
}
