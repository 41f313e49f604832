/* SPDX-License-Identifier: Apache-2.0 */
/* Work that ticks have met. How many ticks a piece of work gets depends on the machine; that there
 * is one is a matter of time. */
#ifndef TESTS_UNIT_SDK_TICKS_H
#define TESTS_UNIT_SDK_TICKS_H

#include <spanprof/spanprof.h>

#include "cpu_work.h"

/* Spends SECONDS of CPU time under the span that is active, and goes on until a sample is linked.
 * False when a minute brought none. */
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
