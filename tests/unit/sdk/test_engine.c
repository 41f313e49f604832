/* SPDX-License-Identifier: Apache-2.0 */
/* The engine as an application sees it: which one ticks and why, pause, change of rate, budget, and
 * descriptors that vanish. Each case runs with both engines; where perf events are not allowed the
 * case for perf is skipped aloud.
 *
 * Several cases measure (verdict.h): how many periods work had. A busy machine can take ticks away,
 * and an event also counts what a hypervisor takes away, but no more than the time that passed. */
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <spanprof/spanprof.h>
#include "proto/profiles.pb-c.h"
#include "remove_folder.h"
#include "unit/sdk/ticks.h"
#include "verdict.h"

#define SECOND UINT64_C(1000000000)

static char directory[64], prefix[80], log_text[16384];

/* Burns FULL seconds, or IN_SHORT in the short form. What is allowed is the same in both, so
 * IN_SHORT has to be so long that a fault is still beyond it. */
static void burn_sized(double full, double in_short)
{
    burn(verdict_is_full() ? full : in_short);
}

static void keep_log(spanprof_log_level level, const char *line, void *user)
{
    (void)level;
    (void)user;
    size_t length = strlen(log_text);
    snprintf(log_text + length, sizeof log_text - length, "%s\n", line);
}

static int setup(void **state)
{
    (void)state;
    log_text[0] = 0;
    strcpy(directory, "/tmp/spanprof-engine-XXXXXX");
    assert_non_null(mkdtemp(directory));
    snprintf(prefix, sizeof prefix, "%s/p", directory);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    return remove_folder(directory);
}

static spanprof_stats stats_now(void)
{
    spanprof_stats stats = SPANPROF_STATS_INIT;
    spanprof_stats_get(&stats);
    return stats;
}

static spanprof_options options_with(const char *engine, uint32_t hz)
{
    spanprof_options options = SPANPROF_OPTIONS_INIT;
    options.exporter = "file";
    options.file = prefix;
    options.file_format = "proto";
    options.engine = engine;
    options.cpu_hz = hz;
    options.log = keep_log;
    return options;
}

/* The engine of this case; skipped where it does not work. */
static const char *start(void **state, uint32_t hz)
{
    const char *engine = *state;
    spanprof_options options = options_with(engine, hz);
    assert_int_equal(spanprof_start(&options, NULL), SPANPROF_OK);
    if (strcmp(stats_now().engine, engine) != 0) {
        print_message("SKIPPED: the engine %s does not work here: %s\n", engine,
                      stats_now().engine_reason);
        spanprof_stop(SECOND);
        skip();
    }
    return engine;
}

/* What the run's profiles say of themselves. */
typedef struct profile {
    int64_t period;
    int64_t periods; /* the sum of its weights */
    char engine[16];
    bool has_reason;
} profile;

static void read_profile(const Sp__Profiles__ProfilesData *data, profile *out)
{
    const Sp__Profiles__Profile *one = data->resource_profiles[0]->scope_profiles[0]->profiles[0];
    const Sp__Profiles__ProfilesDictionary *dictionary = data->dictionary;
    out->period = one->period;
    for (size_t i = 0; i < one->n_samples; i++)
        out->periods += one->samples[i]->values[0];
    for (size_t i = 0; i < one->n_attribute_indices; i++) {
        const Sp__Profiles__KeyValueAndUnit *attribute =
            dictionary->attribute_table[one->attribute_indices[i]];
        const char *key = dictionary->string_table[attribute->key_strindex];
        if (strcmp(key, "spanprof.engine") == 0)
            snprintf(out->engine, sizeof out->engine, "%s", attribute->value->string_value);
        out->has_reason |=
            strcmp(key, "spanprof.engine.reason") == 0 && *attribute->value->string_value;
    }
}

/* The length before each message; 0 at the end of the file. */
static size_t read_length(FILE *file)
{
    size_t length = 0;
    for (int shift = 0, byte = 0x80; byte & 0x80; shift += 7) {
        byte = fgetc(file);
        if (byte == EOF)
            return 0;
        length |= (size_t)(byte & 0x7f) << shift;
    }
    return length;
}

/* How many there are depends on how long the work took. */
enum { PROFILES_MAX = 10000 };

/* All of them. */
static size_t read_profiles(profile *out, size_t room)
{
    char path[128];
    size_t count = 0;
    snprintf(path, sizeof path, "%s.profiles.binpb", prefix);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    memset(out, 0, room * sizeof *out);
    for (size_t length; count < room && (length = read_length(file)) > 0; count++) {
        uint8_t *bytes = malloc(length);
        assert_int_equal(fread(bytes, 1, length, file), length);
        Sp__Profiles__ProfilesData *data = sp__profiles__profiles_data__unpack(NULL, length, bytes);
        assert_non_null(data);
        read_profile(data, &out[count]);
        sp__profiles__profiles_data__free_unpacked(data, NULL);
        free(bytes);
    }
    fclose(file);
    assert_true(count < room);
    return count;
}

static void engine_is_told_in_stats_and_profile_with_the_reason(void **state)
{
    const char *engine = start(state, 1000);
    SPANPROF_SPAN("work")
        assert_true(burn_until_linked(0.2));
    assert_int_equal(spanprof_stop(60 * SECOND), SPANPROF_OK);
    assert_string_equal(stats_now().engine, engine);
    assert_true(strlen(stats_now().engine_reason) > 10);
    static profile profiles[PROFILES_MAX];
    size_t count = read_profiles(profiles, PROFILES_MAX);
    assert_true(count > 0);
    assert_string_equal(profiles[0].engine, engine);
    assert_true(profiles[0].has_reason);
}

/* At the default rate no tick may make a system call fail. */
static void auto_is_timer_at_the_default_rate_and_the_log_says_why(void **state)
{
    (void)state;
    spanprof_options options = options_with(NULL, 0);
    options.log_level = SPANPROF_LOG_INFO;
    assert_int_equal(spanprof_start(&options, NULL), SPANPROF_OK);
    const char *reason = "99 Hz is within the kernel's timer tick";
    assert_string_equal(stats_now().engine, "timer");
    assert_non_null(strstr(stats_now().engine_reason, reason));
    SPANPROF_SPAN("work")
        assert_true(burn_until_linked(0.05));
    assert_int_equal(spanprof_stop(60 * SECOND), SPANPROF_OK);
    assert_non_null(strstr(log_text, reason));
}

/* Changes of the rate keep the engine. */
static void rate_that_rises_above_the_kernels_tick_keeps_the_timers(void **state)
{
    (void)state;
    spanprof_options options = options_with(NULL, 99);
    assert_int_equal(spanprof_start(&options, NULL), SPANPROF_OK);
    assert_int_equal(spanprof_set_rate(SPANPROF_PROFILE_CPU, 5000), SPANPROF_OK);
    SPANPROF_SPAN("work")
        assert_true(burn_until_linked(0.05));
    assert_int_equal(stats_now().cpu_hz, 5000);
    assert_string_equal(stats_now().engine, "timer");
    assert_int_equal(spanprof_stop(60 * SECOND), SPANPROF_OK);
}

/* The run had so many PERIODS, of which there should be more than LEAST. */
static void judge_periods(uint64_t periods, uint64_t least)
{
    assert_true(periods > 0);
    if (periods <= least)
        verdict_unsure("%lu periods, more than %lu are right", (unsigned long)periods,
                       (unsigned long)least);
}

/* SAMPLED seconds of WORKED seconds of CPU time, which took PASSED seconds, are in samples, and
 * UNSEEN seconds in the unattributed time. */
static void judge_seconds(double sampled, double unseen, double worked, double passed,
                          double allowed)
{
    assert_true(sampled + unseen > worked - allowed);
    assert_true(sampled < passed + allowed);
    if (sampled <= worked - allowed || sampled >= worked + allowed)
        verdict_unsure("%.3f s of %.3f s are sampled, %.3f s are allowed", sampled, worked,
                       allowed);
}

/* A signal whose queue may be full is refused for perf events, and told. */
static void perf_with_a_real_time_signal_becomes_timer(void **state)
{
    (void)state;
    char number[16];
    snprintf(number, sizeof number, "%d", SIGRTMIN + 2);
    spanprof_options options = options_with("perf", 1000);
    options.signal = number;
    assert_int_equal(spanprof_start(&options, NULL), SPANPROF_OK);
    assert_string_equal(stats_now().engine, "timer");
    assert_non_null(strstr(stats_now().engine_reason, "real-time signal"));
    assert_non_null(strstr(log_text, "SPANPROF_ENGINE=perf does not work here"));
    SPANPROF_SPAN("work")
        assert_true(burn_until_linked(0.1));
    assert_int_equal(spanprof_stop(60 * SECOND), SPANPROF_OK);
    judge_periods(stats_now().weights, 50);
}

static void paused_time_is_neither_sampled_nor_unattributed(void **state)
{
    start(state, 1000);
    double begin = clock_seconds(CLOCK_MONOTONIC), passed = 0;
    SPANPROF_SPAN("work") {
        assert_true(burn_until_linked(0.2));
        assert_int_equal(spanprof_pause(), SPANPROF_OK);
        passed += clock_seconds(CLOCK_MONOTONIC) - begin;
        assert_int_equal(spanprof_pause(), SPANPROF_OK);
        assert_int_equal(stats_now().paused, 1);
        assert_int_equal(stats_now().threads, 0);
        assert_int_equal(spanprof_flush(60 * SECOND), SPANPROF_OK);
        uint64_t ticks = stats_now().ticks;
        burn_sized(1, 0.5);
        assert_int_equal(spanprof_flush(60 * SECOND), SPANPROF_OK);
        assert_int_equal(stats_now().ticks, ticks);
        begin = clock_seconds(CLOCK_MONOTONIC);
        assert_int_equal(spanprof_resume(), SPANPROF_OK);
        assert_int_equal(stats_now().paused, 0);
        burn(0.2);
    }
    assert_int_equal(spanprof_stop(60 * SECOND), SPANPROF_OK);
    passed += clock_seconds(CLOCK_MONOTONIC) - begin;
    spanprof_stats stats = stats_now();
    /* 0.4 s were worked with ticks, 1 s without, or half of that. */
    double sampled = (double)stats.weights / 1000, unseen = (double)stats.unattributed_ns / 1e9;
    judge_seconds(sampled, unseen, 0.4, passed, 0.1);
    assert_true(sampled + unseen < passed + 0.3);
    if (sampled + unseen >= 0.7)
        verdict_unsure(
            "%.3f s are sampled and unattributed, with the 0.4 s before and after a pause",
            sampled + unseen);
}

static void pause_and_rate_need_a_running_sdk(void **state)
{
    (void)state;
    assert_int_equal(spanprof_pause(), SPANPROF_ERROR_NOT_STARTED);
    assert_int_equal(spanprof_resume(), SPANPROF_ERROR_NOT_STARTED);
    assert_int_equal(spanprof_set_rate(SPANPROF_PROFILE_CPU, 99), SPANPROF_ERROR_NOT_STARTED);
    assert_int_equal(spanprof_set_rate(SPANPROF_PROFILE_CPU, 0), SPANPROF_ERROR_INVALID_ARGUMENT);
    assert_int_equal(spanprof_set_rate(SPANPROF_PROFILE_CPU, 10001),
                     SPANPROF_ERROR_INVALID_ARGUMENT);
    assert_int_equal(spanprof_set_rate((spanprof_profile_kind)77, 99),
                     SPANPROF_ERROR_INVALID_ARGUMENT);
    spanprof_options options = options_with("timer", 99);
    assert_int_equal(spanprof_start(&options, NULL), SPANPROF_OK);
    assert_int_equal(spanprof_set_rate(SPANPROF_PROFILE_WALL, 99), SPANPROF_ERROR_UNSUPPORTED);
    assert_int_equal(spanprof_stop(60 * SECOND), SPANPROF_OK);
    options.profiles = "none";
    assert_int_equal(spanprof_start(&options, NULL), SPANPROF_OK);
    assert_int_equal(spanprof_set_rate(SPANPROF_PROFILE_CPU, 99), SPANPROF_ERROR_UNSUPPORTED);
    assert_int_equal(spanprof_stop(60 * SECOND), SPANPROF_OK);
}

/* Every profile has one period, and weights times period are the CPU time at any rate. */
static void rate_changes_at_the_edge_of_a_window(void **state)
{
    static const uint32_t rates[] = {1000, 100, 10000, 500};
    start(state, rates[0]);
    double begin = clock_seconds(CLOCK_MONOTONIC), before = clock_seconds(CLOCK_THREAD_CPUTIME_ID);
    SPANPROF_SPAN("work")
        for (int i = 0; i < 4; i++) {
            if (i > 0)
                assert_int_equal(spanprof_set_rate(SPANPROF_PROFILE_CPU, rates[i]), SPANPROF_OK);
            burn(0.4);
        }
    double worked = clock_seconds(CLOCK_THREAD_CPUTIME_ID) - before;
    double passed = clock_seconds(CLOCK_MONOTONIC) - begin;
    assert_int_equal(stats_now().cpu_hz, rates[3]);
    assert_int_equal(spanprof_stop(60 * SECOND), SPANPROF_OK);
    static profile profiles[PROFILES_MAX];
    size_t count = read_profiles(profiles, PROFILES_MAX), rate = 0;
    double total = 0;
    for (size_t i = 0; i < count; i++) {
        if (profiles[i].period !=
            (int64_t)(SECOND / rates[rate])) /* a window of 10 s may have ended, too */
            rate++;
        assert_in_range(rate, 0, 3);
        assert_int_equal(profiles[i].period, SECOND / rates[rate]);
        total += (double)(profiles[i].periods * profiles[i].period) / 1e9;
    }
    assert_int_equal(rate, 3);
    /* Each of the four parts loses or wins less than a period, the longest of which is 10 ms, and a
     * jiffy or two by timer. */
    judge_seconds(total, (double)stats_now().unattributed_ns / 1e9, worked, passed, 0.08);
}

static void budget_lowers_the_rate_and_the_weights_stay_right(void **state)
{
    const char *engine = *state;
    spanprof_options options = options_with(engine, 10000);
    /* Low enough to be exceeded (by timer 10,000 Hz are 250 ticks a second, less than 0.1 %), and
     * no lower: each change of the rate may lose or win a period, which has to be short beside what
     * is allowed below. */
    options.cpu_budget = strcmp(engine, "timer") == 0 ? "0.02%" : "0.1%";
    options.window_ms = 200;
    assert_int_equal(spanprof_start(&options, NULL), SPANPROF_OK);
    if (strcmp(stats_now().engine, engine) != 0) {
        spanprof_stop(SECOND);
        print_message("SKIPPED: the engine %s does not work here\n", engine);
        skip();
    }
    double begin = clock_seconds(CLOCK_MONOTONIC), before = clock_seconds(CLOCK_THREAD_CPUTIME_ID);
    SPANPROF_SPAN("work") {
        burn_sized(1.5, 0.8);
        /* The thread that lowers the rate may come late. */
        for (int i = 0; i < 1200 && stats_now().cpu_hz >= 1000; i++)
            burn(0.05);
    }
    double worked = clock_seconds(CLOCK_THREAD_CPUTIME_ID) - before;
    double passed = clock_seconds(CLOCK_MONOTONIC) - begin;
    spanprof_stats stats = stats_now();
    assert_int_equal(spanprof_stop(60 * SECOND), SPANPROF_OK);
    assert_true(stats.tick_cost_ns > 100);
    assert_true(stats.cpu_hz < 1000); /* a signal alone costs more than 100 ns */
    static profile profiles[PROFILES_MAX];
    size_t count = read_profiles(profiles, PROFILES_MAX);
    assert_true(count > 0);
    if (count < 3)
        verdict_unsure("%zu windows in %.1f s, 3 are needed", count, passed);
    double total = 0;
    for (size_t i = 0; i < count; i++)
        total += (double)(profiles[i].periods * profiles[i].period) / 1e9;
    print_message("%.3f s told of %.3f at %u Hz\n", total, worked, stats.cpu_hz);
    judge_seconds(total, (double)stats_now().unattributed_ns / 1e9, worked, passed, 0.15);
}

static void budget_that_is_no_share_is_named(void **state)
{
    (void)state;
    static const char *const values[] = {"abc", "0", "-1", "200%", "0.1.2", "%", "1%x"};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        spanprof_options options = options_with("timer", 99);
        options.cpu_budget = values[i];
        log_text[0] = 0;
        assert_int_equal(spanprof_start(&options, NULL), SPANPROF_OK);
        assert_int_equal(spanprof_stop(60 * SECOND), SPANPROF_OK);
        char expected[64];
        snprintf(expected, sizeof expected, "SPANPROF_CPU_BUDGET=%s is no share above 0",
                 values[i]);
        assert_non_null(strstr(log_text, expected));
    }
}

static void engine_that_is_none_is_named_with_what_is_used(void **state)
{
    (void)state;
    spanprof_options options = options_with("ebpf", 99);
    assert_int_equal(spanprof_start(&options, NULL), SPANPROF_OK);
    assert_int_equal(spanprof_stop(60 * SECOND), SPANPROF_OK);
    assert_non_null(strstr(log_text, "SPANPROF_ENGINE"));
    assert_non_null(strstr(log_text, "auto"));
}

/* As daemons do. The host's own file under the same number stays open, and ticks come again. */
static void descriptors_closed_by_the_host_are_opened_anew(void **state)
{
    spanprof_options options = options_with(*state, 1000);
    options.exporter = "none";
    options.window_ms = 100;
    assert_int_equal(spanprof_start(&options, NULL), SPANPROF_OK);
    if (strcmp(stats_now().engine, *state) != 0) {
        spanprof_stop(SECOND);
        print_message("SKIPPED: the engine %s does not work here\n", (const char *)*state);
        skip();
    }
    SPANPROF_SPAN("work")
        burn(0.05);
    int high = 0, descriptors[64], count = 0;
    for (int fd = 3; fd < 4096; fd++)
        if (close(fd) == 0)
            high = fd;
    for (int i = 0; high && i < 64; i++) /* the same numbers, among others */
        if ((descriptors[count] = fcntl(0, F_DUPFD_CLOEXEC, high > 40 ? high - 40 : 3)) >= 0)
            count++;
    SPANPROF_SPAN("work")
        burn(0.6);
    uint64_t weights = stats_now().weights;
    SPANPROF_SPAN("more")
        for (int i = 0; i < 1200 && stats_now().weights <= 300; i++)
            burn(0.05);
    assert_true(stats_now().weights > 300);
    judge_periods(weights, 300);
    assert_int_equal(spanprof_stop(60 * SECOND), SPANPROF_OK);
    for (int i = 0; i < count; i++)
        assert_int_equal(close(descriptors[i]), 0); /* nobody else has closed it */
}

static void *burn_without_a_call(void *unused)
{
    burn(0.5);
    return unused;
}

static void thread_is_found_while_another_flushes_all_the_time(void **state)
{
    spanprof_options options = options_with(*state, 1000);
    options.exporter = "none";
    assert_int_equal(spanprof_start(&options, NULL), SPANPROF_OK);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, burn_without_a_call, NULL), 0);
    for (int i = 0; i < 80; i++) {
        spanprof_flush(SECOND);
        usleep(5000);
    }
    pthread_join(thread, NULL);
    assert_int_equal(spanprof_stop(60 * SECOND), SPANPROF_OK);
    judge_periods(stats_now().weights, 250); /* of 500, and the 50 ms in which it may be found */
}

static _Atomic bool stop_pausing;

static void *pause_and_resume(void *unused)
{
    while (!stop_pausing) {
        spanprof_pause();
        spanprof_resume();
    }
    return unused;
}

/* A pause that began in one run must not end in the next. */
static void pauses_beside_starts_and_stops_leave_a_run_that_ticks(void **state)
{
    spanprof_options options = options_with(*state, 1000);
    options.exporter = "none";
    pthread_t thread;
    stop_pausing = false;
    burn(0.3);
    assert_int_equal(pthread_create(&thread, NULL, pause_and_resume, NULL), 0);
    for (int i = 0; i < 12; i++) {
        double before = clock_seconds(CLOCK_PROCESS_CPUTIME_ID);
        assert_int_equal(spanprof_start(&options, NULL), SPANPROF_OK);
        burn(0.005);
        assert_int_equal(spanprof_stop(60 * SECOND), SPANPROF_OK);
        double used = clock_seconds(CLOCK_PROCESS_CPUTIME_ID) - before;
        double unseen = (double)stats_now().unattributed_ns / 1e9;
        assert_true(unseen < used + 0.05); /* not the time before the start */
    }
    assert_int_equal(spanprof_start(&options, NULL), SPANPROF_OK);
    stop_pausing = true;
    pthread_join(thread, NULL);
    SPANPROF_SPAN("work")
        assert_true(burn_until_linked(0.2));
    assert_int_equal(spanprof_stop(60 * SECOND), SPANPROF_OK);
    judge_periods(stats_now().weights, 100);
}

#define BOTH(test)                                                                                 \
    {#test "/timer", test, setup, teardown, "timer"},                                              \
    {                                                                                              \
#test "/perf", test, setup, teardown, "perf"                                               \
    }
#define ONCE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
#if defined(__SANITIZE_THREAD__)
    puts("SKIPPED: TSan delivers signals late");
    return 77;
#endif
    const struct CMUnitTest tests[] = {
        BOTH(engine_is_told_in_stats_and_profile_with_the_reason),
        ONCE(auto_is_timer_at_the_default_rate_and_the_log_says_why),
        ONCE(rate_that_rises_above_the_kernels_tick_keeps_the_timers),
        ONCE(perf_with_a_real_time_signal_becomes_timer),
        BOTH(paused_time_is_neither_sampled_nor_unattributed),
        ONCE(pause_and_rate_need_a_running_sdk),
        BOTH(rate_changes_at_the_edge_of_a_window),
        BOTH(budget_lowers_the_rate_and_the_weights_stay_right),
        ONCE(budget_that_is_no_share_is_named),
        ONCE(engine_that_is_none_is_named_with_what_is_used),
        BOTH(thread_is_found_while_another_flushes_all_the_time),
        BOTH(pauses_beside_starts_and_stops_leave_a_run_that_ticks),
        {"descriptors_closed_by_the_host_are_opened_anew/perf",
         descriptors_closed_by_the_host_are_opened_anew, setup, teardown, "perf"},
    };
    return verdict_code(cmocka_run_group_tests(tests, NULL, NULL));
}
