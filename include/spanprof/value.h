/* SPDX-License-Identifier: Apache-2.0 */
/* The application's own values: bytes read, rows scanned, retries. Each is recorded with the stack
 * of the code that records it and with the active span. Each type becomes a profile of its own, in
 * addition to CPU time and the others:
 *
 *     static const spanprof_value_type *rows;
 *     rows = spanprof_value_type_get("rows_scanned", "rows");
 *     spanprof_record(rows, 1200);
 *
 * `spanprof flame PREFIX --type rows_scanned` shows them.
 *
 * Threads: any. Signals: spanprof_record and spanprof_value_type_sample are safe,
 * spanprof_value_type_get is not; a handler that interrupts one of these calls has to return to it.
 * Fork: types stay. */
#ifndef SPANPROF_VALUE_H
#define SPANPROF_VALUE_H

#include <stdint.h>

#include <spanprof/status.h>

SPANPROF_BEGIN_DECLS

/* A type of values, which lives as long as the process. */
typedef struct spanprof_value_type spanprof_value_type;

/* The type NAME in UNIT (NULL: "count"). It is made at the first call; later calls with the same
 * names return the same pointer. Both names are copied. A name has at most 63 characters: letters,
 * digits, `_`, `.` and `/`, and begins with a letter. A `-` becomes `_`, because backends refuse
 * it. May be called at any time, also before spanprof_start. Returns NULL, with one warning, when a
 * name is not valid, when NAME is that of a profile of the SDK (cpu, wall, samples, alloc_space,
 * …), or when there are 16 types already. Since 0.1. */
SPANPROF_API const spanprof_value_type *spanprof_value_type_get(const char *name, const char *unit);

/* From now on only some calls are sampled: of each PERIOD units of TYPE one is sampled, on average,
 * and stands for the others. Sums stay right on average, for small and large values alike; a call
 * that is not sampled takes some nanoseconds. PERIOD 0, the default: each call is sampled. Since
 * 0.1. */
SPANPROF_API void spanprof_value_type_sample(const spanprof_value_type *type, uint64_t period);

/* Record VALUE of TYPE here and now. A 0, a TYPE of NULL, and a call while the SDK does not run, or
 * samples nothing (SPANPROF_PROFILES=none), record nothing. It takes the time of a walk of the
 * stack, about half a microsecond: sample values that are recorded a million times a second. A
 * VALUE above 2^53 counts as 2^53. Since 0.1. */
SPANPROF_API void spanprof_record(const spanprof_value_type *type, uint64_t value);

SPANPROF_END_DECLS

#endif
