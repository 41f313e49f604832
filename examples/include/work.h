/* SPDX-License-Identifier: Apache-2.0 */
/* The work that the examples do for a request: it takes about a tenth of a millisecond.
 * (tests/truth compiles the examples with another work.h, in which the work of each request is a
 * separate function.) */
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

/* Work that belongs to no request. */
static inline void tidy_up(void)
{
    work(0);
}

#endif
