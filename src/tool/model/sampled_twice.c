/* SPDX-License-Identifier: Apache-2.0 */
/* Warns when a process sampled itself and was also sampled from outside: each file is correct, but
 * their sum counts the same time twice. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tool/model/model.h"
#include "tool/text/messages.h"

/* The windows of one sampler follow each other. They may seem to overlap by less than this, because
 * clocks are read one after the other. */
#define TOLERANCE_NS UINT64_C(1000000)

static uint64_t begin_of(const sp_model_profile *profile)
{
    return profile->message->time_unix_nano;
}

static uint64_t end_of(const sp_model_profile *profile)
{
    return profile->message->time_unix_nano + profile->message->duration_nano;
}

static int compare_numbers(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

/* Sort by process and type, then by time. */
static int compare(const void *a_pointer, const void *b_pointer)
{
    const sp_model_profile *a = *(sp_model_profile *const *)a_pointer;
    const sp_model_profile *b = *(sp_model_profile *const *)b_pointer;
    int order = strcmp(a->instance, b->instance);
    if (order == 0)
        order = compare_numbers(a->type, b->type);
    return order ? order : compare_numbers(begin_of(a), begin_of(b));
}

/* A window that was too large for one request has several parts with the same time. */
static bool is_same_window(const sp_model_profile *a, const sp_model_profile *b)
{
    return begin_of(a) == begin_of(b) && end_of(a) == end_of(b);
}

static bool is_twice(const sp_model_profile *first, const sp_model_profile *next)
{
    return strcmp(first->instance, next->instance) == 0 && first->type == next->type &&
           strcmp(first->document->path, next->document->path) != 0 &&
           !is_same_window(first, next) && begin_of(next) + TOLERANCE_NS < end_of(first);
}

/* Put profiles into LIST that are about a time and not a moment, and that name their process.
 * Returns their number. */
static size_t take(const sp_model *model, const sp_model_profile **list)
{
    size_t count = 0;
    for (size_t i = 0; i < model->profile_count; i++) {
        const sp_model_profile *profile = &model->profiles[i];
        if (*profile->instance && !model->types[profile->type].is_snapshot)
            list[count++] = profile;
    }
    return count;
}

static bool has_several_files(const sp_model *model)
{
    for (size_t i = 1; i < model->profile_count; i++)
        if (strcmp(model->profiles[i].document->path, model->profiles[0].document->path) != 0)
            return true;
    return false;
}

void sp_model_note_sampled_twice(const sp_model *model)
{
    if (!has_several_files(model))
        return;
    const sp_model_profile **list = calloc(model->profile_count, sizeof(sp_model_profile *));
    size_t count = list ? take(model, list) : 0;
    if (count)
        qsort(list, count, sizeof(sp_model_profile *), compare);
    for (size_t i = 1; i < count; i++) {
        if (!is_twice(list[i - 1], list[i]))
            continue;
        sp_tool_note("%s and %s sampled one process at the same time, as `run --attach` and the "
                     "program itself do: what both saw counts twice here; leave out one of them",
                     list[i - 1]->document->path, list[i]->document->path);
        break;
    }
    free(list);
}
