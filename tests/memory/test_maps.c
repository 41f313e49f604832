/* SPDX-License-Identifier: Apache-2.0 */
/* What a program maps itself: counted where it is asked for, and otherwise as if we were not there.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <cmocka.h>

#include <spanprof/spanprof.h>

enum { MIB = 1 << 20 };

static uint64_t sampled(void)
{
    spanprof_stats stats = SPANPROF_STATS_INIT;
    assert_int_equal(spanprof_flush(UINT64_MAX), SPANPROF_OK);
    spanprof_stats_get(&stats);
    return stats.calls_linked + stats.calls_none + stats.calls_unknown;
}

static void start(const char *with_maps)
{
    spanprof_options options = SPANPROF_OPTIONS_INIT;
    options.exporter = "none";
    options.profiles = "alloc,heap";
    options.alloc_bytes = 64 * 1024; /* a mapping of 64 MiB is sampled for certain */
    options.alloc_mmap = with_maps;
    assert_int_equal(spanprof_start(&options, NULL), SPANPROF_OK);
}

static void stop(void)
{
    assert_int_equal(spanprof_stop(UINT64_MAX), SPANPROF_OK);
}

static void *map(size_t bytes)
{
    return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                -1, 0);
}

static void map_move_and_unmap(void)
{
    char *block = map((size_t)64 * MIB);
    assert_ptr_not_equal(block, MAP_FAILED);
    block[0] = 7;
    char *moved = mremap(block, (size_t)64 * MIB, (size_t)128 * MIB, MREMAP_MAYMOVE);
    assert_ptr_not_equal(moved, MAP_FAILED);
    assert_int_equal(moved[0], 7);
    assert_int_equal(munmap(moved + (size_t)64 * MIB, (size_t)64 * MIB), 0); /* its end */
    assert_int_equal(munmap(moved, (size_t)64 * MIB), 0);
}

static void mappings_are_counted_when_asked_for(void **state)
{
    (void)state;
    start("1");
    uint64_t before = sampled();
    map_move_and_unmap();
    assert_true(sampled() >= before + 2);
    stop();
}

static void mappings_are_not_counted_by_default(void **state)
{
    (void)state;
    start(NULL);
    uint64_t before = sampled();
    map_move_and_unmap();
    assert_int_equal(sampled(), before);
    stop();
}

/* The addresses come back again and again: each block that stayed in the table would fill it. */
static void unmapped_blocks_leave_the_table(void **state)
{
    (void)state;
    spanprof_stats stats = SPANPROF_STATS_INIT;
    start("1");
    for (int i = 0; i < 3000; i++) {
        char *block = map((size_t)MIB);
        assert_ptr_not_equal(block, MAP_FAILED);
        void *over = mmap(block, MIB, PROT_NONE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
        assert_ptr_equal(over, block);
        assert_int_equal(munmap(block, MIB), 0);
    }
    spanprof_stats_get(&stats);
    assert_int_equal(stats.dropped_live_blocks, 0);
    stop();
}

static void errors_are_those_of_the_system(void **state)
{
    (void)state;
    start("1");
    errno = 0;
    assert_ptr_equal(map(0), MAP_FAILED);
    assert_int_equal(errno, EINVAL);
    assert_int_equal(munmap((char *)MIB + 1, 1), -1);
    assert_int_equal(errno, EINVAL);
    assert_int_equal(munmap((void *)MIB, SIZE_MAX / 2), -1); /* and at once */
    assert_ptr_equal(mmap(NULL, MIB, PROT_READ, MAP_PRIVATE, -1, 0), MAP_FAILED);
    assert_int_equal(errno, EBADF);
    stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mappings_are_counted_when_asked_for),
        cmocka_unit_test(mappings_are_not_counted_by_default),
        cmocka_unit_test(unmapped_blocks_leave_the_table),
        cmocka_unit_test(errors_are_those_of_the_system),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
