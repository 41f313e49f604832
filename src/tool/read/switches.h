/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the recorder's file (docs/formats/switches.md): which context was active on which thread,
 * and when. For a time that the file does not cover, the state is unknown. Threads: one at a
 * time. */
#ifndef SP_TOOL_READ_SWITCHES_H
#define SP_TOOL_READ_SWITCHES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/intern.h"

typedef enum sp_switch_state {
    SP_SWITCH_STATE_UNKNOWN = 0, /* something was lost, or another thread detached a scope */
    SP_SWITCH_STATE_NONE = 1,    /* no span */
    SP_SWITCH_STATE_CONTEXT = 2,
} sp_switch_state;

/* Key of `contexts`: no padding, compared bytewise. */
typedef struct sp_switch_context {
    uint8_t trace_id[16];
    uint8_t span_id[8];
    uint8_t local_root_span_id[8]; /* zero: not known */
    uint32_t trace_flags;
    uint32_t remote;
} sp_switch_context;

/* From start_ns up to and without end_ns, by the file's clock. */
typedef struct sp_switch_interval {
    uint64_t start_ns, end_ns;
    sp_switch_state state;
    uint32_t context; /* SP_SWITCH_STATE_CONTEXT: an index into `contexts`; else 0 */
} sp_switch_interval;

/* An event that another tracer reported: a span started or ended on this thread. */
typedef struct sp_switch_event {
    uint64_t time_ns;
    uint8_t trace_id[16];
    uint8_t span_id[8];
    uint8_t parent_span_id[8];     /* only of a start; zero: none */
    uint8_t local_root_span_id[8]; /* only of a start */
    bool is_end;
} sp_switch_event;

/* A thread's life, as far as it was recorded. The first interval begins at begin_ns; each other
 * interval begins where the one before ends, and has another state or context. After the last
 * interval nothing is known. */
typedef struct sp_switch_thread {
    int64_t tid;
    char name[17];
    bool has_exited;
    uint64_t begin_ns;
    sp_switch_interval *intervals;
    sp_switch_event *events;
    size_t interval_count, event_count, interval_capacity, event_capacity;
} sp_switch_thread;

typedef struct sp_switches {
    uint64_t pid;
    uint32_t clock_id;
    int64_t epoch_offset_ns;      /* realtime minus the file's clock, when the recording began */
    int64_t last_epoch_offset_ns; /* the same at the last COMPLETE block */
    sp_intern contexts;           /* sp_switch_context */
    sp_switch_thread *threads;    /* sorted by tid, then by begin_ns */
    size_t thread_count, thread_capacity;
    uint64_t switches; /* records of a switch */
    uint64_t events;
    uint64_t lost;   /* records that the recorder says are missing */
    bool is_cut;     /* the last block is not whole: the process was killed, or still runs */
    uint64_t blocks; /* whole blocks that were read */
    uint64_t read_bytes;
} sp_switches;

/* Whether DATA begins like such a file. */
bool sp_switches_recognize(const uint8_t *data, size_t length);
/* Read all of DATA into OUT. Returns NULL, or a static text: what is wrong in the block at byte
 * out->read_bytes. Then OUT has what was read before. In both cases the caller frees OUT with
 * sp_switches_deinit. */
const char *sp_switches_read(sp_switches *out, const uint8_t *data, size_t length);
void sp_switches_deinit(sp_switches *switches);
/* The state of thread TID at TIME_NS, by the file's clock. With SP_SWITCH_STATE_CONTEXT, *CONTEXT
 * is the active context, which lives as long as SWITCHES; else it is NULL. */
sp_switch_state sp_switches_find(const sp_switches *switches, int64_t tid, uint64_t time_ns,
                                 const sp_switch_context **context);

#endif
