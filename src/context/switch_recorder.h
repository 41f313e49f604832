/* SPDX-License-Identifier: Apache-2.0 */
/* The time recorder: records every switch of every thread with the time, for samples that other
 * profilers take (docs/formats/switches.md). Each thread writes into a ring of its own; the writer
 * thread of src/sdk/switch_file.c copies the records to a file.
 *
 * A full ring loses new records: the thread counts them, and writes a record of the loss before the
 * next one. A reader must treat such a gap as "unknown", never as the previous context.
 *
 * | operation                            | owner thread | writer | setup |
 * | switch, taint, exit, span start, end |     yes      |        |       |
 * | ring_look, _release, _lost, _is_open |              |  yes   |       |
 * | start, stop, after_fork              |              |        |  yes  |
 * Signals: not safe. */
#ifndef SP_CONTEXT_SWITCH_RECORDER_H
#define SP_CONTEXT_SWITCH_RECORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <spanprof/context.h>
#include "context/switch_format.h"
#include "core/atomic.h"

struct sp_thread;

/* --- threads ---------------------------------------------------------------------------------- */

/* THREAD, the calling one, has made CONTEXT active; NULL: the active context is unknown, because a
 * detach by another thread is pending. */
void sp_switch_recorder_switch(struct sp_thread *thread, const spanprof_context *context);
/* Another thread has detached a scope of THREAD, the calling one, at a time that is not known. */
void sp_switch_recorder_taint(struct sp_thread *thread);
/* THREAD, the calling one, ends. */
void sp_switch_recorder_exit(struct sp_thread *thread);
/* THREAD's slot gets another thread. */
void sp_switch_recorder_abandon(struct sp_thread *thread);

/* Another tracer has started or ended a span, on the calling thread. PARENT may be NULL. Does
 * nothing while the recorder is off. */
void sp_switch_recorder_span_start(const spanprof_context *context, const spanprof_context *parent,
                                   uint64_t local_root);
void sp_switch_recorder_span_end(const spanprof_context *context);

/* --- the writer ------------------------------------------------------------------------------- */

typedef struct sp_switch_ring sp_switch_ring;

/* Record from here on. Older records in the rings are not used. Returns the number of the run. */
uint32_t sp_switch_recorder_start(void);
void sp_switch_recorder_stop(void);
/* In a forked child: nothing is recorded. */
void sp_switch_recorder_after_fork(void);

/* Words in THREAD's ring that belong to RUN are in at most two pieces. */
typedef struct sp_switch_piece {
    const uint64_t *words;
    size_t count;
} sp_switch_piece;

/* Find the words in THREAD's ring that belong to RUN, and return their number; 0 also when THREAD
 * has no ring. *HEAD is their end, for sp_switch_ring_release. *FULL, if not NULL, is their share
 * of the ring. */
size_t sp_switch_ring_look(struct sp_thread *thread, uint32_t run, sp_switch_piece pieces[2],
                           uint64_t *head, double *full);
/* Give back the words below HEAD. */
void sp_switch_ring_release(struct sp_thread *thread, uint64_t head);
/* Whether THREAD may still have to write a record of something before the caller's last membarrier,
 * has a loss that is not recorded yet, or has a pending detach that it has not carried out. Call it
 * before sp_switch_ring_look. */
bool sp_switch_ring_is_open(struct sp_thread *thread, uint32_t run);
/* Records that found no room, and those of them that were switches. The others were ends of
 * threads, and other tracers' events. */
typedef struct sp_switch_lost {
    uint64_t records, switches;
} sp_switch_lost;

/* The losses of THREAD's slot in RUN. */
sp_switch_lost sp_switch_ring_lost(struct sp_thread *thread, uint32_t run);

#endif
