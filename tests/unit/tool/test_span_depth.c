/* SPDX-License-Identifier: Apache-2.0 */
/* Spans nested deeply, each with a sample: what the command does grows with their number, not with
 * its square. Counted are the looks at spans on the way to their local roots. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "remove_folder.h"
#include "tool/command/commands.h"
#include "tool/model/model.h"

enum { DEPTH = 2000, LOOKS_A_SPAN = 8 };

#define TRACE "4bf92f3577b34da6a3ce929d0e0e4736"

static uint64_t looks;

bool __real_sp_model_is_local_root(const sp_model *model, uint32_t span);
bool __wrap_sp_model_is_local_root(const sp_model *model, uint32_t span);
bool __wrap_sp_model_is_local_root(const sp_model *model, uint32_t span)
{
    looks++;
    return __real_sp_model_is_local_root(model, span);
}

static char folder[] = "/tmp/spanprof-depth-XXXXXX", traces[64], profiles[64];

/* Span I is the parent of span I + 1. */
static void write_traces(void)
{
    FILE *out = fopen(traces, "w");
    assert_non_null(out);
    fputs("{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[", out);
    for (int i = 1; i <= DEPTH; i++) {
        fprintf(out, "%s{\"traceId\":\"" TRACE "\",\"spanId\":\"%016x\",", i > 1 ? "," : "", i);
        if (i > 1)
            fprintf(out, "\"parentSpanId\":\"%016x\",", i - 1);
        fputs("\"name\":\"s\",\"kind\":1,\"startTimeUnixNano\":\"1700000000000000000\","
              "\"endTimeUnixNano\":\"1700000001000000000\"}",
              out);
    }
    fputs("]}]}]}\n", out);
    assert_int_equal(fclose(out), 0);
}

static void write_profiles(void)
{
    FILE *out = fopen(profiles, "w");
    assert_non_null(out);
    fputs("{\"resourceProfiles\":[{\"scopeProfiles\":[{\"profiles\":[{\"sampleType\":{"
          "\"typeStrindex\":1,\"unitStrindex\":2},\"timeUnixNano\":\"1700000000000000000\","
          "\"durationNano\":\"1000000000\",\"samples\":[",
          out);
    for (int i = 1; i <= DEPTH; i++)
        fprintf(out, "%s{\"stackIndex\":1,\"linkIndex\":%d,\"values\":[\"3\"]}", i > 1 ? "," : "",
                i);
    fputs("]}]}]}],\"dictionary\":{\"stringTable\":[\"\",\"cpu\",\"nanoseconds\",\"main\"],"
          "\"functionTable\":[{},{\"nameStrindex\":3}],\"mappingTable\":[{}],"
          "\"locationTable\":[{},{\"lines\":[{\"functionIndex\":1}]}],\"attributeTable\":[{}],"
          "\"stackTable\":[{},{\"locationIndices\":[1]}],\"linkTable\":[{}",
          out);
    for (int i = 1; i <= DEPTH; i++)
        fprintf(out, ",{\"traceId\":\"" TRACE "\",\"spanId\":\"%016x\"}", i);
    fputs("]}}\n", out);
    assert_int_equal(fclose(out), 0);
}

/* COMMAND, whose output goes nowhere, looks at each span a few times. */
static void expect_few_looks(const sp_command *command, int count, char **arguments)
{
    int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC), saved = dup(STDOUT_FILENO);
    fflush(stdout);
    dup2(nowhere, STDOUT_FILENO);
    looks = 0;
    int status = command->run(count, arguments);
    fflush(stdout);
    dup2(saved, STDOUT_FILENO);
    close(saved);
    close(nowhere);
    assert_int_equal(status, 0);
    print_message("%s: %llu looks at %d spans\n", command->name, (unsigned long long)looks, DEPTH);
    assert_in_range(looks, DEPTH, LOOKS_A_SPAN * DEPTH);
}

static void depth_costs_spans_of_roots_no_walk(void **state)
{
    (void)state;
    char *arguments[] = {"spans", traces, profiles, "--roots", "--json", NULL};
    expect_few_looks(&sp_command_spans, 5, arguments);
}

static void depth_costs_diff_no_walk_for_each_sample(void **state)
{
    (void)state;
    char prefix[64];
    snprintf(prefix, sizeof prefix, "%s/p", folder);
    char *arguments[] = {"diff", prefix, prefix, NULL};
    expect_few_looks(&sp_command_diff, 3, arguments);
}

static int set_up(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    snprintf(traces, sizeof traces, "%s/p.traces.jsonl", folder);
    snprintf(profiles, sizeof profiles, "%s/p.profiles.jsonl", folder);
    write_traces();
    write_profiles();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    return remove_folder(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(depth_costs_spans_of_roots_no_walk),
        cmocka_unit_test(depth_costs_diff_no_walk_for_each_sample),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
