/* SPDX-License-Identifier: Apache-2.0 */
/* Walks at each instruction of a procedure linkage table that has no frame information: this
 * program is linked without it, as lld, gold and mold do for all programs. The first call of a
 * function goes through the loader, later calls jump. In all of them the frame above is the caller,
 * which the return address on the stack tells when the table is entered. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <time.h>
#include <ucontext.h>
#include <wchar.h>

#include <cmocka.h>

#if !defined(__x86_64__)
int main(void)
{
    puts("SKIPPED: a process cannot step itself on this machine (unit/unwind/walk_aarch64 has PLT "
         "entries)");
    return 77;
}
#else
#include "walk_fixture.h"

enum { TRAP_FLAG = 0x100 };

typedef struct place {
    uint64_t low, high; /* of the code that is looked at */
    bool has_table;     /* code with a table is looked at, too */
    uint64_t caller;
    uint64_t previous; /* the pc of the step before */
    unsigned entries, stops, right;
} place;

static place looked_at;
static volatile sig_atomic_t stepping;
static volatile long sink;

static bool has_rule(uint64_t pc)
{
    const sp_module *module = sp_generation_find(generation, pc);
    return module && module->table &&
           sp_unwind_table_find(module->table, pc - module->start) != SP_RULE_NONE;
}

static bool is_looked_at(const place *place, uint64_t pc)
{
    return pc >= place->low && pc < place->high && (place->has_table || !has_rule(pc));
}

static void report_wrong(const sp_walk *walk, uint64_t caller)
{
    const uint8_t *code = (const uint8_t *)(uintptr_t)walk->pcs[0]; // NOLINT
    printf("  at %#lx (%02x %02x %02x): end %d, %u frames, above is %#lx, not %#lx\n",
           (unsigned long)walk->pcs[0], code[0], code[1], code[2], (int)walk->end, walk->count,
           walk->count > 1 ? (unsigned long)walk->pcs[1] : 0, (unsigned long)caller);
}

static void check(place *place, const ucontext_t *context)
{
    uint64_t pcs[WALK_DEPTH];
    sp_walk walk = walk_interrupted(context, pcs);
    place->stops++;
    if (walk.end == SP_WALK_COMPLETE && walk.count > 2 && walk.pcs[1] == place->caller)
        place->right++;
    else
        report_wrong(&walk, place->caller);
}

static void step(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)info;
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    uint64_t pc = (uint64_t)registers[REG_RIP];
    if (!stepping) {
        registers[REG_EFL] &= ~TRAP_FLAG;
        return;
    }
    if (is_looked_at(&looked_at, pc)) {
        if (!is_looked_at(&looked_at, looked_at.previous)) {
            looked_at.entries++;
            looked_at.caller = *(const uint64_t *)(uintptr_t)registers[REG_RSP] - 1; // NOLINT
        }
        check(&looked_at, context);
    }
    looked_at.previous = pc;
}

static void start_stepping(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)info;
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] |= TRAP_FLAG;
}

static void step_through(void (*code)(void))
{
    stepping = 1;
    raise(SIGUSR1);
    code();
    stepping = 0;
    printf("%u entries, %u stops, %u right\n", looked_at.entries, looked_at.stops, looked_at.right);
    assert_int_equal(looked_at.right, looked_at.stops);
}

/* None of these is called anywhere else in this program. */
__attribute__((noinline)) static void call_library(void)
{
    wchar_t wide[8];
    sink = wcstol(L"17", NULL, 10);
    wmemset(wide, L'x', 8);
    sink = mblen("x", 1) + labs(-3) + (long)wcsnlen(wide, 8);
    sink = a64l("abc");
}

static void look_at_own_linkage(void)
{
    const sp_module *own = sp_generation_find(generation, (uint64_t)(uintptr_t)call_library);
    looked_at = (place){.low = own->start, .high = own->end};
}

static void frame_above_a_linkage_entry_is_the_caller_at_the_first_call(void **state)
{
    (void)state;
    look_at_own_linkage();
    step_through(call_library);
    assert_true(looked_at.entries >= 4);
    assert_true(looked_at.stops >= 4 * 5); /* jump, push, jump; push, jump */
}

static void frame_above_a_linkage_entry_is_the_caller_at_later_calls(void **state)
{
    (void)state;
    look_at_own_linkage();
    step_through(call_library);
    assert_true(looked_at.entries >= 4);
}

static int set_up(void **state)
{
    struct sigaction start = {.sa_sigaction = start_stepping, .sa_flags = SA_SIGINFO};
    struct sigaction each = {.sa_sigaction = step, .sa_flags = SA_SIGINFO};
    return walk_set_up(state) | sigaction(SIGUSR1, &start, NULL) | sigaction(SIGTRAP, &each, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frame_above_a_linkage_entry_is_the_caller_at_the_first_call),
        cmocka_unit_test(frame_above_a_linkage_entry_is_the_caller_at_later_calls),
    };
    return cmocka_run_group_tests(tests, set_up, walk_tear_down);
}
#endif
