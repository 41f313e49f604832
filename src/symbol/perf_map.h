/* SPDX-License-Identifier: Apache-2.0 */
/* /tmp/perf-PID.map: "START SIZE name" a line, numbers in hexadecimal. Written by Java agents,
 * node, .NET, Python, LuaJIT and others. Collector thread only. */
#ifndef SP_SYMBOL_PERF_MAP_H
#define SP_SYMBOL_PERF_MAP_H

#include "symbol/code_table.h"

/* A line longer than this is left out. */
#define SP_PERF_MAP_LINE_MAX ((size_t)64 * 1024)

/* Zero-initialised has read nothing. */
typedef struct sp_perf_map {
    sp_code_table table;
    bool in_long_line; /* what comes next is the rest of a line that is left out */
} sp_perf_map;

/* Read the lines in LENGTH bytes of TEXT; how many bytes of it are done. The rest is a line without
 * end, to be given again when more of it is there. A line that is no entry is left out. */
size_t sp_perf_map_read(sp_perf_map *map, const uint8_t *text, size_t length);
void sp_perf_map_deinit(sp_perf_map *map);

#endif
