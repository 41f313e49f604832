/* SPDX-License-Identifier: Apache-2.0 */
/* `spanprof run --attach`: a running process is sampled from outside, with nothing loaded into it,
 * and the samples are written to files. docs/design/attach.md has the design.
 *
 * Threads: one, and the exporter's.  Signals: SIGINT and SIGTERM end the sampling. */
#ifndef SP_ATTACH_ATTACH_H
#define SP_ATTACH_ATTACH_H

#include "attach/target.h"

typedef struct sp_attach_options {
    const char *pid;      /* as the user wrote it */
    const char *prefix;   /* of the files */
    const char *service;  /* service.name; NULL: what the process publishes, or its command */
    uint64_t hz, wall_hz; /* wall_hz 0: waits are not sampled */
    uint64_t duration_ns; /* 0: until the process ends, or a signal arrives */
    void (*started)(void *user, const char *what); /* one sentence about the process */
    void *user;
} sp_attach_options;

typedef struct sp_attach_outcome {
    uint64_t samples;
    uint64_t stops, stop_ns; /* how often threads were stopped, and for how long in all */
    uint64_t longest_stop_ns, sampled_ns; /* of one stop; how long the process was sampled */
    bool needs_stops; /* the spans that the process publishes need them; else perf events would not
                       */
    bool has_ended;   /* the process */
    char problem[SP_ATTACH_PROBLEM];
} sp_attach_outcome;

/* Sample until the end. False: sampling did not begin; OUT->problem is one sentence that says why.
 */
bool sp_attach(const sp_attach_options *options, sp_attach_outcome *out);

#endif
