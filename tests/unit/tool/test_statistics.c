/* SPDX-License-Identifier: Apache-2.0 */
/* The statistics of `spanprof diff`: against values from textbooks, and on made data with a fixed
 * sequence of random numbers. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tool/model/statistics.h"

static uint64_t state = 1;

/* In [0, 1). splitmix64. */
static double random_part(void)
{
    uint64_t z = state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (double)((z ^ z >> 31) >> 11) / (double)(UINT64_C(1) << 53);
}

static void assert_near(double found, double expected, double distance)
{
    if (fabs(found - expected) > distance)
        fail_msg("%.17g is not %.17g", found, expected);
}

static double p_of_table(double events_a, double all_a, double events_b, double all_b)
{
    const sp_rate a = {events_a, all_a, true}, b = {events_b, all_b, true};
    return sp_rate_compare(&a, &b, 0.95).p;
}

static void statistics_fisher_has_the_textbooks_values(void **unused)
{
    (void)unused;
    /* Fisher's lady who tastes tea, and a table whose sides differ in size. */
    assert_near(p_of_table(1, 4, 3, 4), 34.0 / 70, 1e-9);
    assert_near(p_of_table(1, 12, 9, 12), 2 * 0.0013797280926100418, 1e-9);
    assert_near(p_of_table(0, 100, 0, 100), 1, 0);
    assert_near(p_of_table(100, 100, 100, 100), 1, 0);
    assert_near(p_of_table(5, 10, 5, 10), 1, 0);
}

static void statistics_rates_are_split_as_a_coin_falls(void **unused)
{
    (void)unused;
    const sp_rate a = {0, 10, false}, b = {6, 10, false}, longer = {6, 30, false};
    assert_near(sp_rate_compare(&a, &b, 0.95).p, 2.0 / 64, 1e-9);
    assert_near(sp_rate_compare(&a, &longer, 0.95).p, 2 * pow(0.75, 6), 1e-9);
}

static void statistics_of_very_many_events_are_numbers(void **unused)
{
    (void)unused;
    double p = p_of_table(4e8, 1e9, 4.001e8, 1e9);
    assert_true(p > 0 && p < 1e-3);
    assert_near(p_of_table(1e8, 1e9, 9e8, 1e9), 0, 1e-300);
    assert_true(p_of_table(1e9, 1e9, 1, 1e9) <= 1e-300);
}

static void statistics_quantiles(void **unused)
{
    (void)unused;
    assert_near(sp_normal_quantile(0.975), 1.959963984540054, 1e-9);
    assert_near(sp_normal_quantile(0.5), 0, 1e-9);
    assert_near(sp_normal_quantile(1 - 1e-9), 5.997807015, 1e-6);
}

static void statistics_adjusted_as_holm_has_it(void **unused)
{
    (void)unused;
    double p[] = {0.01, 0.04, 0.03, 0.005, 1};
    const double expected[] = {0.04, 0.09, 0.09, 0.025, 1};
    assert_true(sp_adjust_probabilities(p, 5));
    for (int i = 0; i < 5; i++)
        assert_near(p[i], expected[i], 1e-12);
    assert_true(sp_adjust_probabilities(p, 0));
}

static double draw_binomial(double n, double share)
{
    double hits = 0;
    for (int i = 0; i < (int)n; i++)
        hits += random_part() < share;
    return hits;
}

/* How often the interval of a difference holds the true one. */
static double coverage(double n_a, double share_a, double n_b, double share_b)
{
    enum { TIMES = 10000 };
    int covered = 0;
    for (int i = 0; i < TIMES; i++) {
        const sp_rate a = {draw_binomial(n_a, share_a), n_a, true};
        const sp_rate b = {draw_binomial(n_b, share_b), n_b, true};
        sp_rate_change change = sp_rate_compare(&a, &b, 0.95);
        covered += change.low <= share_b - share_a && share_b - share_a <= change.high;
    }
    return (double)covered / TIMES;
}

static void statistics_intervals_cover(void **unused)
{
    (void)unused;
    static const struct {
        double n_a, share_a, n_b, share_b;
    } cases[] = {{100, 0.5, 100, 0.5},  {100, 0.02, 100, 0.1},    {300, 0.01, 100, 0.01},
                 {50, 0.9, 200, 0.95},  {200, 0, 200, 0.02},      {400, 0.2, 400, 0.3},
                 {30, 0.03, 30, 0.003}, {1000, 0.005, 1000, 0.01}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        double found = coverage(cases[i].n_a, cases[i].share_a, cases[i].n_b, cases[i].share_b);
        print_message("%g of %g, %g of %g: %.3f\n", cases[i].share_a, cases[i].n_a,
                      cases[i].share_b, cases[i].n_b, found);
        assert_true(found >= 0.94);
    }
}

enum { FUNCTIONS = 60, EVENTS = 500 };

/* Function i has a share of the events like 1 / (i + 1): some are hot, most are rare. */
static void draw_profile(double events[FUNCTIONS])
{
    double sum = 0;
    for (int i = 0; i < FUNCTIONS; i++) {
        sum += 1.0 / (i + 1);
        events[i] = 0;
    }
    for (int n = 0; n < EVENTS; n++) {
        double left = random_part() * sum;
        int i = 0;
        while (i + 1 < FUNCTIONS && left >= 1.0 / (i + 1))
            left -= 1.0 / ++i;
        events[i]++;
    }
}

static void statistics_equal_profiles_have_no_movers(void **unused)
{
    (void)unused;
    enum { TIMES = 600 };
    int false_runs = 0;
    for (int t = 0; t < TIMES; t++) {
        double a[FUNCTIONS], b[FUNCTIONS], p[FUNCTIONS], least = 1;
        draw_profile(a);
        draw_profile(b);
        for (int i = 0; i < FUNCTIONS; i++)
            p[i] = p_of_table(a[i], EVENTS, b[i], EVENTS);
        assert_true(sp_adjust_probabilities(p, FUNCTIONS));
        for (int i = 0; i < FUNCTIONS; i++)
            least = fmin(least, p[i]);
        false_runs += least <= 0.05;
    }
    print_message("%d of %d comparisons of equal profiles found a mover\n", false_runs, TIMES);
    assert_true(false_runs <= TIMES * 5 / 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statistics_fisher_has_the_textbooks_values),
        cmocka_unit_test(statistics_rates_are_split_as_a_coin_falls),
        cmocka_unit_test(statistics_of_very_many_events_are_numbers),
        cmocka_unit_test(statistics_quantiles),
        cmocka_unit_test(statistics_adjusted_as_holm_has_it),
        cmocka_unit_test(statistics_intervals_cover),
        cmocka_unit_test(statistics_equal_profiles_have_no_movers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
