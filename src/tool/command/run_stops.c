/* SPDX-License-Identifier: Apache-2.0 */
/* What `run --attach` says of the stops in which it read the stacks of threads. */
#include <stdio.h>
#include <string.h>

#include "attach/attach.h"
#include "core/counted.h"
#include "tool/command/run.h"
#include "tool/text/output.h"

/* A program may notice a longer stop, or stops that take more than one part in LITTLE of the
 * time. */
enum { LONG_NS = 1000000, LITTLE = 100 };

static bool are_much(const sp_attach_outcome *outcome)
{
    return outcome->longest_stop_ns > LONG_NS || outcome->stop_ns > outcome->sampled_ns / LITTLE;
}

static void add_advice(char *out, size_t room, const sp_attach_outcome *outcome, uint64_t hz)
{
    char rate[64] = "";
    if (hz > 1)
        snprintf(rate, sizeof rate, "--hz %llu stops it half as often, ",
                 (unsigned long long)hz / 2);
    snprintf(out, room,
             ": the process may have been slower for it; %sa free core makes the stops shorter%s",
             rate,
             outcome->needs_stops ? ""
                                  : ", and perf events need no stop (kernel.perf_event_paranoid 2 "
                                    "or less, or sudo)");
}

const char *sp_run_stops_text(char out[SP_RUN_STOPS_LENGTH], const sp_attach_outcome *outcome,
                              uint64_t hz)
{
    char average[SP_DURATION_LENGTH], longest[SP_DURATION_LENGTH], sampled[SP_DURATION_LENGTH];
    *out = '\0';
    if (!outcome->stops)
        return out;
    sp_format_duration(average, outcome->stop_ns / outcome->stops);
    sp_format_duration(longest, outcome->longest_stop_ns);
    sp_format_duration(sampled, outcome->sampled_ns);
    int used = snprintf(
        out, SP_RUN_STOPS_LENGTH,
        "a thread stood still %s, for %s on average and %s at most, together "
        "%.1f %% of %s",
        SP_COUNTED(outcome->stops, "time"), average, longest,
        outcome->sampled_ns ? 100.0 * (double)outcome->stop_ns / (double)outcome->sampled_ns : 0,
        sampled);
    if (are_much(outcome))
        add_advice(out + used, SP_RUN_STOPS_LENGTH - (size_t)used, outcome, hz);
    return out;
}
