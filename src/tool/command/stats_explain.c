/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/command/stats_explain.h"

#include <string.h>

#include "core/compiler.h"
#include "tool/text/escape.h"

typedef struct explanation {
    const char *group;
    /* NULL: for all names without their own text; it must be the last of its group */
    const char *name;
    const char *text;
} explanation;

static const explanation explanations[] = {
    {"head", NULL,
     "Good: nearly all links lead to a span in these files. When few do, the .traces file is "
     "missing, or the files are of different runs."},
    {"producers", NULL,
     "One for each service and instance whose profiles are in the files. Ask about one of them by "
     "giving only its files."},
    {"type", NULL,
     "A profile is one window of recording; a sample is one stack of one thread. Behind them "
     "stands what one sample stands for, then the engine that made the threads tick, and why this "
     "one."},
    {"links", "linked",
     "Samples that belong to a span, in periods (CPU time), visits (wall time) or estimated "
     "calls (own values). The more the better."},
    {"links", "linked_estimated",
     "Samples that belong to a span, then how many objects or waits they stand for, and the share "
     "of these. The more the better. Where the number of samples is not known, the line has -."},
    {"links", "none",
     "Samples under no span, or under one that is not sampled. Many: start-up and background work, "
     "or work that moved to another thread without its context (docs/design/carriers.md)."},
    {"links", "unknown",
     "Samples whose span is not certain. A few are normal. Many: scopes are detached on "
     "the wrong thread, or fibers are switched without spanprof_fiber_switch."},
    {"links", "unknown_from_outside",
     "Samples whose span is not certain: `run --attach` looks after the tick, and the thread had "
     "gone on. A share of these is normal (docs/design/attach.md)."},
    {"links", "boundary",
     "Samples so near to a switch of spans that the clock cannot decide. 0 unless another profiler "
     "took the samples."},
    {"unattributed", "",
     "CPU time that threads used and no sample stands for. Good: a few percent of the CPU time. "
     "Much: try SPANPROF_ENGINE=perf, and see whether a thread blocks SIGPROF."},
    {"unattributed", NULL,
     "Part of the unattributed time: that of this thread, as NAME/TID. Always the same thread: it "
     "may block SIGPROF."},
    {"visits", "visits",
     "How often the wall profiler looked at a thread that waited. Each visit stands for one period "
     "of waiting."},
    {"visits", "unmoved",
     "Part of the visits: the thread had not run since the last one, so its stack was not read "
     "again. More means less cost."},
    {"visits", "discarded",
     "Attempts that were thrown away because the thread ran meanwhile. Many are normal for threads "
     "that wait shortly; no time is lost by them."},
    {"visits", "frame_pointers.by_call",
     "Visits where the caller of a function without frame was found by its call instruction. "
     "Nothing to do."},
    {"visits", "frame_pointers.by_return",
     "Visits where the caller of a function without frame was found by its return address. Nothing "
     "to do."},
    {"visits", "frame_pointers.not_found",
     "Visits where the caller of a function without frame was not found: one frame is missing "
     "there. Nothing to do."},
    {"visits", NULL, "A count that this version of the command does not know."},
    {"time", "",
     "Wall time of all threads by what they did. Below: time, its share, the class. Several "
     "threads at once add up to more than the clock shows."},
    {"time", "cpu", "The thread ran on a core. `spanprof flame` shows in which functions."},
    {"time", "runnable",
     "The thread could run and waited for a core. Much: the machine, or the container's limit, has "
     "too few cores."},
    {"time", "lock",
     "The thread waited for a lock. `spanprof spans --holders` shows "
     "who held it, when SPANPROF_PROFILES has lock."},
    {"time", "condition",
     "The thread waited for a condition variable, a future or a change of an atomic value. Mostly "
     "idle workers: look at the samples with a span, by --span or --name."},
    {"time", "semaphore", "The thread waited for a semaphore. Mostly idle workers, too."},
    {"time", "join",
     "The thread waited until other threads ended, or came to the same barrier. What these did is "
     "in their own samples."},
    {"time", "disk", "The thread waited for a disk, or for a page of memory to be read from one."},
    {"time", "network", "The thread waited for a socket; the leaf frame shows the system call."},
    {"time", "sleep", "The thread slept for a time that it chose."},
    {"time", "other", "The thread waited for something else: a pipe, a child, a signal."},
    {"time", "steal",
     "Part of the time on cpu: the host of the virtual machine ran somebody else. Much: ask for a "
     "less busy host."},
    {"descriptors", "",
     "Waiting by the kind of file descriptor. Below: time, its share of all wall time, the kind."},
    {"descriptors", NULL, "Time in which threads waited for a descriptor of this kind."},
    {"stacks", "",
     "How the stacks ended. Below: samples (of memory and locks the objects or waits that they "
     "stand for), their share, the end. Good: nearly all are complete."},
    {"stacks", "complete", "The stack reaches the start of the thread."},
    {"stacks", "truncated",
     "The stack was deeper than SPANPROF_MAX_DEPTH, and frames are missing. Many: raise it."},
    {"stacks", "no_table",
     "The stack reached code without unwind tables and without usable frame pointers. Many: build "
     "that code with -fasynchronous-unwind-tables or -fno-omit-frame-pointer."},
    {"stacks", "unreadable_stack",
     "The stack led to memory that cannot be read. Many: some code has wrong unwind tables."},
    {"stacks", "no_progress",
     "The stack led to a frame that is not above the one before. Many: some code has wrong unwind "
     "tables."},
    {"stacks", "no_register", "The stack needed a register whose value is not known. Rare."},
    {"stacks", "unloaded",
     "An address is in a library that was unloaded meanwhile. Only programs that use dlclose have "
     "these."},
    {"stacks", "woke",
     "The thread woke up during the visit, so its stack was not read. Its time counts all the "
     "same."},
    {"stacks", "folded",
     "The window had more distinct samples than it keeps, so these lost frames, then links. "
     "Weights stay exact. Many: raise SPANPROF_MAX_SAMPLES."},
    {"stacks", "by_frame_pointer",
     "Stacks with frames that were found by frame pointer, counted beside the ends above. Nothing "
     "to do."},
    {"stacks", NULL, "An end that this version of the command does not know."},
    {"dropped", "ring_full",
     "A thread ticked faster than the collector could read, often because the collector had no "
     "core. Lower SPANPROF_CPU_HZ."},
    {"dropped", "memory", "Samples that were lost because memory was short."},
    {"dropped", "small_stack",
     "Ticks that came on a signal stack without room. Enlarge the alternate stack (sigaltstack)."},
    {"dropped", "attributes",
     "Samples whose attributes were left out: a window had too many different sets. Use fewer "
     "values."},
    {"dropped", "timestamps",
     "Times of samples that were left out: a window had more than it keeps. Shorten "
     "SPANPROF_WINDOW_MS, or lower SPANPROF_CPU_HZ."},
    {"dropped", "visits", "Visits that had no room. Lower SPANPROF_WALL_HZ."},
    {"dropped", "calls",
     "Sampled calls that had no room, so the values are too small. Raise SPANPROF_ALLOC_BYTES or "
     "SPANPROF_LOCK_NS, so that fewer are sampled."},
    {"dropped", "live_blocks",
     "Sampled blocks that are not followed until they are freed. Raise SPANPROF_HEAP_SAMPLES."},
    {"dropped", "locks",
     "Waits that do not tell their lock: the window had too many locks, or was full. Their time "
     "counts all the same. Shorten SPANPROF_WINDOW_MS."},
    {"dropped", NULL, "A loss that this version of the command does not know."},
    {"misuse", "",
     "Calls of the SDK that are wrong. The program goes on. Some give samples the wrong span or "
     "none. Good: none."},
    {"misuse", "ended_parent",
     "Later work counts for that span, which is wrong. Detach each scope before its span ends, "
     "also on paths of "
     "errors."},
    {"misuse", "dead_span",
     "Such a call does nothing. End each span once, and set its attributes before."},
    {"misuse", "dead_scope",
     "Such a call does nothing. Detach each scope once, in the reverse order of attaching."},
    {"misuse", "foreign_scope",
     "Samples have no span until the next attach or detach of the scope's thread. Detach a scope "
     "on "
     "the thread that attached it. Give another thread the context instead "
     "(docs/design/carriers.md)."},
    {"misuse", "fiber",
     "Samples have no span. Run a fiber on one thread at a time, and do not use it after its end."},
    {"misuse", NULL, "A mistake that this version of the command does not know."},
    {"switches", NULL,
     "A file of the time recorder: which span each thread had, at each moment. Good: 0 lost, and "
     "nearly all of the time known. When some are lost, the collector had no core."},
};
_Static_assert(SP_ARRAY_LENGTH(explanations) <= 128, "sp_stats_explain.told has a bit for each");

static const explanation *find(const char *group, const char *name)
{
    for (size_t i = 0; i < SP_ARRAY_LENGTH(explanations); i++) {
        const explanation *at = &explanations[i];
        if (strcmp(at->group, group) == 0 && (!at->name || strcmp(at->name, name) == 0))
            return at;
    }
    return NULL;
}

/* Add TEXT as separate lines that fit into a narrow terminal. */
static void add_lines(sp_buffer *out, const char *text)
{
    enum { COLUMNS = 74 };
    sp_buffer lines = SP_BUFFER_INIT(4096);
    char *rest = NULL;
    sp_text_wrap(&lines, text, COLUMNS);
    sp_buffer_add_char(&lines, 0);
    for (char *line = lines.data ? strtok_r((char *)lines.data, "\n", &rest) : NULL; line;
         line = strtok_r(NULL, "\n", &rest))
        sp_buffer_printf(out, "    # %s\n", line);
    sp_buffer_deinit(&lines);
}

void sp_stats_explain_line(sp_stats_explain *explain, sp_buffer *out, const char *group,
                           const char *name)
{
    const explanation *found = explain->is_on ? find(group, name) : NULL;
    if (!found)
        return;
    size_t number = (size_t)(found - explanations);
    uint64_t bit = (uint64_t)1 << (number % 64);
    if (explain->told[number / 64] & bit)
        return;
    explain->told[number / 64] |= bit;
    add_lines(out, found->text);
}
