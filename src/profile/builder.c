/* SPDX-License-Identifier: Apache-2.0 */
/* From a window to profiles: for each sample that weighs something, its stack with names, the link
 * that the scope asks for, and its thread become entries of the dictionary; samples that are then
 * equal are added up. */
#include "profile/builder.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "context/ring_sig.h"
#include "context/sample_keys.h"
#include "core/hex.h"
#include "core/utf8.h"
#include "profile/dictionary.h"
#include "profile/profile_part.h"
#include "context/ring_sig.h"
#include "context/sample_keys.h"
#include "profile/sample_order.h"
#include "profile/stack_text.h"
#include "symbol/syscall_names.h"

/* The samples of one profile while it is made. */
typedef struct profile_samples {
    sp_projected_sample *list; /* room for all samples of a profile */
    uint32_t *order;           /* of these */
    uint32_t
        *places; /* what a sample of the window was added to: its number in the profile plus one */
    uint32_t count;
} profile_samples;

typedef struct build {
    sp_profile_data *data;
    const sp_window *window;
    sp_symbolizer *symbolizer;
    const sp_build_options *options;
    sp_dictionary dictionary;
    /* What a number of the window became, plus one; 0: not yet looked at. Shared by all profiles.
     */
    uint32_t *locations, *stacks, *threads;
    uint32_t *links;         /* the same, of one profile, because their scopes differ */
    uint32_t *stack_scratch; /* room for the longest stack with its markers */
    profile_samples samples;
    bool by_count;     /* the value of a sample is its count, not its weight */
    uint64_t steal_ns; /* in the wall profile, beside the ticks' CPU time */
} build;

/* Why frames are missing, in the place where they are: at the root, or between both ends of a stack
 * that was too deep. */
static const char *marker_name(uint32_t end)
{
    switch (end) {
    case SP_WALK_TRUNCATED:
        return "[truncated]";
    case SP_WALK_NO_TABLE:
        return "[unwind: no table]";
    case SP_WALK_BAD_MEMORY:
        return "[unwind: unreadable stack]";
    case SP_WALK_NO_PROGRESS:
        return "[unwind: no progress]";
    case SP_WALK_NO_REGISTER:
        return "[unwind: no register]";
    case SP_WALK_UNLOADED:
        return "[unwind: library unloaded]";
    case SP_WALK_WOKE:
        return "[unwind: thread woke]";
    case SP_WALK_FOLDED:
        return "[folded]";
    default:
        return "[unwind: incomplete]";
    }
}

/* A marker that stands among the addresses. What a thread waits for is the leaf: the system call,
 * as the kernel's headers name it. */
static uint32_t build_marker(build *b, uint64_t address)
{
    char unnamed[40];
    int64_t number = (int32_t)(uint32_t)address;
    if (address == SP_PC_SIGNAL_HANDLER)
        return sp_dictionary_marker(&b->dictionary, "[signal handler called]");
    if (address == SP_PC_RUNNABLE)
        return sp_dictionary_marker(&b->dictionary, "[runnable]");
    if (number == -1)
        return sp_dictionary_marker(&b->dictionary, "[kernel]");
    const char *name = sp_syscall_name(number);
    if (!name)
        snprintf(unnamed, sizeof unnamed, "[system call %d]", (int)number);
    return sp_dictionary_marker(&b->dictionary, name ? name : unnamed);
}

/* A frame for which the symbolizer finds no memory, or whose module's path is longer than any it
 * takes, costs its own name only. */
static uint32_t build_unnamed(build *b, const sp_window_location *location)
{
    char name[40];
    snprintf(name, sizeof name, "[unknown]+0x%" PRIx64, location->address);
    const sp_frame frame = {.name = name, .system_name = "", .file = "", .unresolved = true};
    return sp_dictionary_location(&b->dictionary, location->module, location->address, &frame, 1);
}

static uint32_t build_code(build *b, const sp_window_location *location)
{
    const sp_frame *frames;
    uint32_t count =
        sp_symbolizer_frames(b->symbolizer, location->module, location->address, &frames);
    if (!count)
        return build_unnamed(b, location);
    return sp_dictionary_location(&b->dictionary, location->module, location->address, frames,
                                  count);
}

static uint32_t build_location(build *b, uint32_t number)
{
    if (b->locations[number])
        return b->locations[number] - 1;
    const sp_window_location *location = sp_intern_key(&b->window->locations, number);
    bool is_marker = !location->module && sp_pc_is_marker(location->address);
    uint32_t index = is_marker ? build_marker(b, location->address) : build_code(b, location);
    b->locations[number] = index + 1;
    return index;
}

static uint32_t build_stack(build *b, uint32_t number)
{
    if (b->stacks[number])
        return b->stacks[number] - 1;
    const uint32_t *key = sp_intern_key(&b->window->stacks, number);
    uint32_t count = b->window->stacks.entries[number].length / sizeof *key - 1;
    uint32_t end = key[count];
    for (uint32_t i = 0; i < count; i++)
        b->stack_scratch[i] =
            key[i] == SP_WINDOW_GAP
                ? sp_dictionary_marker(&b->dictionary, marker_name(SP_WALK_TRUNCATED))
                : build_location(b, key[i]);
    if (end != SP_WALK_COMPLETE)
        b->stack_scratch[count++] = sp_dictionary_marker(&b->dictionary, marker_name(end));
    uint32_t index = sp_dictionary_stack(&b->dictionary, b->stack_scratch, count);
    b->stacks[number] = index + 1;
    return index;
}

enum { CONTEXT_ATTRIBUTES_MAX = 8, SAMPLE_ATTRIBUTES_MAX = 2 + 3 + CONTEXT_ATTRIBUTES_MAX };

static uint32_t add_thread(build *b, uint32_t number, uint32_t *attributes)
{
    const sp_window_thread *thread = sp_intern_key(&b->window->threads, number);
    char name[sizeof thread->name + 1] = {0};
    uint32_t count = 0;
    if (!thread->tid) /* folded */
        return 0;
    memcpy(name, thread->name, sizeof thread->name);
    attributes[count++] = sp_dictionary_int_attribute(&b->dictionary, "thread.id", "", thread->tid);
    if (name[0])
        attributes[count++] = sp_dictionary_string_attribute(&b->dictionary, "thread.name", name);
    return count;
}

static uint32_t add_live(build *b, uint32_t live, uint32_t *attributes)
{
    static const char *const ages[SP_LIVE_AGES] = {"0s", "10s", "1m", "10m", "1h"};
    static const char *const ends[] = {"", "span", "request"};
    uint32_t count = 0, end = live >> 8 & 3;
    attributes[count++] =
        sp_dictionary_string_attribute(&b->dictionary, "spanprof.live.age", ages[live & 0xff]);
    if (end)
        attributes[count++] =
            sp_dictionary_string_attribute(&b->dictionary, "spanprof.live.outlived", ends[end]);
    return count;
}

static uint32_t add_holder_span(build *b, const sp_window_link *link, uint32_t *attributes)
{
    char trace[2 * sizeof link->trace_id + 1], span[2 * sizeof link->span_id + 1];
    sp_hex_encode(trace, link->trace_id, sizeof link->trace_id);
    sp_hex_encode(span, link->span_id, sizeof link->span_id);
    attributes[0] =
        sp_dictionary_string_attribute(&b->dictionary, "spanprof.holder.trace_id", trace);
    attributes[1] = sp_dictionary_string_attribute(&b->dictionary, "spanprof.holder.span_id", span);
    return 2;
}

static uint32_t add_holder_stack(build *b, uint32_t stack, uint32_t *attributes)
{
    sp_buffer text = SP_BUFFER_INIT(SP_STACK_TEXT_MAX);
    sp_stack_text(&text, b->window, b->symbolizer, stack);
    bool is_told = text.length > 0;
    if (is_told)
        attributes[0] = sp_dictionary_string_attribute(&b->dictionary, "spanprof.holder.stack",
                                                       (const char *)text.data);
    b->dictionary.failed |= text.failed;
    sp_buffer_deinit(&text);
    return is_told ? 1 : 0;
}

static uint32_t add_holder(build *b, uint32_t number, uint32_t *attributes)
{
    const sp_window_holder *holder = sp_intern_key(&b->window->holders, number);
    uint32_t count = 0;
    if (holder->link)
        count = add_holder_span(b, sp_intern_key(&b->window->links, holder->link), attributes);
    if (holder->stack)
        count += add_holder_stack(b, holder->stack - 1, attributes + count);
    return count;
}

static uint32_t add_wait(build *b, uint32_t number, uint32_t *attributes)
{
    uint32_t count = 0;
    if (number & SP_WINDOW_LIVE)
        return add_live(b, number, attributes);
    if (number & SP_WINDOW_HOLDER)
        return add_holder(b, sp_window_holder_number(number), attributes);
    sp_wait wait = sp_window_wait_of(number);
    attributes[count++] = sp_dictionary_string_attribute(&b->dictionary, "spanprof.wait",
                                                         sp_wait_class_name(wait.wait_class));
    if (wait.descriptor != SP_DESCRIPTOR_NONE)
        attributes[count++] = sp_dictionary_string_attribute(
            &b->dictionary, "spanprof.wait.descriptor", sp_wait_descriptor_name(wait.descriptor));
    return count;
}

/* What the context under which it was taken gave it. Values hold no NUL, for they were strings. */
static uint32_t add_context(build *b, uint32_t number, uint32_t *attributes)
{
    const uint8_t *data = sp_intern_key(&b->window->attribute_sets, number);
    uint32_t length = b->window->attribute_sets.entries[number].length, count = 0;
    for (uint32_t at = 0; at < length && count < CONTEXT_ATTRIBUTES_MAX; at += 2u + data[at + 1]) {
        char value[256];
        memcpy(value, data + at + 2, data[at + 1]);
        value[data[at + 1]] = 0;
        attributes[count++] =
            sp_dictionary_string_attribute(&b->dictionary, sp_sample_key(data[at]), value);
    }
    return count;
}

/* The attributes that tell a sample's thread, what it waited for, and whose it was, as the number
 * of a list. */
static uint32_t build_attributes(build *b, const sp_window_key *from)
{
    uint32_t attributes[SAMPLE_ATTRIBUTES_MAX], count = 0;
    bool tells_wait = b->options->wait_attributes && from->wait != SP_WAIT_CPU;
    bool tells_more = tells_wait || from->attributes;
    if (b->options->thread_attributes && !tells_more && b->threads[from->thread])
        return b->threads[from->thread] - 1;
    if (b->options->thread_attributes)
        count += add_thread(b, from->thread, attributes);
    if (tells_wait)
        count += add_wait(b, from->wait, attributes + count);
    if (from->attributes)
        count += add_context(b, from->attributes - 1, attributes + count);
    if (count == 0)
        return 0;
    uint32_t list = sp_dictionary_attributes(&b->dictionary, attributes, count);
    if (!tells_more)
        b->threads[from->thread] = list + 1;
    return list;
}

static bool all_zero(const uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (bytes[i])
            return false;
    return true;
}

static uint32_t make_link(build *b, uint32_t number, spanprof_link_scope scope)
{
    const sp_window_link *link = sp_intern_key(&b->window->links, number);
    const uint8_t *span = link->span_id;
    if (scope == SPANPROF_LINK_SCOPE_ROOT &&
        !all_zero(link->root_span_id, sizeof link->root_span_id))
        span = link->root_span_id;
    /* half an id is none: what it names cannot be found */
    if (scope == SPANPROF_LINK_SCOPE_NONE || all_zero(link->trace_id, sizeof link->trace_id) ||
        all_zero(span, sizeof link->span_id))
        return 0;
    return sp_dictionary_link(&b->dictionary, link->trace_id, span);
}

static uint32_t build_link(build *b, uint32_t number, spanprof_link_scope scope)
{
    if (!b->links[number])
        b->links[number] = make_link(b, number, scope) + 1;
    return b->links[number] - 1;
}

static int64_t saturating_sum(int64_t a, uint64_t b)
{
    int64_t sum;
    if (b > INT64_MAX || __builtin_add_overflow(a, (int64_t)b, &sum))
        return INT64_MAX;
    return sum;
}

static uint64_t saturating_product(uint64_t a, uint64_t b)
{
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

/* Sample NUMBER with UNIT for each of its weights. */
static void project_sample(build *b, const sp_window_samples *samples, uint32_t number,
                           spanprof_link_scope scope, uint64_t unit)
{
    const sp_window_key *from = sp_intern_key(&samples->keys, number);
    const sp_window_sample *sums = &samples->values[number];
    uint64_t value = saturating_product(b->by_count ? sums->count : sums->weight, unit);
    if (!value) /* backends drop it, or fail on it */
        return;
    b->samples.list[b->samples.count++] = (sp_projected_sample){
        .stack = build_stack(b, from->stack),
        .link = build_link(b, from->link, scope),
        .attributes = build_attributes(b, from),
        .from = number,
        .value = saturating_sum(0, value),
    };
}

static void begin_profile(build *b)
{
    b->samples.count = 0;
    memset(b->links, 0, b->window->links.count * sizeof *b->links);
}

/* Each sample in its order becomes one of the profile, or is added to the one before. */
static void add_up(build *b, sp_profile *profile)
{
    const sp_projected_sample *last = NULL;
    uint32_t count = 0;
    for (uint32_t i = 0; i < b->samples.count; i++) {
        const sp_projected_sample *sample = &b->samples.list[b->samples.order[i]];
        if (!last || !sp_sample_is_same(last, sample))
            profile->samples[count++] =
                (sp_profile_sample){.stack_index = sample->stack,
                                    .link_index = sample->link,
                                    .attributes = {.offset = sample->attributes}};
        int64_t *sum = &profile->samples[count - 1].value;
        *sum = saturating_sum(*sum, (uint64_t)sample->value);
        b->samples.places[sample->from] = count;
        last = sample;
    }
    profile->sample_count = count;
}

/* attributes.offset is the number of a list until the dictionary is finished. */
static void write_samples(build *b, sp_profile *profile)
{
    uint32_t count = b->samples.count;
    profile->samples = sp_arena_array(&b->data->memory, count, sizeof *profile->samples);
    if (!sp_sample_order(b->samples.list, count, b->samples.order))
        b->dictionary.failed = true;
    else if (profile->samples)
        add_up(b, profile);
}

/* What the window says of itself: numbers, the engine, and the threads that have the most of the
 * unattributed time. */
enum {
    WINDOW_ATTRIBUTES_MAX = 23 + 5 + 2 + 1,
    PROFILES_MAX = 2 * (2 + 2 * SP_CALL_VALUES + SP_VALUE_TYPES_MAX)
};

typedef struct attribute_list {
    uint32_t indices[WINDOW_ATTRIBUTES_MAX];
    uint32_t count;
} attribute_list;

static void add_int(build *b, attribute_list *list, const char *key, const char *unit,
                    uint64_t value)
{
    list->indices[list->count++] =
        sp_dictionary_int_attribute(&b->dictionary, key, unit, saturating_sum(0, value));
}

static void add_string(build *b, attribute_list *list, const char *key, const char *value)
{
    if (value && *value)
        list->indices[list->count++] = sp_dictionary_string_attribute(&b->dictionary, key, value);
}

static uint64_t sum_of_weights(const sp_window_samples *samples)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < samples->keys.count; i++)
        sum += samples->values[i].weight;
    return sum;
}

/* Whether the time of every period of CPU time is known. */
static bool has_times(const sp_window *window)
{
    const sp_window_times *times = &window->cpu.times;
    return times->periods > 0 && times->periods == sum_of_weights(&window->cpu);
}

/* How many periods have no time though some were recorded: then all go without, because samples of
 * a profile have one shape. */
static uint64_t dropped_times(const sp_window *window)
{
    const sp_window_times *times = &window->cpu.times;
    bool recorded = times->periods > 0 || times->lost > 0;
    return recorded && !has_times(window) ? sum_of_weights(&window->cpu) : 0;
}

typedef struct number_attribute {
    const char *key, *unit;
    uint64_t value;
    bool only_when_set;
} number_attribute;

static void add_numbers(build *b, attribute_list *list, const number_attribute *numbers,
                        size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (numbers[i].value || !numbers[i].only_when_set)
            add_int(b, list, numbers[i].key, numbers[i].unit, numbers[i].value);
}

static void add_samples(build *b, attribute_list *list, const sp_window_samples *samples)
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

static void add_unattributed_threads(build *b, attribute_list *list)
{
    sp_profile_unattributed unattributed_threads[SP_WINDOW_UNATTRIBUTED_MAX] = {0};
    uint32_t count = b->window->unattributed_count;
    if (!b->options->thread_attributes || count == 0)
        return;
    for (uint32_t i = 0; i < count; i++) {
        const sp_window_unattributed *from = &b->window->unattributed_threads[i];
        unattributed_threads[i].unattributed_ns = saturating_sum(0, from->unattributed_ns);
        unattributed_threads[i].tid = from->thread.tid;
        sp_utf8_repair(unattributed_threads[i].name, from->thread.name,
                       strnlen(from->thread.name, sizeof from->thread.name));
    }
    list->indices[list->count++] = sp_dictionary_unattributed_threads_attribute(
        &b->dictionary, "spanprof.unattributed_ns.threads", unattributed_threads, count);
}

/* In the first profile of the window only: it belongs to no type. */
static void add_misuse(build *b, attribute_list *list)
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

static uint32_t build_cpu_attributes(build *b)
{
    const sp_window *w = b->window;
    const number_attribute numbers[] = {
        {"spanprof.dropped.ring_full", "", w->dropped_ring_full, true},
        {"spanprof.dropped.memory", "", w->dropped_memory, true},
        {"spanprof.dropped.small_stack", "", w->dropped_small_stack, true},
        {"spanprof.dropped.attributes", "", w->dropped_attributes, true},
        {"spanprof.dropped.timestamps", "", dropped_times(w), true},
    };
    attribute_list list = {.count = 0};
    add_string(b, &list, "spanprof.engine", w->engine);
    add_string(b, &list, "spanprof.engine.reason", w->engine_reason);
    add_int(b, &list, "spanprof.unattributed_ns", "ns", w->unattributed_ns);
    add_samples(b, &list, &w->cpu);
    add_numbers(b, &list, numbers, SP_ARRAY_LENGTH(numbers));
    add_misuse(b, &list);
    add_unattributed_threads(b, &list);
    return sp_dictionary_attributes(&b->dictionary, list.indices, list.count);
}

static uint32_t build_wall_attributes(build *b)
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
        {"spanprof.steal_ns", "ns", b->steal_ns, true},
    };
    attribute_list list = {.count = 0};
    add_string(b, &list, "spanprof.engine", w->engine);
    add_int(b, &list, "spanprof.unattributed_ns", "ns", w->unattributed_ns);
    add_samples(b, &list, &w->wall);
    add_numbers(b, &list, numbers, SP_ARRAY_LENGTH(numbers));
    add_misuse(b, &list);
    return sp_dictionary_attributes(&b->dictionary, list.indices, list.count);
}

/* What was projected becomes a profile of type SAMPLE/UNIT over PERIOD/PERIOD_UNIT. */
static sp_profile *write_profile(build *b, const char *sample, const char *unit, const char *period,
                                 const char *period_unit)
{
    sp_profile *profile = &b->data->profiles[b->data->profile_count++];
    profile->sample_type_strindex = sp_dictionary_string(&b->dictionary, sample);
    profile->sample_unit_strindex = sp_dictionary_string(&b->dictionary, unit);
    profile->period_type_strindex = sp_dictionary_string(&b->dictionary, period);
    profile->period_unit_strindex = sp_dictionary_string(&b->dictionary, period_unit);
    profile->time_unix_nano = b->window->start_time_ns;
    profile->duration_nano = b->window->end_time_ns - b->window->start_time_ns;
    sp_profile_id_make(profile->profile_id);
    write_samples(b, profile);
    return profile;
}

static void project_all(build *b, const sp_window_samples *samples, spanprof_link_scope scope,
                        uint64_t unit)
{
    for (uint32_t i = 0; i < samples->keys.count; i++)
        project_sample(b, samples, i, scope, unit);
}

static int compare_times(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

/* Times within the window: a tick may have read its clock just before the window began, and
 * somebody may set the clock. */
static void add_times(build *b, sp_profile_sample *sample, const sp_window_sample *from)
{
    const sp_window *w = b->window;
    for (uint32_t at = from->first_time; at;) {
        const sp_window_time *time = &w->cpu.times.entries[at - 1];
        uint64_t inside =
            sp_max_u64(w->start_time_ns, sp_min_u64(time->time_ns, w->end_time_ns - 1));
        for (uint32_t i = 0; i < time->periods; i++)
            b->data->timestamps[sample->timestamps.offset + sample->timestamps.count++] = inside;
        at = at == from->last_time ? 0 : time->next;
    }
}

/* A time for each period, in order. The value of a sample of the CPU profile is the number of its
 * periods. */
static void write_times(build *b, sp_profile *profile)
{
    const sp_window_samples *cpu = &b->window->cpu;
    uint32_t at = 0;
    b->data->timestamps =
        sp_arena_array(&b->data->memory, cpu->times.periods, sizeof *b->data->timestamps);
    if (b->data->memory.failed || b->dictionary.failed)
        return;
    for (uint32_t i = 0; i < profile->sample_count; i++) {
        profile->samples[i].timestamps.offset = at;
        at += (uint32_t)profile->samples[i].value;
    }
    for (uint32_t i = 0; i < b->samples.count; i++) {
        uint32_t from = b->samples.list[i].from;
        add_times(b, &profile->samples[b->samples.places[from] - 1], &cpu->values[from]);
    }
    for (uint32_t i = 0; i < profile->sample_count; i++) {
        sp_index_list list = profile->samples[i].timestamps;
        qsort(b->data->timestamps + list.offset, list.count, sizeof(uint64_t), compare_times);
    }
}

/* CPU time the way backends know it: counts of samples, whose period is in nanoseconds. The same
 * once more, linked to the innermost spans, is of a type of its own so that nobody adds the two up;
 * only "cpu" makes a backend multiply counts by the period, so its values are nanoseconds. */
static void build_cpu_profile(build *b, spanprof_link_scope scope, bool is_second)
{
    const sp_window *w = b->window;
    begin_profile(b);
    project_all(b, &w->cpu, scope, is_second ? w->period_ns : 1);
    if (!b->samples.count)
        return;
    sp_profile *profile =
        is_second ? write_profile(b, "cpu_innermost", "nanoseconds", "cpu_innermost", "nanoseconds")
                  : write_profile(b, "samples", "count", "cpu", "nanoseconds");
    profile->period = saturating_sum(0, w->period_ns);
    profile->attributes.offset = build_cpu_attributes(b);
    if (has_times(w) && !is_second)
        write_times(b, profile);
}

/* A tick stands for a period of CPU time, and for what the host of a virtual machine took
 * meanwhile. */
static uint64_t wall_time_of_a_tick(const sp_window *w)
{
    return w->period_ns + (uint64_t)((double)w->period_ns * w->steal + 0.5);
}

/* Threads that have a span are visited, so their ticks belong to it, and those of others do not. */
static void project_cpu_into_wall(build *b, spanprof_link_scope scope)
{
    const sp_window *w = b->window;
    uint64_t unit = wall_time_of_a_tick(w);
    b->steal_ns = 0;
    for (uint32_t i = 0; i < w->cpu.keys.count; i++) {
        const sp_window_key *key = sp_intern_key(&w->cpu.keys, i);
        if (!w->wall_of_all && key->link == 0)
            continue;
        project_sample(b, &w->cpu, i, scope, unit);
        b->steal_ns += w->cpu.values[i].weight * (unit - w->period_ns);
    }
}

/* Wall time: what threads waited, and what they worked. */
static void build_wall_profile(build *b, spanprof_link_scope scope, bool is_second)
{
    const char *type = is_second ? "wall_innermost" : "wall";
    begin_profile(b);
    project_all(b, &b->window->wall, scope, 1);
    project_cpu_into_wall(b, scope);
    if (!b->samples.count)
        return;
    sp_profile *profile = write_profile(b, type, "nanoseconds", type, "nanoseconds");
    profile->period = saturating_sum(0, b->window->wall_period_ns);
    profile->attributes.offset = build_wall_attributes(b);
}

/* A profile of calls: what of them is its value, and over what. */
typedef struct call_profile {
    uint32_t kind;
    bool by_count;
    const char *name, *unit, *period_name, *period_unit;
    uint64_t period;
} call_profile;

static uint32_t build_call_attributes(build *b, uint32_t kind)
{
    const sp_window *w = b->window;
    const number_attribute numbers[] = {
        {"spanprof.dropped.calls", "", w->dropped_calls, true},
        {"spanprof.dropped.live_blocks", "", kind == SP_CALL_HEAP ? w->dropped_live : 0, true},
    };
    attribute_list list = {.count = 0};
    add_samples(b, &list, &w->calls[kind]);
    add_numbers(b, &list, numbers, SP_ARRAY_LENGTH(numbers));
    add_misuse(b, &list);
    return sp_dictionary_attributes(&b->dictionary, list.indices, list.count);
}

static void build_call_profile(build *b, const call_profile *type, spanprof_link_scope scope,
                               bool is_second)
{
    char name[80], period_name[80];
    const char *suffix = is_second ? "_innermost" : "";
    begin_profile(b);
    b->by_count = type->by_count;
    project_all(b, &b->window->calls[type->kind], scope, 1);
    b->by_count = false;
    if (!b->samples.count)
        return;
    snprintf(name, sizeof name, "%s%s", type->name, suffix);
    snprintf(period_name, sizeof period_name, "%s%s", type->period_name, suffix);
    sp_profile *profile = write_profile(b, name, type->unit, period_name, type->period_unit);
    profile->period = saturating_sum(0, type->period);
    profile->attributes.offset = build_call_attributes(b, type->kind);
}

/* Backends know these types by pprof's names. */
static void build_memory_profiles(build *b, spanprof_link_scope scope, bool is_second)
{
    static const call_profile types[] = {
        {SP_CALL_ALLOC, false, "alloc_space", "bytes", "space", "bytes", 0},
        {SP_CALL_ALLOC, true, "alloc_objects", "count", "space", "bytes", 0},
        {SP_CALL_HEAP, false, "inuse_space", "bytes", "space", "bytes", 0},
        {SP_CALL_HEAP, true, "inuse_objects", "count", "space", "bytes", 0},
    };
    for (size_t i = 0; i < SP_ARRAY_LENGTH(types); i++) {
        call_profile type = types[i];
        type.period = b->window->alloc_bytes;
        build_call_profile(b, &type, scope, is_second);
    }
}

/* Go's names for a profile of mutexes, which backends know. Waits for conditions and semaphores
 * have types of their own: those of idle workers would hide contention. */
static void build_lock_profiles(build *b, spanprof_link_scope scope, bool is_second)
{
    static const call_profile types[] = {
        {SP_CALL_LOCK, true, "contentions", "count", "contentions", "count", 1},
        {SP_CALL_LOCK, false, "delay", "nanoseconds", "contentions", "count", 1},
        {SP_CALL_CONDITION, true, "condition_waits", "count", "waits", "count", 1},
        {SP_CALL_CONDITION, false, "condition_delay", "nanoseconds", "waits", "count", 1},
        {SP_CALL_SEMAPHORE, true, "semaphore_waits", "count", "waits", "count", 1},
        {SP_CALL_SEMAPHORE, false, "semaphore_delay", "nanoseconds", "waits", "count", 1},
    };
    for (size_t i = 0; i < SP_ARRAY_LENGTH(types); i++)
        build_call_profile(b, &types[i], scope, is_second);
}

/* A backend refuses a profile without a period. */
static void build_value_profiles(build *b, spanprof_link_scope scope, bool is_second)
{
    for (uint32_t n = 0; n < SP_VALUE_TYPES_MAX; n++) {
        if (!b->window->calls[SP_CALL_VALUES + n].keys.count)
            continue;
        const sp_value_type *of = &b->window->value_types[n];
        const call_profile type = {SP_CALL_VALUES + n, false,    of->name, of->unit,
                                   of->name,           of->unit, 1};
        build_call_profile(b, &type, scope, is_second);
    }
}

/* With both scopes there are two profiles: of the roots, and of the innermost spans. */
static void build_profiles(build *b)
{
    bool both = b->options->link_scope == SPANPROF_LINK_SCOPE_BOTH;
    spanprof_link_scope first = both ? SPANPROF_LINK_SCOPE_ROOT : b->options->link_scope;
    for (int second = 0; second <= both; second++) {
        spanprof_link_scope scope = second ? SPANPROF_LINK_SCOPE_INNERMOST : first;
        if (!b->options->without_cpu)
            build_cpu_profile(b, scope, second);
        if (b->window->wall_period_ns)
            build_wall_profile(b, scope, second);
        build_memory_profiles(b, scope, second);
        build_lock_profiles(b, scope, second);
        build_value_profiles(b, scope, second);
    }
}

/* Numbers of attribute lists become places in data->indices. */
static void place_lists(build *b)
{
    for (uint32_t i = 0; i < b->data->profile_count; i++) {
        sp_profile *profile = &b->data->profiles[i];
        profile->attributes = sp_dictionary_list(&b->dictionary, profile->attributes.offset);
        for (uint32_t j = 0; j < profile->sample_count; j++) {
            sp_index_list *list = &profile->samples[j].attributes;
            *list = sp_dictionary_list(&b->dictionary, list->offset);
        }
    }
}

static uint32_t longest_stack(const sp_window *window)
{
    uint32_t longest = 0;
    for (uint32_t i = 0; i < window->stacks.count; i++) {
        uint32_t length = window->stacks.entries[i].length / sizeof(uint32_t);
        longest = length > longest ? length : longest;
    }
    return longest;
}

/* One more element each: calloc of nothing may be NULL. */
static bool allocate(build *b)
{
    const sp_window *w = b->window;
    size_t samples = (size_t)sp_window_sample_total(w) + 1;
    b->locations = calloc(w->locations.count + 1, sizeof *b->locations);
    b->stacks = calloc(w->stacks.count + 1, sizeof *b->stacks);
    b->threads = calloc(w->threads.count + 1, sizeof *b->threads);
    b->stack_scratch = calloc(longest_stack(w) + 1, sizeof *b->stack_scratch);
    b->links = calloc(w->links.count + 1, sizeof *b->links);
    b->samples.list = malloc(samples * sizeof *b->samples.list);
    b->samples.order = malloc(samples * sizeof *b->samples.order);
    b->samples.places = malloc(samples * sizeof *b->samples.places);
    b->data->profiles = sp_arena_array(&b->data->memory, PROFILES_MAX, sizeof *b->data->profiles);
    return b->locations && b->stacks && b->threads && b->stack_scratch && b->links &&
           b->samples.list && b->samples.order && b->samples.places && b->data->profiles;
}

static void build_deinit(build *b)
{
    free(b->locations);
    free(b->stacks);
    free(b->threads);
    free(b->stack_scratch);
    free(b->links);
    free(b->samples.list);
    free(b->samples.order);
    free(b->samples.places);
    sp_dictionary_deinit(&b->dictionary);
}

bool sp_profile_build(sp_profile_data *data, const sp_window *window, sp_symbolizer *symbolizer,
                      const sp_build_options *options)
{
    build b = {
        .data = data,
        .window = window,
        .symbolizer = symbolizer,
        .options = options,
    };
    memset(data, 0, sizeof *data);
    sp_dictionary_init(&b.dictionary);
    bool built = allocate(&b);
    if (built) {
        build_profiles(&b);
        built = sp_dictionary_finish(&b.dictionary, data);
    }
    if (built)
        place_lists(&b);
    build_deinit(&b);
    return built;
}

void sp_profile_data_deinit(sp_profile_data *data)
{
    sp_arena_deinit(&data->memory);
    memset(data, 0, sizeof *data);
}
