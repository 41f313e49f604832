/* SPDX-License-Identifier: Apache-2.0 */
/* What the examples have to do for a request: something that takes a tenth of a millisecond.
 * (tests/truth compiles them with a work.h of its own, in which each request's work is a function
 * of its own.) */
#ifndef EXAMPLES_WORK_H
#define EXAMPLES_WORK_H

static inline void work(unsigned request)
{
    volatile unsigned primes = 0;
    for (unsigned n = 2 + request % 64; n < 3000; n++) {
        unsigned divisor = 2;
        while (divisor * divisor <= n && n % divisor != 0)
            divisor++;
        primes = primes + (divisor * divisor > n);
    }
}

/* What no request asks for, but has to be done now and then. */
static inline void tidy_up(void)
{
    work(0);
}

#endif
