/* SPDX-License-Identifier: Apache-2.0 */
/* Tells the user how to get function names when most samples of a run have none. */
#include "tool/command/run.h"
#include "tool/model/nameless.h"
#include "tool/read/repeats.h"
#include "tool/text/messages.h"

/* The least number of samples without a name for which a note is written. */
enum { NAMELESS_LEAST = 5 };

static void say(const sp_nameless *found)
{
    sp_tool_note("run: %.0f %% of the samples are in functions without a name, most of them in %s: "
                 "install its debug symbols (on Debian a package that ends in -dbgsym or -dbg), or "
                 "set SPANPROF_DEBUGINFOD=1 and DEBUGINFOD_URLS to fetch them, or build it with -g "
                 "and without strip; then run again",
                 100.0 * (double)found->nameless / (double)found->all, found->module);
}

void sp_run_note_names(const char *prefix)
{
    const sp_operands files = {.items = (const char *[]){prefix}, .count = 1};
    sp_input input;
    sp_model model = {0};
    sp_nameless found = {0};
    int status = sp_input_read_once(&input, &files);
    if (status == SP_TOOL_DONE)
        status = sp_model_build(&model, &input);
    if (status == SP_TOOL_DONE && model.type_count)
        sp_model_find_nameless(&found, &model, sp_model_main_type(&model));
    if (found.nameless >= NAMELESS_LEAST && found.nameless > found.all / 2)
        say(&found);
    sp_model_deinit(&model);
    sp_input_deinit(&input);
}
