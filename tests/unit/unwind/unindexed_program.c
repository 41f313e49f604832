/* SPDX-License-Identifier: Apache-2.0 */
/* A program whose frame information has no index (.eh_frame_hdr): linked with --no-eh-frame-hdr, or
 * with -static. Its functions note their callers, and a signal in the innermost one walks the
 * stack, as a tick does and from outside, also below a handler of the program's own. The walks must
 * agree with the notes. With the argument
 * "no-table" the program has to be without a table: its section headers were removed. */
#include <alloca.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unwind/generation_sig.h"
#include "unwind/function_range.h"
#include "unwind/outside_walk.h"
#include "unwind/stack_bounds.h"

enum { DEPTH = 64, CALLERS = 4 };

static sp_modules *modules;
static const sp_generation *generation;
static uint64_t callers[CALLERS]; /* of the functions below, innermost first */
static volatile sig_atomic_t problems;

#define NOTE_CALLER(number) (callers[number] = (uint64_t)(uintptr_t)__builtin_return_address(0) - 1)

static void complain(const char *what, const sp_walk *walk)
{
    problems++;
    printf("%s: end %d, %u frames\n", what, (int)walk->end, walk->count);
    for (uint32_t i = 0; i < walk->count; i++)
        printf("  %#lx\n", (unsigned long)walk->pcs[i]);
    for (size_t i = 0; i < CALLERS; i++)
        printf("  caller noted: %#lx\n", (unsigned long)callers[i]);
}

static volatile sig_atomic_t
    in_handler; /* of the program's own signal, between the walk and the noted functions */

/* One frame that a handler returns to, and the callers are in the code that it interrupted. */
static bool has_handlers_frame(const sp_walk *walk, uint32_t first_caller)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < walk->count; i++)
        count += walk->pcs[i] == SP_PC_SIGNAL_HANDLER && i < first_caller;
    return count == ((uint32_t)in_handler);
}

/* The noted callers are neighbours in the stack, and the stack is whole. */
static void check_walk(const char *what, const sp_walk *walk)
{
    for (uint32_t i = 0; i + CALLERS <= walk->count; i++)
        if (memcmp(walk->pcs + i, callers, sizeof callers) == 0 && walk->end == SP_WALK_COMPLETE &&
            has_handlers_frame(walk, i))
            return;
    complain(what, walk);
}

static void on_signal(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)info;
    uint64_t pcs[DEPTH];
    sp_walk walk = {.generation = generation,
                    .registers = sp_registers_from_ucontext(context),
                    .bounds = sp_stack_bounds_of_self(),
                    .pcs = pcs,
                    .max_depth = DEPTH};
    sp_registers start = walk.registers;
    sp_walk_stack(&walk);
    check_walk("the walk of a tick", &walk);
    sp_stack_copy *copy = sp_stack_copy_create();
    walk.registers = start;
    sp_outside_walk(copy, &walk);
#if defined(__x86_64__) /* elsewhere the frame pointer is not looked for */
    check_walk("the walk from outside", &walk);
#endif
    sp_stack_copy_destroy(copy);
}

/* What it returns to was linked into the program, where the program is static. */
static void on_own_signal(int number)
{
    (void)number;
    in_handler = 1;
    raise(SIGUSR1);
    in_handler = 0;
}

__attribute__((noinline)) static void innermost(void)
{
    NOTE_CALLER(0);
    raise(SIGUSR1);
    raise(SIGUSR2);
    __asm__ volatile("");
}

/* Its rules count from the frame pointer. */
__attribute__((noinline)) static void with_dynamic_frame(size_t bytes)
{
    NOTE_CALLER(1);
    char *room = alloca(bytes);
    memset(room, 0, bytes);
    innermost();
    __asm__ volatile("" : : "r"(room) : "memory");
}

__attribute__((noinline)) static void with_large_frame(void)
{
    NOTE_CALLER(2);
    char room[5000];
    memset(room, 0, sizeof room);
    with_dynamic_frame(100);
    __asm__ volatile("" : : "r"(room) : "memory");
}

__attribute__((noinline)) static void outermost(void)
{
    NOTE_CALLER(3);
    with_large_frame();
    __asm__ volatile("");
}

/* The walk from outside asks for it where a frame pointer is not known. */
static void check_function_range(void)
{
    uint64_t begin = (uint64_t)(uintptr_t)outermost;
    sp_function_range range = {0};
    if (sp_function_range_find(NULL, generation, begin + 1, &range) && range.begin == begin &&
        range.end > callers[2] && range.end - begin < 4096)
        return;
    problems++;
    printf("the function at %#lx is found at %#lx to %#lx\n", (unsigned long)begin,
           (unsigned long)range.begin, (unsigned long)range.end);
}

static bool has_table(void)
{
    uint64_t here = (uint64_t)(uintptr_t)has_table;
    const sp_module *own = sp_generation_find(generation, here);
    if (!own || own->frame_header) {
        puts("this program has an index, so it shows nothing");
        exit(1);
    }
    printf("%s: %s\n", own->path, own->table ? "a table" : "no table");
    return own->table;
}

int main(int argc, char **argv)
{
    bool wants_table = argc < 2 || strcmp(argv[1], "no-table") != 0;
    _Atomic(const sp_generation *) hazard = NULL;
    modules = sp_modules_create();
    generation = sp_generation_enter(modules, &hazard);
    problems += has_table() != wants_table;
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};
    sigaction(SIGUSR1, &action, NULL);
    signal(SIGUSR2, on_own_signal);
    if (wants_table) {
        outermost();
        check_function_range();
    }
    sp_generation_leave(&hazard);
    sp_modules_destroy(modules);
    printf("%d problems\n", (int)problems);
    return problems ? 1 : 0;
}
