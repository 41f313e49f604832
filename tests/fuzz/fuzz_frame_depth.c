/* SPDX-License-Identifier: Apache-2.0 */
/* Where a function's code has put its frame pointer, of code that is anything: no read beyond the
 * code, no loop without end, and numbers that mean something.
 *
 * Input: a byte of flags, two for the place that is asked for, then code: of one function, or, in
 * two halves, of a function and a part of it elsewhere. */
#include "fuzz/fuzz.h"

#include "unwind/frame_depth.h"
#include "unwind/x86_instruction.h"

static const uint64_t START = UINT64_C(0x400000);

typedef struct made_up {
    sp_outside outside; /* first */
    const uint8_t *code;
    size_t length;
} made_up;

static bool read_code(sp_outside *outside, void *out, uint64_t address, uint64_t bytes)
{
    const made_up *own = (const made_up *)(const void *)outside;
    if (address < START || address - START > own->length || bytes > own->length - (address - START))
        return false;
    memcpy(out, own->code + (address - START), bytes);
    return true;
}

static bool count_jump(void *user, uint64_t target)
{
    (void)target;
    return ++*(size_t *)user > 1000;
}

static void decode_all(const uint8_t *code, size_t length)
{
    sp_x86_instruction one;
    for (size_t at = 0; at < length; at++)
        FUZZ_CHECK(!sp_x86_decode(code + at, length - at, &one) ||
                   (one.length > 0 && one.length <= SP_X86_BYTES_MAX && one.length <= length - at));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
    if (length < 5)
        return 0;
    made_up own = {.outside.read = read_code, .code = data + 3, .length = length - 3};
    sp_function_range function = {.begin = START, .end = START + own.length};
    sp_function_range parent = function;
    uint64_t pc = START + (data[1] | (uint64_t)data[2] << 8) % (own.length + 1);
    bool is_part = data[0] & 1, is_exact = data[0] & 2;
    size_t jumps = 0;
    if (is_part)
        parent.end = function.begin = START + own.length / 2;
    sp_depth_finder *finder = sp_depth_finder_create();
    FUZZ_CHECK(finder);
    sp_frame_depth depth = sp_frame_depth_find(finder, &own.outside, &function,
                                               is_part ? &parent : NULL, pc, is_exact);
    FUZZ_CHECK(depth.below >= 0 && depth.slack >= 0);
    sp_jumps_visit(finder, &own.outside, &function, count_jump, &jumps);
    FUZZ_CHECK(jumps <= own.length);
    sp_depth_finder_destroy(finder);
    decode_all(own.code, own.length);
    return 0;
}
