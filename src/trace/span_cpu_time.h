/* SPDX-License-Identifier: Apache-2.0 */
/* Gives a recorded span the attribute spanprof.cpu_time_ns: its exact CPU time, which the accounts
 * of the threads have (context/cpu_time.h).
 *
 * The attribute is set to 0 at the start, so that no memory is needed at the end. Threads: the one
 * that starts or ends the span; no other thread uses RECORD meanwhile. */
#ifndef SP_TRACE_SPAN_CPU_TIME_H
#define SP_TRACE_SPAN_CPU_TIME_H

#include "trace/record.h"

/* Both are called only if the session measures CPU time. RECORD's ids are set. */
void sp_span_cpu_time_begin(sp_span_record *record);
void sp_span_cpu_time_end(sp_span_record *record);

#endif
