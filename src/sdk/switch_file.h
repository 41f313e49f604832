/* SPDX-License-Identifier: Apache-2.0 */
/* The time recorder's file (docs/formats/switches.md): a thread of its own writes the records of
 * all threads (context/switch_recorder.h) to a file.
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

/* Empty the file at PATH, and begin to record. False, after a warning, when that is impossible:
 * also while the abandoned thread of an earlier run has not ended, or while another process records
 * to that file. */
bool sp_switch_file_start(const char *path);
/* Write everything that was recorded before the call. OK, or ERROR_TIMEOUT at the monotonic
 * DEADLINE_NS; OK also when nothing runs. */
spanprof_status sp_switch_file_flush(uint64_t deadline_ns);
/* Stop recording, write what there is, and end the thread by DEADLINE_NS; if it does not end by
 * then, it ends by itself and closes the file. */
spanprof_status sp_switch_file_stop(uint64_t deadline_ns);
/* In a forked child: close its copy of the parent's file, and record nothing. */
void sp_switch_file_after_fork(void);

/* Numbers of switches. Ends of threads and reports of other tracers are records, too, but not
 * counted here. */
typedef struct sp_switch_counters {
    uint64_t recorded; /* in the file */
    uint64_t lost;     /* for which a ring, or the disk, had no room */
} sp_switch_counters;

/* The numbers of the current run, or of the last one. */
void sp_switch_file_counters_get(sp_switch_counters *out);

#endif
