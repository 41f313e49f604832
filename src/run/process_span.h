/* SPDX-License-Identifier: Apache-2.0 */
/* The span that stands for a process as a whole, and the SDK that samples under it.
 *
 * Its parent is what TRACEPARENT in the environment names; programs that the process starts find
 * the span there. Threads: one at a time.  Signals: not safe. */
#ifndef SP_RUN_PROCESS_SPAN_H
#define SP_RUN_PROCESS_SPAN_H

#include <stdbool.h>

/* Start the SDK and the span. False: the SDK does not run, and has said why. */
bool sp_process_span_begin(void);
/* The same in a process whose other threads may be reading the environment: it is left as it is. */
bool sp_process_span_begin_late(void);
/* End both. CODE is the exit code of the process; negative: it has none, or it is not known. What
 * there is has been written or sent when it returns. */
void sp_process_span_end(int code);

/* For a program that uses spanprof itself: SPANPROF_FILE becomes its files in a run of `spanprof
 * run`. Before main, when no other thread reads the environment. */
void sp_process_take_files(void);

#endif
