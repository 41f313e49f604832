/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol/kernel_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/buffer.h"
#include "core/hex.h"
#include "core/reach.h"

/* A symbol covers the addresses up to the next symbol, but no more than LARGEST_FUNCTION bytes:
 * addresses between the kernel and its modules belong to neither. */
enum { LARGEST_FUNCTION = 256 * 1024, COUNT_MAX = 1 << 20, NAMES_MAX = 32 * 1024 * 1024 };

typedef struct kernel_symbol {
    uint64_t start;
    uint32_t name; /* offset in `names` */
} kernel_symbol;

/* Sorted by start. */
struct sp_kernel_names {
    kernel_symbol *symbols;
    size_t count, capacity;
    sp_buffer names;
};

static void add(sp_kernel_names *names, uint64_t start, const char *name)
{
    if (names->count == COUNT_MAX || !SP_REACH(names->symbols, names->count, names->capacity, 4096))
        return;
    uint32_t at = (uint32_t)names->names.length;
    if (sp_buffer_add(&names->names, name, strlen(name) + 1))
        names->symbols[names->count++] = (kernel_symbol){start, at};
}

/* Read a line "ffffffff81000000 T name", which may have a tab and the name of a module after it.
 * Returns false when the kernel hides addresses: they are 0. */
static bool read_line(sp_kernel_names *names, char *line)
{
    uint64_t start = 0;
    size_t i = 0;
    for (; i < 16 && sp_hex_digit(line[i], true) >= 0; i++)
        start = start << 4 | (uint64_t)sp_hex_digit(line[i], true);
    if (i == 0 || line[i] != ' ' || !line[i + 1] || line[i + 2] != ' ')
        return true;
    char *name = line + i + 3;
    name[strcspn(name, "\t\n ")] = 0;
    if (strchr("tTwW", line[i + 1]) && name[0] && sp_is_kernel_address(start))
        add(names, start, name);
    return start != 0 || !strchr("tT", line[i + 1]);
}

static int compare(const void *a, const void *b)
{
    const kernel_symbol *left = a, *right = b;
    if (left->start != right->start)
        return left->start < right->start ? -1 : 1;
    return left->name < right->name ? -1 : left->name > right->name;
}

sp_kernel_names *sp_kernel_names_create(const char *path)
{
    char line[1024];
    sp_kernel_names *names = calloc(1, sizeof *names);
    if (!names)
        return NULL;
    names->names = (sp_buffer)SP_BUFFER_INIT(NAMES_MAX);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file) && read_line(names, line))
        continue;
    if (file)
        fclose(file);
    if (names->count)
        qsort(names->symbols, names->count, sizeof *names->symbols, compare);
    return names;
}

void sp_kernel_names_destroy(sp_kernel_names *names)
{
    if (!names)
        return;
    free(names->symbols);
    sp_buffer_deinit(&names->names);
    free(names);
}

const char *sp_kernel_names_find(const sp_kernel_names *names, uint64_t address)
{
    size_t low = 0, high = names->count;
    while (low < high) { /* low: the number of symbols that start at or before ADDRESS */
        size_t middle = low + (high - low) / 2;
        if (names->symbols[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0 || address - names->symbols[low - 1].start >= LARGEST_FUNCTION)
        return NULL;
    while (low > 1 && names->symbols[low - 2].start == names->symbols[low - 1].start)
        low--; /* of several names take the first in the file, as the kernel does */
    return (const char *)names->names.data + names->symbols[low - 1].name;
}
