/* SPDX-License-Identifier: Apache-2.0 */
/* Work that surely gets a tick. How many ticks a piece of work gets depends on the machine, but
 * every work gets one if it is long enough. */
#ifndef TESTS_UNIT_SDK_TICKS_H
#define TESTS_UNIT_SDK_TICKS_H

#include <spanprof/spanprof.h>

#include "cpu_work.h"

/* Spends SECONDS of CPU time under the active span, and then more until a sample is linked. False
 * when after another minute of CPU time no sample is linked. */
static inline bool burn_until_linked(double seconds)
{
    spanprof_stats stats = SPANPROF_STATS_INIT;
    burn(seconds);
    spanprof_stats_get(&stats);
    for (int i = 0; i < 1200 && stats.samples_linked == 0; i++) {
        burn(0.05);
        spanprof_stats_get(&stats);
    }
    return stats.samples_linked > 0;
}

#endif
