/* SPDX-License-Identifier: Apache-2.0 */
/* `spanprof run --attach`: makes options of src/attach from what the user wrote, and shows an
 * answer from its files. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attach/attach.h"
#include "core/clock.h"
#include "core/compiler.h"
#include "core/counted.h"
#include "tool/command/run.h"
#include "tool/text/messages.h"

enum { DEFAULT_HZ = 99, WALL_HZ = 20, HZ_MAX = 10000 };

#define LONGEST_S (366.0 * 24 * 3600)

/* Parse a number with a unit; without a unit it is in seconds. */
static bool parse_duration(const char *text, uint64_t *out_ns)
{
    static const struct {
        const char *name;
        double seconds;
    } units[] = {{"", 1}, {"s", 1}, {"ms", 1e-3}, {"m", 60}, {"min", 60}, {"h", 3600}};
    char *end;
    errno = 0;
    double value = strtod(text, &end);
    if (end == text || strspn(text, "0123456789.") < (size_t)(end - text) || errno)
        return false;
    for (size_t i = 0; i < SP_ARRAY_LENGTH(units); i++)
        if (strcmp(end, units[i].name) == 0 && value * units[i].seconds <= LONGEST_S) {
            *out_ns = (uint64_t)llround(value * units[i].seconds * 1e9);
            return *out_ns > 0;
        }
    return false;
}

static int check(const sp_run_options *options, const sp_operands *rest, uint64_t *duration_ns)
{
    if (!options->attach)
        return sp_tool_wrong("run: --duration is for --attach: a program runs until it ends");
    if (rest->count > 0)
        return sp_tool_wrong("run: --attach %s samples a process that runs already, so %s is not "
                             "run: name one of the two",
                             options->attach, rest->items[0]);
    if (options->profiles)
        return sp_tool_wrong("run: --profiles is for a program that is started here: --attach "
                             "samples CPU time, and waits with --wall");
    if (options->hz > HZ_MAX)
        return sp_tool_wrong("run: --hz %llu: at most %d with --attach",
                             (unsigned long long)options->hz, HZ_MAX);
    if (options->duration && !parse_duration(options->duration, duration_ns))
        return sp_tool_wrong("run: --duration \"%s\": write a time like 10s, 500ms or 2m",
                             options->duration);
    return SP_TOOL_DONE;
}

static void say_started(void *user, const char *what)
{
    const sp_run_options *options = user;
    if (!options->quiet)
        sp_tool_note("%s", what);
}

static void show(const sp_run_options *options, const char *prefix, const sp_attach_outcome *out,
                 const sp_run_earlier *earlier)
{
    if (out->has_ended)
        sp_tool_note("process %s has ended", options->attach);
    char stops[SP_RUN_STOPS_LENGTH];
    if (*sp_run_stops_text(stops, out, options->hz ? options->hz : DEFAULT_HZ))
        sp_tool_note("%s", stops);
    sp_run_answer answer = {
        .prefix = prefix,
        .what = "what was sampled is",
        .no_samples = "the process took too little CPU time meanwhile; --hz 1000 samples more "
                      "often, --wall shows what it waits for; processes that it has started are "
                      "not sampled: attach to one of them",
        .wall = options->wall,
    };
    sp_run_show_answer(&answer);
    sp_run_earlier_say(earlier, prefix);
}

int sp_run_attach(const sp_run_options *options, const sp_operands *rest)
{
    const char *file = getenv("SPANPROF_FILE");
    sp_attach_outcome out;
    sp_attach_options attach = {
        .pid = options->attach,
        .prefix = options->out    ? options->out
                  : file && *file ? file
                                  : "spanprof",
        .service = options->service,
        .hz = options->hz ? options->hz : DEFAULT_HZ,
        .wall_hz = options->wall ? WALL_HZ : 0,
        .started = say_started,
        .user = (void *)(uintptr_t)options,
    };
    int status = check(options, rest, &attach.duration_ns);
    if (status != SP_TOOL_DONE)
        return status;
    char own[PATH_MAX];
    attach.prefix = sp_run_free_prefix(own, attach.prefix);
    sp_run_earlier earlier = sp_run_earlier_find(attach.prefix);
    if (!sp_attach(&attach, &out))
        return sp_tool_wrong("run: --attach %s: %s", options->attach, out.problem);
    if (!options->quiet)
        show(options, attach.prefix, &out, &earlier);
    return SP_TOOL_DONE;
}
