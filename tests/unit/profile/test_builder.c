/* SPDX-License-Identifier: Apache-2.0 */
/* The builder on windows made by hand. Each result is held against the rules of the tables, then
 * against what was put in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <sys/syscall.h>

#include "core/log.h"
#include "core/utf8.h"
#include "profile/builder.h"
#include "context/ring_sig.h"
#include "unit/symbol/test_module.h"
#include "unit/profile/test_profile_rules.h"

/* ---- windows by hand ---- */

static sp_window window;
static sp_symbolizer *symbolizer;
static sp_profile_data data;
static sp_window_sample values[64], visits[64];
static sp_module *here; /* this program */

/* Functions of this program, so that locations have names. */
__attribute__((noinline)) static int handler_function(int n)
{
    __asm__ volatile("" ::: "memory");
    return n + 1;
}

__attribute__((noinline)) static int worker_function(int n)
{
    __asm__ volatile("" ::: "memory");
    return n + 2;
}

/* A symbol of 20 KiB, as templates over many indices have. */
#define TIMES_4(text) text text text text
#define A_KIB         TIMES_4(TIMES_4(TIMES_4(TIMES_4("Lm0E"))))
int huge_function(int n) __asm__("_Zhuge" TIMES_4(A_KIB A_KIB A_KIB A_KIB A_KIB));

__attribute__((noinline)) int huge_function(int n)
{
    __asm__ volatile("" ::: "memory");
    return n + 3;
}

static uint32_t put_location(sp_module *module, uint64_t address)
{
    sp_window_location location = {.module = module, .address = address};
    return sp_intern_put(&window.locations, &location, sizeof location, NULL);
}

static uint32_t put_code(int (*function)(int))
{
    return put_location(here, (uint64_t)function + 1 - here->bias);
}

static uint32_t put_stack(sp_walk_end end, uint32_t count, const uint32_t *locations)
{
    uint32_t key[16];
    memcpy(key, locations, count * sizeof *key);
    key[count] = end;
    return sp_intern_put(&window.stacks, key, (count + 1) * sizeof *key, NULL);
}

/* Ids are one byte repeated; 0: none. */
static uint32_t put_link(uint8_t trace, uint8_t span, uint8_t root)
{
    sp_window_link link;
    memset(link.trace_id, trace, sizeof link.trace_id);
    memset(link.span_id, span, sizeof link.span_id);
    memset(link.root_span_id, root, sizeof link.root_span_id);
    return sp_intern_put(&window.links, &link, sizeof link, NULL);
}

static uint32_t put_thread(int64_t tid, const char *name)
{
    sp_window_thread thread = {.tid = tid};
    memcpy(thread.name, name, strnlen(name, sizeof thread.name));
    return sp_intern_put(&window.threads, &thread, sizeof thread, NULL);
}

static void put_sample(uint32_t stack, uint32_t link, uint32_t thread, uint64_t periods)
{
    sp_window_key key = {.stack = stack, .link = link, .thread = thread};
    uint32_t number = sp_intern_put(&window.cpu.keys, &key, sizeof key, NULL);
    values[number].weight += periods;
    values[number].count++;
}

static void ignore_line(spanprof_log_level level, const char *line, void *user)
{
    (void)level;
    (void)line;
    (void)user;
}

static int set_up(void **state)
{
    (void)state;
    memset(values, 0, sizeof values);
    memset(visits, 0, sizeof visits);
    window = (sp_window){
        .start_time_ns = 1700000000000000000,
        .end_time_ns = 1700000010000000000,
        .period_ns = 10101010,
        .engine = "timer",
        .cpu = {.values = values, .capacity = SP_ARRAY_LENGTH(values)},
        .wall = {.values = visits, .capacity = SP_ARRAY_LENGTH(visits)},
    };
    put_link(0, 0, 0);
    here = test_module_of((uint64_t)handler_function, NULL);
    symbolizer = sp_symbolizer_create();
    memset(&data, 0, sizeof data);
    return here && symbolizer ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    sp_profile_data_deinit(&data);
    sp_symbolizer_destroy(symbolizer);
    sp_intern_deinit(&window.locations);
    sp_intern_deinit(&window.links);
    sp_intern_deinit(&window.threads);
    sp_intern_deinit(&window.stacks);
    sp_intern_deinit(&window.cpu.keys);
    sp_intern_deinit(&window.wall.keys);
    sp_intern_deinit(&window.holders);
    sp_intern_deinit(&window.locks);
    sp_intern_deinit(&window.calls[SP_CALL_LOCK].keys);
    free(here);
    return 0;
}

/* ---- reading results ---- */

static void build(spanprof_link_scope scope, bool threads)
{
    sp_build_options options = {.link_scope = scope, .thread_attributes = threads};
    assert_true(sp_profile_build(&data, &window, symbolizer, &options));
    assert_profile_rules(&data);
}

static const char *function_name(uint32_t location, uint32_t line)
{
    const sp_profile_location *l = &data.locations[location];
    assert_true(line < l->line_count);
    return data
        .strings[data.functions[data.lines[l->first_line + line].function_index].name_strindex];
}

static uint32_t stack_location(uint32_t stack, uint32_t depth)
{
    assert_true(depth < data.stacks[stack].count);
    return (uint32_t)data.indices[data.stacks[stack].offset + depth];
}

static const sp_profile_attribute *find_attribute(sp_index_list list, const char *key)
{
    for (uint32_t i = 0; i < list.count; i++) {
        const sp_profile_attribute *attribute = &data.attributes[data.indices[list.offset + i]];
        if (strcmp(data.strings[attribute->key_strindex], key) == 0)
            return attribute;
    }
    return NULL;
}

static void assert_link(const sp_profile_sample *sample, uint8_t trace, uint8_t span)
{
    const sp_profile_link *link = &data.links[sample->link_index];
    assert_int_equal(link->trace_id[0], trace);
    assert_int_equal(link->trace_id[15], trace);
    assert_int_equal(link->span_id[0], span);
    assert_int_equal(link->span_id[7], span);
}

static void assert_type(const sp_profile *profile, const char *type, const char *unit,
                        const char *period_type)
{
    assert_string_equal(data.strings[profile->sample_type_strindex], type);
    assert_string_equal(data.strings[profile->sample_unit_strindex], unit);
    assert_string_equal(data.strings[profile->period_type_strindex], period_type);
    assert_string_equal(data.strings[profile->period_unit_strindex], "nanoseconds");
}

/* Two spans with one root, a span whose root is not known, and no span, all on one stack. */
static void fill_with_links(void)
{
    uint32_t stack = put_stack(SP_WALK_COMPLETE, 2,
                               (uint32_t[]){put_code(handler_function), put_code(worker_function)});
    uint32_t thread = put_thread(7, "main");
    put_sample(stack, put_link(1, 10, 20), thread, 3);
    put_sample(stack, put_link(1, 11, 20), thread, 4);
    put_sample(stack, put_link(2, 12, 0), thread, 5);
    put_sample(stack, put_link(0, 0, 0), thread, 6);
}

/* ---- cases ---- */

static void builder_innermost_keeps_each_span(void **state)
{
    (void)state;
    fill_with_links();
    build(SPANPROF_LINK_SCOPE_INNERMOST, false);
    assert_int_equal(data.profile_count, 1);
    const sp_profile *profile = &data.profiles[0];
    assert_type(profile, "samples", "count", "cpu");
    assert_int_equal(profile->sample_count, 4);
    const uint8_t expected[][3] = {{0, 0, 6}, {1, 10, 3}, {1, 11, 4}, {2, 12, 5}};
    for (int i = 0; i < 4; i++) {
        assert_link(&profile->samples[i], expected[i][0], expected[i][1]);
        assert_int_equal(profile->samples[i].value, expected[i][2]);
    }
    assert_int_equal(profile->samples[0].link_index, 0);
}

static void builder_root_merges_spans_of_one_root(void **state)
{
    (void)state;
    fill_with_links();
    build(SPANPROF_LINK_SCOPE_ROOT, false);
    const sp_profile *profile = &data.profiles[0];
    assert_int_equal(profile->sample_count, 3);
    assert_int_equal(profile->samples[0].link_index, 0);
    assert_link(&profile->samples[1], 1, 20);
    assert_int_equal(profile->samples[1].value, 7);
    assert_link(&profile->samples[2], 2, 12); /* root not known: the span itself */
}

/* By link, then by stack, so that neighbours have much in common; each pair of the two once. */
static void builder_orders_samples_by_link_and_stack(void **state)
{
    (void)state;
    enum { STACKS = 5, LINKS = 6 };
    uint32_t stacks[STACKS], thread = put_thread(7, "main"), other = put_thread(8, "other");
    for (uint32_t i = 0; i < STACKS; i++)
        stacks[i] = put_stack(SP_WALK_COMPLETE, 1, (uint32_t[]){put_code(handler_function + i)});
    for (uint32_t i = 0; i < STACKS * LINKS; i++) {
        uint32_t pair = i * 7 % (STACKS * LINKS);
        uint8_t span = (uint8_t)(1 + pair / STACKS);
        put_sample(stacks[pair % STACKS], put_link(1, span, 0), i % 2 ? thread : other, 1 + pair);
        put_sample(stacks[pair % STACKS], put_link(1, span, 0), i % 2 ? other : thread, 1);
    }
    build(SPANPROF_LINK_SCOPE_ROOT, false);
    const sp_profile *profile = &data.profiles[0];
    uint64_t sum = 0;
    assert_int_equal(profile->sample_count, STACKS * LINKS);
    for (uint32_t i = 0; i < profile->sample_count; i++) {
        const sp_profile_sample *sample = &profile->samples[i], *before = sample - (i > 0);
        assert_true(sample->link_index >= before->link_index);
        assert_true(i == 0 || sample->link_index > before->link_index ||
                    sample->stack_index > before->stack_index);
        sum += (uint64_t)sample->value;
    }
    assert_int_equal(sum, STACKS * LINKS * (STACKS * LINKS + 1) / 2 + STACKS * LINKS);
}

static void builder_none_links_nothing(void **state)
{
    (void)state;
    fill_with_links();
    build(SPANPROF_LINK_SCOPE_NONE, false);
    assert_int_equal(data.link_count, 1);
    assert_int_equal(data.profiles[0].sample_count, 1);
    assert_int_equal(data.profiles[0].samples[0].value, 18);
}

static void builder_both_makes_two_types(void **state)
{
    (void)state;
    fill_with_links();
    build(SPANPROF_LINK_SCOPE_BOTH, true);
    assert_int_equal(data.profile_count, 2);
    assert_type(&data.profiles[0], "samples", "count", "cpu");
    assert_int_equal(data.profiles[0].sample_count, 3);
    assert_link(&data.profiles[0].samples[1], 1, 20);
    assert_type(&data.profiles[1], "cpu_innermost", "nanoseconds", "cpu_innermost");
    assert_int_equal(data.profiles[1].sample_count, 4);
    assert_link(&data.profiles[1].samples[2], 1, 10);
    assert_int_equal(data.profiles[1].samples[2].value, 3 * window.period_ns);
    assert_int_equal(data.profiles[1].period, window.period_ns);
    assert_memory_not_equal(data.profiles[0].profile_id, data.profiles[1].profile_id, 16);
    static const char *const scopes[] = {"root", "innermost"};
    for (int i = 0; i < 2; i++) {
        const sp_profile_attribute *scope =
            find_attribute(data.profiles[i].attributes, "spanprof.link_scope");
        assert_string_equal(scope->value.string_value, scopes[i]);
    }
}

/* A visit: WAIT at LEAF, under it the worker, linked to SPAN. */
static void put_visit(uint64_t leaf, uint8_t span, sp_wait wait, uint64_t weight_ns)
{
    sp_window_location at = {.address = leaf};
    uint32_t location = sp_intern_put(&window.locations, &at, sizeof at, NULL);
    sp_window_key key = {
        .stack = put_stack(SP_WALK_COMPLETE, 2, (uint32_t[]){location, put_code(worker_function)}),
        .link = put_link(span ? 1 : 0, span, span ? 20 : 0),
        .thread = put_thread(7, "main"),
        .wait = sp_window_wait(wait),
    };
    uint32_t number = sp_intern_put(&window.wall.keys, &key, sizeof key, NULL);
    visits[number].weight += weight_ns;
    visits[number].count++;
}

static const sp_profile_sample *sample_with_leaf(const sp_profile *profile, const char *name)
{
    for (uint32_t i = 0; i < profile->sample_count; i++)
        if (strcmp(function_name(stack_location(profile->samples[i].stack_index, 0), 0), name) == 0)
            return &profile->samples[i];
    fail_msg("no sample with the leaf %s", name);
    return NULL;
}

static const sp_wait on_socket = {SP_WAIT_NETWORK, SP_DESCRIPTOR_SOCKET},
                     for_a_core = {SP_WAIT_RUNNABLE, SP_DESCRIPTOR_NONE},
                     on_nothing = {SP_WAIT_OTHER, SP_DESCRIPTOR_NONE};

/* Of the ticks those of spans belong to it: 3 + 4 + 5 periods. */
static void fill_with_waits(void)
{
    window.wall_period_ns = 50000000;
    fill_with_links();
    put_visit(SP_PC_SYSTEM_CALL | SYS_read, 10, on_socket, 100);
    put_visit(SP_PC_SYSTEM_CALL | SYS_read, 11, on_socket, 20);
    put_visit(SP_PC_RUNNABLE, 10, for_a_core, 3);
    put_visit(SP_PC_SYSTEM_CALL | UINT32_MAX, 0, on_nothing, 4);
    put_visit(SP_PC_SYSTEM_CALL | 99999, 0, on_nothing, 5);
    sp_window_complete_wall(&window, 0);
}

static void assert_waits(const sp_profile_sample *sample, int64_t value, const char *wait,
                         const char *descriptor)
{
    const sp_profile_attribute *found = find_attribute(sample->attributes, "spanprof.wait");
    assert_int_equal(sample->value, value);
    assert_string_equal(found->value.string_value, wait);
    found = find_attribute(sample->attributes, "spanprof.wait.descriptor");
    if (descriptor)
        assert_string_equal(found->value.string_value, descriptor);
    else
        assert_null(found);
}

static void builder_wall_is_ticks_of_spans_and_waits(void **state)
{
    (void)state;
    fill_with_waits();
    sp_build_options options = {.link_scope = SPANPROF_LINK_SCOPE_INNERMOST,
                                .wait_attributes = true};
    assert_true(sp_profile_build(&data, &window, symbolizer, &options));
    assert_profile_rules(&data);
    assert_int_equal(data.profile_count, 2);
    const sp_profile *wall = &data.profiles[1];
    assert_type(wall, "wall", "nanoseconds", "wall");
    assert_int_equal(wall->period, window.wall_period_ns);
    assert_int_equal(wall->sample_count, 5 + 3);
    assert_waits(sample_with_leaf(wall, "read"), 100, "network", "socket");
    assert_link(sample_with_leaf(wall, "read"), 1, 10);
    assert_waits(sample_with_leaf(wall, "[runnable]"), 3, "runnable", NULL);
    assert_waits(sample_with_leaf(wall, "[kernel]"), 4, "other", NULL);
    assert_waits(sample_with_leaf(wall, "[system call 99999]"), 5, "other", NULL);
    const sp_profile_sample *tick = sample_with_leaf(wall, "handler_function");
    assert_null(find_attribute(tick->attributes, "spanprof.wait"));
    int64_t ticks = 0;
    for (uint32_t i = 0; i < wall->sample_count; i++)
        ticks += find_attribute(wall->samples[i].attributes, "spanprof.wait")
                     ? 0
                     : wall->samples[i].value;
    assert_int_equal(ticks, (3 + 4 + 5) * window.period_ns);
}

/* What the host took beside the ticks is wall time, and no CPU time. */
static void builder_wall_has_what_was_stolen(void **state)
{
    (void)state;
    fill_with_waits();
    window.wall_of_all = true;
    sp_window_complete_wall(&window, 0.25);
    build(SPANPROF_LINK_SCOPE_NONE, false);
    int64_t sum = 0, periods = 0;
    for (uint32_t i = 0; i < data.profiles[0].sample_count; i++)
        periods += data.profiles[0].samples[i].value;
    for (uint32_t i = 0; i < data.profiles[1].sample_count; i++)
        sum += data.profiles[1].samples[i].value;
    assert_int_equal(periods, 3 + 4 + 5 + 6);
    int64_t stolen = periods * ((window.period_ns + 2) / 4);
    assert_int_equal(sum, 132 + periods * window.period_ns + stolen);
    assert_int_equal(
        find_attribute(data.profiles[1].attributes, "spanprof.steal_ns")->value.int_value, stolen);
}

static void builder_wall_of_all_threads_has_all_ticks(void **state)
{
    (void)state;
    fill_with_waits();
    window.wall_of_all = true;
    sp_window_complete_wall(&window, 0);
    build(SPANPROF_LINK_SCOPE_NONE, false);
    int64_t sum = 0;
    for (uint32_t i = 0; i < data.profiles[1].sample_count; i++)
        sum += data.profiles[1].samples[i].value;
    assert_int_equal(sum, 132 + (3 + 4 + 5 + 6) * window.period_ns);
}

static void builder_wall_without_cpu_profile_for_both_scopes(void **state)
{
    (void)state;
    fill_with_waits();
    sp_build_options options = {.link_scope = SPANPROF_LINK_SCOPE_BOTH, .without_cpu = true};
    assert_true(sp_profile_build(&data, &window, symbolizer, &options));
    assert_profile_rules(&data);
    assert_int_equal(data.profile_count, 2);
    assert_type(&data.profiles[0], "wall", "nanoseconds", "wall");
    assert_type(&data.profiles[1], "wall_innermost", "nanoseconds", "wall_innermost");
    assert_link(sample_with_leaf(&data.profiles[0], "read"), 1, 20);
    assert_int_equal(sample_with_leaf(&data.profiles[0], "read")->value, 120);
    assert_link(sample_with_leaf(&data.profiles[1], "read"), 1, 10);
    assert_int_equal(sample_with_leaf(&data.profiles[1], "read")->value, 100);
    assert_null(
        find_attribute(sample_with_leaf(&data.profiles[0], "read")->attributes, "spanprof.wait"));
}

static sp_window_sample lock_waits[4];

static struct shop {
    char name[40];
    char lock;
} shop_locks = {.lock = 1};

static uint32_t put_lock(sp_module *module, uint64_t address)
{
    sp_window_location lock = {.module = module, .address = address - (module ? module->bias : 0)};
    return sp_intern_put(&window.locks, &lock, sizeof lock, NULL) + 1;
}

static uint32_t put_wait(const sp_window_holder *key)
{
    return SP_WINDOW_HOLDER | sp_intern_put(&window.holders, key, sizeof *key, NULL);
}

/* The span HOLDER, which gave a lock of the program back in handler_function. */
static uint32_t put_holder(uint8_t holder)
{
    uint32_t frames[] = {put_code(handler_function), put_code(worker_function)};
    const sp_window_holder key = {.link = put_link(2, holder, 0),
                                  .stack = put_stack(SP_WALK_COMPLETE, 2, frames) + 1,
                                  .lock = put_lock(here, (uint64_t)&shop_locks.lock)};
    return put_wait(&key);
}

/* A lock on the heap, of whose holder nothing is known. */
static uint32_t put_heap_lock(void)
{
    const sp_window_holder key = {.lock = put_lock(NULL, 0x7f0000000010)};
    return put_wait(&key);
}

/* A wait of a span of its own for a lock that HOLDER had. */
static void put_lock_wait(uint8_t span, uint8_t holder, uint64_t wait_ns)
{
    sp_window_samples *samples = &window.calls[SP_CALL_LOCK];
    sp_window_key key = {
        .stack = put_stack(SP_WALK_COMPLETE, 1, (uint32_t[]){put_code(worker_function)}),
        .link = put_link(1, span, span),
        .thread = put_thread(7, "main"),
        .wait = holder ? put_holder(holder) : put_heap_lock(),
    };
    uint32_t number = sp_intern_put(&samples->keys, &key, sizeof key, NULL);
    samples->values = lock_waits;
    lock_waits[number] = (sp_window_sample){.weight = wait_ns, .count = 3};
}

static void assert_lock_type(const sp_profile *profile, const char *type, const char *unit)
{
    assert_string_equal(data.strings[profile->sample_type_strindex], type);
    assert_string_equal(data.strings[profile->sample_unit_strindex], unit);
    assert_string_equal(data.strings[profile->period_type_strindex], "contentions");
    assert_string_equal(data.strings[profile->period_unit_strindex], "count");
    assert_int_equal(profile->period, 1);
}

static void assert_holder(const sp_profile_sample *sample, const char *trace, const char *span)
{
    assert_string_equal(
        find_attribute(sample->attributes, "spanprof.holder.trace_id")->value.string_value, trace);
    assert_string_equal(
        find_attribute(sample->attributes, "spanprof.holder.span_id")->value.string_value, span);
    assert_string_equal(
        find_attribute(sample->attributes, "spanprof.holder.stack")->value.string_value,
        "worker_function;handler_function");
}

static void assert_lock(const sp_profile_sample *sample, uint64_t address, const char *name)
{
    char text[24];
    const sp_profile_attribute *named = find_attribute(sample->attributes, "spanprof.lock.name");
    snprintf(text, sizeof text, "0x%" PRIx64, address);
    assert_string_equal(
        find_attribute(sample->attributes, "spanprof.lock.address")->value.string_value, text);
    assert_string_equal(named ? named->value.string_value : "", name);
}

static void build_lock_waits(bool for_a_file)
{
    put_lock_wait(10, 30, 1000);
    put_lock_wait(11, 0, 200);
    window.lock_ns = 5000;
    sp_build_options options = {.link_scope = SPANPROF_LINK_SCOPE_INNERMOST,
                                .without_cpu = true,
                                .wait_attributes = for_a_file};
    assert_true(sp_profile_build(&data, &window, symbolizer, &options));
    window.calls[SP_CALL_LOCK].values = NULL;
    assert_profile_rules(&data);
    assert_int_equal(data.profile_count, 2);
}

static void builder_locks_are_contentions_and_delay_with_their_holder(void **state)
{
    (void)state;
    build_lock_waits(true);
    assert_lock_type(&data.profiles[0], "contentions", "count");
    assert_lock_type(&data.profiles[1], "delay", "nanoseconds");
    assert_int_equal(data.profiles[0].samples[0].value, 3);
    const sp_profile *delay = &data.profiles[1];
    assert_int_equal(find_attribute(delay->attributes, "spanprof.lock_ns")->value.int_value, 5000);
    assert_int_equal(delay->sample_count, 2);
    assert_link(&delay->samples[0], 1, 10);
    assert_int_equal(delay->samples[0].value, 1000);
    assert_holder(&delay->samples[0], "02020202020202020202020202020202", "1e1e1e1e1e1e1e1e");
    assert_null(find_attribute(delay->samples[1].attributes, "spanprof.holder.span_id"));
    assert_lock(&delay->samples[0], (uint64_t)&shop_locks.lock, "shop_locks+0x28");
    assert_lock(&delay->samples[1], 0x7f0000000010, "");
}

/* Each holder, and each lock, would make a series of its own there. */
static void builder_holders_and_locks_are_not_for_the_network(void **state)
{
    (void)state;
    build_lock_waits(false);
    for (uint32_t i = 0; i < data.profiles[1].sample_count; i++) {
        sp_index_list attributes = data.profiles[1].samples[i].attributes;
        assert_null(find_attribute(attributes, "spanprof.holder.span_id"));
        assert_null(find_attribute(attributes, "spanprof.holder.stack"));
        assert_null(find_attribute(attributes, "spanprof.lock.name"));
        assert_null(find_attribute(attributes, "spanprof.lock.address"));
    }
}

static sp_window_time tick_times[16];

/* A tick of sample NUMBER, which is PERIODS of those that it has. */
static void put_time(uint32_t number, uint64_t time_ns, uint32_t periods)
{
    sp_window_times *times = &window.cpu.times;
    times->entries = tick_times;
    tick_times[times->count++] = (sp_window_time){time_ns, periods, 0};
    times->periods += periods;
    sp_window_sample tick = {.first_time = times->count, .last_time = times->count};
    sp_window_times_append(times, &values[number], &tick);
}

/* Of the samples of fill_with_links, 3 + 4 + 5 + 6 periods. */
static void fill_with_times(void)
{
    uint64_t start = window.start_time_ns;
    fill_with_links();
    put_time(1, start + 900, 1);
    put_time(0, start + 500, 2);
    put_time(2, start - 1, 5); /* before the window, by a clock that was set */
    put_time(0, start + 300, 1);
    put_time(1, start + 100, 3);
    put_time(3, window.end_time_ns + 7, 6);
}

static void assert_times(const sp_profile_sample *sample, uint32_t count, const uint64_t *times)
{
    assert_int_equal(sample->timestamps.count, count);
    assert_int_equal(sample->value, count);
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(data.timestamps[sample->timestamps.offset + i], times[i]);
}

static void builder_times_are_timestamps_of_the_merged_sample(void **state)
{
    (void)state;
    uint64_t start = window.start_time_ns, last = window.end_time_ns - 1;
    fill_with_times();
    build(SPANPROF_LINK_SCOPE_ROOT, false);
    const sp_profile *profile = &data.profiles[0];
    assert_int_equal(profile->sample_count, 3);
    assert_times(&profile->samples[1], 7,
                 (uint64_t[]){start + 100, start + 100, start + 100, start + 300, start + 500,
                              start + 500, start + 900});
    assert_times(&profile->samples[2], 5, (uint64_t[]){start, start, start, start, start});
    assert_times(&profile->samples[0], 6, (uint64_t[]){last, last, last, last, last, last});
    assert_null(find_attribute(profile->attributes, "spanprof.dropped.timestamps"));
}

static void builder_times_are_of_counts_only(void **state)
{
    (void)state;
    fill_with_times();
    window.wall_period_ns = 50000000;
    sp_window_complete_wall(&window, 0);
    build(SPANPROF_LINK_SCOPE_BOTH, false);
    assert_int_equal(data.profile_count, 4);
    for (uint32_t i = 0; i < data.profile_count; i++)
        for (uint32_t j = 0; j < data.profiles[i].sample_count; j++)
            assert_int_equal(data.profiles[i].samples[j].timestamps.count > 0, i == 0);
}

static void builder_one_time_missing_gives_values_and_says_so(void **state)
{
    (void)state;
    fill_with_times();
    values[2].weight++;
    build(SPANPROF_LINK_SCOPE_INNERMOST, false);
    const sp_profile *profile = &data.profiles[0];
    for (uint32_t i = 0; i < profile->sample_count; i++)
        assert_int_equal(profile->samples[i].timestamps.count, 0);
    assert_int_equal(
        find_attribute(profile->attributes, "spanprof.dropped.timestamps")->value.int_value, 19);
}

static void builder_half_an_id_is_no_link(void **state)
{
    (void)state;
    uint32_t stack = put_stack(SP_WALK_COMPLETE, 1, (uint32_t[]){put_code(handler_function)});
    put_sample(stack, put_link(1, 0, 0), put_thread(1, ""), 1);
    put_sample(stack, put_link(0, 1, 0), 0, 1);
    build(SPANPROF_LINK_SCOPE_ROOT, false);
    assert_int_equal(data.link_count, 1);
    assert_int_equal(data.profiles[0].sample_count, 1);
}

static void builder_header_tells_the_window(void **state)
{
    static const uint8_t zeros[16];
    (void)state;
    fill_with_links();
    window.cpu.linked = 3;
    window.cpu.none = 4;
    window.cpu.unknown = 5;
    window.unattributed_ns = 600;
    window.dropped_ring_full = 7;
    build(SPANPROF_LINK_SCOPE_INNERMOST, false);
    const sp_profile *profile = &data.profiles[0];
    assert_int_equal(profile->time_unix_nano, window.start_time_ns);
    assert_int_equal(profile->duration_nano, 10000000000);
    assert_int_equal(profile->period, window.period_ns);
    assert_memory_not_equal(profile->profile_id, zeros, 16);
    assert_string_equal(find_attribute(profile->attributes, "spanprof.engine")->value.string_value,
                        "timer");
    assert_string_equal(
        find_attribute(profile->attributes, "spanprof.link_scope")->value.string_value,
        "innermost");
    const sp_profile_attribute *unattributed =
        find_attribute(profile->attributes, "spanprof.unattributed_ns");
    assert_int_equal(unattributed->value.int_value, 600);
    assert_int_equal(unattributed->type, SPANPROF_ATTRIBUTE_INT);
    assert_string_equal(data.strings[unattributed->unit_strindex], "ns");
    assert_int_equal(
        find_attribute(profile->attributes, "spanprof.samples.linked")->value.int_value, 3);
    assert_int_equal(find_attribute(profile->attributes, "spanprof.samples.none")->value.int_value,
                     4);
    assert_int_equal(
        find_attribute(profile->attributes, "spanprof.samples.unknown")->value.int_value, 5);
    assert_int_equal(
        find_attribute(profile->attributes, "spanprof.samples.boundary")->value.int_value, 0);
    assert_int_equal(
        find_attribute(profile->attributes, "spanprof.dropped.ring_full")->value.int_value, 7);
    assert_null(find_attribute(profile->attributes, "spanprof.dropped.memory"));
}

static void put_unattributed(int64_t tid, const char *name, uint64_t unattributed_ns)
{
    sp_window_unattributed *unattributed =
        &window.unattributed_threads[window.unattributed_count++];
    *unattributed = (sp_window_unattributed){.thread.tid = tid, .unattributed_ns = unattributed_ns};
    memcpy(unattributed->thread.name, name, strnlen(name, sizeof unattributed->thread.name));
}

static void builder_misuse_is_in_the_first_profile_only(void **state)
{
    (void)state;
    fill_with_links();
    window.misuse = (sp_window_misuse){.dead_span = 21, .ended_parent = 22, .fiber = 23};
    build(SPANPROF_LINK_SCOPE_BOTH, false);
    assert_int_equal(data.profile_count, 2);
    sp_index_list first = data.profiles[0].attributes, second = data.profiles[1].attributes;
    assert_int_equal(find_attribute(first, "spanprof.misuse.dead_span")->value.int_value, 21);
    assert_int_equal(find_attribute(first, "spanprof.misuse.ended_parent")->value.int_value, 22);
    assert_int_equal(find_attribute(first, "spanprof.misuse.fiber")->value.int_value, 23);
    assert_null(find_attribute(first, "spanprof.misuse.dead_scope"));
    assert_null(find_attribute(second, "spanprof.misuse.dead_span"));
}

static void builder_keys_hold_no_data(void **state)
{
    (void)state;
    fill_with_links();
    put_unattributed(4711, "sixteen letters.", 500);
    put_unattributed(4712, "sixteen letters.", 400);
    build(SPANPROF_LINK_SCOPE_INNERMOST, true);
    for (uint32_t i = 1; i < data.attribute_count; i++) {
        const char *key = data.strings[data.attributes[i].key_strindex];
        assert_null(strstr(key, "letters"));
        assert_null(strstr(key, "471"));
    }
    const sp_profile_attribute *threads =
        find_attribute(data.profiles[0].attributes, "spanprof.unattributed_ns.threads");
    assert_int_equal(threads->unattributed_count, 2);
    assert_string_equal(threads->unattributed_threads[1].name, "sixteen letters.");
    assert_int_equal(threads->unattributed_threads[1].tid, 4712);
    assert_int_equal(threads->unattributed_threads[1].unattributed_ns, 400);
    sp_profile_data_deinit(&data);
    build(SPANPROF_LINK_SCOPE_INNERMOST, false);
    assert_null(find_attribute(data.profiles[0].attributes, "spanprof.unattributed_ns.threads"));
}

static void builder_named_location_has_file_and_line(void **state)
{
    (void)state;
    fill_with_links();
    build(SPANPROF_LINK_SCOPE_NONE, false);
    uint32_t leaf = stack_location(data.profiles[0].samples[0].stack_index, 0);
    const sp_profile_location *location = &data.locations[leaf];
    const sp_profile_line *line = &data.lines[location->first_line];
    const sp_profile_function *function = &data.functions[line->function_index];
    assert_string_equal(function_name(leaf, 0), "handler_function");
    assert_string_equal(
        function_name(stack_location(data.profiles[0].samples[0].stack_index, 1), 0),
        "worker_function");
    assert_non_null(strstr(data.strings[function->filename_strindex], "/test_builder.c"));
    assert_int_equal(function->system_name_strindex, 0);
    assert_true(line->line >= function->start_line && function->start_line > 0);
    assert_int_equal(location->address, (uint64_t)handler_function + 1 - here->bias);
    const sp_profile_attribute *type = find_attribute(location->attributes, "profile.frame.type");
    assert_string_equal(type->value.string_value, "native");
}

static void builder_mapping_has_build_id_and_range_only_when_needed(void **state)
{
    (void)state;
    char hex[2 * SP_BUILD_ID_MAX + 1] = "";
    for (uint32_t i = 0; i < here->build_id_length; i++)
        sprintf(hex + 2 * i, "%02x", here->build_id[i]);
    sp_module *lost =
        test_module_make("/opt/lib/liblost.so.2", 0x7f0000001000, 0x7f0000009000, 0x7f0000000000);
    uint32_t locations[] = {put_location(lost, 0x1234), put_code(worker_function)};
    put_sample(put_stack(SP_WALK_COMPLETE, 2, locations), 0, put_thread(1, ""), 1);
    build(SPANPROF_LINK_SCOPE_NONE, false);
    assert_int_equal(data.mapping_count, 3);
    assert_string_equal(data.strings[data.mappings[1].filename_strindex], "/opt/lib/liblost.so.2");
    assert_int_equal(data.mappings[1].memory_start, 0x1000);
    assert_int_equal(data.mappings[1].memory_limit, 0x9000);
    assert_int_equal(data.mappings[1].file_offset, 0);
    assert_int_equal(data.mappings[1].attributes.count, 0);
    assert_string_equal(function_name(1, 0), "liblost.so.2+0x1234");
    assert_int_equal(data.mappings[2].memory_limit, 0); /* all of it has names */
    const sp_profile_attribute *id =
        find_attribute(data.mappings[2].attributes, "process.executable.build_id.gnu");
    assert_string_equal(id->value.string_value, hex);
    free(lost);
}

static void builder_reloaded_library_is_one_mapping(void **state)
{
    (void)state;
    sp_module *first = test_module_make("/opt/libplugin.so", 0x1000, 0x3000, 0);
    sp_module *second = test_module_make("/opt/libplugin.so", 0x701000, 0x703000, 0x700000);
    uint32_t thread = put_thread(1, "");
    put_sample(put_stack(SP_WALK_COMPLETE, 1, (uint32_t[]){put_location(first, 0x1100)}), 0, thread,
               1);
    put_sample(put_stack(SP_WALK_COMPLETE, 1, (uint32_t[]){put_location(second, 0x1100)}), 0,
               thread, 2);
    build(SPANPROF_LINK_SCOPE_NONE, false);
    assert_int_equal(data.mapping_count, 2);
    assert_int_equal(data.profiles[0].sample_count, 1);
    assert_int_equal(data.profiles[0].samples[0].value, 3);
    free(first);
    free(second);
}

static void builder_incomplete_stack_ends_in_marker(void **state)
{
    static const struct {
        sp_walk_end end;
        const char *name;
    } markers[] = {
        {SP_WALK_TRUNCATED, "[truncated]"},
        {SP_WALK_NO_TABLE, "[unwind: no table]"},
        {SP_WALK_BAD_MEMORY, "[unwind: unreadable stack]"},
        {SP_WALK_NO_PROGRESS, "[unwind: no progress]"},
        {SP_WALK_NO_REGISTER, "[unwind: no register]"},
        {SP_WALK_UNLOADED, "[unwind: library unloaded]"},
        {SP_WALK_FOLDED, "[folded]"},
        {(sp_walk_end)99, "[unwind: incomplete]"},
    };
    (void)state;
    uint32_t code = put_code(handler_function), thread = put_thread(1, "");
    put_sample(put_stack(SP_WALK_COMPLETE, 1, &code), 0, thread, 1);
    for (size_t i = 0; i < SP_ARRAY_LENGTH(markers); i++)
        put_sample(put_stack(markers[i].end, 1, &code), 0, thread, 1);
    build(SPANPROF_LINK_SCOPE_NONE, false);
    assert_int_equal(data.profiles[0].sample_count, 1 + SP_ARRAY_LENGTH(markers));
    assert_int_equal(data.stacks[data.profiles[0].samples[0].stack_index].count, 1);
    for (size_t i = 0; i < SP_ARRAY_LENGTH(markers); i++) {
        uint32_t stack = data.profiles[0].samples[i + 1].stack_index;
        assert_int_equal(data.stacks[stack].count, 2);
        assert_string_equal(function_name(stack_location(stack, 0), 0), "handler_function");
        uint32_t root = stack_location(stack, 1);
        assert_string_equal(function_name(root, 0), markers[i].name);
        assert_int_equal(data.locations[root].mapping_index, 0);
    }
}

static void builder_gap_in_a_deep_stack_is_a_marker_between_both_ends(void **state)
{
    (void)state;
    uint32_t code = put_code(handler_function), thread = put_thread(1, "");
    put_sample(put_stack(SP_WALK_NO_TABLE, 3, (uint32_t[]){code, SP_WINDOW_GAP, code}), 0, thread,
               1);
    window.cpu.stacks_by_end[SP_WALK_COMPLETE] = 4;
    window.cpu.stacks_by_end[SP_WALK_NO_TABLE] = 1;
    build(SPANPROF_LINK_SCOPE_NONE, false);
    uint32_t stack = data.profiles[0].samples[0].stack_index;
    assert_int_equal(data.stacks[stack].count, 4);
    static const char *const names[] = {"handler_function", "[truncated]", "handler_function",
                                        "[unwind: no table]"};
    for (uint32_t i = 0; i < 4; i++)
        assert_string_equal(function_name(stack_location(stack, i), 0), names[i]);
    sp_index_list attributes = data.profiles[0].attributes;
    assert_int_equal(find_attribute(attributes, "spanprof.stacks.complete")->value.int_value, 4);
    assert_int_equal(find_attribute(attributes, "spanprof.stacks.no_table")->value.int_value, 1);
    assert_null(find_attribute(attributes, "spanprof.stacks.truncated"));
}

static void builder_names_the_frame_that_a_signal_handler_returns_to(void **state)
{
    (void)state;
    uint32_t stack[] = {put_code(handler_function), put_location(NULL, SP_PC_SIGNAL_HANDLER),
                        put_code(worker_function)};
    put_sample(put_stack(SP_WALK_COMPLETE, 3, stack), 0, put_thread(1, ""), 1);
    build(SPANPROF_LINK_SCOPE_NONE, false);
    uint32_t location = stack_location(data.profiles[0].samples[0].stack_index, 1);
    assert_string_equal(function_name(location, 0), "[signal handler called]");
    assert_int_equal(data.locations[location].mapping_index, 0);
}

static void builder_thread_attributes_keep_threads_apart(void **state)
{
    (void)state;
    uint32_t stack = put_stack(SP_WALK_COMPLETE, 1, (uint32_t[]){put_code(handler_function)});
    put_sample(stack, 0, put_thread(41, "worker-1"), 1);
    put_sample(stack, 0, put_thread(42, ""), 2);
    put_sample(stack, 0, put_thread(43, "exactly-16-chars"), 4);
    build(SPANPROF_LINK_SCOPE_NONE, true);
    const sp_profile_sample *samples = data.profiles[0].samples;
    assert_int_equal(data.profiles[0].sample_count, 3);
    assert_int_equal(find_attribute(samples[0].attributes, "thread.id")->value.int_value, 41);
    assert_string_equal(find_attribute(samples[0].attributes, "thread.name")->value.string_value,
                        "worker-1");
    assert_int_equal(find_attribute(samples[1].attributes, "thread.id")->value.int_value, 42);
    assert_null(find_attribute(samples[1].attributes, "thread.name"));
    assert_string_equal(find_attribute(samples[2].attributes, "thread.name")->value.string_value,
                        "exactly-16-chars");
}

static void builder_without_thread_attributes_merges_threads(void **state)
{
    (void)state;
    uint32_t stack = put_stack(SP_WALK_COMPLETE, 1, (uint32_t[]){put_code(handler_function)});
    put_sample(stack, 0, put_thread(41, "worker-1"), 1);
    put_sample(stack, 0, put_thread(42, "worker-2"), 2);
    build(SPANPROF_LINK_SCOPE_NONE, false);
    assert_int_equal(data.profiles[0].sample_count, 1);
    assert_int_equal(data.profiles[0].samples[0].value, 3);
    assert_int_equal(data.profiles[0].samples[0].attributes.count, 0);
}

static void builder_invalid_utf8_is_repaired(void **state)
{
    (void)state;
    sp_module *module = test_module_make("/opt/lib\xff\xfe.so", 0x1000, 0x2000, 0);
    uint32_t stack = put_stack(SP_WALK_COMPLETE, 1, (uint32_t[]){put_location(module, 0x1100)});
    put_sample(stack, 0, put_thread(1, "w\xe4rm"), 1);
    put_sample(stack, 0,
               put_thread(2, "\xe4\xb8\xad\xe4\xb8\xad\xe4\xb8\xad\xe4\xb8\xad\xe4\xb8\xad\xe4"),
               1); /* cut */
    build(SPANPROF_LINK_SCOPE_NONE, true);
    assert_string_equal(function_name(1, 0), "lib\xef\xbf\xbd\xef\xbf\xbd.so+0x1100");
    const sp_profile_sample *samples = data.profiles[0].samples;
    assert_string_equal(find_attribute(samples[0].attributes, "thread.name")->value.string_value,
                        "w\xef\xbf\xbdrm");
    for (int i = 0; i < 2; i++) {
        const char *name = find_attribute(samples[i].attributes, "thread.name")->value.string_value;
        assert_true(sp_utf8_valid(name, strlen(name)));
    }
    free(module);
}

/* A function named in Latin-1, as an assembler or a JIT compiler may write it. */
extern const uint64_t latin_1_address;
__asm__(".pushsection .text.latin_1, \"ax\", %progbits\n"
        ".type \"caf\xe9_function\", %function\n"
        "\"caf\xe9_function\":\n"
        "nop\n"
        "nop\n"
        ".size \"caf\xe9_function\", . - \"caf\xe9_function\"\n"
        ".popsection\n"
        ".pushsection .data, \"aw\", %progbits\n"
        ".balign 8\n"
        ".globl latin_1_address\n"
        "latin_1_address: .quad \"caf\xe9_function\"\n"
        ".popsection\n");

static void builder_function_that_is_not_utf8_is_repaired(void **state)
{
    (void)state;
    uint32_t location = put_location(here, latin_1_address - here->bias);
    uint32_t stack = put_stack(SP_WALK_COMPLETE, 1, &location);
    put_sample(stack, 0, put_thread(1, "main"), 1);
    build(SPANPROF_LINK_SCOPE_NONE, true);
    assert_string_equal(function_name(1, 0), "caf\xef\xbf\xbd_function");
}

static void assert_is_cut(const char *text)
{
    size_t length = strlen(text);
    assert_in_range(length, 16 * 1024 - 8, 16 * 1024 + 8);
    assert_string_equal(text + length - strlen(SP_UTF8_CUT), SP_UTF8_CUT);
    assert_true(sp_utf8_valid(text, length));
}

/* A sample of FUNCTION in the profile, with PERIODS. */
static void assert_is_there(uint32_t sample, const char *function, int64_t periods)
{
    assert_int_equal(data.profiles[0].samples[sample].value, periods);
    assert_string_equal(
        function_name(stack_location(data.profiles[0].samples[sample].stack_index, 0), 0),
        function);
}

static void builder_huge_symbol_is_cut_and_the_rest_is_kept(void **state)
{
    (void)state;
    uint32_t handler = put_code(handler_function), huge = put_code(huge_function);
    put_sample(put_stack(SP_WALK_COMPLETE, 1, &handler), 0, put_thread(1, ""), 9);
    put_sample(put_stack(SP_WALK_COMPLETE, 1, &huge), 0, put_thread(1, ""), 1);
    build(SPANPROF_LINK_SCOPE_NONE, false);
    assert_is_there(0, "handler_function", 9);
    assert_is_there(1, "huge_function",
                    1); /* debug information knows a better name than half a mangled one */
    const sp_profile_location *location =
        &data.locations[stack_location(data.profiles[0].samples[1].stack_index, 0)];
    uint32_t function = data.lines[location->first_line].function_index;
    assert_is_cut(data.strings[data.functions[function].system_name_strindex]);
}

static void builder_huge_path_is_cut_and_the_rest_is_kept(void **state)
{
    (void)state;
    enum { PATH_BYTES = 20 * 1024 };
    char path[PATH_BYTES + 1] = "/";
    memset(path + 1, 'p', PATH_BYTES - 1);
    sp_module *lost = test_module_make(path, 0x1000, 0x2000, 0);
    uint32_t handler = put_code(handler_function), code = put_location(lost, 0x1234);
    put_sample(put_stack(SP_WALK_COMPLETE, 1, &handler), 0, put_thread(1, ""), 9);
    put_sample(put_stack(SP_WALK_COMPLETE, 1, &code), 0, put_thread(1, ""), 1);
    build(SPANPROF_LINK_SCOPE_NONE, false);
    assert_is_there(0, "handler_function", 9);
    assert_is_there(1, "[unknown]+0x1234", 1);
    assert_is_cut(data.strings[data.mappings[2].filename_strindex]);
    free(lost);
}

static void builder_huge_attribute_is_cut_and_the_rest_is_kept(void **state)
{
    (void)state;
    enum { BYTES = 2 << 20 };
    char *reason = calloc(1, BYTES + 1);
    memset(reason, 0xff, BYTES); /* three times as long when it is repaired */
    window.engine_reason = reason;
    fill_with_links();
    build(SPANPROF_LINK_SCOPE_NONE, false);
    const char *text =
        find_attribute(data.profiles[0].attributes, "spanprof.engine.reason")->value.string_value;
    size_t length = strlen(text), mark = strlen(SP_UTF8_CUT);
    assert_int_equal(length, 3 * 16 * 1024 + mark);
    assert_string_equal(text + length - mark, SP_UTF8_CUT);
    free(reason);
}

static void builder_empty_window_gives_no_profile(void **state)
{
    (void)state;
    for (int scope = SPANPROF_LINK_SCOPE_INNERMOST; scope <= SPANPROF_LINK_SCOPE_NONE; scope++) {
        build((spanprof_link_scope)scope, true);
        assert_int_equal(data.profile_count, 0);
        assert_int_equal(data.string_count, 1);
        sp_profile_data_deinit(&data);
    }
}

static void builder_sample_without_weight_is_left_out(void **state)
{
    (void)state;
    uint32_t handler = put_stack(SP_WALK_COMPLETE, 1, (uint32_t[]){put_code(handler_function)});
    uint32_t worker = put_stack(SP_WALK_COMPLETE, 1, (uint32_t[]){put_code(worker_function)});
    uint32_t thread = put_thread(1, "");
    put_sample(handler, put_link(5, 5, 5), thread, 0);
    build(SPANPROF_LINK_SCOPE_BOTH, true);
    assert_int_equal(data.profile_count, 0);
    sp_profile_data_deinit(&data);
    put_sample(worker, 0, thread, 1);
    build(SPANPROF_LINK_SCOPE_BOTH, true); /* which finds orphans */
    assert_int_equal(data.profile_count, 2);
    assert_int_equal(data.profiles[0].sample_count, 1);
}

static void builder_huge_weight_saturates(void **state)
{
    (void)state;
    uint32_t stack = put_stack(SP_WALK_COMPLETE, 1, (uint32_t[]){put_code(handler_function)});
    put_sample(stack, 0, put_thread(1, ""), UINT64_MAX / 4);
    put_sample(stack, 0, put_thread(2, ""), UINT64_MAX / 2);
    build(SPANPROF_LINK_SCOPE_BOTH, false);
    assert_true(data.profiles[0].samples[0].value == INT64_MAX);
    assert_true(data.profiles[1].samples[0].value == INT64_MAX);
}

static void builder_same_window_gives_same_tables(void **state)
{
    (void)state;
    fill_with_links();
    build(SPANPROF_LINK_SCOPE_BOTH, true);
    sp_profile_data first = data;
    build(SPANPROF_LINK_SCOPE_BOTH, true);
    assert_int_equal(first.string_count, data.string_count);
    for (uint32_t i = 0; i < data.string_count; i++)
        assert_string_equal(first.strings[i], data.strings[i]);
    assert_int_equal(first.stack_count, data.stack_count);
    assert_memory_equal(first.stacks, data.stacks, data.stack_count * sizeof *data.stacks);
    assert_memory_equal(first.locations, data.locations,
                        data.location_count * sizeof *data.locations);
    assert_memory_equal(first.functions, data.functions,
                        data.function_count * sizeof *data.functions);
    sp_profile_data_deinit(&first);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(builder_innermost_keeps_each_span),
        CASE(builder_root_merges_spans_of_one_root),
        CASE(builder_orders_samples_by_link_and_stack),
        CASE(builder_none_links_nothing),
        CASE(builder_both_makes_two_types),
        CASE(builder_wall_is_ticks_of_spans_and_waits),
        CASE(builder_wall_of_all_threads_has_all_ticks),
        CASE(builder_locks_are_contentions_and_delay_with_their_holder),
        CASE(builder_holders_and_locks_are_not_for_the_network),
        CASE(builder_wall_has_what_was_stolen),
        CASE(builder_wall_without_cpu_profile_for_both_scopes),
        CASE(builder_times_are_timestamps_of_the_merged_sample),
        CASE(builder_times_are_of_counts_only),
        CASE(builder_one_time_missing_gives_values_and_says_so),
        CASE(builder_half_an_id_is_no_link),
        CASE(builder_header_tells_the_window),
        CASE(builder_misuse_is_in_the_first_profile_only),
        CASE(builder_keys_hold_no_data),
        CASE(builder_named_location_has_file_and_line),
        CASE(builder_mapping_has_build_id_and_range_only_when_needed),
        CASE(builder_reloaded_library_is_one_mapping),
        CASE(builder_incomplete_stack_ends_in_marker),
        CASE(builder_gap_in_a_deep_stack_is_a_marker_between_both_ends),
        CASE(builder_names_the_frame_that_a_signal_handler_returns_to),
        CASE(builder_thread_attributes_keep_threads_apart),
        CASE(builder_without_thread_attributes_merges_threads),
        CASE(builder_invalid_utf8_is_repaired),
        CASE(builder_function_that_is_not_utf8_is_repaired),
        CASE(builder_huge_symbol_is_cut_and_the_rest_is_kept),
        CASE(builder_huge_path_is_cut_and_the_rest_is_kept),
        CASE(builder_huge_attribute_is_cut_and_the_rest_is_kept),
        CASE(builder_empty_window_gives_no_profile),
        CASE(builder_sample_without_weight_is_left_out),
        CASE(builder_huge_weight_saturates),
        CASE(builder_same_window_gives_same_tables),
    };
    sp_log_configure(SPANPROF_LOG_WARN, ignore_line, NULL);
    return cmocka_run_group_tests_name("builder", tests, NULL, NULL);
}
