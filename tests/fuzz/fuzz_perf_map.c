/* SPDX-License-Identifier: Apache-2.0 */
/* A perf map, at once and as it grows: both give the same. */
#include "fuzz/code_table_check.h"

#include "symbol/perf_map.h"

static void read_in_steps(sp_perf_map *map, const uint8_t *text, size_t length, size_t step)
{
    size_t at = 0;
    for (size_t given = 0; given < length;) {
        given = length - given < step ? length : given + step;
        size_t done = sp_perf_map_read(map, text + at, given - at);
        FUZZ_CHECK(done <= given - at);
        at += done;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
    sp_perf_map whole = {0}, grown = {0};
    FUZZ_CHECK(sp_perf_map_read(&whole, data, length) <= length);
    read_in_steps(&grown, data, length, 1 + length / 7);
    fuzz_check_table(&whole.table);
    fuzz_check_same(&whole.table, &grown.table);
    sp_perf_map_deinit(&whole);
    sp_perf_map_deinit(&grown);
    return 0;
}
