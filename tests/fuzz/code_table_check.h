/* SPDX-License-Identifier: Apache-2.0 */
/* What a table of code has to hold, whatever was read into it. */
#ifndef TESTS_FUZZ_CODE_TABLE_CHECK_H
#define TESTS_FUZZ_CODE_TABLE_CHECK_H

#include "fuzz/fuzz.h"
#include "profile/code_table.h"

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

#endif
