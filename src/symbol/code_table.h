/* SPDX-License-Identifier: Apache-2.0 */
/* Names of code that is in no file, as just-in-time compilers report it. Code is made and removed;
 * if two pieces contain an address, the one that was added last has it. Collector thread only. */
#ifndef SP_SYMBOL_CODE_TABLE_H
#define SP_SYMBOL_CODE_TABLE_H

#include "core/intern.h"

/* Bounds of one table, which takes some 100 MiB when it is full. Further entries are left out. */
#define SP_CODE_COUNT_MAX   ((uint32_t)1 << 18)
#define SP_CODE_LINES_MAX   ((uint32_t)1 << 20)
#define SP_CODE_STRINGS_MAX ((size_t)32 * 1024 * 1024)
#define SP_CODE_NAME_MAX    ((size_t)4096) /* bytes; a longer name is cut, with a mark */

typedef struct sp_code_line {
    uint32_t offset; /* from the begin of its code */
    uint32_t line;
    uint32_t file; /* number of a string */
} sp_code_line;

/* Code in [start, end); both are equal when the code was moved away. Its lines are lines[first_line
 * .. first_line + line_count). */
typedef struct sp_code {
    uint64_t start, end;
    uint32_t name;     /* number of a string */
    uint32_t sequence; /* the larger, the later it was added */
    uint32_t first_line, line_count;
} sp_code;

/* The addresses in [start, end) belong to codes[code]. Segments are sorted and do not overlap. */
typedef struct sp_code_segment {
    uint64_t start, end;
    uint32_t code;
} sp_code_segment;

/* The address with number n in `starts` is where codes[n] begins. `segments` is made from `codes`
 * by the first find after a change. full: an entry was left out because there was no room.
 * Zero-initialised is empty. */
typedef struct sp_code_table {
    sp_intern starts, strings;
    sp_code *codes;
    size_t code_capacity;
    sp_code_line *lines;
    uint32_t line_count;
    size_t line_capacity;
    sp_code_segment *segments;
    uint32_t segment_count;
    size_t string_bytes;
    uint32_t sequence;
    bool changed, full;
} sp_code_table;

typedef struct sp_code_name {
    const char *name, *file; /* file "": not known. Both live until deinit. */
    uint32_t line;           /* 0: not known */
} sp_code_name;

/* The SIZE bytes at START have the name NAME (LENGTH bytes) from now on. Their lines are the
 * LINE_COUNT lines that were added last. Nothing is added when SIZE or LENGTH is 0, or when there
 * is no room left; in the last case `full` is set. */
void sp_code_table_add(sp_code_table *table, uint64_t start, uint64_t size, const char *name,
                       size_t length, uint32_t line_count);
/* In the code that is added next, the bytes from OFFSET on are of line LINE of FILE (LENGTH bytes).
 * False, with `full` set, when there is no room left. */
bool sp_code_table_add_line(sp_code_table *table, uint32_t offset, uint32_t line, const char *file,
                            size_t length);
/* The code that began at FROM is at TO from now on, SIZE bytes long. Nothing happens when no code
 * began at FROM. */
void sp_code_table_move(sp_code_table *table, uint64_t from, uint64_t to, uint64_t size);

/* Find name, file and line of ADDRESS; false when the table has no code there. */
bool sp_code_table_find(sp_code_table *table, uint64_t address, sp_code_name *found);
/* Free the table's memory. The table is empty then. */
void sp_code_table_deinit(sp_code_table *table);

#endif
