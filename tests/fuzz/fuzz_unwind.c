/* SPDX-License-Identifier: Apache-2.0 */
/* Frame information: the first byte is how many functions the header promises, the second where the
 * section is, the rest the section. Whatever it is, the table keeps the rules that the handler's
 * lookup relies on, and the lookup finds what a slow one finds. Each section is compiled as a
 * header describes it, and as section headers do: of known length, with no index. */
#include "fuzz/fuzz.h"

#include "unwind/unwind_table.h"

enum { HEAD = 2 };

static const uint64_t START = 0x10000, SIZE = 0x100000;

static sp_rule_pool pool;

static void check_rows(const sp_unwind_table *table)
{
    FUZZ_CHECK(table->row_count >= 1);
    FUZZ_CHECK(table->rule_of_row[table->row_count - 1] == SP_RULE_NONE);
    for (uint32_t i = 0; i < table->row_count; i++) {
        FUZZ_CHECK(i == 0 || table->pcs[i - 1] < table->pcs[i]);
        FUZZ_CHECK(table->pcs[i] <= SIZE);
        FUZZ_CHECK(table->rule_of_row[i] < pool.numbers.count);
    }
}

static void check_pages(const sp_unwind_table *table)
{
    for (uint32_t page = 0; page < table->page_count; page++)
        FUZZ_CHECK(table->page_rows[page] <= table->page_rows[page + 1]);
    FUZZ_CHECK(table->page_rows[table->page_count] <= table->row_count);
}

/* Each row's first and last offset, and what is around all. */
static void check_lookups(const sp_unwind_table *table)
{
    for (uint32_t i = 0; i < table->row_count; i++) {
        uint16_t rule = table->rule_of_row[i];
        FUZZ_CHECK(sp_unwind_table_find(table, table->pcs[i]) == rule);
        if (i + 1 < table->row_count)
            FUZZ_CHECK(sp_unwind_table_find(table, table->pcs[i + 1] - 1) == rule);
    }
    static const uint64_t outside[] = {0, 1, UINT32_MAX, UINT64_C(1) << 32, UINT64_MAX};
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++)
        if (outside[i] < table->pcs[0] || outside[i] >= SIZE)
            FUZZ_CHECK(sp_unwind_table_find(table, outside[i]) == SP_RULE_NONE);
}

static void check_begins(const sp_unwind_table *table, bool is_exact)
{
    FUZZ_CHECK(is_exact ? table->function_count > 0 : table->function_count == 0);
    for (uint32_t i = 0; i < table->function_count; i++)
        FUZZ_CHECK(table->begins[i] < SIZE && (i == 0 || table->begins[i - 1] <= table->begins[i]));
}

static void compile_and_check(const sp_cfi_section *section)
{
    sp_unwind_table *table = sp_unwind_table_compile(section, &pool);
    if (table) {
        check_rows(table);
        check_pages(table);
        check_lookups(table);
        check_begins(table, section->is_exact);
    }
    sp_unwind_table_destroy(table);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
    if (length < HEAD)
        return 0;
    FUZZ_CHECK(sp_rule_pool_init(&pool));
    uint8_t *copy = malloc(length - HEAD + 1);
    FUZZ_CHECK(copy);
    memcpy(copy, data + HEAD, length - HEAD);
    sp_cfi_section section = {.data = copy,
                              .length = length - HEAD,
                              .address = START + ((uint64_t)data[1] << 12),
                              .header_address = START + ((uint64_t)data[1] << 12) - 0x100,
                              .module_start = START,
                              .module_end = START + SIZE,
                              .fde_limit = data[0]};
    compile_and_check(&section);
    section.header_address = section.fde_limit = 0;
    section.is_exact = true;
    compile_and_check(&section);
    free(copy);
    sp_rule_pool_deinit(&pool);
    return 0;
}
