/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks to be walked: many, deep, and all different. Four shared objects hold 1,024 functions
 * each, every one with four places from which it calls the next. A path says which functions, and
 * from which place; the last calls back. Two flavours of the four objects are built: without frame
 * pointers, as distributions compile, and with them.
 *
 * Of the 16,384 places, paths take 1,024 at random. The outermost frames are the same in all, as in
 * a server, whose requests all come through the same loop. */
#ifndef TESTS_DEEP_H
#define TESTS_DEEP_H

#include <stdint.h>

enum {
    DEEP_PARTS = 4,
    DEEP_FUNCTIONS = 1024, /* in a part */
    DEEP_PLACES = 4,       /* in a function */
    DEEP_SHARED = 8,       /* outermost frames that all stacks have in common */
    DEEP_FRAMES_MAX = 256,
};

typedef struct deep_path deep_path;
typedef void deep_function(deep_path *path);

/* What the functions see. *next is the next one's number times DEEP_PLACES, and the place from
 * which that one will call. */
struct deep_path {
    const uint16_t *next;
    deep_function *const *functions;
    uint64_t sum; /* so that nothing is left out */
    void (*leaf)(void *user);
    void *user;
};

typedef enum deep_flavour { DEEP_WITHOUT_FRAME_POINTERS, DEEP_WITH_FRAME_POINTERS } deep_flavour;

/* Call LEAF(USER) below FRAMES functions (1 to DEEP_FRAMES_MAX), on the stack with number STACK:
 * the same number, the same stack. */
void deep_call(deep_flavour flavour, uint32_t stack, uint32_t frames, void (*leaf)(void *),
               void *user);

/* Different return addresses in the stacks 0 … STACKS - 1. */
uint32_t deep_places(uint32_t stacks, uint32_t frames);

#endif
