/* SPDX-License-Identifier: Apache-2.0 */
/* names_program PATH [REPLACEMENT early|late]: a program at PATH that prints the names of two
 * functions of its own. It changes its working folder first. REPLACEMENT takes its path before the
 * modules are listed, or after. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/log.h"
#include "unwind/generation_sig.h"
#include "symbol/symbolizer.h"

#ifdef OTHER_NAMES /* a program with the same code, as a rebuilt one may be */
#define first_own_function  wrong_one_function
#define second_own_function wrong_two_function_
#endif

__attribute__((noinline)) void first_own_function(void);
__attribute__((noinline)) void second_own_function(void);

void first_own_function(void)
{
    __asm__ volatile("nop");
}

void second_own_function(void)
{
    __asm__ volatile("nop; nop");
}

static void keep_quiet(spanprof_log_level level, const char *line, void *user)
{
    (void)level;
    (void)line;
    (void)user;
}

static void print_name(sp_symbolizer *symbolizer, const sp_generation *generation, void (*of)(void))
{
    uint64_t address = (uint64_t)(uintptr_t)of;
    const sp_module *module = sp_generation_find(generation, address);
    const sp_frame *frames;
    if (module && sp_symbolizer_frames(symbolizer, module, address - module->bias, &frames))
        printf("%s ", frames[0].name);
}

static int replace(char **argv, const char *when)
{
    return argv[2] && strcmp(argv[3], when) == 0 ? rename(argv[2], argv[1]) : 0;
}

int main(int argc, char **argv)
{
    _Atomic(const sp_generation *) hazard = NULL;
    sp_log_configure(SPANPROF_LOG_ERROR, keep_quiet, NULL);
    if (argc < 2 || replace(argv, "early") != 0 || chdir("/") != 0)
        return 1;
    sp_modules *modules = sp_modules_create();
    const sp_generation *generation = sp_generation_enter(modules, &hazard);
    sp_symbolizer *symbolizer = sp_symbolizer_create();
    if (!symbolizer || replace(argv, "late") != 0)
        return 1;
    print_name(symbolizer, generation, first_own_function);
    print_name(symbolizer, generation, second_own_function);
    putchar('\n');
    sp_symbolizer_destroy(symbolizer);
    sp_generation_leave(&hazard);
    sp_modules_destroy(modules);
    return 0;
}
