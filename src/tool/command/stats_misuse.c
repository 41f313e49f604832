/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/command/stats_misuse.h"

#include <string.h>

#include "core/compiler.h"
#include "tool/command/stats_wall.h"
#include "tool/text/escape.h"

#define MISUSE_PREFIX "spanprof.misuse."

void sp_misuse_stats_attribute(json_t *misuse, const char *key, int64_t number)
{
    if (strncmp(key, MISUSE_PREFIX, strlen(MISUSE_PREFIX)) == 0)
        sp_stats_add(misuse, key + strlen(MISUSE_PREFIX), number);
}

/* Returns "" for an unknown kind, which a later version counts. */
static const char *meaning_of(const char *kind)
{
    static const struct {
        const char *kind, *meaning;
    } all[] = {
        {"ended_parent",
         "times a thread went on under a span that had ended: its scope was not detached"},
        {"dead_span", "calls had a span that had ended, or none: ended twice, or set too late"},
        {"dead_scope", "scopes were detached twice, or never attached"},
        {"foreign_scope", "scopes were detached on another thread than the one that attached"},
        {"fiber", "fibers were used after their end, or by two threads"},
    };
    for (size_t i = 0; i < SP_ARRAY_LENGTH(all); i++)
        if (strcmp(all[i].kind, kind) == 0)
            return all[i].meaning;
    return "";
}

void sp_misuse_stats_text(sp_buffer *out, json_t *misuse, sp_stats_explain *explain)
{
    const char *kind;
    json_t *count;
    if (!json_object_size(misuse))
        return;
    sp_buffer_add_string(out, "\ncalls that make no sense (docs/numbers.md)\n");
    sp_stats_explain_line(explain, out, "misuse", "");
    json_object_foreach(misuse, kind, count)
    {
        sp_buffer_printf(out, "  %12" JSON_INTEGER_FORMAT "  ", json_integer_value(count));
        sp_escape_terminal(out, kind);
        sp_buffer_printf(out, "%s%s\n", *meaning_of(kind) ? ": " : "", meaning_of(kind));
        sp_stats_explain_line(explain, out, "misuse", kind);
    }
}
