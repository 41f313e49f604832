/* SPDX-License-Identifier: Apache-2.0 */
/* libspanprof-run.so is loaded by `spanprof run`, or by LD_PRELOAD, into a program that does not
 * use spanprof. The library starts the SDK before main, with all settings from the environment, and
 * one span for the whole process. In a program that uses spanprof itself, it only chooses the files
 * and ends the SDK when a signal ends the process. docs/design/run.md describes the design. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "run/change_user.h"
#include "run/keeper.h"
#include "run/one_thread.h"
#include "run/process_span.h"
#include "run/run_exits.h"
#include "run/run_signals.h"
#include "run/uses_spanprof.h"

/* Whether this is a "zygote": Chromium, and programs built on Chromium, fork their processes from
 * zygotes. A zygote ends when it finds that it has more than one thread. */
static bool must_have_one_thread(int count, char **words)
{
    for (int i = 1; i < count; i++)
        if (strcmp(words[i], "--type=zygote") == 0)
            return true;
    return false;
}

/* The C library calls constructors with the arguments of main. */
__attribute__((constructor)) static void begin(int count, char **words)
{
    sp_run_prepare_exits();
    sp_run_prepare_signals();
    sp_run_prepare_one_thread();
    sp_run_prepare_change_user();
    if (must_have_one_thread(count, words)) {
        fprintf(stderr, "spanprof: %s --type=zygote is not profiled: it must have one thread\n",
                program_invocation_short_name);
        return;
    }
    if (sp_program_uses_spanprof()) {
        sp_process_take_files();
        sp_keeper_start_for_signals();
    } else {
        sp_keeper_start();
        sp_run_hide_ticks();
    }
    sp_run_handle_signals();
}
