/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that the collector calls: they hand over the visits that are not in the ring yet. */
#include "wall/wall_run.h"

sp_ring *sp_wall_ring(void)
{
    return &sp_wall.ring;
}

static void settle_place(sp_wall_place *place, sp_wall_taker *take, void *user, uint32_t newest)
{
    const sp_visit_record *record = sp_wall_place_take(place);
    if (record)
        take(user, record);
    if (sp_wall_is_older(place, newest))
        place->is_still = false;
}

void sp_wall_settle_slot(uint32_t slot, sp_wall_taker *take, void *user, uint32_t newest)
{
    sp_lock_take(&sp_wall.lock);
    sp_wall_place *place = sp_wall_place_of(&sp_wall.places, slot, false);
    if (place)
        settle_place(place, take, user, newest);
    sp_lock_give(&sp_wall.lock);
}

void sp_wall_settle(sp_wall_taker *take, void *user, uint32_t newest)
{
    for (uint32_t slot = 0; slot < sp_thread_slots(); slot++)
        sp_wall_settle_slot(slot, take, user, newest);
    sp_lock_take(&sp_wall.lock);
    if (sp_wall.held_generation != UINT32_MAX)
        sp_wall.held_generation = newest;
    sp_lock_give(&sp_wall.lock);
}

uint32_t sp_wall_held_generation(void)
{
    sp_lock_take(&sp_wall.lock);
    uint32_t held = sp_wall.held_generation;
    sp_lock_give(&sp_wall.lock);
    return held;
}

void sp_wall_state_get(sp_wall_state *out)
{
    sp_lock_take(&sp_wall.lock);
    *out = sp_wall.state;
    out->discarded = sp_wall.visitor.discarded;
    out->fp = sp_wall.visitor.fp;
    sp_lock_give(&sp_wall.lock);
}
