/* SPDX-License-Identifier: Apache-2.0 */
/* A recorded span's exact CPU time, from the thread's accounts (src/context/cpu_time.h) into its
 * attribute spanprof.cpu_time_ns.
 *
 * The attribute is there from the start on, as 0, so that there is memory for it at the end.
 * Threads: the only one that knows the span, because it starts or has ended. */
#ifndef SP_TRACE_SPAN_CPU_TIME_H
#define SP_TRACE_SPAN_CPU_TIME_H

#include "trace/record.h"

/* For a session that has CPU time. RECORD has its ids. */
void sp_span_cpu_time_begin(sp_span_record *record);
void sp_span_cpu_time_end(sp_span_record *record);

#endif
