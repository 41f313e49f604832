/* SPDX-License-Identifier: Apache-2.0 */
/* The estimates of sampled blocks, against what was allocated: on average right for each size. The
 * seeds are fixed, so that a test that passes always does. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "call/call_sampling.h"
#include "core/compiler.h"

#define PERIOD UINT64_C(524288)

/* Sums of what many blocks were estimated as. */
typedef struct sums {
    double bytes, objects, bytes_squared, objects_squared;
} sums;

/* COUNT blocks of BYTES, one after the other, as a thread allocates them; those that are not
 * sampled in one step. */
static sp_sampling_weight run(uint64_t *random, uint64_t bytes, uint64_t count)
{
    sp_sampling_weight sum = {0};
    uint64_t left = sp_sampling_draw(random, PERIOD);
    for (uint64_t passed = (left - 1) / bytes; passed < count; passed = (left - 1) / bytes) {
        count -= passed + 1;
        left = sp_sampling_draw(random, PERIOD);
        sp_sampling_weight weight = sp_sampling_weight_of(random, PERIOD, bytes);
        sum.size += weight.size;
        sum.count += weight.count;
    }
    return sum;
}

static void assert_within(double mean, double square, int repetitions, double truth)
{
    double variance = square / repetitions - mean * mean;
    double error = sqrt((variance > 0 ? variance : 0) / repetitions);
    if (fabs(mean - truth) > 3 * error + 1e-9 * truth)
        fail_msg("estimated %.1f, allocated %.1f, standard error %.1f", mean, truth, error);
}

/* Few bytes a repetition, so that the estimate of one is often 0, and the average has to make up
 * for it. */
static void sampling_of_each_size_is_right_on_average(void **state)
{
    (void)state;
    enum { REPETITIONS = 10000 };
    for (uint64_t bytes = 1; bytes <= 16 << 20; bytes *= 4) {
        uint64_t random = 7 * bytes, count = 1 + PERIOD / 8 / bytes;
        sums s = {0};
        for (int n = 0; n < REPETITIONS; n++) {
            sp_sampling_weight sum = run(&random, bytes, count);
            s.bytes += (double)sum.size;
            s.objects += (double)sum.count;
            s.bytes_squared += (double)sum.size * (double)sum.size;
            s.objects_squared += (double)sum.count * (double)sum.count;
        }
        assert_within(s.bytes / REPETITIONS, s.bytes_squared, REPETITIONS, (double)(bytes * count));
        assert_within(s.objects / REPETITIONS, s.objects_squared, REPETITIONS, (double)count);
    }
}

/* Ten gigabytes in sizes from 1 byte to 16 MiB, each size as many bytes. */
static void sampling_of_ten_gigabytes_is_right_within_two_percent(void **state)
{
    (void)state;
    double estimate = 0, truth = 0;
    uint64_t random = 42;
    for (uint64_t bytes = 1024; bytes <= 16 << 20; bytes *= 2) {
        uint64_t count = (UINT64_C(10) << 30) / 15 / bytes;
        estimate += (double)run(&random, bytes, count).size;
        truth += (double)(bytes * count);
    }
    assert_true(fabs(estimate / truth - 1) < 0.02);
}

static void draw_is_at_least_one_and_has_the_mean_of_the_period(void **state)
{
    (void)state;
    enum { DRAWS = 1000000 };
    uint64_t random = 1;
    double sum = 0;
    for (int n = 0; n < DRAWS; n++) {
        uint64_t draw = sp_sampling_draw(&random, 1000);
        assert_true(draw >= 1);
        sum += (double)draw;
    }
    /* A whole number drawn so is half a byte larger than the distance on average. The standard
     * error is 1000 / sqrt(DRAWS) = 1. */
    assert_true(fabs(sum / DRAWS - 1000.5) < 3);
}

static void period_of_one_byte_samples_every_block(void **state)
{
    (void)state;
    uint64_t random = 3;
    for (int n = 0; n < 1000; n++) {
        sp_sampling_weight weight = sp_sampling_weight_of(&random, 1, 4096);
        assert_int_equal(weight.size, 4096);
        assert_int_equal(weight.count, 1);
    }
}

/* Every bit is set in half of the numbers, and two that follow each other differ in half of their
 * bits. */
static void random_numbers_have_no_fixed_bits(void **state)
{
    (void)state;
    enum { NUMBERS = 100000 };
    uint64_t random = 1, before = 0;
    int set[64] = {0};
    double changed = 0;
    for (int n = 0; n < NUMBERS; n++) {
        uint64_t number = sp_random_next(&random);
        for (int bit = 0; bit < 64; bit++)
            set[bit] += (int)(number >> bit & 1);
        changed += __builtin_popcountll(number ^ before);
        before = number;
    }
    for (int bit = 0; bit < 64; bit++)
        assert_true(fabs((double)set[bit] / NUMBERS - 0.5) < 0.01);
    assert_true(fabs(changed / NUMBERS - 32) < 0.1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sampling_of_each_size_is_right_on_average),
        cmocka_unit_test(sampling_of_ten_gigabytes_is_right_within_two_percent),
        cmocka_unit_test(draw_is_at_least_one_and_has_the_mean_of_the_period),
        cmocka_unit_test(period_of_one_byte_samples_every_block),
        cmocka_unit_test(random_numbers_have_no_fixed_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
