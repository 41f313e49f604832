/* SPDX-License-Identifier: Apache-2.0 */
#include "wall/wall_places.h"

#include <stdlib.h>
#include <string.h>

enum { ROUND_UP = 128 };

sp_wall_place *sp_wall_place_of(sp_wall_places *places, uint32_t slot, bool make)
{
    sp_wall_place **page = &places->pages[slot / SP_WALL_PAGE];
    if (!*page && make) {
        *page = aligned_alloc(SP_CACHE_LINE, SP_WALL_PAGE * sizeof **page);
        if (*page)
            memset(*page, 0, SP_WALL_PAGE * sizeof **page);
    }
    return *page ? &(*page)[slot % SP_WALL_PAGE] : NULL;
}

static bool make_room(sp_wall_place *place, uint32_t bytes)
{
    if (bytes <= place->capacity)
        return true;
    uint32_t capacity = (bytes + ROUND_UP - 1) / ROUND_UP * ROUND_UP;
    free(place->record);
    place->record = malloc(capacity);
    place->capacity = place->record ? capacity : 0;
    return place->record;
}

bool sp_wall_place_put(sp_wall_place *place, const sp_visit *visit)
{
    const sp_visit_record *record = (const sp_visit_record *)(const void *)visit->record;
    place->is_still = false;
    if (!make_room(place, record->header.size))
        return false;
    memcpy(place->record, record, record->header.size);
    place->is_still = visit->is_proven;
    place->cpu_ns = visit->cpu_ns;
    place->modules = sp_visit_sample(record)->generation;
    place->number = (uint32_t)sp_visit_sample(record)->number;
    return true;
}

const sp_visit_record *sp_wall_place_take(sp_wall_place *place)
{
    if (place->visits == 0)
        return NULL;
    place->record->weight_ns = place->weight_ns;
    place->record->visits = place->visits;
    place->weight_ns = 0;
    place->visits = 0;
    return place->record;
}

void sp_wall_places_deinit(sp_wall_places *places)
{
    for (uint32_t n = 0; n < SP_ARRAY_LENGTH(places->pages); n++) {
        for (uint32_t i = 0; places->pages[n] && i < SP_WALL_PAGE; i++)
            free(places->pages[n][i].record);
        free(places->pages[n]);
        places->pages[n] = NULL;
    }
}
