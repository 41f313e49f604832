/* SPDX-License-Identifier: Apache-2.0 */
/* Copies the counters of the parts to spanprof_stats. Each function fills the fields of its part.
 * Any thread. */
#ifndef SP_SDK_FILL_STATS_H
#define SP_SDK_FILL_STATS_H

#include <spanprof/sdk.h>
#include "export/exporter.h"

void sp_stats_fill_exports(spanprof_stats *stats, const sp_export_counters *counters);
void sp_stats_fill_tracer(spanprof_stats *stats);
void sp_stats_fill_engine(spanprof_stats *stats);
void sp_stats_fill_wall(spanprof_stats *stats);
void sp_stats_fill_carriers(spanprof_stats *stats);
void sp_stats_fill_attributes(spanprof_stats *stats);
void sp_stats_fill_switches(spanprof_stats *stats);
void sp_stats_fill_misuse(spanprof_stats *stats);

#endif
