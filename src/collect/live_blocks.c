/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/live_blocks.h"

#include <stdlib.h>
#include <string.h>

#include "collect/aggregate_stacks.h"
#include "core/clock.h"
#include "core/reach.h"

/* --- add -------------------------------------------------------------------------------------- */

static void forget_freed(sp_live_blocks *live, sp_live_is *is_live)
{
    uint32_t kept = 0;
    for (uint32_t n = 0; n < live->count; n++)
        if (is_live(live->blocks[n].entry))
            live->blocks[kept++] = live->blocks[n];
    live->count = kept;
}

/* Remove freed blocks first. The list grows only when at least half of its blocks still live. */
static bool make_room(sp_live_blocks *live, sp_live_is *is_live)
{
    if (live->count < live->capacity)
        return true;
    forget_freed(live, is_live);
    if (live->count < live->capacity / 2)
        return true;
    return SP_REACH(live->blocks, live->capacity, live->capacity, 256);
}

void sp_live_blocks_add(sp_live_blocks *live, const sp_aggregate_sample *sample,
                        sp_live_entry entry, sp_live_is *is_live, uint64_t now_ns)
{
    if (!is_live(entry))
        return;
    sp_live_block block = {.entry = entry,
                           .seen_ns = now_ns,
                           .bytes = sample->weight,
                           .objects = sample->count,
                           .result = (uint8_t)sample->result,
                           .end = (uint8_t)sp_aggregate_stack_end(sample),
                           .by_frame_pointer = sample->record->by_frame_pointer != 0};
    if (make_room(live, is_live) && sp_aggregate_identify(&live->tables, sample, &block.key))
        live->blocks[live->count++] = block;
    else
        live->lost++;
}

/* --- from one window's tables to another's ---------------------------------------------------- */

/* Copies keys of samples from FROM's tables to TO's. stacks[n] is the number in TO of stack n of
 * FROM, plus one; 0: not copied yet. */
typedef struct transfer {
    const sp_window *from;
    sp_window *to;
    uint32_t *stacks;
    uint32_t *key; /* room for the longest stack */
} transfer;

static uint32_t longest_stack(const sp_window *window)
{
    uint32_t longest = 0;
    for (uint32_t n = 0; n < window->stacks.count; n++)
        longest =
            window->stacks.entries[n].length > longest ? window->stacks.entries[n].length : longest;
    return longest;
}

static bool transfer_init(transfer *t, const sp_window *from, sp_window *to)
{
    *t = (transfer){.from = from, .to = to};
    t->stacks = calloc((size_t)from->stacks.count + 1, sizeof *t->stacks);
    t->key = malloc(longest_stack(from) + sizeof *t->key);
    return t->stacks && t->key;
}

static void transfer_deinit(transfer *t)
{
    free(t->stacks);
    free(t->key);
}

static uint32_t move_location(const transfer *t, uint32_t number)
{
    const sp_window_location *location = sp_intern_key(&t->from->locations, number);
    bool is_new;
    uint32_t moved = sp_intern_put(&t->to->locations, location, sizeof *location, &is_new);
    if (moved != SP_INTERN_FAILED && is_new && location->module)
        sp_module_acquire(location->module);
    return moved;
}

static uint32_t move_stack(transfer *t, uint32_t number)
{
    if (t->stacks[number])
        return t->stacks[number] - 1;
    const uint32_t *key = sp_intern_key(&t->from->stacks, number);
    uint32_t bytes = t->from->stacks.entries[number].length, last = bytes / sizeof *key - 1;
    for (uint32_t i = 0; i < last; i++) {
        t->key[i] = key[i] == SP_WINDOW_GAP ? SP_WINDOW_GAP : move_location(t, key[i]);
        if (t->key[i] == SP_INTERN_FAILED)
            return SP_INTERN_FAILED;
    }
    t->key[last] = key[last];
    uint32_t moved = sp_intern_put(&t->to->stacks, t->key, bytes, NULL);
    t->stacks[number] = moved + 1;
    return moved;
}

static uint32_t move_key(const sp_intern *from, sp_intern *to, uint32_t number)
{
    return sp_intern_put(to, sp_intern_key(from, number), from->entries[number].length, NULL);
}

static bool move_sample(transfer *t, const sp_window_key *from, sp_window_key *to)
{
    *to = (sp_window_key){
        .stack = move_stack(t, from->stack),
        .link = sp_aggregate_put_link(t->to, sp_intern_key(&t->from->links, from->link)),
        .thread = move_key(&t->from->threads, &t->to->threads, from->thread),
        .wait = from->wait,
    };
    if (from->attributes) /* without memory the sample has none */
        to->attributes =
            1 + move_key(&t->from->attribute_sets, &t->to->attribute_sets, from->attributes - 1);
    return to->stack != SP_INTERN_FAILED && to->link != SP_INTERN_FAILED &&
           to->thread != SP_INTERN_FAILED;
}

/* --- snapshot --------------------------------------------------------------------------------- */

static sp_live_age age_of(uint64_t seen_ns, uint64_t now_ns)
{
    static const uint64_t seconds[SP_LIVE_AGES] = {0, 10, 60, 600, 3600};
    uint64_t age = (now_ns - seen_ns) / SP_NS_PER_S;
    int class = SP_LIVE_AGES - 1;
    while (age < seconds[class])
        class --;
    return (sp_live_age) class;
}

static bool move_keys(transfer *t, const sp_live_blocks *live, sp_window_key *keys)
{
    bool done = true;
    for (uint32_t n = 0; n < live->count && done; n++)
        done = move_sample(t, &live->blocks[n].key, &keys[n]);
    return done;
}

/* Make the tables anew with the entries of live blocks, because entries of freed blocks stay in
 * them. When memory is short, the old tables are kept. */
static void renew_tables(sp_live_blocks *live)
{
    sp_window fresh = {0};
    transfer t;
    sp_window_key *keys = malloc(((size_t)live->count + 1) * sizeof *keys);
    bool done = transfer_init(&t, &live->tables, &fresh) && keys && move_keys(&t, live, keys);
    for (uint32_t n = 0; n < live->count && done; n++)
        live->blocks[n].key = keys[n];
    free(keys);
    transfer_deinit(&t);
    sp_window_deinit(done ? &live->tables : &fresh);
    if (done)
        live->tables = fresh;
}

static bool has_much_garbage(const sp_live_blocks *live)
{
    const sp_window *t = &live->tables;
    uint64_t entries = (uint64_t)t->stacks.count + t->links.count + t->threads.count +
                       t->locations.count + t->attribute_sets.count;
    return entries > 8 * (uint64_t)live->count + 8192;
}

static bool put_block(transfer *t, const sp_live_block *block, const sp_live_view *view)
{
    sp_window_key key;
    const sp_aggregate_sums sums = {.weight = block->bytes,
                                    .count = block->objects,
                                    .counted = block->objects,
                                    .result = (sp_join_result)block->result,
                                    .end = (sp_walk_end)block->end,
                                    .by_frame_pointer = block->by_frame_pointer};
    const sp_window_link *link = sp_intern_key(&t->from->links, block->key.link);
    if (!move_sample(t, &block->key, &key))
        return false;
    key.wait = sp_window_live(age_of(block->seen_ns, view->now_ns),
                              key.link ? view->end_of(view->user, link) : SP_LIVE_END_NONE);
    return sp_aggregate_put(t->to, &t->to->calls[SP_CALL_HEAP], &key, &sums, view->max_samples);
}

void sp_live_blocks_snapshot(sp_live_blocks *live, sp_window *window, const sp_live_view *view)
{
    transfer t;
    forget_freed(live, view->is_live);
    if (has_much_garbage(live))
        renew_tables(live);
    bool done = transfer_init(&t, &live->tables, window);
    for (uint32_t n = 0; n < live->count && done; n++)
        if (!put_block(&t, &live->blocks[n], view))
            window->dropped_calls++;
    transfer_deinit(&t);
    window->dropped_calls += live->lost + (done ? 0 : live->count);
    live->lost = 0;
}

void sp_live_blocks_deinit(sp_live_blocks *live)
{
    sp_window_deinit(&live->tables);
    free(live->blocks);
}
