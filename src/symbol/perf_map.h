/* SPDX-License-Identifier: Apache-2.0 */
/* /tmp/perf-PID.map: "START SIZE name" a line, numbers in hexadecimal. Written by Java agents,
 * node, .NET, Python, LuaJIT and others. Collector thread only. */
#ifndef SP_SYMBOL_PERF_MAP_H
#define SP_SYMBOL_PERF_MAP_H

#include "symbol/code_table.h"

/* A line longer than this is left out. */
#define SP_PERF_MAP_LINE_MAX ((size_t)64 * 1024)

/* Zero-initialised: nothing has been read. */
typedef struct sp_perf_map {
    sp_code_table table;
    bool in_long_line; /* the next bytes are the rest of a line that is left out */
} sp_perf_map;

/* Read the lines in the LENGTH bytes at TEXT. Returns how many bytes are done. The rest is a line
 * without its end; pass it again when the file has more of it. A line that is no entry is left out.
 */
size_t sp_perf_map_read(sp_perf_map *map, const uint8_t *text, size_t length);
void sp_perf_map_deinit(sp_perf_map *map);

#endif
