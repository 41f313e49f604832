/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/aggregate_room.h"

#include <stdlib.h>
#include <string.h>

#include "core/compiler.h"

enum { FRAMES_MAX = 8 };

/* What a shortened sample keeps; each step keeps less. The steps that keep links shorten more
 * samples, so that more often enough of them become equal and no links need to be dropped. */
typedef struct room_step {
    uint32_t frames; /* from the leaf on; UINT32_MAX: all */
    bool link;
    bool rest;    /* thread, wait and attributes */
    bool of_half; /* the lighter half of the samples is shortened; else a quarter and 2 */
} room_step;

static const room_step steps[] = {{UINT32_MAX, true, true, true}, /* only the lock is dropped */
                                  {FRAMES_MAX, true, true, true},
                                  {1, true, true, true},
                                  {1, false, true, false},
                                  {0, false, false, false}};
static const room_step *const last_step = &steps[SP_ARRAY_LENGTH(steps) - 1];

/* How many frames STACK has, gaps included. */
static uint32_t stack_length(const sp_window *window, uint32_t stack)
{
    return window->stacks.entries[stack].length / sizeof(uint32_t) - 1;
}

/* The same as sp_aggregate_stack_end, for a stack that is in the window. */
static uint32_t stack_end(const sp_window *window, uint32_t stack)
{
    const uint32_t *frames = sp_intern_key(&window->stacks, stack);
    uint32_t count = stack_length(window, stack);
    for (uint32_t i = 0; i < count && frames[count] == SP_WALK_COMPLETE; i++)
        if (frames[i] == SP_WINDOW_GAP)
            return SP_WALK_TRUNCATED;
    return frames[count];
}

/* The number of the stack with the first FRAMES frames of STACK; STACK itself when it has no more.
 */
static uint32_t shorten_stack(sp_window *window, uint32_t stack, uint32_t frames)
{
    uint32_t key[FRAMES_MAX + 1];
    if (frames > 0 && stack_length(window, stack) <= frames)
        return stack;
    memcpy(key, sp_intern_key(&window->stacks, stack), frames * sizeof *key);
    key[frames] = SP_WALK_FOLDED;
    return sp_intern_put(&window->stacks, key, (frames + 1) * sizeof *key, NULL);
}

/* A shortened wait keeps only whether the thread had a core. A live block keeps what has ended, and
 * not its age. The holder of a lock is dropped. */
static uint32_t shorten_wait(uint32_t wait)
{
    static const sp_wait other = {SP_WAIT_OTHER, SP_DESCRIPTOR_NONE};
    if (wait & SP_WINDOW_LIVE)
        return wait & ~UINT32_C(0xff);
    if (wait & SP_WINDOW_HOLDER)
        return 0;
    return wait == SP_WAIT_CPU ? SP_WAIT_CPU : sp_window_wait(other);
}

/* WAIT without its lock. */
static uint32_t forget_lock(sp_window *window, uint32_t wait)
{
    if (!sp_window_lock_of(window, wait))
        return wait;
    sp_window_holder holder =
        *(const sp_window_holder *)sp_intern_key(&window->holders, sp_window_holder_number(wait));
    holder.lock = 0;
    if (!holder.link && !holder.stack)
        return 0;
    uint32_t number = sp_intern_put(&window->holders, &holder, sizeof holder, NULL);
    return number == SP_INTERN_FAILED ? number : SP_WINDOW_HOLDER | number;
}

/* Shorten KEY to what step TO keeps. False when memory is short. */
static bool shorten(sp_window *window, const room_step *to, sp_window_key *key)
{
    static const sp_window_thread no_thread;
    key->stack = shorten_stack(window, key->stack, to->frames);
    key->wait = forget_lock(window, key->wait);
    if (!to->link)
        key->link = 0;
    if (!to->rest) {
        key->thread = sp_intern_put(&window->threads, &no_thread, sizeof no_thread, NULL);
        key->wait = shorten_wait(key->wait);
        key->attributes = 0;
    }
    return key->stack != SP_INTERN_FAILED && key->thread != SP_INTERN_FAILED &&
           key->wait != SP_INTERN_FAILED;
}

void sp_aggregate_recount(sp_window *window, sp_window_samples *samples, const sp_window_key *from,
                          const sp_window_key *to, uint64_t counted)
{
    if (from->wait != to->wait && sp_window_lock_of(window, from->wait))
        window->dropped_locks += counted;
    if (from->stack == to->stack && from->link == to->link)
        return;
    uint32_t before = stack_end(window, from->stack), now = stack_end(window, to->stack);
    if (before != SP_WALK_FOLDED && now == SP_WALK_FOLDED) {
        samples->folded += counted;
        if (before < SP_WINDOW_ENDS)
            samples->stacks_by_end[before] -= counted;
    }
    if (from->link && !to->link) {
        samples->linked -= counted;
        samples->unknown += counted;
    }
}

static int compare_weights(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

/* Which samples are shortened. */
typedef struct light_samples {
    uint64_t weight; /* the samples that are lighter than this, */
    uint32_t equals; /* and this many of equal weight, the oldest first */
} light_samples;

/* How many samples STEP shortens: half of them, or a quarter and two. When a quarter and two have
 * become one sample, a quarter and one are free. */
static uint32_t light_count(uint32_t count, const room_step *step)
{
    uint32_t size = step->of_half ? (count + 1) / 2 : count / 4 + 2;
    return size < count ? size : count;
}

/* Find the SIZE lightest samples. False when memory is short. */
static bool find_light(const sp_window_samples *samples, uint32_t size, light_samples *light)
{
    uint32_t count = samples->keys.count;
    uint64_t *weights = malloc(count * sizeof *weights);
    if (!weights)
        return false;
    for (uint32_t n = 0; n < count; n++)
        weights[n] = samples->values[n].weight;
    qsort(weights, count, sizeof *weights, compare_weights);
    light->weight = weights[size - 1];
    light->equals = 0;
    while (light->equals < size && weights[size - 1 - light->equals] == light->weight)
        light->equals++;
    free(weights);
    return true;
}

static bool is_light(light_samples *light, uint64_t weight)
{
    if (weight != light->weight)
        return weight < light->weight;
    if (light->equals == 0)
        return false;
    light->equals--;
    return true;
}

/* Add sample NUMBER of FROM to TO, shortened by step IF_LIGHT (NULL: as it is). False when memory
 * is short. */
static bool copy_sample(sp_window *window, const sp_window_samples *from, sp_window_samples *to,
                        uint32_t number, const room_step *if_light)
{
    const sp_window_key *old = sp_intern_key(&from->keys, number);
    sp_window_sample value = from->values[number];
    sp_window_key key = *old;
    bool is_new;
    if (if_light && !shorten(window, if_light, &key))
        return false;
    uint32_t place = sp_intern_put(&to->keys, &key, sizeof key, &is_new);
    if (place == SP_INTERN_FAILED)
        return false;
    sp_window_sample *sum = &to->values[place];
    if (is_new)
        *sum = (sp_window_sample){0};
    sum->weight += value.weight;
    sum->count += value.count;
    sp_window_times_append(&to->times, sum, &value);
    sp_aggregate_recount(window, to, old, &key, from == &window->cpu ? value.weight : value.count);
    return true;
}

static void discard(sp_window_samples *samples)
{
    sp_intern_deinit(&samples->keys);
    free(samples->values);
}

/* Copy SAMPLES to *OUT, with the lightest shortened by STEP. False when memory is short. */
static bool copy_shortened(sp_window *window, const sp_window_samples *samples,
                           const room_step *step, sp_window_samples *out)
{
    light_samples light;
    *out = *samples;
    out->keys = (sp_intern){0};
    out->values = malloc(samples->capacity * sizeof *out->values);
    bool done = out->values && find_light(samples, light_count(samples->keys.count, step), &light);
    for (uint32_t n = 0; n < samples->keys.count && done; n++) {
        bool shortens = is_light(&light, samples->values[n].weight);
        done = copy_sample(window, samples, out, n, shortens ? step : NULL);
    }
    if (!done)
        discard(out);
    return done;
}

/* Shorten only as much as frees a quarter: then this happens so rarely that its cost is small for
 * each sample. */
static bool free_a_quarter(sp_window *window, sp_window_samples *samples)
{
    sp_window_samples shortened;
    uint32_t count = samples->keys.count, wanted = count - 1 - count / 4;
    const room_step *first = window->locks.count ? steps : steps + 1;
    for (const room_step *step = first;; step++) {
        if (!copy_shortened(window, samples, step, &shortened))
            return false;
        if (shortened.keys.count <= wanted || step == last_step)
            break;
        discard(&shortened);
    }
    discard(samples);
    *samples = shortened;
    return true;
}

bool sp_aggregate_make_room(sp_window *window, sp_window_samples *samples, uint32_t max_samples,
                            sp_window_key *key)
{
    if (samples->keys.count < max_samples)
        return true;
    if (!free_a_quarter(window, samples))
        return false;
    return samples->keys.count < max_samples || shorten(window, last_step, key);
}
