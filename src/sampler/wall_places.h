/* SPDX-License-Identifier: Apache-2.0 */
/* Where each thread was when it was last visited, and how much its visits there weigh: a record that is kept until the thread goes on,
 * so that a thread which waits for a minute at one place costs one record a window.
 * Threads: one at a time.  Signals: not safe. */
#ifndef SP_SAMPLER_WALL_PLACES_H
#define SP_SAMPLER_WALL_PLACES_H

#include "sampler/visit.h"

/* Of one slot of the registry. All zero: never visited. */
typedef struct sp_wall_place {
    uint32_t generation; /* of the slot */
    bool is_still;       /* until the thread's clock moves, the record is true of it */
    uint64_t cpu_ns;     /* its clock then */
    sp_syscall_file file;
    sp_visit_record *record; /* NULL: none yet; nobody's when its visits are 0 */
    uint32_t capacity;       /* of the record, bytes */
} sp_wall_place;

typedef struct sp_wall_places {
    sp_wall_place *pages[SP_THREADS_MAX / 256]; /* made when needed, never moved */
} sp_wall_places;

/* The place of SLOT; NULL when memory is short, or when there is none and MAKE is false. */
sp_wall_place *sp_wall_place_of(sp_wall_places *places, uint32_t slot, bool make);

/* Keep VISIT as the place's record, with a weight. False when memory is short. */
bool sp_wall_place_put(sp_wall_place *place, const sp_visit *visit, uint64_t weight_ns);
/* One visit more. */
void sp_wall_place_stay(sp_wall_place *place, uint64_t weight_ns);
/* Whether its record stands for any visit, and its end. */
bool sp_wall_place_is_due(const sp_wall_place *place);
void sp_wall_place_clear(sp_wall_place *place);

void sp_wall_places_deinit(sp_wall_places *places);

#endif
