/* SPDX-License-Identifier: Apache-2.0 */
/* Adds profiles to the model on all cores. The input is divided into parts of consecutive requests.
 * Each part becomes a model of its own, with its own numbers for strings, stacks, links and
 * samples. The parts are then added to the whole model in their order, with new numbers. An entry
 * that is new to the whole model gets its number when it first appears, so the result is equal to
 * the model that a single thread builds from the same requests.
 *
 * A thread that has made a part adds all parts that are next in order to the whole model, unless
 * another thread is adding parts.
 *
 * Threads report no mistakes. At the end, the first part that failed is made again to report its
 * mistake. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/reach.h"
#include "tool/model/model.h"
#include "tool/model/sum.h"
#include "tool/read/parallel.h"
#include "tool/text/messages.h"
#include "tool/text/progress.h"

/* Several parts per thread, so that no thread waits long while another makes the last part. */
enum { PARTS_A_THREAD = 4 };

/* Documents [FIRST, END) of the input. */
typedef struct model_part {
    sp_model model;
    size_t first, end;
    uint64_t bytes_before; /* of profiles in the parts before this one */
    int status;
    bool is_made;
} model_part;

typedef struct model_parts {
    sp_model *whole;
    model_part *items;
    size_t count;
    uint64_t bytes;
    pthread_mutex_t lock; /* guards the members below, and is_made and status of the parts */
    bool has_spans;       /* all spans are in the whole model */
    bool is_being_added;  /* a thread is changing the whole model */
    size_t added;         /* the number of parts that were added to the whole model */
    bool lacks_memory;    /* adding a part to the whole model failed */
    int status;           /* of adding the spans, and of adding parts to the whole model */
} model_parts;

/* For each number in a part, the number in the whole model. */
typedef struct renumbering {
    uint32_t *strings, *links, *stacks, *locks, *types, *samples;
} renumbering;

/* ---- parts ---- */

static uint64_t bytes_of(const sp_input *input, sp_signal signal)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < input->count; i++)
        bytes += input->documents[i].signal == signal ? input->documents[i].bytes : 0;
    return bytes;
}

/* Divide the input into parts of about the same number of bytes. Returns false when memory is
 * short. */
static bool divide(model_parts *parts, size_t count)
{
    const sp_input *input = parts->whole->input;
    uint64_t bytes = 0;
    parts->items = calloc(count, sizeof *parts->items);
    if (!parts->items)
        return false;
    parts->count = count;
    for (size_t i = 0, part = 0; i < input->count; i++) {
        if (input->documents[i].signal == SP_SIGNAL_PROFILES)
            bytes += input->documents[i].bytes;
        parts->items[part].end = i + 1;
        if (part + 1 < count && bytes >= parts->bytes / count * (part + 1))
            parts->items[++part] =
                (model_part){.first = i + 1, .end = i + 1, .bytes_before = bytes};
    }
    return true;
}

/* Prepare an empty model for a part. It shares the names of functions with the whole model, and
 * nothing changes these names while parts are made. */
static bool begin_part(sp_model *part, sp_model *whole)
{
    static const sp_model_link none;
    *part = (sp_model){.input = whole->input,
                       .whole = whole,
                       .is_silent = true,
                       .options = whole->options,
                       .root_frames = whole->root_frames,
                       .names = whole->names};
    return sp_model_string(part, "") == 0 &&
           sp_intern_put(&part->links, &none, sizeof none, NULL) == 0;
}

static void end_part(sp_model *part)
{
    part->names = (sp_names){0};
    sp_model_deinit(part);
}

/* Add the documents of PART to its model. SHOWS_PROGRESS: this is the main thread. */
static int make_part(const model_parts *parts, model_part *part, bool shows_progress)
{
    const sp_document *documents = parts->whole->input->documents;
    uint64_t bytes = part->bytes_before;
    int status = SP_TOOL_DONE;
    for (size_t i = part->first; i < part->end && status == SP_TOOL_DONE; i++) {
        if (documents[i].signal != SP_SIGNAL_PROFILES)
            continue;
        if (shows_progress)
            sp_progress_step("taking in samples", NULL, bytes, parts->bytes);
        status = sp_model_add_profiles(&part->model, &documents[i]);
        bytes += documents[i].bytes;
    }
    return status;
}

/* ---- new numbers ---- */

static bool reserve(renumbering *to, const sp_model *part)
{
    to->strings = malloc((part->strings.count + (size_t)1) * sizeof *to->strings);
    to->links = malloc((part->links.count + (size_t)1) * sizeof *to->links);
    to->stacks = malloc((part->stacks.count + (size_t)1) * sizeof *to->stacks);
    to->locks = malloc((part->locks.count + (size_t)1) * sizeof *to->locks);
    to->types = malloc((part->type_count + 1) * sizeof *to->types);
    to->samples = malloc((part->sample_index.count + (size_t)1) * sizeof *to->samples);
    return to->strings && to->links && to->stacks && to->locks && to->types && to->samples;
}

static void forget(renumbering *to)
{
    free(to->strings);
    free(to->links);
    free(to->stacks);
    free(to->locks);
    free(to->types);
    free(to->samples);
}

static uint32_t renumber(const uint32_t *numbers, uint32_t number)
{
    return number == SP_MODEL_NONE ? SP_MODEL_NONE : numbers[number];
}

/* Add the strings of PART, with the places and other names of the functions that have these
 * names. */
static bool add_strings(sp_model *whole, const sp_model *part, renumbering *to)
{
    bool done = true;
    for (uint32_t i = 0; done && i < part->strings.count; i++) {
        const sp_intern_entry *entry = &part->strings.entries[i];
        to->strings[i] = sp_intern_put(&whole->strings, entry->key, entry->length, NULL);
        done = to->strings[i] != SP_INTERN_FAILED;
    }
    for (uint32_t i = 0; done && i < part->strings.count; i++) {
        sp_model_place place = sp_model_place_of(part, i);
        const char *file = sp_model_text(part, place.file);
        const char *module = sp_model_text(part, place.module);
        done = sp_model_note_place(whole, to->strings[i], file, module, place.first_line) &&
               sp_model_note_place(whole, to->strings[i], file, module, place.last_line);
        sp_model_names names = sp_model_names_of(part, i);
        for (int style = 0; done && style < SP_NAMES_STYLES; style++)
            done = !names.as[style] ||
                   sp_model_note_name(whole, to->strings[i], (sp_demangle_style)style,
                                      sp_model_text(part, names.as[style]));
    }
    return done;
}

static bool add_links(sp_model *whole, const sp_model *part, renumbering *to)
{
    bool done = true;
    for (uint32_t i = 0; done && i < part->links.count; i++) {
        to->links[i] = sp_model_put_link(whole, sp_intern_key(&part->links, i));
        done = to->links[i] != SP_INTERN_FAILED;
    }
    return done;
}

static bool add_stack(sp_model *whole, const sp_intern_entry *entry, const renumbering *to,
                      uint32_t *frames, uint32_t *number)
{
    size_t count = entry->length / sizeof *frames;
    for (size_t i = 0; i < count; i++)
        frames[i] = to->strings[((const uint32_t *)entry->key)[i]];
    *number = sp_intern_put(&whole->stacks, frames, count * sizeof *frames, NULL);
    return *number != SP_INTERN_FAILED;
}

static bool add_stacks(sp_model *whole, const sp_model *part, renumbering *to)
{
    uint32_t *frames = NULL;
    size_t capacity = 0;
    bool done = true;
    for (uint32_t i = 0; done && i < part->stacks.count; i++) {
        const sp_intern_entry *entry = &part->stacks.entries[i];
        done = SP_REACH(frames, entry->length / sizeof *frames, capacity, 128) &&
               add_stack(whole, entry, to, frames, &to->stacks[i]);
    }
    free(frames);
    return done;
}

static bool add_locks(sp_model *whole, const sp_model *part, renumbering *to)
{
    bool done = true;
    for (uint32_t i = 0; done && i < part->locks.count; i++) {
        sp_model_lock lock = sp_model_lock_of(part, i);
        lock.name = renumber(to->strings, lock.name);
        lock.address = renumber(to->strings, lock.address);
        to->locks[i] = sp_intern_put(&whole->locks, &lock, sizeof lock, NULL);
        done = to->locks[i] != SP_INTERN_FAILED;
    }
    return done;
}

static bool add_types(sp_model *whole, const sp_model *part, renumbering *to)
{
    bool done = true;
    for (size_t i = 0; done && i < part->type_count; i++) {
        const sp_model_type *from = &part->types[i];
        done = sp_model_find_type(whole, from, &to->types[i]);
        if (!done)
            break;
        sp_model_type *type = &whole->types[to->types[i]];
        type->profiles += from->profiles;
        sp_sum_add(&type->samples, from->samples);
        type->has_waiting_samples = type->has_waiting_samples || from->has_waiting_samples;
        type->has_ages = type->has_ages || from->has_ages;
        type->has_locks = type->has_locks || from->has_locks;
    }
    return done;
}

static sp_model_sample renumber_sample(const sp_model_sample *sample, const renumbering *to)
{
    return (sp_model_sample){.type = to->types[sample->type],
                             .stack = to->stacks[sample->stack],
                             .link = to->links[sample->link],
                             .where = sample->where,
                             .descriptor = renumber(to->strings, sample->descriptor),
                             .outlived = sample->outlived,
                             .age = renumber(to->strings, sample->age),
                             .holder = to->links[sample->holder],
                             .holder_stack = renumber(to->strings, sample->holder_stack),
                             .lock = renumber(to->locks, sample->lock),
                             .value = sample->value,
                             .count = sample->count};
}

static bool add_samples(sp_model *whole, const sp_model *part, renumbering *to)
{
    enum { BATCH = 16 };
    sp_model_sample batch[BATCH];
    bool done = true;
    for (uint32_t first = 0; done && first < part->sample_index.count; first += BATCH) {
        uint32_t left = part->sample_index.count - first, count = left < BATCH ? left : BATCH;
        for (uint32_t i = 0; i < count; i++) {
            batch[i] = renumber_sample(&part->samples[first + i], to);
            sp_sample_index_prefetch(&whole->sample_index, &batch[i]);
        }
        for (uint32_t i = 0; done && i < count; i++)
            done = sp_model_add_sample(whole, &batch[i], &to->samples[first + i]);
    }
    return done;
}

static bool add_profiles(sp_model *whole, const sp_model *part, const renumbering *to)
{
    for (size_t i = 0; i < part->profile_count; i++) {
        sp_model_profile profile = part->profiles[i];
        uint32_t service = sp_model_string(whole, profile.service);
        uint32_t instance = sp_model_string(whole, profile.instance);
        if (service == SP_INTERN_FAILED || instance == SP_INTERN_FAILED ||
            !SP_REACH(whole->profiles, whole->profile_count, whole->profile_capacity, 64))
            return false;
        profile.type = to->types[profile.type];
        profile.service = sp_model_text(whole, service);
        profile.instance = sp_model_text(whole, instance);
        for (size_t k = 0; profile.sample_numbers && k < profile.message->n_samples; k++)
            profile.sample_numbers[k] = to->samples[profile.sample_numbers[k]];
        whole->profiles[whole->profile_count++] = profile;
    }
    return true;
}

static bool add_part(sp_model *whole, sp_model *part)
{
    renumbering to = {0};
    bool done = reserve(&to, part) && add_strings(whole, part, &to) &&
                add_links(whole, part, &to) && add_stacks(whole, part, &to) &&
                add_locks(whole, part, &to) && add_types(whole, part, &to) &&
                add_samples(whole, part, &to) && add_profiles(whole, part, &to);
    sp_arena_join(&whole->memory, &part->memory);
    forget(&to);
    return done;
}

/* ---- adding the parts to the whole model ---- */

/* The part that may be added now; NULL: none. Call it with the lock held. */
static model_part *next_part(const model_parts *parts)
{
    bool may = parts->has_spans && !parts->is_being_added && parts->status == SP_TOOL_DONE &&
               parts->added < parts->count;
    model_part *next = may ? &parts->items[parts->added] : NULL;
    return next && next->is_made && next->status == SP_TOOL_DONE ? next : NULL;
}

/* Add all parts that may be added now. The memory of a part is freed once it is added. */
static void add_made_parts(model_parts *parts)
{
    model_part *part;
    pthread_mutex_lock(&parts->lock);
    while ((part = next_part(parts)) != NULL) {
        parts->is_being_added = true;
        pthread_mutex_unlock(&parts->lock);
        bool done = add_part(parts->whole, &part->model);
        end_part(&part->model);
        pthread_mutex_lock(&parts->lock);
        parts->is_being_added = false;
        parts->added++;
        if (!done) {
            parts->lacks_memory = true;
            parts->status = SP_TOOL_WRONG;
        }
    }
    pthread_mutex_unlock(&parts->lock);
}

static void add_spans(model_parts *parts)
{
    int status = sp_model_add_all_traces(parts->whole, true);
    pthread_mutex_lock(&parts->lock);
    parts->has_spans = true;
    parts->status = status;
    pthread_mutex_unlock(&parts->lock);
}

static void add_profiles_of_part(model_parts *parts, model_part *part, bool shows_progress)
{
    int status = SP_TOOL_WRONG;
    if (begin_part(&part->model, parts->whole))
        status = make_part(parts, part, shows_progress);
    pthread_mutex_lock(&parts->lock);
    part->status = status;
    part->is_made = true;
    pthread_mutex_unlock(&parts->lock);
}

/* Do piece NUMBER of the work: 0 is to add the spans, and the others are to make a part each. The
 * main thread does piece 0, because only the main thread may report mistakes in spans. */
static void run(void *state, size_t thread, size_t number)
{
    model_parts *parts = state;
    if (number == 0)
        add_spans(parts);
    else
        add_profiles_of_part(parts, &parts->items[number - 1], thread == 0);
    add_made_parts(parts);
}

/* Make the first part again that was not added, and report its first mistake. */
static int report_mistake(model_parts *parts)
{
    model_part *part = &parts->items[parts->added];
    int status = SP_TOOL_DONE;
    end_part(&part->model);
    if (begin_part(&part->model, parts->whole)) {
        part->model.is_silent = false;
        status = make_part(parts, part, true);
    }
    return status == SP_TOOL_DONE ? sp_tool_no_memory() : status;
}

int sp_model_add_in_parts(sp_model *model, size_t threads, size_t count)
{
    model_parts parts = {.whole = model,
                         .bytes = bytes_of(model->input, SP_SIGNAL_PROFILES),
                         .lock = PTHREAD_MUTEX_INITIALIZER};
    if (!divide(&parts, count))
        return sp_tool_no_memory();
    sp_parallel_run(threads, count + 1, run, &parts);
    int status = parts.lacks_memory ? sp_tool_no_memory() : parts.status;
    if (status == SP_TOOL_DONE && parts.added < count)
        status = report_mistake(&parts);
    for (size_t i = 0; i < count; i++)
        end_part(&parts.items[i].model);
    free(parts.items);
    return status;
}

int sp_model_add_all(sp_model *model)
{
    size_t count = bytes_of(model->input, SP_SIGNAL_PROFILES) / SP_PARALLEL_PART_BYTES;
    size_t threads = sp_parallel_threads(count);
    if (threads > 1 && !model->since.is_asked)
        return sp_model_add_in_parts(model, threads, threads * PARTS_A_THREAD);
    int status = sp_model_add_all_traces(model, true);
    return status == SP_TOOL_DONE ? sp_model_add_all_profiles(model) : status;
}
