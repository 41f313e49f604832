/* SPDX-License-Identifier: Apache-2.0 */
/* One of the shared objects of deep.h: DEEP_TABLE is what it exports. The functions differ in the
 * size of their frames and in the registers that they save, so that their unwind rules differ as
 * those of real code do. */
#include "bench/deep.h"

extern deep_function *const DEEP_TABLE[DEEP_FUNCTIONS];

/* Different text behind each call keeps the compiler from making one place of four. */
#define CALL_FROM(place)                                                                           \
    case place:                                                                                    \
        path->functions[*path->next / DEEP_PLACES](path);                                          \
        __asm__ volatile("# place " #place);                                                       \
        break;

#if defined(__x86_64__)
#define SAVE_0 __asm__ volatile("")
#define SAVE_1 __asm__ volatile("" ::: "rbx")
#define SAVE_2 __asm__ volatile("" ::: "rbx", "r12")
#define SAVE_3 __asm__ volatile("" ::: "rbx", "r12", "r13", "r14")
#else
#error "deep stacks: say which registers calls preserve"
#endif

#define STEP(a, b, c, d, e)                                                                        \
    static void step_##a##b##c##d##e(deep_path *path)                                              \
    {                                                                                              \
        volatile uint64_t room[4 * (b) + (d) + 1];                                                 \
        room[d] = path->sum;                                                                       \
        SAVE_##c;                                                                                  \
        switch (*path->next++ % DEEP_PLACES) {                                                     \
            CALL_FROM(0)                                                                           \
            CALL_FROM(1)                                                                           \
            CALL_FROM(2)                                                                           \
            CALL_FROM(3)                                                                           \
        }                                                                                          \
        path->sum += room[d] + (e);                                                                \
    }

#define NAME(a, b, c, d, e) step_##a##b##c##d##e,

#define EACH_4(of, a, b, c, d)                                                                     \
    of(a, b, c, d, 0) of(a, b, c, d, 1) of(a, b, c, d, 2) of(a, b, c, d, 3)
#define EACH_16(of, a, b, c)                                                                       \
    EACH_4(of, a, b, c, 0) EACH_4(of, a, b, c, 1) EACH_4(of, a, b, c, 2) EACH_4(of, a, b, c, 3)
#define EACH_64(of, a, b)                                                                          \
    EACH_16(of, a, b, 0) EACH_16(of, a, b, 1) EACH_16(of, a, b, 2) EACH_16(of, a, b, 3)
#define EACH_256(of, a) EACH_64(of, a, 0) EACH_64(of, a, 1) EACH_64(of, a, 2) EACH_64(of, a, 3)
#define EACH_1024(of)   EACH_256(of, 0) EACH_256(of, 1) EACH_256(of, 2) EACH_256(of, 3)

/* clang-format off: lists that macros make have no layout. */
EACH_1024(STEP)
deep_function *const DEEP_TABLE[DEEP_FUNCTIONS] = {EACH_1024(NAME)};
