/* SPDX-License-Identifier: Apache-2.0 */
/* A jitdump file, at once and as it grows: both give the same, and nothing is read behind what is
 * shown. */
#include "fuzz/code_table_check.h"

#include "symbol/jitdump.h"

/* Each time a block of its own, so that a sanitizer sees what reads behind it. */
static uint64_t read_copy(sp_jitdump *dump, const uint8_t *data, size_t length)
{
    uint8_t *copy = malloc(length + 1);
    FUZZ_CHECK(copy);
    memcpy(copy, data, length);
    uint64_t done = sp_jitdump_read(dump, copy, length, length);
    FUZZ_CHECK(done <= length);
    free(copy);
    return done;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
    sp_jitdump whole = {0}, grown = {0};
    uint64_t done = 0;
    uint64_t expected = read_copy(&whole, data, length);
    for (size_t given = 0, step = 1 + length / 7; given < length;) {
        given = length - given < step ? length : given + step;
        done += read_copy(&grown, data + done, given - (size_t)done);
    }
    FUZZ_CHECK(done == expected && (whole.problem != NULL) == (grown.problem != NULL));
    fuzz_check_table(&whole.table);
    fuzz_check_same(&whole.table, &grown.table);
    sp_jitdump_deinit(&whole);
    sp_jitdump_deinit(&grown);
    return 0;
}
