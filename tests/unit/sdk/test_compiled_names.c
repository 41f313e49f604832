/* SPDX-License-Identifier: Apache-2.0 */
/* A just-in-time compiler that writes the names of its functions only when the program ends, as a
 * Java virtual machine does, or in blocks, as node does. The first window has them all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <spanprof/spanprof.h>
#include "core/clock.h"
#include "remove_folder.h"

enum { SKIPPED = 77, MAP_BYTES = 4096, ROUNDS = 1000000 };

#define NAME "compiled_while_it_ran"

/* Counts down from its argument. */
#if defined(__x86_64__)
static const uint8_t code[] = {0x48, 0x89, 0xf9, 0x48, 0xff, 0xc9, 0x75, 0xfb, 0xc3};
#elif defined(__aarch64__)
static const uint8_t code[] = {0x00, 0x04, 0x00, 0xf1, 0xe1, 0xff,
                               0xff, 0x54, 0xc0, 0x03, 0x5f, 0xd6};
#endif

typedef void count_down(uint64_t rounds);

static char folder[] = "/tmp/spanprof-compiled-XXXXXX", prefix[64], text[1 << 20];

static uint8_t *compile(void)
{
    uint8_t *memory =
        mmap(NULL, MAP_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(memory != MAP_FAILED);
    memcpy(memory, code, sizeof code);
    assert_int_equal(mprotect(memory, MAP_BYTES, PROT_READ | PROT_EXEC), 0);
    __builtin___clear_cache((char *)memory, (char *)memory + sizeof code);
    return memory;
}

/* Longer than the collector waits before it names the first functions of a program. */
static void run(const uint8_t *memory)
{
    count_down *function = (count_down *)(uintptr_t)memory;
    uint64_t end = sp_clock_monotonic_ns() + SP_NS_PER_S;
    while (sp_clock_monotonic_ns() < end)
        function(ROUNDS);
}

static void write_names(char path[64], const uint8_t *memory)
{
    snprintf(path, 64, "/tmp/perf-%d.map", (int)getpid());
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "%llx %x %s\n", (unsigned long long)(uintptr_t)memory, (unsigned)sizeof code,
            NAME);
    assert_int_equal(fclose(file), 0);
}

static void read_profiles(void)
{
    char path[96];
    snprintf(path, sizeof path, "%s.profiles.jsonl", prefix);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
}

static void names_written_at_the_end_are_found(void **state)
{
    (void)state;
    char path[64];
    spanprof_options options = SPANPROF_OPTIONS_INIT;
    options.exporter = "file";
    options.file = prefix;
    const uint8_t *memory = compile();
    assert_int_equal(spanprof_start(&options, NULL), SPANPROF_OK);
    run(memory);
    write_names(path, memory);
    spanprof_status status = spanprof_stop(60 * SP_NS_PER_S);
    unlink(path);
    assert_int_equal(status, SPANPROF_OK);
    read_profiles();
    bool is_named = strstr(text, NAME), is_nameless = strstr(text, "[unknown]+0x");
    if (!is_named && !is_nameless) { /* no tick came: a sanitizer delays them */
        remove_folder(folder);
        exit(SKIPPED);
    }
    assert_true(is_named);
    assert_false(is_nameless);
}

static int set_up(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    snprintf(prefix, sizeof prefix, "%s/p", folder);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    return remove_folder(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(names_written_at_the_end_are_found)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
