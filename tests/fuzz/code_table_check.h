/* SPDX-License-Identifier: Apache-2.0 */
/* What a table of code has to hold, whatever was read into it, and however. */
#ifndef TESTS_FUZZ_CODE_TABLE_CHECK_H
#define TESTS_FUZZ_CODE_TABLE_CHECK_H

#include "fuzz/fuzz.h"
#include "symbol/code_table.h"

static inline void fuzz_check_table(sp_code_table *table)
{
    sp_code_name found;
    sp_code_table_find(table, UINT64_MAX, &found);
    sp_code_table_find(table, 0, &found);
    FUZZ_CHECK(!table->changed);
    for (uint32_t i = 0; i < table->segment_count; i++) {
        const sp_code_segment *segment = &table->segments[i];
        const sp_code *code = &table->codes[segment->code];
        FUZZ_CHECK(segment->start < segment->end);
        FUZZ_CHECK(i == 0 || table->segments[i - 1].end <= segment->start);
        FUZZ_CHECK(code->start <= segment->start && segment->end <= code->end);
        FUZZ_CHECK(code->line_count <= table->line_count &&
                   code->first_line <= table->line_count - code->line_count);
        FUZZ_CHECK(sp_code_table_find(table, segment->start, &found) && strlen(found.name) > 0);
        FUZZ_CHECK(strlen(found.name) <= SP_CODE_NAME_MAX &&
                   strlen(found.file) <= SP_CODE_NAME_MAX);
        FUZZ_CHECK(sp_code_table_find(table, segment->end - 1, &found));
    }
}

/* That what was read at once into WHOLE and bit by bit into GROWN is the same; then what holds for
 * one holds for the other. */
static inline void fuzz_check_same(sp_code_table *whole, sp_code_table *grown)
{
    sp_code_name found;
    sp_code_table_find(whole, 0, &found); /* makes their segments */
    sp_code_table_find(grown, 0, &found);
    FUZZ_CHECK(!whole->changed && !grown->changed && whole->full == grown->full);
    FUZZ_CHECK(whole->strings.count == grown->strings.count);
    for (uint32_t i = 0; i < whole->strings.count; i++)
        FUZZ_CHECK(whole->strings.entries[i].hash == grown->strings.entries[i].hash);
    FUZZ_CHECK(whole->starts.count == grown->starts.count);
    FUZZ_CHECK(whole->starts.count == 0 ||
               memcmp(whole->codes, grown->codes, whole->starts.count * sizeof *whole->codes) == 0);
    FUZZ_CHECK(whole->line_count == grown->line_count);
    FUZZ_CHECK(whole->line_count == 0 ||
               memcmp(whole->lines, grown->lines, whole->line_count * sizeof *whole->lines) == 0);
    FUZZ_CHECK(whole->segment_count == grown->segment_count);
    for (uint32_t i = 0; i < whole->segment_count; i++) {
        const sp_code_segment *a = &whole->segments[i], *b = &grown->segments[i];
        FUZZ_CHECK(a->start == b->start && a->end == b->end && a->code == b->code);
    }
}

#endif
