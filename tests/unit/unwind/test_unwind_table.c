/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/clock.h"
#include "unwind/loader_snapshot.h"
#include "unwind/unwind_table.h"

#ifndef MUTATIONS
#define MUTATIONS 100000
#endif

#define BASE UINT64_C(0x10000) /* where the made-up module is */

/* The programs below are x86-64's, with the registers of this machine. */
#define DEF_CFA    0x0c
#define SAVED(r)   (0x80 | SP_DWARF_##r) /* in front of a factored offset from the CFA */
#define RESTORE(r) (0xc0 | SP_DWARF_##r)
#define PLUS(r)    (0x70 + SP_DWARF_##r) /* in an expression, in front of an offset */

/* A made-up section: one common entry, then functions that refer to it. */
typedef struct maker {
    uint8_t data[1024];
    size_t length;
} maker;

static void put(maker *m, const void *bytes, size_t count)
{
    memcpy(m->data + m->length, bytes, count);
    m->length += count;
}

static void put_u32(maker *m, uint32_t value)
{
    put(m, &value, 4);
}

/* CIE: "zR" or "zRS", code alignment 1, data alignment -8, absolute 4-byte addresses, CFA sp+8, ra
 * at CFA-8. */
static void put_common(maker *m, bool is_signal)
{
    static const uint8_t plain[] = {1,    'z',     'R',         0, 1,         0x78, SP_DWARF_RA, 1,
                                    0x03, DEF_CFA, SP_DWARF_SP, 8, SAVED(RA), 1,    0,           0};
    static const uint8_t with_s[] = {1, 'z',  'R',     'S',         0, 1,         0x78, SP_DWARF_RA,
                                     1, 0x03, DEF_CFA, SP_DWARF_SP, 8, SAVED(RA), 1,    0};
    put_u32(m, 4 + 16);
    put_u32(m, 0);
    put(m, is_signal ? with_s : plain, 16);
}

static void put_function(maker *m, uint32_t begin, uint32_t size, const uint8_t *program,
                         size_t count)
{
    put_u32(m, (uint32_t)(4 + 8 + 1 + count));
    put_u32(m, (uint32_t)m->length); /* the common entry is at 0 */
    put_u32(m, (uint32_t)BASE + begin);
    put_u32(m, size);
    put(m, "", 1);
    put(m, program, count);
}

static sp_rule_pool pool;

static sp_cfi_section section_of(const maker *m)
{
    return (sp_cfi_section){.data = m->data,
                            .length = m->length,
                            .address = BASE + 0x8000,
                            .module_start = BASE,
                            .module_end = BASE + 0x10000};
}

static sp_unwind_table *compile_limited(const maker *m, uint64_t fde_limit)
{
    uint8_t *copy =
        malloc(m->length); /* of the exact size, so that a sanitizer sees reads behind it */
    memcpy(copy, m->data, m->length);
    sp_cfi_section section = section_of(m);
    section.data = copy;
    section.fde_limit = fde_limit;
    sp_unwind_table *table = sp_unwind_table_compile(&section, &pool);
    free(copy);
    return table;
}

static sp_unwind_table *compile(const maker *m)
{
    return compile_limited(m, 0);
}

/* The table of one function at 0x100 of 0x40 bytes with PROGRAM. */
static sp_unwind_table *compile_program(const uint8_t *program, size_t count)
{
    maker m = {.length = 0};
    put_common(&m, false);
    put_function(&m, 0x100, 0x40, program, count);
    return compile(&m);
}
#define COMPILE(...)                                                                               \
    compile_program((const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

static sp_unwind_rule rule_at(const sp_unwind_table *table, uint64_t offset)
{
    return pool.rules[sp_unwind_table_find(table, offset)];
}

static void table_of_a_plain_prologue_has_its_rows(void **state)
{
    (void)state;
    /* push rbp; mov rsp, rbp; …; ret at 0x30 */
    sp_unwind_table *table = COMPILE(0x41, 0x0e, 16, SAVED(FP), 2, 0x43, 0x0d, SP_DWARF_FP, 0x6c,
                                     DEF_CFA, SP_DWARF_SP, 8, RESTORE(FP));
    assert_non_null(table);
    assert_int_equal(rule_at(table, 0xff).cfa_kind, SP_CFA_NONE);
    sp_unwind_rule rule = rule_at(table, 0x100);
    assert_int_equal(rule.cfa_kind, SP_CFA_REGISTER);
    assert_int_equal(rule.cfa_register, SP_DWARF_SP);
    assert_int_equal(rule.cfa_offset, 8);
    assert_int_equal(rule.ra.kind, SP_SAVED_AT_CFA);
    assert_int_equal(rule.ra.offset, -8);
    assert_int_equal(rule.fp.kind, SP_SAVED_UNCHANGED);
    rule = rule_at(table, 0x101);
    assert_int_equal(rule.cfa_offset, 16);
    assert_int_equal(rule.fp.kind, SP_SAVED_AT_CFA);
    assert_int_equal(rule.fp.offset, -16);
    assert_int_equal(rule_at(table, 0x104).cfa_register, SP_DWARF_FP);
    assert_int_equal(rule_at(table, 0x12f).cfa_register, SP_DWARF_FP);
    rule = rule_at(table, 0x130);
    assert_int_equal(rule.cfa_register, SP_DWARF_SP);
    assert_int_equal(rule.fp.kind, SP_SAVED_UNCHANGED);
    assert_int_equal(rule_at(table, 0x13f).cfa_kind, SP_CFA_REGISTER);
    assert_int_equal(rule_at(table, 0x140).cfa_kind, SP_CFA_NONE);
    assert_int_equal(rule_at(table, UINT64_MAX).cfa_kind, SP_CFA_NONE);
    sp_unwind_table_destroy(table);
}

static void table_restores_nested_states(void **state)
{
    (void)state;
    sp_unwind_table *table =
        COMPILE(0x0e, 16, 0x0a, 0x41, 0x0e, 24, 0x0a, 0x41, 0x0e, 32, 0x41, 0x0b, 0x41, 0x0b);
    assert_int_equal(rule_at(table, 0x100).cfa_offset, 16);
    assert_int_equal(rule_at(table, 0x101).cfa_offset, 24);
    assert_int_equal(rule_at(table, 0x102).cfa_offset, 32);
    assert_int_equal(rule_at(table, 0x103).cfa_offset, 24);
    assert_int_equal(rule_at(table, 0x104).cfa_offset, 16);
    sp_unwind_table_destroy(table);
}

static void table_knows_the_expressions_of_linkers_and_compilers(void **state)
{
    (void)state;
#if !SP_LINK_REGISTER /* elsewhere they have no frame information */
    sp_unwind_table *plt =
        COMPILE(0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22);
    assert_int_equal(rule_at(plt, 0x100).cfa_kind, SP_CFA_PLT);
    assert_int_equal(rule_at(plt, 0x100).cfa_offset, 8);
    assert_int_equal(rule_at(plt, 0x100).cfa_addend, 11);
    sp_unwind_table_destroy(plt);
#endif
    /* A realigned frame: CFA = *(rbp - 8), rbp saved where it points to. */
    sp_unwind_table *realigned =
        COMPILE(0x0f, 3, PLUS(FP), 0x78, 0x06, 0x10, SP_DWARF_FP, 2, PLUS(FP), 0);
    assert_int_equal(rule_at(realigned, 0x100).cfa_kind, SP_CFA_DEREF);
    assert_int_equal(rule_at(realigned, 0x100).cfa_register, SP_DWARF_FP);
    assert_int_equal(rule_at(realigned, 0x100).cfa_offset, -8);
    assert_int_equal(rule_at(realigned, 0x100).fp.kind, SP_SAVED_AT_REGISTER);
    sp_unwind_table_destroy(realigned);
    sp_unwind_table *added = COMPILE(0x0f, 5, PLUS(SP), 16, 0x06, 0x23, 8);
    assert_int_equal(rule_at(added, 0x100).cfa_kind, SP_CFA_DEREF);
    assert_int_equal(rule_at(added, 0x100).cfa_addend, 8);
    sp_unwind_table_destroy(added);
    sp_unwind_table *other = COMPILE(0x0f, 4, PLUS(SP), 16, 0x06, 0x06);
    assert_int_equal(rule_at(other, 0x100).cfa_kind, SP_CFA_UNSUPPORTED);
    sp_unwind_table_destroy(other);
}

static void table_marks_the_outermost_and_signal_frames(void **state)
{
    (void)state;
    sp_unwind_table *outermost = COMPILE(0x07, SP_DWARF_RA);
    assert_int_equal(rule_at(outermost, 0x100).ra.kind, SP_SAVED_UNDEFINED);
    assert_false(rule_at(outermost, 0x100).is_signal_frame);
    sp_unwind_table_destroy(outermost);
    maker m = {.length = 0};
    put_common(&m, true);
    put_function(&m, 0x100, 0x40, (const uint8_t *)"", 1);
    sp_unwind_table *signal_frame = compile(&m);
    assert_true(rule_at(signal_frame, 0x100).is_signal_frame);
    sp_unwind_table_destroy(signal_frame);
}

static void return_address_left_alone_is_in_the_link_register(void **state)
{
    (void)state;
    sp_unwind_table *table = COMPILE(0x08, SP_DWARF_RA, DEF_CFA, SP_DWARF_SP, 0);
    sp_unwind_rule rule = rule_at(table, 0x100);
#if SP_LINK_REGISTER
    assert_int_equal(rule.cfa_kind, SP_CFA_REGISTER);
    assert_int_equal(rule.ra.kind, SP_SAVED_IN_REGISTER);
    assert_int_equal(rule.ra.base, SP_DWARF_RA);
#else
    assert_int_equal(rule.cfa_kind, SP_CFA_UNSUPPORTED);
#endif
    sp_unwind_table_destroy(table);
}

#if SP_LINK_REGISTER
static void signed_return_addresses_have_the_same_rules(void **state)
{
    (void)state;
    sp_unwind_table *table = COMPILE(0x0e, 16, 0x41, 0x2d, 0x0e, 32, 0x41, 0x2c, 0x0e, 48);
    assert_int_equal(rule_at(table, 0x100).cfa_offset, 16);
    assert_int_equal(rule_at(table, 0x101).cfa_offset, 32);
    assert_int_equal(rule_at(table, 0x102).cfa_offset, 48);
    sp_unwind_table_destroy(table);
}

/* The loader's entry for lazy binding: sp + 208 for the CFA and the return address at CFA + 8, when
 * a PLT entry had pushed 16 bytes. */
static void words_that_a_plt_entry_pushed_belong_to_the_frame(void **state)
{
    (void)state;
    sp_unwind_table *table =
        COMPILE(0x11, SP_DWARF_RA, 0x7f, SAVED(FP), 2, 0x0e, 48, 0x41, 0x13, 2);
    sp_unwind_rule rule = rule_at(table, 0x100);
    assert_int_equal(rule.cfa_offset, 64);
    assert_int_equal(rule.ra.kind, SP_SAVED_AT_CFA);
    assert_int_equal(rule.ra.offset, -8);
    assert_int_equal(rule.fp.offset, -32);
    rule = rule_at(table, 0x101); /* CFA = sp - 16: they are popped */
    assert_int_equal(rule.cfa_offset, 0);
    assert_int_equal(rule.ra.kind, SP_SAVED_IN_REGISTER);
    sp_unwind_table_destroy(table);
}
#endif

static void broken_program_spoils_its_function_only(void **state)
{
    (void)state;
    maker m = {.length = 0};
    put_common(&m, false);
    put_function(&m, 0x200, 0x40, (const uint8_t *)"\x41\x0e\x10\x3f",
                 4);                                               /* 0x3f is no instruction */
    put_function(&m, 0x100, 0x40, (const uint8_t *)"\x0e\x18", 2); /* and not in order */
    put_function(&m, 0x240, 0x40, (const uint8_t *)"\x0b", 1); /* recalls what was not remembered */
    sp_unwind_table *table = compile(&m);
    assert_int_equal(rule_at(table, 0x100).cfa_offset, 24);
    assert_int_equal(rule_at(table, 0x140).cfa_kind, SP_CFA_NONE);
    assert_int_equal(rule_at(table, 0x200).cfa_kind, SP_CFA_UNSUPPORTED);
    assert_int_equal(rule_at(table, 0x210).cfa_kind, SP_CFA_UNSUPPORTED);
    assert_int_equal(rule_at(table, 0x240).cfa_kind, SP_CFA_UNSUPPORTED);
    assert_int_equal(rule_at(table, 0x280).cfa_kind, SP_CFA_NONE);
    sp_unwind_table_destroy(table);
}

static void overlapping_functions_are_cut_at_the_next(void **state)
{
    (void)state;
    maker m = {.length = 0};
    put_common(&m, false);
    put_function(&m, 0x100, 0x100, (const uint8_t *)"\x60\x0e\x10", 3);
    put_function(&m, 0x110, 0x40, (const uint8_t *)"\x0e\x20", 2);
    sp_unwind_table *table = compile(&m);
    assert_int_equal(rule_at(table, 0x10f).cfa_offset, 8);
    assert_int_equal(rule_at(table, 0x110).cfa_offset, 32);
    assert_int_equal(rule_at(table, 0x150).cfa_kind, SP_CFA_NONE);
    sp_unwind_table_destroy(table);
}

static void terminator_ends_a_section_unless_more_is_promised(void **state)
{
    (void)state;
    maker m = {.length = 0};
    put_common(&m, false);
    put_function(&m, 0x100, 0x40, (const uint8_t *)"", 1);
    put_u32(&m, 0);
    put_u32(&m, 0);
    put_function(&m, 0x200, 0x40, (const uint8_t *)"", 1);
    put_function(&m, 0x300, 0x40, (const uint8_t *)"", 1);
    sp_unwind_table *table = compile(&m);
    assert_int_equal(rule_at(table, 0x100).cfa_kind, SP_CFA_REGISTER);
    assert_int_equal(rule_at(table, 0x200).cfa_kind, SP_CFA_NONE);
    sp_unwind_table_destroy(table);
    table = compile_limited(&m, 2);
    assert_int_equal(rule_at(table, 0x200).cfa_kind, SP_CFA_REGISTER);
    assert_int_equal(rule_at(table, 0x300).cfa_kind, SP_CFA_NONE);
    sp_unwind_table_destroy(table);
}

static void section_of_known_length_is_read_to_its_end(void **state)
{
    (void)state;
    maker m = {.length = 0};
    put_common(&m, false);
    put_function(&m, 0x300, 0x40, (const uint8_t *)"", 1);
    put_u32(&m, 0);
    put_function(&m, 0x100, 0x40, (const uint8_t *)"", 1);
    put_u32(&m, 0);
    sp_cfi_section section = section_of(&m);
    section.is_exact = true;
    sp_unwind_table *table = sp_unwind_table_compile(&section, &pool);
    assert_int_equal(rule_at(table, 0x100).cfa_kind, SP_CFA_REGISTER);
    assert_int_equal(rule_at(table, 0x300).cfa_kind, SP_CFA_REGISTER);
    assert_int_equal(table->function_count, 2);
    assert_int_equal(table->begins[0], 0x100);
    assert_int_equal(table->begins[1], 0x300);
    sp_unwind_table_destroy(table);
    section.header_address = section.address; /* then the index is read instead */
    table = sp_unwind_table_compile(&section, &pool);
    assert_int_equal(table->function_count, 0);
    sp_unwind_table_destroy(table);
}

static void functions_outside_the_module_are_ignored(void **state)
{
    (void)state;
    maker m = {.length = 0};
    put_common(&m, false);
    put_function(&m, 0xfff0, 0x40, (const uint8_t *)"", 1);
    put_function(&m, 0x20000, 0x40, (const uint8_t *)"", 1);
    put_function(&m, 0x10, 0, (const uint8_t *)"", 1);
    assert_null(compile(&m));
}

static void empty_and_cut_sections_give_no_table(void **state)
{
    (void)state;
    maker m = {.length = 0};
    put_common(&m, false);
    put_function(&m, 0x100, 0x40, (const uint8_t *)"\x0e\x18", 2);
    size_t whole = m.length;
    for (m.length = 1; m.length < whole; m.length++)
        assert_null(compile(&m));
    m.length = whole;
    sp_unwind_table *table = compile(&m);
    assert_non_null(table);
    sp_unwind_table_destroy(table);
}

/* What every table promises, however odd the section was. */
static void check_table(const sp_unwind_table *table, size_t section_length)
{
    assert_true(table->row_count >= 1 && table->row_count <= 3 * section_length);
    assert_int_equal(table->page_rows[table->page_count], table->row_count);
    for (uint32_t i = 0; i < table->row_count; i++) {
        assert_true(table->rule_of_row[i] < pool.numbers.count);
        assert_true(i == 0 || table->pcs[i] > table->pcs[i - 1]);
        uint16_t expected = table->rule_of_row[i];
        assert_int_equal(sp_unwind_table_find(table, table->pcs[i]), expected);
        if (i + 1 < table->row_count)
            assert_int_equal(sp_unwind_table_find(table, table->pcs[i + 1] - 1), expected);
    }
    assert_int_equal(sp_unwind_table_find(table, 0xffffffff), SP_RULE_NONE);
}

static uint64_t random_state = 88172645463325252u;

static uint64_t next_random(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

static void mutate(uint8_t *data, size_t length)
{
    static const uint8_t nasty[] = {0x00, 0xff, 0x7f, 0x80, 0x0a, 0x0b, 0x0f, 0x10, 0x01, 0x42};
    for (uint64_t left = 1 + next_random() % 12; left; left--) {
        size_t at = next_random() % length;
        data[at] = next_random() % 2 ? nasty[next_random() % sizeof nasty] : (uint8_t)next_random();
    }
}

/* The smallest section of a loaded library that is big enough to be interesting. */
static const sp_cfi_section *pick_section(const sp_loader_snapshot *snapshot)
{
    const sp_cfi_section *best = NULL;
    for (size_t i = 0; i < snapshot->image_count; i++) {
        const sp_cfi_section *section = &snapshot->images[i].section;
        if (section->length > 500 && (!best || section->length < best->length))
            best = section;
    }
    return best;
}

static void table_of_mutated_bytes_never_breaks(void **state)
{
    (void)state;
    enum { ROUNDS = MUTATIONS };
    sp_loader_snapshot snapshot;
    assert_true(sp_loader_snapshot_take(&snapshot, NULL, (sp_loader_counters){0}));
    const sp_cfi_section *original = pick_section(&snapshot);
    assert_non_null(original);
    sp_cfi_section section = *original;
    uint8_t *copy = malloc(section.length);
    section.data = copy;
    uint32_t tables = 0;
    for (int round = 0; round < ROUNDS; round++) {
        memcpy(copy, original->data, section.length);
        mutate(copy, section.length);
        section.fde_limit = round % 2 ? 0 : original->fde_limit;
        sp_unwind_table *table = sp_unwind_table_compile(&section, &pool);
        if (table)
            check_table(table, section.length);
        tables += table != NULL;
        sp_unwind_table_destroy(table);
    }
    printf("%d mutations of %zu bytes: %u gave a table\n", ROUNDS, section.length, tables);
    assert_true(tables > 0);
    free(copy);
    sp_loader_snapshot_deinit(&snapshot);
}

static void tables_of_all_loaded_modules_keep_their_promises(void **state)
{
    (void)state;
    sp_loader_snapshot snapshot;
    assert_true(sp_loader_snapshot_take(&snapshot, NULL, (sp_loader_counters){0}));
    assert_true(snapshot.image_count >= 3);
    for (size_t i = 0; i < snapshot.image_count; i++) {
        const sp_module_image *image = &snapshot.images[i];
        uint32_t rules_before = pool.numbers.count;
        uint64_t begin = sp_clock_monotonic_ns();
        sp_unwind_table *table = sp_unwind_table_compile(&image->section, &pool);
        uint64_t spent = sp_clock_monotonic_ns() - begin;
        assert_non_null(table);
        uint32_t unsupported = 0;
        for (uint32_t row = 0; row < table->row_count; row++)
            unsupported += table->rule_of_row[row] == SP_RULE_UNSUPPORTED;
        printf("%s: %u rows, %u new rules, %u rows unsupported, %lu us\n", image->path,
               table->row_count, pool.numbers.count - rules_before, unsupported,
               (unsigned long)(spent / 1000));
        check_table(table, image->section.length);
        sp_unwind_table_destroy(table);
    }
    sp_loader_snapshot_deinit(&snapshot);
}

/* The last test: nothing fits into the pool afterwards. */
static void full_pool_makes_new_rules_unsupported(void **state)
{
    (void)state;
    for (int32_t offset = 1; pool.numbers.count < SP_RULES_MAX; offset++) {
        sp_unwind_rule rule = {
            .cfa_kind = SP_CFA_REGISTER, .cfa_register = 1, .cfa_offset = -offset};
        assert_true(sp_rule_pool_put(&pool, &rule) < SP_RULES_MAX);
    }
    sp_unwind_table *table = COMPILE(0x0e, 16, 0x41, 0x0e, 0xe5, 0x8e, 0x26);
    assert_non_null(table);
    assert_int_equal(rule_at(table, 0x101).cfa_kind, SP_CFA_UNSUPPORTED);
    assert_int_equal(rule_at(table, 0x140).cfa_kind, SP_CFA_NONE);
    sp_unwind_table_destroy(table);
}

static int create_pool(void **state)
{
    (void)state;
    return sp_rule_pool_init(&pool) ? 0 : -1;
}

static int destroy_pool(void **state)
{
    (void)state;
    sp_rule_pool_deinit(&pool);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table_of_a_plain_prologue_has_its_rows),
        cmocka_unit_test(table_restores_nested_states),
        cmocka_unit_test(table_knows_the_expressions_of_linkers_and_compilers),
        cmocka_unit_test(table_marks_the_outermost_and_signal_frames),
        cmocka_unit_test(return_address_left_alone_is_in_the_link_register),
#if SP_LINK_REGISTER
        cmocka_unit_test(signed_return_addresses_have_the_same_rules),
        cmocka_unit_test(words_that_a_plt_entry_pushed_belong_to_the_frame),
#endif
        cmocka_unit_test(broken_program_spoils_its_function_only),
        cmocka_unit_test(overlapping_functions_are_cut_at_the_next),
        cmocka_unit_test(terminator_ends_a_section_unless_more_is_promised),
        cmocka_unit_test(section_of_known_length_is_read_to_its_end),
        cmocka_unit_test(functions_outside_the_module_are_ignored),
        cmocka_unit_test(empty_and_cut_sections_give_no_table),
        cmocka_unit_test(tables_of_all_loaded_modules_keep_their_promises),
        cmocka_unit_test(table_of_mutated_bytes_never_breaks),
        cmocka_unit_test(full_pool_makes_new_rules_unsupported),
    };
    return cmocka_run_group_tests(tests, create_pool, destroy_pool);
}
