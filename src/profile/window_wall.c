/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a window's wall time. */
#include "profile/window.h"

bool sp_window_part_has(const sp_window_part *part, uint32_t number)
{
    const sp_window_key *key = sp_intern_key(&part->samples->keys, number);
    return !part->of_spans || key->link != 0;
}

static uint64_t weight_of(const sp_window_part *part)
{
    uint64_t weight = 0;
    for (uint32_t i = 0; i < part->samples->keys.count; i++)
        if (sp_window_part_has(part, i))
            weight += part->samples->values[i].weight;
    return weight;
}

/* Visits are of threads that have a span, or of all. The ticks of the same threads belong to wall
 * time. */
void sp_window_complete_wall(sp_window *window, double steal)
{
    uint64_t stolen_ns = (uint64_t)((double)window->period_ns * steal + 0.5); /* for each tick */
    sp_window_part waits = {.samples = &window->wall, .unit = 1};
    sp_window_part cpu = {.samples = &window->cpu,
                          .unit = window->period_ns + stolen_ns,
                          .of_spans = !window->wall_of_all};
    window->wall_parts[0] = waits;
    window->wall_parts[1] = cpu;
    window->steal_ns = weight_of(&cpu) * stolen_ns;
}
