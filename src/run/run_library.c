/* SPDX-License-Identifier: Apache-2.0 */
/* libspanprof-run.so: loaded by `spanprof run`, or by LD_PRELOAD, into a program that knows nothing
 * of spanprof. It starts the SDK before main, with all settings from the environment. The whole
 * process is one span. docs/design/run.md has the design. */
#include "run/keeper.h"
#include "run/process_span.h"
#include "run/run_exits.h"
#include "run/uses_spanprof.h"

__attribute__((constructor)) static void begin(void)
{
    if (sp_program_uses_spanprof()) {
        sp_process_take_files();
        return;
    }
    sp_keeper_start();
    sp_run_handle_signals();
}
