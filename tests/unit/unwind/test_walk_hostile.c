/* SPDX-License-Identifier: Apache-2.0 */
/* Walks from registers that make no sense, and over memory that is not there: each ends with a
 * mark, none crashes. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <ucontext.h>
#include <sys/mman.h>
#include <cmocka.h>

#include "core/guarded_load_sig.h"
#include "unwind/unwind_table.h"
#include "cpu/cpu_engine.h"
#include "context/ring_sig.h"
#include "walk_fixture.h"

#define DEPTH 64

static sp_walk walk_from(sp_registers registers, sp_stack_bounds bounds)
{
    static uint64_t pcs[DEPTH];
    sp_walk walk = {.generation = generation,
                    .registers = registers,
                    .bounds = bounds,
                    .pcs = pcs,
                    .max_depth = DEPTH};
    sp_walk_stack(&walk);
    assert_in_range(walk.count, 1, DEPTH);
    assert_true(walk.pcs[0] == registers.pc);
    return walk;
}

static uint64_t address_of(const void *pointer)
{
    return (uint64_t)(uintptr_t)pointer;
}

#if defined(__aarch64__)
/* A pc with a table: its rule is that of a function's beginning on x86-64, where a call pushes the
 * return address. */
__asm__(".pushsection .text\n"
        ".globl known_code\n"
        "known_code: .cfi_startproc\n"
        ".cfi_def_cfa sp, 8\n"
        ".cfi_offset x30, -8\n"
        "nop; nop\n"
        ".cfi_endproc\n"
        ".popsection\n");
extern __attribute__((visibility("hidden"))) const uint32_t known_code[];

static uint64_t known_pc(void)
{
    return address_of(known_code);
}

static void set_interrupted(ucontext_t *context, uint64_t pc, uint64_t sp)
{
    context->uc_mcontext.pc = pc;
    context->uc_mcontext.sp = sp;
}

/* What stands in front of the kernel's ucontext when a handler has returned. */
typedef siginfo_t before_context;

static const uint32_t trampoline[] = {0xd2801168, 0xd4000001}; /* mov x8, #139; svc #0 */
static const uint32_t call[] = {0x94000000};                   /* bl */
#else
/* A pc with a table: any function of ours, in its middle or at its beginning. */
static uint64_t known_pc(void)
{
    return address_of((const void *)(uintptr_t)sp_walk_stack);
}

static void set_interrupted(ucontext_t *context, uint64_t pc, uint64_t sp)
{
    context->uc_mcontext.gregs[REG_RIP] = (greg_t)pc;
    context->uc_mcontext.gregs[REG_RSP] = (greg_t)sp;
}

/* What stands in front of the kernel's ucontext when a handler has returned: nothing. */
typedef struct before_context {
} before_context;

static const _Alignas(16) uint8_t trampoline[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
/* Go's (runtime.sigreturn__sigaction): no frame information, and a trap behind it. */
static const _Alignas(32) uint8_t go_trampoline[] = {0x48, 0xc7, 0xc0, 0x0f, 0,   0,
                                                     0,    0x0f, 0x05, 0xcd, 0x03};
static const uint8_t call[] = {0xe8, 0, 0, 0, 0};
#endif

static void walk_with_unreadable_sp_ends_with_bad_memory(void **state)
{
    (void)state;
    static const uint64_t stacks[] = {8, 4096, UINT64_MAX - 4095, UINT64_C(1) << 63,
                                      UINT64_C(0x7ffffffff000)};
    for (size_t i = 0; i < SP_ARRAY_LENGTH(stacks); i++) {
        sp_registers registers = {
            .pc = known_pc(), .sp = stacks[i], .has_fp = true, .has_base = true};
        sp_walk walk = walk_from(registers, (sp_stack_bounds){0});
        assert_int_equal(walk.end, SP_WALK_BAD_MEMORY);
        assert_int_equal(walk.count, 1);
    }
}

static void walk_with_misaligned_sp_ends_with_bad_memory(void **state)
{
    (void)state;
    uint64_t stack[16] = {0};
    sp_registers registers = {
        .pc = known_pc(), .sp = address_of(stack) + 3, .has_fp = true, .has_base = true};
    sp_stack_bounds bounds = {.low = address_of(stack), .high = address_of(stack + 16)};
    assert_int_equal(walk_from(registers, bounds).end, SP_WALK_BAD_MEMORY);
    assert_int_equal(walk_from(registers, (sp_stack_bounds){0}).end, SP_WALK_BAD_MEMORY);
}

static void walk_with_wrapping_sp_makes_no_progress(void **state)
{
    (void)state;
    sp_registers registers = {
        .pc = known_pc(), .sp = UINT64_MAX - 7, .has_fp = true, .has_base = true};
    assert_int_equal(walk_from(registers, (sp_stack_bounds){0}).end, SP_WALK_NO_PROGRESS);
}

/* The last word before an unmapped page can be read, the one behind cannot. */
static void walk_to_the_edge_of_a_mapping_stops_there(void **state)
{
    (void)state;
    char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(pages, MAP_FAILED);
    assert_int_equal(munmap(pages + 4096, 4096), 0);
    uint64_t *last = (uint64_t *)(pages + 4096) - 1;
    *last = known_pc() + 1;
    sp_registers registers = {
        .pc = known_pc(), .sp = address_of(last), .has_fp = true, .has_base = true};
    sp_walk walk = walk_from(registers, (sp_stack_bounds){0});
    assert_int_equal(walk.end, SP_WALK_BAD_MEMORY);
    assert_int_equal(walk.count, 2);
    assert_true(walk.pcs[1] == known_pc());
    munmap(pages, 4096);
}

static void walk_with_stale_bounds_reads_only_above_sp(void **state)
{
    (void)state;
    /* Bounds that claim everything: sp below the page says where the stack begins, and what lies
     * below is guarded. */
    sp_registers registers = {
        .pc = 12345, .sp = address_of(&registers), .fp = 4096, .has_fp = true};
    sp_stack_bounds bounds = {.low = 0, .high = UINT64_MAX};
    assert_int_equal(walk_from(registers, bounds).end, SP_WALK_NO_PROGRESS);
}

static void walk_with_hostile_fp_ends_with_a_mark(void **state)
{
    (void)state;
    uint64_t stack[64] = {0};
    uint64_t sp = address_of(stack);
    const uint64_t pointers[] = {0,
                                 1,
                                 sp + 1,
                                 sp - 8,
                                 sp + 4,
                                 0x1000,
                                 UINT64_MAX - 7,
                                 UINT64_C(0xffff800000000000),
                                 sp + (UINT64_C(1) << 30)};
    for (size_t i = 0; i < SP_ARRAY_LENGTH(pointers); i++) {
        sp_registers registers = {.pc = 12345, .sp = sp, .fp = pointers[i], .has_fp = true};
        sp_walk walk = walk_from(registers, (sp_stack_bounds){0});
        assert_int_not_equal(walk.end, SP_WALK_COMPLETE);
        assert_int_equal(walk.count, 1);
    }
}

static void walk_with_fp_to_no_call_ends_with_no_table(void **state)
{
    (void)state;
    uint64_t stack[8] = {0};
    stack[2] = address_of(stack + 4);
    stack[3] = address_of(stack + 1); /* no return address: the bytes before it are no call */
    sp_registers registers = {
        .pc = 12345, .sp = address_of(stack), .fp = address_of(stack + 2), .has_fp = true};
    sp_walk walk = walk_from(registers, (sp_stack_bounds){0});
    assert_int_equal(walk.end, SP_WALK_NO_TABLE);
    assert_int_equal(walk.count, 1);
}

/* glibc's __mpn_addmul_1 pushes two registers and its frame information does not say so: what the
 * rule takes for the return address is one of them, here an address of the stack. It is no frame,
 * and the frame pointer that would lead on is no proof of it. */
static void walk_by_a_wrong_rule_ends_before_what_is_no_code(void **state)
{
    (void)state;
    uint64_t stack[8] = {0};
    static const uint8_t call[8] = {0xe8, 0, 0, 0, 0};
    stack[0] = address_of(stack + 6);
    stack[2] = address_of(stack + 4);
    stack[3] = address_of(call + 5);
    sp_registers registers = {
        .pc = known_pc(), .sp = address_of(stack), .fp = address_of(stack + 2), .has_fp = true};
    sp_walk walk = walk_from(registers, (sp_stack_bounds){0});
    assert_int_equal(walk.end, SP_WALK_NO_TABLE);
    assert_int_equal(walk.count, 1);
}

#if defined(__x86_64__)
/* Procedure linkage tables without frame information, as lld and mold write them. The caller must
 * not be left out, wherever the code was interrupted. PUSHED words lie on the stack at AT. */
typedef struct linkage_case {
    const char *code;
    int at;
    int pushed;
} linkage_case;

static void check_linkage(const linkage_case *linkage)
{
    static const uint8_t calls[16] = {0xe8, 0, 0, 0, 0, 0xe8, 0, 0, 0, 0};
    uint8_t code[32] = {0};
    uint64_t stack[10] = {0}, *top = stack + 2 - linkage->pushed;
    memcpy(code, linkage->code, 16);
    stack[2] = address_of(calls + 5);
    stack[4] = address_of(stack + 6);
    stack[5] = address_of(calls + 10);
    sp_registers registers = {.pc = address_of(code + linkage->at),
                              .sp = address_of(top),
                              .fp = address_of(stack + 4),
                              .has_fp = true};
    sp_walk walk = walk_from(registers, (sp_stack_bounds){0});
    assert_in_range(walk.count, 3, DEPTH);
    assert_true(walk.pcs[1] == address_of(calls + 5) - 1);
    assert_true(walk.pcs[2] == address_of(calls + 10) - 1);
}

static void walk_in_a_linkage_table_finds_the_caller(void **state)
{
    (void)state;
    static const char entry[16] = "\xff\x25\x42\x49\0\0\x68\1\0\0\0\xe9\0\0\0";
    static const char header[16] = "\xff\x35\1\0\0\0\xff\x25\2\0\0\0\x0f\x1f\x40";
    static const char checked[16] = "\xf3\x0f\x1e\xfa\x68\1\0\0\0\xf2\xe9\0\0\0\0\x90";
    static const char checked_header[16] = "\xff\x35\1\0\0\0\xf2\xff\x25\2\0\0\0\x0f\x1f";
    static const char second[16] = "\xf3\x0f\x1e\xfa\xf2\xff\x25\1\0\0\0\x0f\x1f\x44\0";
    static const char mold[16] = "\xf3\x0f\x1e\xfa\x41\xbb\1\0\0\0\xff\x25\2\0\0";
    static const char mold_header[17] = "\xf3\x0f\x1e\xfa\x41\x53\xff\x35\1\0\0\0\xff\x25\2\0";
    static const linkage_case cases[] = {
        {entry, 0, 0},          {entry, 6, 0},          {entry, 11, 1},       {header, 0, 1},
        {header, 6, 2},         {checked, 0, 0},        {checked, 4, 0},      {checked, 9, 1},
        {checked_header, 0, 1}, {checked_header, 6, 2}, {second, 0, 0},       {second, 4, 0},
        {mold, 0, 0},           {mold, 4, 0},           {mold, 10, 0},        {mold_header, 0, 0},
        {mold_header, 4, 0},    {mold_header, 6, 1},    {mold_header, 12, 2},
    };
    for (size_t i = 0; i < SP_ARRAY_LENGTH(cases); i++)
        check_linkage(&cases[i]);
}
#endif

/* A frame that points to itself: each step has to go up, or the walk would go on for ever. */
static void walk_along_a_loop_of_frames_makes_no_progress(void **state)
{
    (void)state;
    uint64_t stack[8] = {0};
    stack[2] = address_of(stack + 2);
    stack[3] = address_of(call) + sizeof call; /* data that looks like code */
    sp_registers registers = {
        .pc = 12345, .sp = address_of(stack), .fp = address_of(stack + 2), .has_fp = true};
    sp_walk walk = walk_from(registers, (sp_stack_bounds){0});
    assert_int_not_equal(walk.end, SP_WALK_COMPLETE);
    assert_in_range(walk.count, 1, 3);
}

static void walk_without_fp_ends_with_no_register(void **state)
{
    (void)state;
    uint64_t stack[8] = {0};
    sp_registers registers = {.pc = 12345, .sp = address_of(stack)};
    assert_int_equal(walk_from(registers, (sp_stack_bounds){0}).end, SP_WALK_NO_REGISTER);
}

static void walk_to_return_address_zero_is_complete(void **state)
{
    (void)state;
    uint64_t stack[8] = {0};
    sp_registers registers = {
        .pc = known_pc(), .sp = address_of(stack), .has_fp = true, .has_base = true};
    sp_stack_bounds bounds = {.low = address_of(stack), .high = address_of(stack + 8)};
    sp_walk walk = walk_from(registers, bounds);
    assert_int_equal(walk.end, SP_WALK_COMPLETE);
    assert_int_equal(walk.count, 1);
}

/* The tests are compiled with frame pointers: this function's frame and its caller's make a chain.
 */
__attribute__((noinline)) static void walk_own_frames(void)
{
    uint64_t pcs[4];
    uint64_t fp = address_of(__builtin_frame_address(0));
    uint64_t caller = address_of(__builtin_return_address(0)) - 1;
    sp_walk walk = {
        .registers = {.pc = 12345, .sp = fp, .fp = fp, .has_fp = true}, .pcs = pcs, .max_depth = 2};
    sp_walk_stack(&walk);
    assert_int_equal(walk.end, SP_WALK_TRUNCATED);
    assert_int_equal(walk.by_frame_pointer, 2);
    assert_true(pcs[1] == caller);
}

static void walk_without_generation_uses_frame_pointers(void **state)
{
    (void)state;
    walk_own_frames();
    assert_non_null(modules); /* no tail call */
}

/* A signal trampoline without frame information, as musl has it: a handler with a table returns
 * into it, and behind its return address lies the kernel's ucontext. */
static void walk_over_a_bare_trampoline_finds_the_interrupted_frame(void **state)
{
    (void)state;
    struct {
        uint64_t align;
        uint64_t return_address;
        before_context before;
        ucontext_t context;
    } frame = {.return_address = address_of(trampoline)};
    uint64_t interrupted[2] = {0};
    set_interrupted(&frame.context, known_pc(), address_of(interrupted));
    sp_registers registers = {.pc = known_pc(),
                              .sp = address_of(&frame.return_address),
                              .has_fp = true,
                              .has_base = true};
    sp_walk walk = walk_from(registers, (sp_stack_bounds){0});
    assert_int_equal(walk.end, SP_WALK_COMPLETE);
    assert_int_equal(walk.count, 3);
    assert_true(walk.pcs[1] == SP_PC_SIGNAL_HANDLER);
    assert_true(walk.pcs[2] == known_pc());
}

#if defined(__x86_64__)
/* Neither the handler nor the trampoline has a table: a program that was linked statically has
 * none. */
static void walk_back_from_a_handler_over(const uint8_t *returned_to)
{
    struct {
        uint64_t inner[2], outer[2]; /* frame records: the frame pointer, the return address */
        ucontext_t context;
    } frames = {0};
    uint64_t interrupted[2] = {0};
    frames.inner[0] = address_of(frames.outer);
    frames.inner[1] = address_of(call) + sizeof call;
    frames.outer[0] = address_of(interrupted);
    frames.outer[1] = address_of(returned_to);
    set_interrupted(&frames.context, known_pc(), address_of(interrupted));
    const uint64_t *records[] = {frames.outer, frames.inner};
    for (uint32_t callers = 0; callers < 2; callers++) {
        uint64_t fp = address_of(records[callers]);
        sp_registers registers = {.pc = 12345, .sp = fp, .fp = fp, .has_fp = true};
        sp_walk walk = walk_from(registers, (sp_stack_bounds){0});
        assert_int_equal(walk.end, SP_WALK_COMPLETE);
        assert_int_equal(walk.count, 3 + callers);
        assert_true(walk.pcs[1 + callers] == SP_PC_SIGNAL_HANDLER);
        assert_true(walk.pcs[2 + callers] == known_pc());
    }
}

static void walk_from_a_handler_along_frame_pointers_finds_the_interrupted_frame(void **state)
{
    (void)state;
    walk_back_from_a_handler_over(trampoline);
}

static void walk_from_a_handler_of_go_finds_the_interrupted_frame(void **state)
{
    (void)state;
    walk_back_from_a_handler_over(go_trampoline);
}

static void do_nothing(int signal)
{
    (void)signal;
}

/* The address of libc's signal trampoline, which the kernel was told with a handler (sigaction(2),
 * "C library/kernel differences"). */
static uint64_t find_restorer(void)
{
    struct {
        void *handler;
        unsigned long flags;
        void *restorer;
        unsigned long mask;
    } known = {0};
    signal(SIGUSR1, do_nothing);
    assert_int_equal(syscall(SYS_rt_sigaction, SIGUSR1, NULL, &known, sizeof known.mask), 0);
    assert_non_null(known.restorer);
    return address_of(known.restorer);
}

/* The kernel's frame says that libc's trampoline itself was interrupted, on the same stack: each
 * step leads back. */
static void walk_over_a_signal_frame_that_leads_to_itself_ends(void **state)
{
    (void)state;
    ucontext_t context;
    memset(&context, 0, sizeof context);
    uint64_t restorer = find_restorer();
    set_interrupted(&context, restorer, address_of(&context));
    sp_registers registers = {
        .pc = restorer, .sp = address_of(&context), .has_fp = true, .has_base = true};
    sp_walk walk = walk_from(registers, (sp_stack_bounds){0});
    assert_int_not_equal(walk.end, SP_WALK_COMPLETE);
    assert_int_not_equal(walk.end, SP_WALK_TRUNCATED);
    assert_in_range(walk.count, 1, 40);
}
#endif

static uint64_t random_state = 1;

static uint64_t next_random(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

/* A number that is sometimes an address of ours, so that walks get past their first step. */
static uint64_t random_word(const uint64_t *stack, size_t words)
{
    const sp_module *module = generation->modules[next_random() % generation->module_count];
    const sp_unwind_table *table =
        module->table; /* from its first to its last function: what lies there does not change */
    uint32_t first = table->pcs[0], last = table->pcs[table->row_count - 1];
    switch (next_random() % 4) {
    case 0:
        return address_of(stack + next_random() % words);
    case 1:
    case 2:
        return module->start + first + next_random() % (last - first);
    default:
        return next_random() >> next_random() % 64;
    }
}

static void walk_over_random_stacks_always_ends(void **state)
{
    (void)state;
    enum { WORDS = 128, ROUNDS = 20000, PAGE = 4096 };
    /* Between pages that are not there, for two walks have to find the same around it. */
    char *pages = mmap(NULL, 3 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(pages, MAP_FAILED);
    assert_int_equal(mprotect(pages + PAGE, PAGE, PROT_READ | PROT_WRITE), 0);
    uint64_t *stack = (uint64_t *)(pages + 2 * PAGE) - WORDS;
    sp_stack_bounds bounds = {.low = address_of(stack), .high = address_of(stack + WORDS)};
    uint64_t ends[SP_WALK_FOLDED] = {0};
    for (int round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < WORDS; i++)
            stack[i] = random_word(stack, WORDS);
        sp_registers registers = {.pc = random_word(stack, WORDS),
                                  .sp = random_word(stack, WORDS),
                                  .fp = random_word(stack, WORDS),
                                  .base = random_word(stack, WORDS),
                                  .link = random_word(stack, WORDS),
                                  .has_fp = round % 2,
                                  .has_base = round % 7 != 0,
                                  .has_link = round % 5 != 0,
                                  .context = round % 5 ? 0 : random_word(stack, WORDS)};
        if (round % 4)
            registers.sp = address_of(stack + next_random() % WORDS);
        sp_walk direct = walk_from(registers, bounds);
        uint64_t pcs[DEPTH];
        memcpy(pcs, direct.pcs, direct.count * sizeof *pcs);
        ends[direct.end]++;
        /* Packed rules and direct loads are a short cut: the long way, each load guarded, comes to
         * the same end. */
        sp_walk guarded = walk_from(registers, (sp_stack_bounds){0});
        assert_int_equal(guarded.end, direct.end);
        assert_int_equal(guarded.count, direct.count);
        assert_memory_equal(guarded.pcs, pcs, direct.count * sizeof *pcs);
    }
    printf("random stacks: ends");
    for (int i = 0; i < 6; i++)
        printf(" %lu", (unsigned long)ends[i]);
    printf("\n");
    assert_int_equal(ends[SP_WALK_TRUNCATED], 0);
    assert_true(ends[SP_WALK_BAD_MEMORY] > 0 && ends[SP_WALK_NO_TABLE] > 0);
    munmap(pages, 3 * PAGE);
}

static void guarded_load_of_bad_memory_fails_and_keeps_errno(void **state)
{
    (void)state;
    sp_guarded guarded;
    uint64_t word = 17, good = 42;
    sp_guarded_init(&guarded);
    errno = 5;
    assert_false(sp_guarded_load(&guarded, 8, &word));
    assert_false(sp_guarded_load(&guarded, address_of(&good) + 1, &word));
    assert_false(sp_guarded_load(&guarded, UINT64_MAX - 7, &word));
    assert_int_equal(word, 17);
    assert_true(sp_guarded_load(&guarded, address_of(&good), &word));
    assert_int_equal(word, 42);
    assert_false(sp_guarded_load(&guarded, 8, &word));
    assert_true(sp_guarded_load(&guarded, address_of(&good), &word));
    assert_int_equal(errno, 5);
}

/* The first tick of the main thread may come on a coroutine's stack, above which memory may go. */
static void stack_of_the_main_thread_is_where_it_began(void **state)
{
    (void)state;
    char *other = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(other, MAP_FAILED);
    static sp_thread thread;
    sp_store_relaxed(&thread.registered.tid, getpid());
    sp_store_relaxed(&thread.tick.seen_sp, address_of(other + 4096));
    sp_stack_learn(&thread);
    int local;
    assert_true(address_of(&local) >= sp_load_relaxed(&thread.tick.stack_low));
    assert_true(address_of(&local) < sp_load_relaxed(&thread.tick.stack_high));
    assert_false(address_of(other) >= sp_load_relaxed(&thread.tick.stack_low) &&
                 address_of(other) < sp_load_relaxed(&thread.tick.stack_high));
    munmap(other, 65536);
}

static void stack_bounds_hold_a_local_variable(void **state)
{
    (void)state;
    uint64_t local = 0;
    uint64_t address = address_of(&local);
    sp_stack_bounds own = sp_stack_bounds_of_self(), mapped = {0};
    assert_true(own.low <= address && address < own.high);
    assert_true(sp_stack_bounds_of_address(address, &mapped));
    assert_true(mapped.low <= address && address < mapped.high);
    assert_false(sp_stack_bounds_of_address(8, &mapped));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(walk_with_unreadable_sp_ends_with_bad_memory),
        cmocka_unit_test(walk_with_misaligned_sp_ends_with_bad_memory),
        cmocka_unit_test(walk_with_wrapping_sp_makes_no_progress),
        cmocka_unit_test(walk_to_the_edge_of_a_mapping_stops_there),
        cmocka_unit_test(walk_with_stale_bounds_reads_only_above_sp),
        cmocka_unit_test(walk_with_hostile_fp_ends_with_a_mark),
        cmocka_unit_test(walk_with_fp_to_no_call_ends_with_no_table),
        cmocka_unit_test(walk_by_a_wrong_rule_ends_before_what_is_no_code),
#if defined(__x86_64__)
        cmocka_unit_test(walk_in_a_linkage_table_finds_the_caller),
#endif
        cmocka_unit_test(walk_along_a_loop_of_frames_makes_no_progress),
        cmocka_unit_test(walk_without_fp_ends_with_no_register),
        cmocka_unit_test(walk_to_return_address_zero_is_complete),
        cmocka_unit_test(walk_without_generation_uses_frame_pointers),
        cmocka_unit_test(walk_over_a_bare_trampoline_finds_the_interrupted_frame),
#if defined(__x86_64__)
        cmocka_unit_test(walk_from_a_handler_along_frame_pointers_finds_the_interrupted_frame),
        cmocka_unit_test(walk_from_a_handler_of_go_finds_the_interrupted_frame),
        cmocka_unit_test(walk_over_a_signal_frame_that_leads_to_itself_ends),
#endif
        cmocka_unit_test(walk_over_random_stacks_always_ends),
        cmocka_unit_test(guarded_load_of_bad_memory_fails_and_keeps_errno),
        cmocka_unit_test(stack_bounds_hold_a_local_variable),
        cmocka_unit_test(stack_of_the_main_thread_is_where_it_began),
    };
    return cmocka_run_group_tests(tests, walk_set_up, walk_tear_down);
}
