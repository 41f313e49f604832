/* SPDX-License-Identifier: Apache-2.0 */
/* The span of a whole process, and the SDK that takes samples under this span.
 *
 * The environment variable TRACEPARENT names the parent of the span. Then TRACEPARENT is set to the
 * span, so that it is the parent of the programs that the process starts. Threads: one at a time.
 * Signals: not safe. */
#ifndef SP_RUN_PROCESS_SPAN_H
#define SP_RUN_PROCESS_SPAN_H

#include <stdbool.h>

/* Start the SDK and the span. False: the SDK does not run. A message said why, except when
 * it is disabled, or when the run of `spanprof run` is over. */
bool sp_process_span_begin(void);
/* The same without a change of the environment, because other threads may be reading it. */
bool sp_process_span_begin_late(void);
/* End the span and the SDK. CODE is the exit code of the process; negative: there is none, or it is
 * not known. Returns when the recording is written or sent, or after 5 seconds. */
void sp_process_span_end(int code);

/* End the SDK of a program that uses spanprof itself. Returns as sp_process_span_end does. */
void sp_process_stop(void);

/* For a program that uses spanprof itself: in a run of `spanprof run`, set SPANPROF_FILE to the
 * prefix of this process's files. When the run is over, this is a prefix with the PID, because the
 * process must not move the files that the run has reported. Call it before main, when no other
 * thread reads the environment. */
void sp_process_take_files(void);

#endif
