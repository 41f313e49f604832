/* SPDX-License-Identifier: Apache-2.0 */
/* The headers of a request for tests, in order. Names are compared without case, and a name may
 * occur several times. */
#ifndef TESTS_UNIT_TRACER_HEADERS_H
#define TESTS_UNIT_TRACER_HEADERS_H

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <spanprof/propagation.h>

enum { HEADERS_MAX = 400 };

typedef struct header_map {
    uint32_t count;
    const char *names[HEADERS_MAX];
    char
        *values[HEADERS_MAX]; /* without a NUL, so that a sanitizer finds code that reads further */
    size_t lengths[HEADERS_MAX];
} header_map;

static inline void headers_add(header_map *map, const char *name, const char *value)
{
    size_t length = strlen(value);
    char *copy = malloc(length ? length : 1);
    memcpy(copy, value, length);
    map->names[map->count] = name;
    map->values[map->count] = copy;
    map->lengths[map->count++] = length;
}

static inline void headers_clear(header_map *map)
{
    while (map->count)
        free(map->values[--map->count]);
}

static inline bool headers_get(void *user, const char *name, uint32_t index,
                               spanprof_header_value *value)
{
    header_map *map = user;
    for (uint32_t i = 0; i < map->count; i++)
        if (strcasecmp(map->names[i], name) == 0 && index-- == 0) {
            *value = (spanprof_header_value){map->values[i], map->lengths[i]};
            return true;
        }
    return false;
}

static inline void headers_set(void *user, const char *name, const char *value)
{
    headers_add(user, name, value);
}

/* The value of the only header NAME, as a string that the caller frees; NULL when there is no such
 * header, or more than one. */
static inline char *headers_only(header_map *map, const char *name)
{
    spanprof_header_value value;
    if (!headers_get(map, name, 0, &value) || headers_get(map, name, 1, &value))
        return NULL;
    headers_get(map, name, 0, &value);
    return strndup(value.data, value.length);
}

/* The header NAME that inject writes for CONTEXT, as a string that the caller frees; NULL when
 * there is no such header, or more than one. */
static inline char *injected(const spanprof_context *context, const char *name)
{
    header_map map = {0};
    spanprof_propagation_inject(context, headers_set, &map);
    char *value = headers_only(&map, name);
    headers_clear(&map);
    return value;
}

#endif
