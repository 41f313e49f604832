/* SPDX-License-Identifier: Apache-2.0 */
/* Warns about calls of the program that make no sense and that change what a table of spans, or the
 * flamegraph of a span, shows. `spanprof stats` has the counts of all kinds. */
#include <inttypes.h>
#include <stdio.h>

#include "core/compiler.h"
#include "tool/model/model.h"
#include "tool/model/sum.h"
#include "tool/text/messages.h"

enum { NOTE_LENGTH = 512 };

/* The kinds after which samples have the wrong span or none. A call with a span that has ended, and
 * a second detach, do nothing. */
static const struct {
    const char *key, *before, *after; /* of the count */
} kinds[] = {
    {"spanprof.misuse.ended_parent", "a thread went on under a span that had ended ",
     ", so its work counts for that span"},
    {"spanprof.misuse.foreign_scope",
     "a scope was detached on another thread than it was attached "
     "on ",
     ", so samples have no span until its thread's next attach or detach"},
    {"spanprof.misuse.fiber", "a fiber was used after its end or by two threads ",
     ", so samples have no span"},
};

static uint64_t count(const sp_model *model, const char *key)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < model->profile_count; i++)
        sp_sum_add(&sum, sp_model_profile_number(&model->profiles[i], key));
    return sum;
}

void sp_model_note_misuse(const sp_model *model)
{
    char text[NOTE_LENGTH] = "";
    int used = 0;
    for (size_t i = 0; i < SP_ARRAY_LENGTH(kinds); i++) {
        uint64_t times = count(model, kinds[i].key);
        if (times)
            used += snprintf(text + used, NOTE_LENGTH - (size_t)used, "%s%s%" PRIu64 " time%s%s",
                             used ? "; " : "", kinds[i].before, times, times == 1 ? "" : "s",
                             kinds[i].after);
    }
    if (used)
        sp_tool_note("calls of the program that make no sense: %s; `spanprof stats --explain` says "
                     "what to change",
                     text);
}
