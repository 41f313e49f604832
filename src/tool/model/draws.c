/* SPDX-License-Identifier: Apache-2.0 */
/* Computes how many samples of allocations, and of waits for locks, were taken. The files do not
 * contain this number: each of their samples is a sum of bytes, or of objects, over all blocks of a
 * stack and a span. But a block of S bytes is sampled with the probability p = 1 - exp(-S / R),
 * where R is the period. A sampled block then stands for S / p bytes and 1 / p objects. So bytes /
 * objects is the size S, and objects * p is the number of sampled blocks. The result is exact when
 * all blocks have one size, and otherwise a little too large.
 *
 * The number of objects is rounded in the files, and the number of bytes is almost exact. So p is
 * computed from the bytes that a sampled block stands for. When the blocks of a stack have several
 * sizes, p is that of a block with their mean size. The error of the bytes is then a little too
 * large, and that of the objects may be too small.
 *
 * Waits for locks are sampled in the same way: time instead of bytes, waits instead of objects. */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/compiler.h"
#include "tool/model/model.h"
#include "tool/model/sum.h"
#include "tool/text/messages.h"

/* The part of the key that is equal in two samples that count the same blocks: all but the type. */
static const void *key_of(const sp_model_sample *sample)
{
    return &sample->stack;
}

enum { KEY_LENGTH = offsetof(sp_model_sample, value) - offsetof(sp_model_sample, stack) };

/* Two types that count the same blocks: `space` in bytes, `objects` in objects. `numbers` has, by
 * number of a key, the number of the sample of type `objects`. */
typedef struct pair {
    uint32_t space, objects;
    sp_intern keys;
    uint32_t *numbers;
} pair;

static bool index_objects(pair *pair, const sp_model *model)
{
    pair->numbers = malloc((model->sample_index.count + (size_t)1) * sizeof *pair->numbers);
    for (uint32_t i = 0; pair->numbers && i < model->sample_index.count; i++) {
        if (model->samples[i].type != pair->objects)
            continue;
        uint32_t key = sp_intern_put(&pair->keys, key_of(&model->samples[i]), KEY_LENGTH, NULL);
        if (key == SP_INTERN_FAILED)
            return false;
        pair->numbers[key] = i;
    }
    return pair->numbers != NULL;
}

/* The number of sampled blocks. It is at least LEAST, the number of samples in the files. */
static uint64_t count_blocks(uint64_t bytes, uint64_t objects, double period, uint64_t least)
{
    double size = (double)bytes / (double)objects;
    double blocks = round((double)objects * -expm1(-size / period));
    return blocks > (double)least ? (uint64_t)blocks : least;
}

/* The probability p of a sampled block that stands for BYTES: the size S with S / p = BYTES is the
 * root of a convex function, so Newton's method from the right converges. */
static double chance_of(double bytes, double period)
{
    double whole = bytes / period, size = whole;
    if (whole <= 1)
        return 0;
    for (int i = 0; i < 30; i++)
        size -= (size + whole * expm1(-size)) / (1 - whole * exp(-size));
    return -expm1(-size);
}

static void count_pair(const pair *pair, sp_model *model)
{
    double period = model->types[pair->space].draw_period;
    for (uint32_t i = 0; i < model->sample_index.count; i++) {
        sp_model_sample *space = &model->samples[i];
        if (space->type != pair->space || space->value == 0)
            continue;
        uint32_t key = sp_intern_find(&pair->keys, key_of(space), KEY_LENGTH);
        if (key == SP_INTERN_FAILED || model->samples[pair->numbers[key]].value == 0)
            continue;
        sp_model_sample *objects = &model->samples[pair->numbers[key]];
        space->count = count_blocks(space->value, objects->value, period, space->count);
        objects->count = space->count;
        float chance = (float)chance_of((double)space->value / (double)space->count, period);
        model->chances[i] = model->chances[pair->numbers[key]] = chance;
    }
}

static void sum_samples(sp_model *model, uint32_t type)
{
    model->types[type].samples = 0;
    for (uint32_t i = 0; i < model->sample_index.count; i++)
        if (model->samples[i].type == type)
            sp_sum_add(&model->types[type].samples, model->samples[i].count);
}

/* The period of the type NUMBER: in bytes, or the nanoseconds of waiting that its profiles have as
 * an attribute. 0: it is not known. */
static double period_of(const sp_model *model, uint32_t number)
{
    const sp_model_type *type = &model->types[number];
    if (strcmp(type->unit, "bytes") == 0 && strcmp(type->period_unit, "bytes") == 0)
        return type->period > 1 ? (double)type->period : 0;
    uint64_t ns = 0;
    for (size_t i = 0; type->is_wait && !ns && i < model->profile_count; i++)
        if (model->profiles[i].type == number)
            ns = sp_model_profile_number(&model->profiles[i], SP_LOCK_NS_KEY);
    return (double)ns;
}

double sp_model_miss_chance(const sp_model *model, uint32_t number)
{
    return model->chances ? 1 - (double)model->chances[number] : 1;
}

double sp_model_sampling_variance(const sp_model *model, uint32_t number)
{
    double events = fmax(1, (double)model->samples[number].count);
    double one = (double)model->samples[number].value / events;
    return events * one * one * sp_model_miss_chance(model, number);
}

uint64_t sp_model_error(double variance)
{
    double error = round(sqrt(variance));
    return error < (double)INT64_MAX ? (uint64_t)error : INT64_MAX;
}

static bool make_chances(sp_model *model)
{
    if (!model->chances)
        model->chances = calloc(model->sample_index.count + (size_t)1, sizeof *model->chances);
    return model->chances != NULL;
}

static bool count_named(sp_model *model, const char *space, const char *objects)
{
    pair pair = {.space = sp_model_type_of_name(model, space),
                 .objects = sp_model_type_of_name(model, objects)};
    if (pair.space != SP_MODEL_NONE)
        model->types[pair.space].draw_period = period_of(model, pair.space);
    if (pair.space == SP_MODEL_NONE || pair.objects == SP_MODEL_NONE ||
        model->types[pair.space].draw_period == 0)
        return true;
    bool done = make_chances(model) && index_objects(&pair, model);
    if (done) {
        count_pair(&pair, model);
        sum_samples(model, pair.space);
        sum_samples(model, pair.objects);
        model->types[pair.space].has_draws = model->types[pair.objects].has_draws = true;
    }
    sp_intern_deinit(&pair.keys);
    free(pair.numbers);
    return done;
}

int sp_model_count_draws(sp_model *model)
{
    static const char *const names[][2] = {{"alloc_space", "alloc_objects"},
                                           {"inuse_space", "inuse_objects"},
                                           {"delay", "contentions"},
                                           {"condition_delay", "condition_waits"},
                                           {"semaphore_delay", "semaphore_waits"}};
    bool done = true;
    for (size_t i = 0; done && i < SP_ARRAY_LENGTH(names); i++) {
        char space[32], objects[32];
        snprintf(space, sizeof space, "%s_innermost", names[i][0]);
        snprintf(objects, sizeof objects, "%s_innermost", names[i][1]);
        done = count_named(model, names[i][0], names[i][1]) && count_named(model, space, objects);
    }
    return done ? SP_TOOL_DONE : sp_tool_no_memory();
}
