/* SPDX-License-Identifier: Apache-2.0 */
/* Work that a stack can be told by: truth_work(K, ns) is busy in a function truth_work_K that
 * nothing else calls, K from 0 to 63, and truth_nothing(ns) where no span stands. For one file of a
 * program, C or C++; truth.py reads the names. */
#ifndef TRUTH_WORK_H
#define TRUTH_WORK_H

#include <stdint.h>
#include <time.h>

enum { TRUTH_WORKS = 64 };

static volatile uint64_t truth_sink;

/* Busy for about NS of the thread's own CPU time, in the caller's frame. */
static inline __attribute__((always_inline)) void truth_spin(uint64_t ns)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    uint64_t end = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec + ns, now, x = ns;
    do {
        for (int i = 0; i < 2000; i++)
            x = x * 6364136223846793005u + 1442695040888963407u;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
        now = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
    } while (now < end);
    truth_sink = x;
}

/* A section of their own: a context that was made and has not run yet "returns" to the beginning of
 * its function, and what lies in front of that is taken for the caller (return addresses are looked
 * up one byte before). It must not be work. */
#define TRUTH_FUNCTION __attribute__((noinline, unused, section("truth_text"))) void

/* The assembly keeps the compiler from merging functions that do the same, and from turning the
 * call into a jump. */
#define TRUTH_WORK(k)                                                                              \
    static TRUTH_FUNCTION truth_work_##k(uint64_t ns)                                              \
    {                                                                                              \
        truth_spin(ns);                                                                            \
        __asm__ volatile("" : : "i"(k) : "memory");                                                \
    }
static TRUTH_FUNCTION truth_nothing(uint64_t ns)
{
    truth_spin(ns);
    __asm__ volatile("" : : "i"(TRUTH_WORKS) : "memory");
}

TRUTH_WORK(0)
TRUTH_WORK(1)
TRUTH_WORK(2)
TRUTH_WORK(3)
TRUTH_WORK(4)
TRUTH_WORK(5)
TRUTH_WORK(6)
TRUTH_WORK(7)
TRUTH_WORK(8)
TRUTH_WORK(9)
TRUTH_WORK(10)
TRUTH_WORK(11)
TRUTH_WORK(12)
TRUTH_WORK(13)
TRUTH_WORK(14)
TRUTH_WORK(15)
TRUTH_WORK(16)
TRUTH_WORK(17)
TRUTH_WORK(18)
TRUTH_WORK(19)
TRUTH_WORK(20)
TRUTH_WORK(21)
TRUTH_WORK(22)
TRUTH_WORK(23)
TRUTH_WORK(24)
TRUTH_WORK(25)
TRUTH_WORK(26)
TRUTH_WORK(27)
TRUTH_WORK(28)
TRUTH_WORK(29)
TRUTH_WORK(30)
TRUTH_WORK(31)
TRUTH_WORK(32)
TRUTH_WORK(33)
TRUTH_WORK(34)
TRUTH_WORK(35)
TRUTH_WORK(36)
TRUTH_WORK(37)
TRUTH_WORK(38)
TRUTH_WORK(39)
TRUTH_WORK(40)
TRUTH_WORK(41)
TRUTH_WORK(42)
TRUTH_WORK(43)
TRUTH_WORK(44)
TRUTH_WORK(45)
TRUTH_WORK(46)
TRUTH_WORK(47)
TRUTH_WORK(48)
TRUTH_WORK(49)
TRUTH_WORK(50)
TRUTH_WORK(51)
TRUTH_WORK(52)
TRUTH_WORK(53)
TRUTH_WORK(54)
TRUTH_WORK(55)
TRUTH_WORK(56)
TRUTH_WORK(57)
TRUTH_WORK(58)
TRUTH_WORK(59)
TRUTH_WORK(60)
TRUTH_WORK(61)
TRUTH_WORK(62)
TRUTH_WORK(63)

static inline void truth_work(unsigned work, uint64_t ns)
{
    static void (*const works[TRUTH_WORKS])(uint64_t) = {
        truth_work_0,  truth_work_1,  truth_work_2,  truth_work_3,  truth_work_4,  truth_work_5,
        truth_work_6,  truth_work_7,  truth_work_8,  truth_work_9,  truth_work_10, truth_work_11,
        truth_work_12, truth_work_13, truth_work_14, truth_work_15, truth_work_16, truth_work_17,
        truth_work_18, truth_work_19, truth_work_20, truth_work_21, truth_work_22, truth_work_23,
        truth_work_24, truth_work_25, truth_work_26, truth_work_27, truth_work_28, truth_work_29,
        truth_work_30, truth_work_31, truth_work_32, truth_work_33, truth_work_34, truth_work_35,
        truth_work_36, truth_work_37, truth_work_38, truth_work_39, truth_work_40, truth_work_41,
        truth_work_42, truth_work_43, truth_work_44, truth_work_45, truth_work_46, truth_work_47,
        truth_work_48, truth_work_49, truth_work_50, truth_work_51, truth_work_52, truth_work_53,
        truth_work_54, truth_work_55, truth_work_56, truth_work_57, truth_work_58, truth_work_59,
        truth_work_60, truth_work_61, truth_work_62, truth_work_63,
    };
    works[work % TRUTH_WORKS](ns);
}

#endif
