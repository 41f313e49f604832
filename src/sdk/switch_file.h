/* SPDX-License-Identifier: Apache-2.0 */
/* The time recorder's file (docs/formats/switches.md): a thread of its own takes what threads
 * record (context/switch_recorder.h) to a file.
 *
 * | operation            | setup | any thread | forked child |
 * | start, stop          |  yes  |            |              |
 * | flush, counters_get  |       |    yes     |              |
 * | after_fork           |       |            |     yes      |
 * Signals: not safe. */
#ifndef SP_SDK_SWITCH_FILE_H
#define SP_SDK_SWITCH_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include <spanprof/status.h>

/* Begin the file at PATH anew and record. False, having warned, when that cannot be; so also while
 * the thread of a run that stop gave up on has not ended, or while another process records to that
 * file. */
bool sp_switch_file_start(const char *path);
/* Write everything that was recorded before the call. OK, or ERROR_TIMEOUT at the monotonic
 * DEADLINE_NS; OK also when nothing runs. */
spanprof_status sp_switch_file_flush(uint64_t deadline_ns);
/* Record no more, write what there is, and end the thread by DEADLINE_NS; if it does not end by
 * then, it ends by itself and closes the file. */
spanprof_status sp_switch_file_stop(uint64_t deadline_ns);
/* The file is the parent's, and the thread is not here. */
void sp_switch_file_after_fork(void);

/* Switches: neither the ends of threads nor what other tracers tell, which are records as well. */
typedef struct sp_switch_counters {
    uint64_t recorded; /* in the file */
    uint64_t lost;     /* for which a ring had no room, or the disk */
} sp_switch_counters;

/* Of the run, or of the last one. */
void sp_switch_file_counters_get(sp_switch_counters *out);

#endif
