/* SPDX-License-Identifier: Apache-2.0 */
/* .eh_frame_hdr (LSB 10.6) has four bytes with the version and the encodings, then the address of
 * .eh_frame, the number of functions, and their sorted table. Linkers use only one set of
 * encodings, which is the one that is read here: each number has 4 bytes, and an entry of the table
 * has the begin of a function and the place of its frame information, both relative to the
 * header. */
#include "unwind/function_range.h"

#include <string.h>

#include "unwind/unwind_table.h"

enum { HEADER_BYTES = 12, ENTRY_BYTES = 8, BLOCK_ENTRIES = 64 };

typedef struct function_table {
    sp_outside *outside;
    const sp_module *module;
    uint64_t entries; /* where the table is */
    uint32_t count;
} function_table;

static bool open_table(function_table *table)
{
    static const uint8_t expected[4] = {1, 0x1b, 0x03, 0x3b};
    uint8_t header[HEADER_BYTES];
    if (!table->module->frame_header ||
        !table->outside->read(table->outside, header, table->module->frame_header, sizeof header) ||
        memcmp(header, expected, sizeof expected) != 0)
        return false;
    memcpy(&table->count, header + 8, sizeof table->count);
    table->entries = table->module->frame_header + HEADER_BYTES;
    return table->count > 0;
}

/* Read where the functions of COUNT entries, from number FIRST on, begin. */
static bool read_begins(const function_table *table, uint32_t first, uint32_t count, uint64_t *out)
{
    int32_t entries[BLOCK_ENTRIES * 2];
    if (!table->outside->read(table->outside, entries,
                              table->entries + (uint64_t)first * ENTRY_BYTES,
                              (uint64_t)count * ENTRY_BYTES))
        return false;
    for (uint32_t i = 0; i < count; i++)
        out[i] = table->module->frame_header + (uint64_t)(int64_t)entries[(size_t)i * 2];
    return true;
}

/* Find the first of BLOCK_ENTRIES entries (fewer at the end of the table) that contain the last
 * entry not above ADDRESS and the entry after it. */
static bool find_block(const function_table *table, uint64_t address, uint32_t *first)
{
    uint32_t low = 0, high = table->count; /* the last entry not above ADDRESS is in [low, high) */
    while (high - low > BLOCK_ENTRIES - 1) {
        uint32_t middle = low + (high - low) / 2;
        uint64_t begin;
        if (!read_begins(table, middle, 1, &begin))
            return false;
        if (begin <= address)
            low = middle;
        else
            high = middle;
    }
    *first = low;
    return true;
}

/* A module without .eh_frame_hdr has its functions in the unwind table. */
static bool find_in_unwind_table(const sp_module *module, uint64_t address, sp_function_range *out)
{
    const sp_unwind_table *table = module->table;
    uint64_t offset = address - module->start;
    if (!table || !table->function_count || table->begins[0] > offset)
        return false;
    uint32_t low = 0,
             high = table->function_count; /* the last not above offset is in [low, high) */
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (table->begins[middle] <= offset)
            low = middle;
        else
            high = middle;
    }
    out->begin = module->start + table->begins[low];
    out->end = high < table->function_count ? module->start + table->begins[high] : module->end;
    return true;
}

bool sp_function_range_find(sp_outside *outside, const sp_generation *generation, uint64_t address,
                            sp_function_range *out)
{
    function_table table = {.outside = outside, .module = sp_generation_find(generation, address)};
    uint64_t begins[BLOCK_ENTRIES];
    uint32_t first;
    if (table.module && !table.module->frame_header)
        return find_in_unwind_table(table.module, address, out);
    if (!table.module || !open_table(&table) || !find_block(&table, address, &first))
        return false;
    uint32_t count = table.count - first < BLOCK_ENTRIES ? table.count - first : BLOCK_ENTRIES;
    if (!read_begins(&table, first, count, begins) || begins[0] > address)
        return false;
    uint32_t last = 0;
    while (last + 1 < count && begins[last + 1] <= address)
        last++;
    out->begin = begins[last];
    out->end = last + 1 < count ? begins[last + 1] : table.module->end;
    return out->begin >= table.module->start && out->end <= table.module->end && address < out->end;
}
