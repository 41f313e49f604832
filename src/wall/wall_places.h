/* SPDX-License-Identifier: Apache-2.0 */
/* Where each thread was at its last visit, and the weight of its visits there. The record is kept
 * until the thread runs again, so a thread that waits at one place for a minute costs one record
 * for each window. Threads: one at a time. Signals: not safe. */
#ifndef SP_WALL_WALL_PLACES_H
#define SP_WALL_WALL_PLACES_H

#include "wall/visit.h"

/* The place of the thread in one slot of the registry. All zero: never visited. All data for the
 * visit of a thread that has not run is in one cache line, because with many threads it is not in
 * the cache. */
typedef struct sp_wall_place {
    _Alignas(SP_CACHE_LINE) uint64_t cpu_ns; /* the thread's clock at the last visit */
    uint64_t weight_ns;                      /* of the visits that the record stands for */
    uint32_t visits;                         /* 0: the record stands for no visit */
    uint32_t generation;                     /* of the slot */
    uint32_t modules;                        /* generation that the record refers to; 0: none */
    bool is_still;           /* the record is true until the thread's clock advances */
    uint16_t first_block;    /* in which the thread was visited first; 0: an earlier one */
    uint32_t capacity;       /* of the record, bytes */
    uint32_t number;         /* switch number of the record, its lower half */
    sp_visit_record *record; /* NULL: none yet; its weight and visits are set by _take */
    sp_syscall_file file;
} sp_wall_place;

_Static_assert(sizeof(sp_wall_place) == SP_CACHE_LINE, "one line");

enum { SP_WALL_PAGE = 256 };

typedef struct sp_wall_places {
    sp_wall_place *pages[SP_THREADS_MAX / SP_WALL_PAGE]; /* made when needed, never moved */
} sp_wall_places;

/* The place of SLOT; NULL when memory is short, or when there is none and MAKE is false. */
sp_wall_place *sp_wall_place_of(sp_wall_places *places, uint32_t slot, bool make);

/* Keep VISIT as the place's record, of no weight. False when memory is short. */
bool sp_wall_place_put(sp_wall_place *place, const sp_visit *visit);
/* Count a visit of WEIGHT_NS for the record. */
static inline void sp_wall_place_stay(sp_wall_place *place, uint64_t weight_ns)
{
    place->weight_ns += weight_ns;
    place->visits++;
}

/* Take the record with its weight and visits; NULL when there are none. The place has none
 * afterwards. */
const sp_visit_record *sp_wall_place_take(sp_wall_place *place);

void sp_wall_places_deinit(sp_wall_places *places);

#endif
