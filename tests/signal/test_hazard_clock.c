/* SPDX-License-Identifier: Apache-2.0 */
/* The wall clock is set back while spans and windows are open. The program has a clock_gettime of
 * its own, which the library finds before libc's, so that no other process sees the change. */
#include "hazard.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

/* No window and no span of the test is as long as LONGEST, and one that has the step in it is
 * longer. */
enum { BACK_S = 3600 };
#define LONGEST (BACK_S / 2 * SECOND)

/* A window needs some ticks to have a profile. */
enum { TICKS = 10 };

static _Atomic long behind_s;

__attribute__((visibility("default"))) int clock_gettime(clockid_t clock, struct timespec *out)
{
    long failed = syscall(SYS_clock_gettime, clock, out);
    if (failed == 0 && clock == CLOCK_REALTIME)
        out->tv_sec -= atomic_load(&behind_s);
    return (int)failed;
}

/* Reads the number behind each "NAME":" in TEXT, in order. */
static unsigned read_numbers(const char *text, const char *name, uint64_t *out, unsigned capacity)
{
    char pattern[64];
    unsigned count = 0;
    snprintf(pattern, sizeof pattern, "\"%s\":", name);
    for (const char *at = text; count < capacity && (at = strstr(at, pattern)) != NULL;) {
        at += strlen(pattern);
        out[count++] = strtoull(at + (*at == '"'), NULL, 10);
    }
    return count;
}

static char *read_file(const char *prefix, const char *suffix)
{
    static char text[1 << 20];
    char path[128];
    snprintf(path, sizeof path, "%s%s", prefix, suffix);
    FILE *file = fopen(path, "re");
    CHECK(file != NULL);
    size_t length = fread(text, 1, sizeof text - 1, file);
    text[length] = 0;
    (void)fclose(file);
    CHECK_EQUAL(unlink(path), 0);
    return text;
}

/* Some ticks more, whatever time that takes. */
static void burn_some(void)
{
    hazard_burn_to_ticks(hazard_sized(0.02, 0.2), hazard_stats().ticks + TICKS);
}

static void work(const char *name)
{
    SPANPROF_SPAN(name)
        burn_some();
    CHECK_EQUAL(spanprof_flush(60 * SECOND), SPANPROF_OK);
}

/* A span's length comes from the monotonic clock, and so do all waits; the wall clock only says
 * when something began. A window that is open at the step is short, and the one behind it may be:
 * no profile has a length of an hour, or one below zero. */
static int wall_clock_set_back(void)
{
    char directory[] = "/tmp/spanprof-clock-XXXXXX", prefix[64];
    CHECK(mkdtemp(directory) != NULL);
    snprintf(prefix, sizeof prefix, "%s/p", directory);
    spanprof_options options = SPANPROF_OPTIONS_INIT;
    options.exporter = "file";
    options.file = prefix;
    options.cpu_hz = 1000;
    hazard_start_with(&options);
    work("before");
    SPANPROF_SPAN("during") {
        hazard_burn(hazard_sized(0.02, 0.1));
        atomic_store(&behind_s, BACK_S);
        burn_some();
    }
    CHECK_EQUAL(spanprof_flush(60 * SECOND), SPANPROF_OK);
    usleep(1100000); /* the spans' clock is compared with the wall's once a second */
    work("next");    /* its window may still begin in the old time */
    work("after");
    spanprof_stats stats = hazard_stop();
    CHECK(stats.samples_linked > 2 * TICKS); /* of at least four times as many */

    uint64_t now = (uint64_t)time(NULL) * SECOND, values[64], ends[64];
    char *text = read_file(prefix, ".profiles.jsonl");
    unsigned count = read_numbers(text, "durationNano", values, 64);
    CHECK(count >= 4);
    for (unsigned i = 0; i < count; i++)
        CHECK(values[i] > 0 && values[i] < LONGEST);
    CHECK_EQUAL(read_numbers(text, "timeUnixNano", values, 64), count);
    CHECK(values[0] > now - LONGEST);
    (void)fprintf(stderr, "   %u profiles, the last %.1f s behind the first\n", count,
                  ((double)values[0] - (double)values[count - 1]) / 1e9);
    CHECK(values[count - 1] < now - LONGEST); /* the last is in the new time */

    text = read_file(prefix, ".traces.jsonl");
    count = read_numbers(text, "startTimeUnixNano", values, 64);
    CHECK_EQUAL(count, 4);
    CHECK_EQUAL(read_numbers(text, "endTimeUnixNano", ends, 64), 4);
    for (unsigned i = 0; i < count; i++)
        CHECK(ends[i] > values[i] && ends[i] - values[i] < LONGEST);
    CHECK(values[3] < now - LONGEST);
    CHECK_EQUAL(rmdir(directory), 0);
    return 0;
}

int main(int argc, char **argv)
{
    static const hazard_case cases[] = {
        {"wall_clock_set_back_leaves_lengths_right", wall_clock_set_back, false},
    };
    return hazard_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
