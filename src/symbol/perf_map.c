/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol/perf_map.h"

#include <string.h>

#include "core/compiler.h"
#include "core/hex.h"

/* Read a number at *AT, with or without "0x", and skip the blanks after it. False when there is no
 * number with a blank after it, or it has more than 64 bits. */
static bool read_hex(const char *line, size_t length, size_t *at, uint64_t *value)
{
    size_t begin = *at;
    *value = 0;
    if (length - begin > 2 && line[begin] == '0' && line[begin + 1] == 'x')
        begin += 2;
    size_t i = begin;
    for (; i < length && sp_hex_digit(line[i], true) >= 0; i++) {
        if (*value >> 60)
            return false;
        *value = *value << 4 | (uint64_t)sp_hex_digit(line[i], true);
    }
    bool good = i > begin && i < length && line[i] == ' ';
    while (i < length && line[i] == ' ')
        i++;
    *at = i;
    return good;
}

static void read_line(sp_code_table *table, const char *line, size_t length)
{
    uint64_t start, size;
    size_t at = 0;
    while (length && (line[length - 1] == '\r' || line[length - 1] == ' '))
        length--;
    if (read_hex(line, length, &at, &start) && read_hex(line, length, &at, &size) &&
        !memchr(line + at, 0, length - at))
        sp_code_table_add(table, start, size, line + at, length - at, 0);
}

size_t sp_perf_map_read(sp_perf_map *map, const uint8_t *text, size_t length)
{
    size_t at = 0;
    while (at < length) {
        const uint8_t *end = memchr(text + at, '\n', length - at);
        size_t count = end ? (size_t)(end - text) - at : length - at;
        bool too_long = count > SP_PERF_MAP_LINE_MAX;
        if (!end && !too_long && !map->in_long_line)
            return at;
        if (end && !too_long && !map->in_long_line)
            read_line(&map->table, (const char *)text + at, count);
        map->in_long_line = !end;
        at += count + (end != NULL);
    }
    return at;
}

void sp_perf_map_deinit(sp_perf_map *map)
{
    sp_code_table_deinit(&map->table);
    *map = (sp_perf_map){0};
}
