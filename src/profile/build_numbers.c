/* SPDX-License-Identifier: Apache-2.0 */
/* The attributes of a window itself: numbers, the engine, and the threads that have the most of the
 * unattributed time. */
#include <string.h>

#include "core/utf8.h"
#include "profile/build.h"

enum { WINDOW_ATTRIBUTES_MAX = 24 + 5 + 3 + 1 };

typedef struct attribute_list {
    uint32_t indices[WINDOW_ATTRIBUTES_MAX];
    uint32_t count;
} attribute_list;

static void add_int(sp_build *b, attribute_list *list, const char *key, const char *unit,
                    uint64_t value)
{
    list->indices[list->count++] =
        sp_dictionary_int_attribute(&b->dictionary, key, unit, sp_saturating_sum(0, value));
}

static void add_string(sp_build *b, attribute_list *list, const char *key, const char *value)
{
    if (value && *value)
        list->indices[list->count++] = sp_dictionary_string_attribute(&b->dictionary, key, value);
}

typedef struct number_attribute {
    const char *key, *unit;
    uint64_t value;
    bool only_when_set;
} number_attribute;

static void add_numbers(sp_build *b, attribute_list *list, const number_attribute *numbers,
                        size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (numbers[i].value || !numbers[i].only_when_set)
            add_int(b, list, numbers[i].key, numbers[i].unit, numbers[i].value);
}

/* Which spans the links of the profile's samples name. */
static void add_scope(sp_build *b, attribute_list *list)
{
    static const char *const names[] = {[SPANPROF_LINK_SCOPE_INNERMOST] = "innermost",
                                        [SPANPROF_LINK_SCOPE_ROOT] = "root",
                                        [SPANPROF_LINK_SCOPE_NONE] = "none"};
    add_string(b, list, "spanprof.link_scope", names[b->scope]);
}

static void add_samples(sp_build *b, attribute_list *list, const sp_window_samples *samples)
{
    const uint64_t *ends = samples->stacks_by_end;
    const number_attribute numbers[] = {
        {"spanprof.samples.linked", "", samples->linked, false},
        {"spanprof.samples.none", "", samples->none, false},
        {"spanprof.samples.unknown", "", samples->unknown, false},
        {"spanprof.samples.boundary", "", samples->boundary, false},
        {"spanprof.stacks.complete", "", ends[SP_WALK_COMPLETE], false},
        {"spanprof.stacks.truncated", "", ends[SP_WALK_TRUNCATED], true},
        {"spanprof.stacks.no_table", "", ends[SP_WALK_NO_TABLE], true},
        {"spanprof.stacks.unreadable_stack", "", ends[SP_WALK_BAD_MEMORY], true},
        {"spanprof.stacks.no_progress", "", ends[SP_WALK_NO_PROGRESS], true},
        {"spanprof.stacks.no_register", "", ends[SP_WALK_NO_REGISTER], true},
        {"spanprof.stacks.unloaded", "", ends[SP_WALK_UNLOADED], true},
        {"spanprof.stacks.woke", "", ends[SP_WALK_WOKE], true},
        {"spanprof.stacks.by_frame_pointer", "", samples->stacks_by_frame_pointer, true},
        {"spanprof.samples.folded", "", samples->folded, true},
    };
    add_numbers(b, list, numbers, SP_ARRAY_LENGTH(numbers));
}

static void add_unattributed_threads(sp_build *b, attribute_list *list)
{
    sp_profile_unattributed unattributed_threads[SP_WINDOW_UNATTRIBUTED_MAX] = {0};
    uint32_t count = b->window->unattributed_count;
    if (!b->options->thread_attributes || count == 0)
        return;
    for (uint32_t i = 0; i < count; i++) {
        const sp_window_unattributed *from = &b->window->unattributed_threads[i];
        unattributed_threads[i].unattributed_ns = sp_saturating_sum(0, from->unattributed_ns);
        unattributed_threads[i].tid = from->thread.tid;
        sp_utf8_repair(unattributed_threads[i].name, from->thread.name,
                       strnlen(from->thread.name, sizeof from->thread.name));
    }
    list->indices[list->count++] = sp_dictionary_unattributed_threads_attribute(
        &b->dictionary, "spanprof.unattributed_ns.threads", unattributed_threads, count);
}

/* Add the counts of misuse, in the first profile of the window only, because they belong to no
 * type. */
static void add_misuse(sp_build *b, attribute_list *list)
{
    const sp_window_misuse *misuse = &b->window->misuse;
    const number_attribute numbers[] = {
        {"spanprof.misuse.dead_span", "", misuse->dead_span, true},
        {"spanprof.misuse.dead_scope", "", misuse->dead_scope, true},
        {"spanprof.misuse.foreign_scope", "", misuse->foreign_scope, true},
        {"spanprof.misuse.ended_parent", "", misuse->ended_parent, true},
        {"spanprof.misuse.fiber", "", misuse->fiber, true},
    };
    if (b->data->profile_count == 1)
        add_numbers(b, list, numbers, SP_ARRAY_LENGTH(numbers));
}

uint32_t sp_build_cpu_attributes(sp_build *b)
{
    const sp_window *w = b->window;
    const number_attribute numbers[] = {
        {"spanprof.dropped.ring_full", "", w->dropped_ring_full, true},
        {"spanprof.dropped.memory", "", w->dropped_memory, true},
        {"spanprof.dropped.small_stack", "", w->dropped_small_stack, true},
        {"spanprof.dropped.attributes", "", w->dropped_attributes, true},
        {"spanprof.dropped.timestamps", "", sp_build_dropped_times(w), true},
        {"spanprof.from_outside", "", w->from_outside, true},
    };
    attribute_list list = {.count = 0};
    add_string(b, &list, "spanprof.engine", w->engine);
    add_string(b, &list, "spanprof.engine.reason", w->engine_reason);
    add_int(b, &list, "spanprof.unattributed_ns", "ns", w->unattributed_ns);
    add_scope(b, &list);
    add_samples(b, &list, &w->cpu);
    add_numbers(b, &list, numbers, SP_ARRAY_LENGTH(numbers));
    add_misuse(b, &list);
    add_unattributed_threads(b, &list);
    return sp_dictionary_attributes(&b->dictionary, list.indices, list.count);
}

uint32_t sp_build_wall_attributes(sp_build *b)
{
    const sp_window *w = b->window;
    const number_attribute numbers[] = {
        {"spanprof.wall.visits", "", w->wall.count, false},
        {"spanprof.wall.unmoved", "", w->wall_unmoved, false},
        {"spanprof.wall.discarded", "", w->wall_discarded, false},
        {"spanprof.wall.frame_pointers.by_call", "", w->fp_by_call, true},
        {"spanprof.wall.frame_pointers.by_return", "", w->fp_by_return, true},
        {"spanprof.wall.frame_pointers.not_found", "", w->fp_not_found, true},
        {"spanprof.dropped.visits", "", w->dropped_visits, true},
        {"spanprof.from_outside", "", w->from_outside, true},
        {"spanprof.steal_ns", "ns", w->steal_ns, true},
    };
    attribute_list list = {.count = 0};
    add_string(b, &list, "spanprof.engine", w->engine);
    add_int(b, &list, "spanprof.unattributed_ns", "ns", w->unattributed_ns);
    add_scope(b, &list);
    add_samples(b, &list, &w->wall);
    add_numbers(b, &list, numbers, SP_ARRAY_LENGTH(numbers));
    add_misuse(b, &list);
    return sp_dictionary_attributes(&b->dictionary, list.indices, list.count);
}

static bool is_wait(uint32_t kind)
{
    return kind == SP_CALL_LOCK || kind == SP_CALL_CONDITION || kind == SP_CALL_SEMAPHORE;
}

uint32_t sp_build_call_attributes(sp_build *b, uint32_t kind)
{
    const sp_window *w = b->window;
    const number_attribute numbers[] = {
        {"spanprof.dropped.calls", "", w->dropped_calls, true},
        {"spanprof.dropped.live_blocks", "", kind == SP_CALL_HEAP ? w->dropped_live : 0, true},
        {"spanprof.lock_ns", "ns", is_wait(kind) ? w->lock_ns : 0, true},
        {"spanprof.dropped.locks", "", is_wait(kind) ? w->dropped_locks : 0, true},
    };
    attribute_list list = {.count = 0};
    add_scope(b, &list);
    add_samples(b, &list, &w->calls[kind]);
    add_numbers(b, &list, numbers, SP_ARRAY_LENGTH(numbers));
    add_misuse(b, &list);
    return sp_dictionary_attributes(&b->dictionary, list.indices, list.count);
}
