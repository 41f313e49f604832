/* SPDX-License-Identifier: Apache-2.0 */
/* A recorded span's exact CPU time, from the thread's accounts (src/context/cpu_time.h) into its
 * attribute spanprof.cpu_time_ns.
 *
 * The attribute is set to 0 at the start, so that there is memory for it at the end. Threads: the
 * one that starts or has ended the span; no other thread uses it then. */
#ifndef SP_TRACE_SPAN_CPU_TIME_H
#define SP_TRACE_SPAN_CPU_TIME_H

#include "trace/record.h"

/* Both are called only if the session measures CPU time. RECORD's ids are set. */
void sp_span_cpu_time_begin(sp_span_record *record);
void sp_span_cpu_time_end(sp_span_record *record);

#endif
