/* SPDX-License-Identifier: Apache-2.0 */
#include "attach/samples.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attach/target.h"
#include "collect/requests.h"
#include "core/clock.h"
#include "core/reach.h"
#include "profile/builder.h"

enum { SAMPLES_MAX = 100000, DESTINATIONS_MAX = 4 };

enum { RECORD_BYTES = sizeof(sp_sample_record) + (SP_ATTACH_DEPTH + 1) * sizeof(uint64_t) };

struct sp_attach_samples {
    sp_attach_samples_config config;
    sp_window windows[2];
    uint32_t open;  /* the window that fills */
    sp_intern tids; /* of the open window; number n is threads[n] */
    sp_window_thread *threads;
    size_t thread_capacity;
    uint64_t total;
    sp_symbolizer *symbolizer;
    _Alignas(8) uint8_t record[RECORD_BYTES]; /* scratch: an sp_sample_record */
};

sp_attach_samples *sp_attach_samples_create(const sp_attach_samples_config *config)
{
    sp_attach_samples *samples = calloc(1, sizeof *samples);
    sp_symbolizer *symbolizer = sp_symbolizer_create();
    if (!samples || !symbolizer) {
        sp_symbolizer_destroy(symbolizer);
        free(samples);
        return NULL;
    }
    const sp_symbolizer_options options = {.meanwhile = config->meanwhile, .process = config->pid};
    sp_symbolizer_configure(symbolizer, &options);
    samples->symbolizer = symbolizer;
    samples->config = *config;
    samples->windows[0].start_time_ns = sp_clock_realtime_ns();
    return samples;
}

void sp_attach_samples_destroy(sp_attach_samples *samples)
{
    if (!samples)
        return;
    for (int i = 0; i < 2; i++)
        sp_window_deinit(&samples->windows[i]);
    sp_intern_deinit(&samples->tids);
    free(samples->threads);
    sp_symbolizer_destroy(samples->symbolizer);
    free(samples);
}

/* ---- adding ---- */

/* The thread TID with its name, which is read once a window. A thread that is gone has no name. */
static const sp_window_thread *find_thread(sp_attach_samples *samples, pid_t tid)
{
    static const sp_window_thread no_thread;
    char name[48], comm[sizeof no_thread.name + 1] = "";
    bool is_new;
    uint32_t number = sp_intern_put(&samples->tids, &tid, sizeof tid, &is_new);
    if (number == SP_INTERN_FAILED ||
        !SP_REACH(samples->threads, number, samples->thread_capacity, 64))
        return &no_thread;
    sp_window_thread *thread = &samples->threads[number];
    if (is_new) {
        *thread = (sp_window_thread){.tid = tid};
        snprintf(name, sizeof name, "task/%d/comm", (int)tid);
        sp_attach_read_proc(samples->config.pid, name, comm, sizeof comm);
        memcpy(thread->name, comm, strcspn(comm, "\n"));
    }
    return thread;
}

/* The frames are the marker of SAMPLE, if it has one, and then those of the walk. */
static const sp_sample_record *make_record(sp_attach_samples *samples,
                                           const sp_attach_sample *sample)
{
    sp_sample_record *record = (sp_sample_record *)(void *)samples->record;
    const sp_walk *walk = sample->walk;
    uint32_t front = sample->leaf != 0, count = walk ? walk->count : 0;
    *record = (sp_sample_record){
        .header = {.kind = SP_RECORD_SAMPLE},
        .generation = sample->generation ? sample->generation->number : 0,
        .count = (uint16_t)(front + count),
        .leaf_count = (uint16_t)(front + (walk ? walk->leaf_count : 0)),
        .by_frame_pointer = (uint16_t)(walk ? walk->by_frame_pointer : 0),
        .end = (uint8_t)(walk ? walk->end : SP_WALK_BAD_MEMORY),
    };
    record->pcs[0] = sample->leaf;
    if (count)
        memcpy(record->pcs + front, walk->pcs, count * sizeof record->pcs[0]);
    record->header.size = (uint32_t)(sizeof *record + (front + count) * sizeof record->pcs[0]);
    return record;
}

void sp_attach_samples_add(sp_attach_samples *samples, const sp_attach_sample *sample, bool waits)
{
    sp_window *window = &samples->windows[samples->open];
    const sp_aggregate_sample input = {
        .record = make_record(samples, sample),
        .generation = sample->generation,
        .thread = find_thread(samples, sample->tid),
        .result = sample->result,
        .link = sample->link,
        .wait = sample->wait,
        .weight = sample->weight,
        .count = 1,
        .counted = waits ? 1 : sample->weight,
    };
    samples->total++;
    if (!sp_aggregate_add(window, waits ? &window->wall : &window->cpu, &input, SAMPLES_MAX))
        window->dropped_memory++;
}

void sp_attach_samples_lose(sp_attach_samples *samples, uint64_t count)
{
    samples->windows[samples->open].dropped_ring_full += count;
}

uint64_t sp_attach_samples_total(const sp_attach_samples *samples)
{
    return samples->total;
}

/* ---- ending a window ---- */

static sp_window *swap(sp_attach_samples *samples)
{
    sp_window *window = &samples->windows[samples->open];
    window->end_time_ns = sp_max_u64(sp_clock_realtime_ns(), window->start_time_ns + 1);
    samples->open ^= 1;
    samples->windows[samples->open].start_time_ns = window->end_time_ns;
    sp_intern_clear(&samples->tids);
    return window;
}

static void complete_window(const sp_attach_samples *samples, sp_window *window, const char *engine,
                            uint64_t cpu_ns)
{
    uint64_t periods = 0;
    for (uint32_t i = 0; i < window->cpu.keys.count; i++)
        periods += window->cpu.values[i].weight;
    window->period_ns = samples->config.period_ns;
    window->wall_period_ns = samples->config.wall_period_ns;
    window->wall_of_all = true;
    window->engine = engine;
    window->from_outside = true;
    uint64_t sampled_ns = periods * window->period_ns;
    window->unattributed_ns = cpu_ns > sampled_ns ? cpu_ns - sampled_ns : 0;
    sp_window_complete_wall(window, 0);
}

/* What is submitted to one destination. */
typedef struct submission {
    sp_attach_samples *samples;
    size_t destination;
} submission;

static void submit(void *user, sp_buffer *body, sp_sample_range range)
{
    const submission *to = user;
    sp_exporter_submit_profiles(to->samples->config.exporter, to->destination, body, range.count);
}

static void export_to(sp_attach_samples *samples, const sp_window *window, size_t index,
                      const sp_profile_destination *destination)
{
    const sp_build_options options = {.link_scope = destination->link_scope,
                                      .thread_attributes = destination->thread_attributes,
                                      .wait_attributes = destination->wait_attributes};
    const sp_request_bounds bounds = {destination->request_bytes, destination->request_samples};
    submission to = {samples, index};
    sp_profile_data data = {0};
    if (sp_profile_build(&data, window, samples->symbolizer, &options) &&
        sp_profile_sample_total(&data))
        sp_requests_make(&data, destination->format, samples->config.resource, &bounds, submit,
                         &to);
    sp_profile_data_deinit(&data);
}

void sp_attach_samples_end_window(sp_attach_samples *samples, const char *engine, uint64_t cpu_ns)
{
    sp_profile_destination destinations[DESTINATIONS_MAX];
    size_t count = sp_exporter_profile_destinations(samples->config.exporter, destinations);
    sp_window *window = swap(samples);
    complete_window(samples, window, engine, cpu_ns);
    for (size_t i = 0; i < count && sp_window_sample_total(window); i++)
        export_to(samples, window, i, &destinations[i]);
    sp_symbolizer_rest(samples->symbolizer);
    sp_window_clear(window);
}
