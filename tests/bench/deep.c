/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/deep.h"

#include <stdbool.h>
#include <string.h>

enum { POOL = 1024, ALL_PLACES = DEEP_PARTS * DEEP_FUNCTIONS * DEEP_PLACES };

#define DECLARE(part) extern deep_function *const part[DEEP_FUNCTIONS]
DECLARE(deep_part_0_without);
DECLARE(deep_part_1_without);
DECLARE(deep_part_2_without);
DECLARE(deep_part_3_without);
DECLARE(deep_part_0_with);
DECLARE(deep_part_1_with);
DECLARE(deep_part_2_with);
DECLARE(deep_part_3_with);

static deep_function *const *const parts[][DEEP_PARTS] = {
    [DEEP_WITHOUT_FRAME_POINTERS] = {deep_part_0_without, deep_part_1_without, deep_part_2_without,
                                     deep_part_3_without},
    [DEEP_WITH_FRAME_POINTERS] = {deep_part_0_with, deep_part_1_with, deep_part_2_with,
                                  deep_part_3_with},
};

static deep_function *functions[2][DEEP_PARTS * DEEP_FUNCTIONS + 1];

/* splitmix64: a number's own random number. */
static uint64_t random_of(uint64_t number)
{
    number += UINT64_C(0x9e3779b97f4a7c15);
    number = (number ^ number >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    number = (number ^ number >> 27) * UINT64_C(0x94d049bb133111eb);
    return number ^ number >> 31;
}

/* A place of the pool, for the frame at LEVEL (0: outermost) of STACK. */
static uint16_t place_of(uint32_t stack, uint32_t level)
{
    uint32_t chooser = level < DEEP_SHARED ? 0 : stack + 1;
    uint64_t member = random_of((uint64_t)chooser << 32 | level) % POOL;
    return (uint16_t)(random_of(member ^ UINT64_C(0xdee9) << 40) % ALL_PLACES);
}

static void call_leaf(deep_path *path)
{
    path->leaf(path->user);
    path->sum++;
}

static void gather_functions(void)
{
    for (int flavour = 0; flavour < 2; flavour++) {
        for (int part = 0; part < DEEP_PARTS; part++)
            memcpy(&functions[flavour][part * DEEP_FUNCTIONS], parts[flavour][part],
                   DEEP_FUNCTIONS * sizeof(deep_function *));
        functions[flavour][DEEP_PARTS * DEEP_FUNCTIONS] = call_leaf;
    }
}

void deep_call(deep_flavour flavour, uint32_t stack, uint32_t frames, void (*leaf)(void *),
               void *user)
{
    uint16_t places[DEEP_FRAMES_MAX + 1];
    if (!functions[0][0])
        gather_functions();
    for (uint32_t level = 0; level < frames; level++)
        places[level] = place_of(stack, level);
    places[frames] = ALL_PLACES;
    deep_path path = {.next = places, .functions = functions[flavour], .leaf = leaf, .user = user};
    functions[flavour][places[0] / DEEP_PLACES](&path);
}

uint32_t deep_places(uint32_t stacks, uint32_t frames)
{
    static bool seen[ALL_PLACES];
    uint32_t count = 0;
    memset(seen, 0, sizeof seen);
    for (uint32_t stack = 0; stack < stacks; stack++)
        for (uint32_t level = 0; level < frames; level++) {
            bool *one = &seen[place_of(stack, level)];
            count += !*one;
            *one = true;
        }
    return count;
}
