/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol/code_table.h"

#include <stdlib.h>
#include <string.h>

#include "core/compiler.h"
#include "core/utf8.h"
#include "core/reach.h"

/* Copy the beginning of TEXT to CUT, with a mark after it. Returns the length of both. */
static size_t cut_name(char cut[SP_CODE_NAME_MAX], const char *text, size_t length)
{
    static const char mark[] = SP_UTF8_CUT;
    size_t kept = sp_utf8_fit(text, length, SP_CODE_NAME_MAX - strlen(mark));
    memcpy(cut, text, kept);
    memcpy(cut + kept, mark, strlen(mark));
    return kept + strlen(mark);
}

static uint32_t put_string(sp_code_table *table, const char *text, size_t length)
{
    bool is_new;
    char cut[SP_CODE_NAME_MAX];
    if (length > SP_CODE_NAME_MAX) {
        length = cut_name(cut, text, length);
        text = cut;
    }
    if (table->string_bytes + length > SP_CODE_STRINGS_MAX)
        return SP_INTERN_FAILED;
    uint32_t number = sp_intern_put(&table->strings, text, length, &is_new);
    if (number != SP_INTERN_FAILED && is_new)
        table->string_bytes += length;
    return number;
}

/* The entry of the code that begins at START. A new entry is left for the caller to fill. NULL when
 * there is no room. */
static sp_code *put_start(sp_code_table *table, uint64_t start)
{
    uint32_t number = sp_intern_find(&table->starts, &start, sizeof start);
    if (number != SP_INTERN_FAILED)
        return &table->codes[number];
    uint32_t count = table->starts.count;
    if (count >= SP_CODE_COUNT_MAX || !SP_REACH(table->codes, count, table->code_capacity, 256))
        return NULL;
    number = sp_intern_put(&table->starts, &start, sizeof start, NULL);
    return number != SP_INTERN_FAILED ? &table->codes[number] : NULL;
}

void sp_code_table_add(sp_code_table *table, uint64_t start, uint64_t size, const char *name,
                       size_t length, uint32_t line_count)
{
    if (size == 0 || length == 0 || size > UINT64_MAX - start)
        return;
    uint32_t number = put_string(table, name, length);
    sp_code *code = number != SP_INTERN_FAILED ? put_start(table, start) : NULL;
    if (!code) {
        table->full = true;
        return;
    }
    *code = (sp_code){.start = start,
                      .end = start + size,
                      .name = number,
                      .sequence = ++table->sequence,
                      .first_line = table->line_count - line_count,
                      .line_count = line_count};
    table->changed = true;
}

bool sp_code_table_add_line(sp_code_table *table, uint32_t offset, uint32_t line, const char *file,
                            size_t length)
{
    bool room = table->line_count < SP_CODE_LINES_MAX &&
                SP_REACH(table->lines, table->line_count, table->line_capacity, 256);
    uint32_t number = room ? put_string(table, file, length) : SP_INTERN_FAILED;
    if (number == SP_INTERN_FAILED) {
        table->full = true;
        return false;
    }
    table->lines[table->line_count++] = (sp_code_line){offset, line, number};
    return true;
}

void sp_code_table_move(sp_code_table *table, uint64_t from, uint64_t to, uint64_t size)
{
    uint32_t number = sp_intern_find(&table->starts, &from, sizeof from);
    if (number == SP_INTERN_FAILED || size == 0 || size > UINT64_MAX - to ||
        table->codes[number].start == table->codes[number].end)
        return;
    sp_code moved = table->codes[number];
    table->codes[number].end = from;
    sp_code *code = put_start(table, to);
    table->changed = true;
    table->full |= !code;
    if (!code)
        return;
    moved.start = to;
    moved.end = to + size;
    moved.sequence = ++table->sequence;
    *code = moved;
}

/* ---- which code an address belongs to ---- */

typedef struct sweep {
    const sp_code *codes;
    uint32_t *heap; /* a heap of numbers of codes, the newest on top */
    uint32_t heap_count;
    sp_code_segment *segments;
    uint32_t segment_count;
} sweep;

static bool is_newer(const sweep *s, uint32_t a, uint32_t b)
{
    return s->codes[s->heap[a]].sequence > s->codes[s->heap[b]].sequence;
}

static void swap(uint32_t *a, uint32_t *b)
{
    uint32_t kept = *a;
    *a = *b;
    *b = kept;
}

static void push(sweep *s, uint32_t code)
{
    uint32_t at = s->heap_count++;
    s->heap[at] = code;
    for (; at > 0 && is_newer(s, at, (at - 1) / 2); at = (at - 1) / 2)
        swap(&s->heap[at], &s->heap[(at - 1) / 2]);
}

static void pop(sweep *s)
{
    s->heap[0] = s->heap[--s->heap_count];
    for (uint32_t at = 0;;) {
        uint32_t child = 2 * at + 1;
        if (child + 1 < s->heap_count && is_newer(s, child + 1, child))
            child++;
        if (child >= s->heap_count || !is_newer(s, child, at))
            return;
        swap(&s->heap[at], &s->heap[child]);
        at = child;
    }
}

/* Add the segments from FROM to TO, where no code begins: an address belongs to the newest code
 * that covers it. */
static void emit(sweep *s, uint64_t from, uint64_t to)
{
    while (s->heap_count && from < to) {
        const sp_code *top = &s->codes[s->heap[0]];
        if (top->end <= from) {
            pop(s);
            continue;
        }
        uint64_t end = sp_min_u64(top->end, to);
        sp_code_segment *last = s->segment_count ? &s->segments[s->segment_count - 1] : NULL;
        if (last && last->code == s->heap[0] && last->end == from)
            last->end = end;
        else
            s->segments[s->segment_count++] = (sp_code_segment){from, end, s->heap[0]};
        from = end;
    }
}

static int compare_starts(const void *a, const void *b)
{
    const sp_code_segment *left = a, *right = b;
    return left->start < right->start ? -1 : left->start > right->start;
}

static void run_sweep(sweep *s, const sp_code_segment *order, uint32_t count)
{
    uint64_t at = 0;
    for (uint32_t i = 0; i < count; i++) {
        emit(s, at, order[i].start);
        at = order[i].start;
        if (order[i].end > at)
            push(s, order[i].code);
    }
    emit(s, at, UINT64_MAX);
}

/* Make `segments` from `codes`. Each code adds at most two segments: one where it begins and one
 * where it ends. When memory is short there are no segments, so no address has a name. */
static void make_segments(sp_code_table *table)
{
    uint32_t count = table->starts.count;
    free(table->segments);
    sp_code_segment *order = malloc((count + 1) * sizeof *order);
    sweep s = {.codes = table->codes,
               .heap = malloc((count + 1) * sizeof *s.heap),
               .segments = malloc((2 * (size_t)count + 1) * sizeof *s.segments)};
    bool room = order && s.heap && s.segments;
    for (uint32_t i = 0; i < count && room; i++)
        order[i] = (sp_code_segment){table->codes[i].start, table->codes[i].end, i};
    if (room) {
        qsort(order, count, sizeof *order, compare_starts);
        run_sweep(&s, order, count);
    }
    free(order);
    free(s.heap);
    sp_code_segment *smaller =
        s.segment_count ? realloc(s.segments, s.segment_count * sizeof *smaller) : NULL;
    table->segments = smaller ? smaller : s.segments;
    table->segment_count = s.segment_count;
    table->changed = false;
}

static void find_line(const sp_code_table *table, const sp_code *code, uint64_t address,
                      sp_code_name *found)
{
    const sp_code_line *best = NULL;
    uint64_t offset = address - code->start;
    for (uint32_t i = 0; i < code->line_count; i++) {
        const sp_code_line *line = &table->lines[code->first_line + i];
        if (line->offset <= offset && (!best || line->offset >= best->offset))
            best = line;
    }
    found->file = best ? sp_intern_key(&table->strings, best->file) : "";
    found->line = best ? best->line : 0;
}

bool sp_code_table_find(sp_code_table *table, uint64_t address, sp_code_name *found)
{
    if (table->changed)
        make_segments(table);
    uint32_t low = 0, high = table->segment_count;
    while (low < high) { /* low: the number of segments that start at or before ADDRESS */
        uint32_t middle = low + (high - low) / 2;
        if (table->segments[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0 || address >= table->segments[low - 1].end)
        return false;
    const sp_code *code = &table->codes[table->segments[low - 1].code];
    found->name = sp_intern_key(&table->strings, code->name);
    find_line(table, code, address, found);
    return true;
}

void sp_code_table_deinit(sp_code_table *table)
{
    sp_intern_deinit(&table->starts);
    sp_intern_deinit(&table->strings);
    free(table->codes);
    free(table->lines);
    free(table->segments);
    *table = (sp_code_table){0};
}
