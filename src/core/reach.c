/* SPDX-License-Identifier: Apache-2.0 */
#include "core/reach.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

bool sp_reach(void *items, size_t number, size_t *capacity, size_t first, size_t size)
{
    size_t wanted = *capacity ? *capacity : first;
    while (wanted <= number && wanted <= SIZE_MAX / 2)
        wanted *= 2;
    void *array;
    memcpy(&array, items, sizeof array); /* *ITEMS is a pointer of any type */
    bool fits = wanted > number && wanted <= SIZE_MAX / size;
    void *grown = fits ? realloc(array, wanted * size) : NULL;
    if (!grown)
        return false;
    memcpy(items, &grown, sizeof grown);
    *capacity = wanted;
    return true;
}
