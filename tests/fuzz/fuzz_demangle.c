/* SPDX-License-Identifier: Apache-2.0 */
/* A name of a symbol table: always something to show, and it fits where it has to. */
#include "fuzz/fuzz.h"

#include "symbol/demangle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
    char *symbol = fuzz_string(data, length);
    static const size_t maxima[] = {1 << 16, 64, 8};
    static const sp_demangle_style styles[] = {SP_DEMANGLE_FOLDED, SP_DEMANGLE_FULL,
                                               SP_DEMANGLE_SHORT};
    for (size_t i = 0; i < sizeof maxima / sizeof *maxima; i++) {
        sp_buffer out = SP_BUFFER_INIT(maxima[i]);
        sp_demangle(&out, symbol, styles[i]);
        FUZZ_CHECK(out.length <= maxima[i]);
        FUZZ_CHECK(!*symbol || out.failed || out.length);
        FUZZ_CHECK(!out.failed || strlen(symbol) + 1 >= maxima[i]);
        FUZZ_CHECK(out.failed || strnlen((const char *)out.data, maxima[i]) == out.length);
        sp_buffer_deinit(&out);
    }
    free(symbol);
    return 0;
}
