/* SPDX-License-Identifier: Apache-2.0 */
/* The walk from registers and over a stack that the input makes up. The stack is a block of exactly
 * its size, beside which nothing may be touched without a guard: AddressSanitizer would see it.
 * With and without bounds the walk has to find the same.
 *
 * Input: a byte of flags; the length of a section of frame information, and it; the number of words
 * on the stack; four registers and the words: a byte says what kind of word, then comes what that
 * kind needs. Modules are this program's own and one, where nothing is mapped, with the section's
 * table. */
#include "fuzz/fuzz.h"

#include <stdbool.h>
#include <sys/mman.h>

#include "unwind/generation_sig.h"
#include "unwind/walk_sig.h"

enum { DEPTH_MAX = 64, WORDS_MAX = 96, REGISTERS = 4, CODE_MAX = 32 };

/* A module whose code is nowhere; far from all that is mapped. */
static const uint64_t MADE_UP_START = UINT64_C(0x100000000000), MADE_UP_SIZE = 0x10000;

typedef struct input {
    const uint8_t *data;
    size_t left;
} input;

static uint8_t take_byte(input *in)
{
    if (!in->left)
        return 0;
    in->left--;
    return *in->data++;
}

static uint64_t take_word(input *in, unsigned bytes)
{
    uint64_t word = 0;
    for (unsigned i = 0; i < bytes; i++)
        word |= (uint64_t)take_byte(in) << (8 * i);
    return word;
}

/* Where code is mapped. What it has in memory does not change, so that a walk that strays there
 * twice finds the same. */
static struct {
    uint64_t start, size;
} code[CODE_MAX];
static size_t code_count;

static void find_code(void)
{
    char line[4096], flags[5];
    unsigned long start, end;
    FILE *maps = fopen("/proc/self/maps", "re");
    FUZZ_CHECK(maps);
    while (code_count < CODE_MAX && fgets(line, sizeof line, maps))
        if (sscanf(line, "%lx-%lx %4s", &start, &end, flags) == 3 && strcmp(flags, "r-xp") == 0) {
            code[code_count].start = start;
            code[code_count++].size = end - start;
        }
    fclose(maps);
    FUZZ_CHECK(code_count);
}

/* This program's; made anew when the rules of made-up tables have nearly filled the pool. */
static const sp_generation *own_modules(void)
{
    static sp_modules *modules;
    if (modules && modules->rules.numbers.count > SP_RULES_MAX / 2) {
        sp_modules_destroy(modules);
        modules = NULL;
    }
    if (!modules)
        modules = sp_modules_create();
    FUZZ_CHECK(modules);
    const sp_generation *generation = sp_modules_generation(modules, 1);
    FUZZ_CHECK(generation && generation->module_count > 1);
    return generation;
}

/* Empty, for what it held was about another table. */
static _Atomic uint64_t *empty_cache(void)
{
    static _Atomic uint64_t *cache;
    size_t bytes = SP_RULE_CACHE_ENTRIES * sizeof *cache;
    if (!cache)
        cache = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    FUZZ_CHECK(cache != MAP_FAILED && madvise((void *)cache, bytes, MADV_DONTNEED) == 0);
    return cache;
}

/* The modules of this program, and MADE_UP in its place among them. */
static sp_generation *join_modules(sp_module *made_up)
{
    const sp_generation *own = own_modules();
    sp_generation *all = malloc(sizeof *all + (own->module_count + 1) * sizeof(sp_module *));
    FUZZ_CHECK(all);
    static uint32_t number;
    all->number = ++number;
    all->module_count = 0;
    all->rules = own->rules;
    all->rule_cache = empty_cache();
    for (uint32_t i = 0; i < own->module_count; i++) {
        if (made_up && own->modules[i]->start > made_up->start) {
            all->modules[all->module_count++] = made_up;
            made_up = NULL;
        }
        all->modules[all->module_count++] = own->modules[i];
    }
    if (made_up)
        all->modules[all->module_count++] = made_up;
    return all;
}

/* Code that a walk knows by its bytes, and that no frame information describes: it is only looked
 * at. */
static const struct {
    uint8_t call[8]; /* ends with call +0 */
    uint8_t trampoline[16];
} known_code = {
    .call = {0x90, 0x90, 0x90, 0xe8, 0, 0, 0, 0},
    .trampoline = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05}, /* mov $15, %rax; syscall */
};

/* A word as a stack may have it: an address of code, one of the stack itself, a small number, or
 * anything. */
static uint64_t make_word(input *in, uint64_t stack, size_t bytes)
{
    uint8_t kind = take_byte(in);
    if (kind < 96)
        return code[kind % code_count].start + take_word(in, 3) % code[kind % code_count].size;
    if (kind < 126)
        return MADE_UP_START + take_word(in, 2);
    if (kind == 126) /* where the call returns to */
        return (uint64_t)(uintptr_t)known_code.call + sizeof known_code.call;
    if (kind == 127)
        return (uint64_t)(uintptr_t)known_code.trampoline;
    if (kind < 208)
        return stack + take_word(in, 2) % (bytes + 16);
    if (kind < 240)
        return kind - 208u;
    return take_word(in, 8);
}

typedef struct result {
    uint32_t count, leaf_count, omitted, by_frame_pointer;
    sp_walk_end end;
    uint64_t pcs[DEPTH_MAX];
} result;

/* What an end says has to be so. */
static void check(const result *r, const sp_walk *walk)
{
    FUZZ_CHECK(r->count >= 1 && r->count <= walk->max_depth);
    FUZZ_CHECK(r->end < SP_WALK_FOLDED);
    FUZZ_CHECK(r->pcs[0] == walk->registers.pc);
    FUZZ_CHECK(r->leaf_count <= r->count && (r->omitted || r->leaf_count == r->count));
    bool is_endless = r->end == SP_WALK_TRUNCATED; /* then the room for the root end was written to,
                                                      and the leaf end is left */
    FUZZ_CHECK(!is_endless || r->count == walk->max_depth - walk->max_depth / 4);
    FUZZ_CHECK(is_endless || r->by_frame_pointer <= r->count + r->omitted);
    /* What was taken back, because it is no frame, was written once. */
    for (uint32_t i = is_endless ? walk->max_depth : r->count + 1; i < DEPTH_MAX; i++)
        FUZZ_CHECK(r->pcs[i] == UINT64_C(0x5bad5bad5bad5bad));
}

/* Always in the same place, and from there to OUT: a walk may stray to where it puts its own
 * frames. */
__attribute__((noinline)) static void walk_once(sp_walk walk, sp_stack_bounds bounds, result *out)
{
    static uint64_t pcs[DEPTH_MAX];
    for (int i = 0; i < DEPTH_MAX; i++)
        pcs[i] = UINT64_C(0x5bad5bad5bad5bad);
    walk.bounds = bounds;
    walk.pcs = pcs;
    sp_walk_stack(&walk);
    memset(out, 0, sizeof *out);
    out->count = walk.count;
    out->leaf_count = walk.leaf_count;
    out->omitted = walk.omitted;
    out->by_frame_pointer = walk.by_frame_pointer;
    out->end = walk.end;
    memcpy(out->pcs, pcs, sizeof pcs);
    check(out, &walk);
}

/* Walk with the bounds known, and with none: only what it costs may differ, for the same memory is
 * read. Where two walks of one kind differ, it was memory that this program writes to meanwhile. */
static void walk_both_ways(sp_walk walk, const uint64_t *stack, size_t words)
{
    static result known[2], unknown[2];
    const sp_stack_bounds bounds = {.low = (uint64_t)(uintptr_t)stack,
                                    .high = (uint64_t)(uintptr_t)(stack + words)};
    for (int i = 0; i < 2; i++) {
        walk_once(walk, bounds, &known[i]);
        walk_once(walk, (sp_stack_bounds){0}, &unknown[i]);
    }
    bool is_still = memcmp(&known[0], &known[1], sizeof known[0]) == 0 &&
                    memcmp(&unknown[0], &unknown[1], sizeof unknown[0]) == 0;
    FUZZ_CHECK(!is_still || memcmp(&known[0], &unknown[0], sizeof known[0]) == 0);
}

static sp_unwind_table *make_table(input *in)
{
    size_t length = take_byte(in);
    length = length > in->left ? in->left : length;
    if (!length)
        return NULL;
    sp_cfi_section section = {.data = in->data,
                              .length = length,
                              .address = MADE_UP_START + 0x8000,
                              .header_address = MADE_UP_START + 0x7f00,
                              .module_start = MADE_UP_START,
                              .module_end = MADE_UP_START + MADE_UP_SIZE};
    in->data += length;
    in->left -= length;
    return sp_unwind_table_compile(&section, (sp_rule_pool *)own_modules()->rules);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
    input in = {.data = data, .left = length};
    if (!code_count)
        find_code();
    uint8_t flags = take_byte(&in);
    sp_unwind_table *table = make_table(&in);
    sp_module made_up = {.start = MADE_UP_START,
                         .end = MADE_UP_START + MADE_UP_SIZE,
                         .bias = MADE_UP_START,
                         .table = table};
    sp_generation *generation = join_modules(&made_up);
    size_t words = take_byte(&in) % WORDS_MAX + 1, bytes = words * sizeof(uint64_t);
    uint64_t *stack = malloc(bytes);
    FUZZ_CHECK(stack);
    uint64_t address = (uint64_t)(uintptr_t)stack, registers[REGISTERS];
    for (int i = 0; i < REGISTERS; i++)
        registers[i] = make_word(&in, address, bytes);
    for (size_t i = 0; i < words; i++)
        stack[i] = make_word(&in, address, bytes);
    sp_walk walk = {.generation = flags & 1 ? NULL : generation,
                    .registers = {.pc = registers[0],
                                  .sp = flags & 2 ? registers[1] : address + 8 * (flags >> 5),
                                  .fp = registers[2],
                                  .base = registers[3],
                                  .has_fp = flags & 4,
                                  .has_base = flags & 4,
                                  .context = flags & 8 ? address : 0},
                    .max_depth = flags & 16 ? 3 : DEPTH_MAX};
    walk_both_ways(walk, stack, words);
    free(stack);
    free(generation);
    sp_unwind_table_destroy(table);
    return 0;
}
