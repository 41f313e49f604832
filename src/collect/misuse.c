/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/misuse.h"

#include "context/thread.h"
#include "core/atomic.h"
#include "trace/provider.h"

void sp_misuse_begin(sp_window_misuse *seen)
{
    sp_tracer_counters spans;
    sp_tracer_counters_get(&spans);
    *seen = (sp_window_misuse){
        .dead_span = spans.misuse_dead_span,
        .dead_scope = sp_load_relaxed(&sp_thread_counts.misuse_dead_scope),
        .foreign_scope = sp_load_relaxed(&sp_thread_counts.misuse_foreign_scope),
        .ended_parent = sp_load_relaxed(&sp_thread_counts.misuse_ended_parent),
        .fiber = sp_load_relaxed(&sp_thread_counts.misuse_fiber),
    };
}

void sp_misuse_take(sp_window_misuse *seen, sp_window *window)
{
    sp_window_misuse before = *seen;
    sp_misuse_begin(seen);
    window->misuse = (sp_window_misuse){
        .dead_span = seen->dead_span - before.dead_span,
        .dead_scope = seen->dead_scope - before.dead_scope,
        .foreign_scope = seen->foreign_scope - before.foreign_scope,
        .ended_parent = seen->ended_parent - before.ended_parent,
        .fiber = seen->fiber - before.fiber,
    };
}
