/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/unwind_table.h"

#include <stdlib.h>
#include <string.h>

#include "unwind/cfi.h"

/* Rows under construction. pcs[0 .. count) are strictly increasing, and no two neighbours have the
 * same rule. */
typedef struct compiler {
    sp_rule_pool *pool;
    uint32_t *pcs;
    uint16_t *rule_of_row;
    uint32_t count;
    uint32_t capacity;
    uint32_t limit; /* where the function being compiled ends, or the next one begins */
    bool failed;    /* memory is short */
} compiler;

static bool make_room(compiler *c)
{
    if (c->count < c->capacity)
        return true;
    uint32_t capacity = c->capacity ? c->capacity * 2 : 1024;
    uint32_t *pcs = realloc(c->pcs, capacity * sizeof *pcs);
    if (pcs)
        c->pcs = pcs;
    uint16_t *rule_of_row = realloc(c->rule_of_row, capacity * sizeof *rule_of_row);
    if (rule_of_row)
        c->rule_of_row = rule_of_row;
    if (!pcs || !rule_of_row)
        return false;
    c->capacity = capacity;
    return true;
}

static bool add_row(compiler *c, uint32_t offset, const sp_unwind_rule *rule)
{
    uint32_t number = sp_rule_pool_put(c->pool, rule);
    if (number == SP_INTERN_FAILED || !make_room(c)) {
        c->failed = true;
        return false;
    }
    if (c->count &&
        c->pcs[c->count - 1] == offset) /* the gap after the previous function ends here */
        c->count--;
    if (c->count && c->rule_of_row[c->count - 1] == number)
        return true;
    c->pcs[c->count] = offset;
    c->rule_of_row[c->count++] = (uint16_t)number;
    return true;
}

static const sp_unwind_rule unsupported = {.cfa_kind = SP_CFA_UNSUPPORTED};

/* A function whose program is broken has one row only: its earlier rows are as doubtful as the
 * rest. */
static void add_broken_function(compiler *c, const sp_cfi_function *function)
{
    while (c->count && c->pcs[c->count - 1] >= function->begin)
        c->count--;
    add_row(c, function->begin, &unsupported);
}

/* A rule that does not say where the return address is cannot be used. */
static bool on_row(void *user, uint32_t offset, const sp_unwind_rule *rule)
{
    compiler *c = user;
    if (offset >= c->limit)
        return true;
    if (rule->ra.kind == SP_SAVED_UNCHANGED || rule->ra.kind == SP_SAVED_UNKNOWN)
        rule = &unsupported;
    return add_row(c, offset, rule);
}

static int compare_functions(const void *left, const void *right)
{
    const sp_cfi_function *a = left, *b = right;
    if (a->begin != b->begin)
        return a->begin < b->begin ? -1 : 1;
    return a->end < b->end ? -1 : a->end > b->end;
}

static void sort_functions(sp_cfi_function *functions, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (functions[i].begin < functions[i - 1].begin) {
            qsort(functions, count, sizeof *functions, compare_functions);
            return;
        }
}

static void compile_functions(compiler *c, const sp_cfi_section *section,
                              const sp_cfi_function *functions, size_t count)
{
    static const sp_unwind_rule none;
    const sp_cfi_sink sink = {.row = on_row, .user = c};
    for (size_t i = 0; i < count && !c->failed; i++) {
        const sp_cfi_function *function = &functions[i];
        c->limit = function->end;
        if (i + 1 < count && functions[i + 1].begin < c->limit)
            c->limit = functions[i + 1].begin;
        if (c->limit <= function->begin)
            continue;
        sp_cfi_common common;
        if (!sp_cfi_read_common(section, function->common, &common))
            continue;
        if (!sp_cfi_run(section, &common, function, &sink) && !c->failed)
            add_broken_function(c, function);
        if (!c->failed)
            add_row(c, c->limit, &none);
    }
}

static uint32_t pages_of(const compiler *c, uint32_t *first_page)
{
    *first_page = c->pcs[0] >> SP_UNWIND_PAGE_SHIFT << SP_UNWIND_PAGE_SHIFT;
    return ((c->pcs[c->count - 1] - *first_page) >> SP_UNWIND_PAGE_SHIFT) + 1;
}

static void fill_pages(sp_unwind_table *table)
{
    uint32_t row = 0;
    for (uint32_t page = 0; page <= table->page_count; page++) {
        uint64_t begin = table->first_page + ((uint64_t)page << SP_UNWIND_PAGE_SHIFT);
        while (row < table->row_count && table->pcs[row] < begin)
            row++;
        table->page_rows[page] = row;
    }
}

/* One block for the struct and its arrays, the arrays with the larger elements first. */
static sp_unwind_table *assemble(const compiler *c, const sp_cfi_function *functions,
                                 uint32_t function_count)
{
    uint32_t first_page;
    uint32_t page_count = pages_of(c, &first_page);
    size_t pages_bytes = ((size_t)page_count + 1) * sizeof(uint32_t);
    size_t pcs_bytes = c->count * sizeof(uint32_t);
    size_t begins_bytes = function_count * sizeof(uint32_t);
    size_t row_bytes = c->count * sizeof(uint16_t);
    size_t bytes = sizeof(sp_unwind_table) + pages_bytes + pcs_bytes + begins_bytes + row_bytes;
    sp_unwind_table *table = malloc(bytes);
    if (!table)
        return NULL;
    char *at = (char *)(table + 1);
    *table = (sp_unwind_table){.row_count = c->count,
                               .first_page = first_page,
                               .page_count = page_count,
                               .page_rows = (void *)at,
                               .pcs = (void *)(at + pages_bytes),
                               .begins = (void *)(at + pages_bytes + pcs_bytes),
                               .function_count = function_count,
                               .rule_of_row = (void *)(at + pages_bytes + pcs_bytes + begins_bytes),
                               .bytes = bytes};
    memcpy(table->pcs, c->pcs, pcs_bytes);
    memcpy(table->rule_of_row, c->rule_of_row, row_bytes);
    for (uint32_t i = 0; i < function_count; i++)
        table->begins[i] = functions[i].begin;
    fill_pages(table);
    return table;
}

sp_unwind_table *sp_unwind_table_compile(const sp_cfi_section *section, sp_rule_pool *pool)
{
    if (section->length > UINT32_MAX || section->module_end <= section->module_start)
        return NULL;
    compiler c = {.pool = pool};
    sp_cfi_function *functions;
    size_t count = sp_cfi_functions(section, &functions);
    sp_unwind_table *table = NULL;
    if (count) {
        sort_functions(functions, count);
        compile_functions(&c, section, functions, count);
        if (!c.failed && c.count)
            table = assemble(&c, functions, section->header_address ? 0 : (uint32_t)count);
    }
    free(functions);
    free(c.pcs);
    free(c.rule_of_row);
    return table;
}

void sp_unwind_table_destroy(sp_unwind_table *table)
{
    free(table);
}
