/* SPDX-License-Identifier: Apache-2.0 */
/* Ordinary C with every kind of frame, compiled without optimization and with: recursion, arrays of
 * variable size, alloca, a realigned stack, calls that do not return, tail calls, callbacks from
 * libc, signal handlers. For ever. */
#include <alloca.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NOINLINE __attribute__((noinline))

static volatile unsigned sink;

NOINLINE static unsigned fibonacci(unsigned n)
{
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

NOINLINE static void fill(volatile char *array, unsigned size)
{
    for (unsigned i = 0; i < size; i++)
        array[i] = (char)(i * size);
}

NOINLINE static unsigned dynamic(unsigned depth)
{
    volatile char array[depth * 40 + 16];
    volatile char *more = alloca(depth * 24 + 32);
    fill(array, depth * 40 + 16);
    fill(more, depth * 24 + 32);
    return depth ? dynamic(depth - 1) + (unsigned)array[3] : (unsigned)more[1];
}

NOINLINE static unsigned realigned(unsigned depth)
{
    volatile char array[300] __attribute__((aligned(64)));
    fill(array, 300);
    return depth ? realigned(depth - 1) + (unsigned)array[5] : dynamic(3);
}

struct large {
    unsigned numbers[40];
};

NOINLINE static struct large by_value(struct large in, unsigned a, unsigned b, unsigned c,
                                      unsigned d, unsigned e, unsigned f, unsigned g)
{
    for (unsigned i = 0; i < 40; i++)
        in.numbers[i] = in.numbers[i] * a + b + c * d + e + f * g;
    return in;
}

static jmp_buf back;

NOINLINE __attribute__((noreturn)) static void leave(unsigned code)
{
    sink = fibonacci(5);
    longjmp(back, (int)code + 1);
}

NOINLINE static void call_what_does_not_return(unsigned code)
{
    fill((volatile char *)alloca(100), 100);
    leave(code);
}

NOINLINE static void come_back(unsigned code)
{
    if (setjmp(back) == 0)
        call_what_does_not_return(code);
}

NOINLINE static unsigned odd(unsigned n);

NOINLINE static unsigned even(unsigned n)
{
    return n == 0 ? 1 : odd(n - 1);
}

NOINLINE static unsigned odd(unsigned n)
{
    return n == 0 ? 0 : even(n - 1);
}

static int compare(const void *left, const void *right)
{
    return strcmp(left, right);
}

NOINLINE static void sort_names(void)
{
    static char names[300][24];
    for (unsigned i = 0; i < 300; i++)
        snprintf(names[i], sizeof names[i], "%08x %5.2f", i * 2654435761u, i / 7.0);
    qsort(names, 300, sizeof *names, compare);
    sink = bsearch("7", names, 300, sizeof *names, compare) != NULL;
}

NOINLINE static void format_times(void)
{
    for (time_t moment = 0; moment < 20; moment++) {
        char text[64];
        struct tm fields;
        time_t at = moment * 40000000;
        gmtime_r(&at, &fields);
        strftime(text, sizeof text, "%A %d %B %Y %H:%M:%S", &fields);
        sink = (unsigned)strtod(text + 40, NULL) + (unsigned)mktime(&fields);
    }
}

static void on_signal(int number)
{
    sink = (unsigned)number;
    sort_names();
}

int main(void)
{
    static struct large large;
    static char stack[65536];
    stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
    sigaltstack(&alternate, NULL);
    sigaction(SIGUSR1, &action, NULL);
    signal(SIGUSR2, on_signal);
    for (unsigned round = 0;; round++) {
        sink = fibonacci(16) + dynamic(30) + realigned(20) + even(300);
        large = by_value(large, 1, 2, 3, 4, 5, 6, round);
        come_back(round % 7);
        sort_names();
        format_times();
        raise(round % 2 ? SIGUSR1 : SIGUSR2);
        free(realloc(calloc(round % 500 + 1, 8), 9000));
    }
}
