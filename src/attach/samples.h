/* SPDX-License-Identifier: Apache-2.0 */
/* Collects samples in a window until the caller ends it. Samples are aggregated, named, built and
 * written as the collector does it. Threads: one at a time. Signals: not safe. */
#ifndef SP_ATTACH_SAMPLES_H
#define SP_ATTACH_SAMPLES_H

#include "collect/aggregate.h"
#include "export/exporter.h"
#include "symbol/symbolizer.h"

enum { SP_ATTACH_DEPTH = 512 };

/* One sample: its thread, its weight, its span and its stack. */
typedef struct sp_attach_sample {
    pid_t tid;
    uint64_t weight; /* periods, or nanoseconds that the thread waited */
    sp_join_result result;
    sp_window_link link;
    const sp_generation *generation; /* NULL: no stack was read */
    const sp_walk *walk;             /* borrowed; NULL: no stack was read */
    uint64_t leaf;                   /* marker in front of the stack; 0: none */
    sp_wait wait;
} sp_attach_sample;

typedef struct sp_attach_samples sp_attach_samples;

typedef struct sp_attach_samples_config {
    pid_t pid;
    uint64_t period_ns, wall_period_ns; /* wall_period_ns 0: waits are not sampled */
    sp_exporter *exporter;
    const sp_resource *resource;
    sp_meanwhile meanwhile; /* called while names are looked up, which may take seconds */
} sp_attach_samples_config;

/* NULL: memory is short. */
sp_attach_samples *sp_attach_samples_create(const sp_attach_samples_config *config);
void sp_attach_samples_destroy(sp_attach_samples *samples);

/* Add SAMPLE. WAITS: it is of a visit; else of a tick. */
void sp_attach_samples_add(sp_attach_samples *samples, const sp_attach_sample *sample, bool waits);
/* COUNT ticks were lost. */
void sp_attach_samples_lose(sp_attach_samples *samples, uint64_t count);

/* End the open window, and pass it to the exporter. A window without samples is discarded. ENGINE
 * names the source of ticks; CPU_NS is the CPU time that the process used in the window. */
void sp_attach_samples_end_window(sp_attach_samples *samples, const char *engine, uint64_t cpu_ns);
/* Samples so far, of both kinds. */
uint64_t sp_attach_samples_total(const sp_attach_samples *samples);

#endif
