/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol/dwarf_frames.h"

#include <dwarf.h>
#include <gelf.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include "core/log.h"
#include "core/reach.h"
#include "symbol/dwarf_scopes.h"

/* Deeper trees are damaged or malicious. BYTES_OF_LINE is the memory that libdw 0.188 needs for a
 * line, as measured. ROOM_AFTER: see has_room_after. */
enum { TREE_DEPTH = 100, BYTES_OF_LINE = 48, ROOM_AFTER = 16 };

/* [start, end) belongs to a unit, or to a function; `owner` is its number. */
typedef struct address_range {
    uint64_t start, end;
    size_t owner;
} address_range;

/* Ranges, sorted by start once `sort_ranges` was called. */
typedef struct range_list {
    address_range *items;
    size_t count, capacity;
    bool failed;
} range_list;

/* `skeleton` has ranges and lines, `body` the functions. They are the same, except in split DWARF,
 * where the body is in a .dwo file. `read`: the members below body are filled. */
typedef struct unit {
    Dwarf_Die skeleton, body;
    range_list ranges; /* of functions; owner is a number of `functions` */
    Dwarf_Die *functions;
    size_t function_count, function_capacity;
    bool read;
} unit;

/* failed: libdw ran out of memory in the middle of a call, so it is not called again. */
struct sp_dwarf_index {
    bool failed;
    unit *units;
    size_t unit_count, unit_capacity;
    range_list ranges; /* of units */
    size_t read_bytes; /* memory for what was read of the units */
    sp_dwarf_scopes scopes;
};

enum { FIRST_CAPACITY = 32 }; /* of the arrays here */

static void add_range(range_list *list, uint64_t start, uint64_t end, size_t owner)
{
    /* address 0: a function that the linker dropped */
    if (start == 0 || start >= end || list->failed)
        return;
    list->failed = !SP_REACH(list->items, list->count, list->capacity, FIRST_CAPACITY);
    if (!list->failed)
        list->items[list->count++] = (address_range){start, end, owner};
}

static void add_ranges_of(range_list *list, Dwarf_Die *die, size_t owner)
{
    Dwarf_Addr base, start, end;
    for (ptrdiff_t offset = 0; (offset = dwarf_ranges(die, offset, &base, &start, &end)) > 0;)
        add_range(list, start, end, owner);
}

static int compare_ranges(const void *a, const void *b)
{
    const address_range *left = a, *right = b;
    if (left->start != right->start)
        return left->start < right->start ? -1 : 1;
    return left->owner < right->owner ? -1 : left->owner > right->owner;
}

static void sort_ranges(range_list *list)
{
    if (list->count)
        qsort(list->items, list->count, sizeof *list->items, compare_ranges);
}

/* The range around ADDRESS that starts last, or NULL. Ranges of one kind overlap only in damaged
 * files, so only the last four that start at ADDRESS or below are tried. */
static const address_range *find_range(const range_list *list, uint64_t address)
{
    size_t low = 0, high = list->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (list->items[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    for (size_t i = low; i > 0 && low - i < 4; i--)
        if (address < list->items[i - 1].end)
            return &list->items[i - 1];
    return NULL;
}

static void add_unit(sp_dwarf_index *index, const Dwarf_Die *skeleton, const Dwarf_Die *split)
{
    if (!SP_REACH(index->units, index->unit_count, index->unit_capacity, FIRST_CAPACITY)) {
        index->ranges.failed = true;
        return;
    }
    unit *added = &index->units[index->unit_count];
    *added = (unit){.skeleton = *skeleton, .body = *split};
    if (dwarf_tag(&added->body) != DW_TAG_compile_unit)
        added->body = added->skeleton;
    add_ranges_of(&index->ranges, &added->skeleton, index->unit_count++);
}

/* ---- out of memory ---- When memory is short, libdw ends the process, unless it has a handler,
 * which must not return. Our handler jumps back to where libdw was entered. At that point no lock
 * is held and none of our data is half changed, because only allocations of libdw call the handler.
 * (One case is left: an assertion of libdw 0.188 fails when its table of abbreviations cannot
 * grow.) */

static _Thread_local jmp_buf *way_out;

static __attribute__((noreturn)) void leave_libdw(void)
{
    if (!way_out)
        abort(); /* libdw was entered elsewhere: cannot happen */
    longjmp(*way_out, 1);
}

/* Do WORK with INDEX and ARGUMENT. When libdw runs out of memory, WORK ends in the middle; returns
 * false then, and INDEX has failed. */
static bool guarded(void (*work)(sp_dwarf_index *, void *), sp_dwarf_index *index, void *argument)
{
    jmp_buf here;
    if (index->failed)
        return false;
    if (setjmp(here) == 0) {
        way_out = &here;
        work(index, argument);
    } else {
        index->failed = true;
        sp_log_warn("symbols",
                    "reading debug information: out of memory: using the symbol table only");
    }
    way_out = NULL;
    return !index->failed;
}

/* All units by their own ranges: .debug_aranges would be quicker to read, but clang does not write
 * it. */
static void read_units(sp_dwarf_index *index, void *argument)
{
    Dwarf *dwarf = argument;
    Dwarf_CU *cu = NULL;
    Dwarf_Half version;
    uint8_t type;
    Dwarf_Die die, split;
    while (dwarf_get_units(dwarf, cu, &cu, &version, &type, &die, &split) == 0)
        if (type == DW_UT_compile || type == DW_UT_skeleton)
            add_unit(index, &die, &split);
}

/* Whether enough bytes of the file follow each debug section: libdw reads a byte or two beyond a
 * section that ends in the middle of an entry. Usually section headers or other sections follow
 * there. In a malicious file these bytes may be beyond the mapping. */
static bool has_room_after(Elf *elf)
{
    size_t bytes, names;
    const char *file = elf_rawfile(elf, &bytes);
    if (!file || elf_getshdrstrndx(elf, &names) != 0)
        return false;
    for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));) {
        GElf_Shdr header;
        const char *name =
            gelf_getshdr(section, &header) ? elf_strptr(elf, names, header.sh_name) : NULL;
        Elf_Data *data = name && strstr(name, "debug_") ? elf_getdata(section, NULL) : NULL;
        const char *begin =
            data ? data->d_buf : NULL; /* outside of the file when it was inflated */
        if (begin && begin >= file && begin < file + bytes &&
            (size_t)(file + bytes - begin) - data->d_size < ROOM_AFTER)
            return false;
    }
    return true;
}

sp_dwarf_index *sp_dwarf_index_create(Dwarf *dwarf)
{
    bool readable = dwarf && has_room_after(dwarf_getelf(dwarf));
    sp_dwarf_index *index = readable ? calloc(1, sizeof *index) : NULL;
    if (!index)
        return NULL;
    dwarf_new_oom_handler(dwarf, leave_libdw);
    Dwarf *alt =
        dwarf_getalt(dwarf); /* the file that it shares with others has a handler of its own */
    if (alt)
        dwarf_new_oom_handler(alt, leave_libdw);
    if (!guarded(read_units, index, dwarf) || index->ranges.failed || index->ranges.count == 0) {
        sp_dwarf_index_destroy(index);
        return NULL;
    }
    sort_ranges(&index->ranges);
    return index;
}

void sp_dwarf_index_destroy(sp_dwarf_index *index)
{
    if (!index)
        return;
    for (size_t i = 0; i < index->unit_count; i++) {
        free(index->units[i].functions);
        free(index->units[i].ranges.items);
    }
    sp_dwarf_scopes_deinit(&index->scopes);
    free(index->units);
    free(index->ranges.items);
    free(index);
}

size_t sp_dwarf_index_bytes(const sp_dwarf_index *index)
{
    return index ? index->unit_capacity * sizeof *index->units +
                       index->ranges.capacity * sizeof *index->ranges.items + index->read_bytes +
                       sp_dwarf_scopes_bytes(&index->scopes)
                 : 0;
}

static void add_function(void *user, const Dwarf_Die *die)
{
    unit *u = user;
    if (!SP_REACH(u->functions, u->function_count, u->function_capacity, FIRST_CAPACITY)) {
        u->ranges.failed = true;
        return;
    }
    u->functions[u->function_count] = *die;
    add_ranges_of(&u->ranges, &u->functions[u->function_count], u->function_count);
    u->function_count++;
}

/* libdw decodes all lines of a unit when one is first requested, and keeps them. */
static void read_unit(sp_dwarf_index *index, unit *u)
{
    Dwarf_Lines *lines;
    size_t line_count = 0;
    u->read = true;
    sp_dwarf_scopes_read(&index->scopes, &u->body, add_function, u);
    sort_ranges(&u->ranges);
    if (dwarf_getsrclines(&u->skeleton, &lines, &line_count) != 0)
        line_count = 0;
    index->read_bytes += line_count * BYTES_OF_LINE + u->ranges.capacity * sizeof *u->ranges.items +
                         u->function_capacity * sizeof *u->functions;
}

static Dwarf_Die *find_function(unit *u, uint64_t address)
{
    const address_range *range = find_range(&u->ranges, address);
    return range ? &u->functions[range->owner] : NULL;
}

/* Find the outermost inlined function around ADDRESS below PARENT. Blocks may have no addresses of
 * their own, so they are searched, too; inlined functions always have some. */
static bool find_inlined(Dwarf_Die *parent, uint64_t address, Dwarf_Die *found, int depth)
{
    Dwarf_Die child;
    if (depth > TREE_DEPTH || dwarf_child(parent, &child) != 0)
        return false;
    do {
        int tag = dwarf_tag(&child);
        bool covers = (tag == DW_TAG_inlined_subroutine || tag == DW_TAG_lexical_block) &&
                      dwarf_haspc(&child, address) > 0;
        if (tag == DW_TAG_inlined_subroutine && covers) {
            *found = child;
            return true;
        }
        bool lacks_addresses =
            !dwarf_hasattr(&child, DW_AT_low_pc) && !dwarf_hasattr(&child, DW_AT_ranges);
        if (tag == DW_TAG_lexical_block && (covers || lacks_addresses) &&
            find_inlined(&child, address, found, depth + 1))
            return true;
    } while (dwarf_siblingof(&child, &child) == 0);
    return false;
}

static uint32_t number_of(Dwarf_Die *die, unsigned attribute_code)
{
    Dwarf_Attribute attribute;
    Dwarf_Word value;
    if (!dwarf_attr(die, attribute_code, &attribute) || dwarf_formudata(&attribute, &value) != 0 ||
        value > INT32_MAX)
        return 0;
    return (uint32_t)value;
}

static void fill_names(sp_dwarf_index *index, sp_dwarf_frame *frame, Dwarf_Die *function)
{
    Dwarf_Attribute attribute;
    int line = 0;
    frame->name = dwarf_diename(function);
    frame->linkage_name =
        dwarf_formstring(dwarf_attr_integrate(function, DW_AT_linkage_name, &attribute));
    if (!frame->linkage_name)
        frame->linkage_name =
            dwarf_formstring(dwarf_attr_integrate(function, DW_AT_MIPS_linkage_name, &attribute));
    const char *with_scopes =
        frame->name && !frame->linkage_name ? sp_dwarf_scopes_name(&index->scopes, function) : NULL;
    if (with_scopes)
        frame->name = with_scopes;
    if (dwarf_decl_line(function, &line) == 0 && line > 0)
        frame->start_line = (uint32_t)line;
}

/* FRAME is of the function around INLINED; its line is where INLINED was called. */
static void fill_call(sp_dwarf_frame *frame, unit *u, Dwarf_Die *inlined)
{
    Dwarf_Files *files;
    size_t count;
    uint32_t number = number_of(inlined, DW_AT_call_file);
    frame->line = number_of(inlined, DW_AT_call_line);
    frame->column = number_of(inlined, DW_AT_call_column);
    if (dwarf_getsrcfiles(&u->body, &files, &count) == 0 && number < count)
        frame->file = dwarf_filesrc(files, number, NULL, NULL);
}

/* The line of the instruction at ADDRESS itself, for the frame of the innermost function. False
 * when it is not known. */
static bool fill_line(sp_dwarf_frame *frame, unit *u, uint64_t address)
{
    int number;
    Dwarf_Line *line = dwarf_getsrc_die(&u->skeleton, address);
    if (!line)
        return false;
    frame->file = dwarf_linesrc(line, NULL, NULL);
    if (dwarf_lineno(line, &number) == 0 && number > 0)
        frame->line = (uint32_t)number;
    if (dwarf_linecol(line, &number) == 0 && number > 0)
        frame->column = (uint32_t)number;
    return true;
}

static const char *directory_of(unit *u)
{
    Dwarf_Attribute attribute;
    return dwarf_formstring(dwarf_attr(&u->skeleton, DW_AT_comp_dir, &attribute));
}

/* Fill CHAIN with FUNCTION and the inlined functions around ADDRESS in it, the outermost first.
 * Returns how many. */
static uint32_t find_chain(Dwarf_Die *function, uint64_t address, Dwarf_Die chain[SP_DWARF_DEPTH])
{
    uint32_t count = 0;
    chain[count++] = *function;
    while (count < SP_DWARF_DEPTH && find_inlined(&chain[count - 1], address, &chain[count], 0))
        count++;
    return count;
}

typedef struct question {
    uint64_t address;
    sp_dwarf_frame *frames;
    uint32_t count; /* out */
} question;

static void answer(sp_dwarf_index *index, void *argument)
{
    question *q = argument;
    const address_range *range = find_range(&index->ranges, q->address);
    if (!range)
        return;
    unit *u = &index->units[range->owner];
    if (!u->read)
        read_unit(index, u);
    Dwarf_Die chain[SP_DWARF_DEPTH];
    Dwarf_Die *function = find_function(u, q->address);
    uint32_t count = function ? find_chain(function, q->address, chain) : 1;
    for (uint32_t i = 0; i < count; i++) {
        sp_dwarf_frame *frame = &q->frames[i];
        Dwarf_Die *die = &chain[count - 1 - i];
        *frame = (sp_dwarf_frame){.directory = directory_of(u)};
        if (function)
            fill_names(index, frame, die);
        if (i > 0)
            fill_call(frame, u, die + 1);
        else if (!fill_line(frame, u, q->address) && !function)
            return;
    }
    q->count = count;
}

uint32_t sp_dwarf_frames(sp_dwarf_index *index, uint64_t address,
                         sp_dwarf_frame frames[SP_DWARF_DEPTH])
{
    question q = {.address = address, .frames = frames};
    return guarded(answer, index, &q) ? q.count : 0;
}

/* ---- steps ---- */

/* The steps of the function [start, end), see sp_dwarf_steps. When there are more than `capacity`,
 * the lowest are kept. */
typedef struct step_list {
    uint64_t address, start, end;
    uint64_t *steps;
    uint32_t count, capacity;
} step_list;

/* Steps are kept in order, and each only once. */
static void add_step(step_list *list, uint64_t step)
{
    uint32_t at = list->count;
    if (step < list->start || step > list->end)
        return;
    while (at > 0 && list->steps[at - 1] > step)
        at--;
    if ((at > 0 && list->steps[at - 1] == step) || at == list->capacity)
        return;
    uint32_t kept = list->count < list->capacity ? list->count++ : list->capacity - 1;
    memmove(&list->steps[at + 1], &list->steps[at], (kept - at) * sizeof *list->steps);
    list->steps[at] = step;
}

/* The first line of LINES that starts at ADDRESS or above: libdw has them in order. */
static size_t find_line(Dwarf_Lines *lines, size_t count, uint64_t address)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        Dwarf_Addr start = 0;
        dwarf_lineaddr(dwarf_onesrcline(lines, middle), &start);
        if (start < address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void add_lines(step_list *list, unit *u)
{
    Dwarf_Lines *lines;
    size_t count;
    Dwarf_Addr start;
    if (dwarf_getsrclines(&u->skeleton, &lines, &count) != 0)
        return;
    for (size_t i = find_line(lines, count, list->start);
         i < count && dwarf_lineaddr(dwarf_onesrcline(lines, i), &start) == 0 && start < list->end;
         i++)
        add_step(list, start);
}

static void add_inlined(step_list *list, Dwarf_Die *parent, int depth)
{
    Dwarf_Die child;
    if (depth > TREE_DEPTH || dwarf_child(parent, &child) != 0)
        return;
    do {
        int tag = dwarf_tag(&child);
        Dwarf_Addr base, start, end;
        if (tag != DW_TAG_inlined_subroutine && tag != DW_TAG_lexical_block)
            continue;
        for (ptrdiff_t offset = 0; tag == DW_TAG_inlined_subroutine &&
                                   (offset = dwarf_ranges(&child, offset, &base, &start, &end)) > 0;
             add_step(list, end))
            add_step(list, start);
        add_inlined(list, &child, depth + 1);
    } while (dwarf_siblingof(&child, &child) == 0);
}

static void list_steps(sp_dwarf_index *index, void *argument)
{
    step_list *list = argument;
    const address_range *range = find_range(&index->ranges, list->address);
    unit *u = range ? &index->units[range->owner] : NULL;
    const address_range *function = u && u->read ? find_range(&u->ranges, list->address) : NULL;
    if (!function)
        return;
    list->start = function->start;
    list->end = function->end;
    add_step(list, list->start);
    add_step(list, list->end);
    add_lines(list, u);
    add_inlined(list, &u->functions[function->owner], 0);
}

uint32_t sp_dwarf_steps(sp_dwarf_index *index, uint64_t address, uint64_t *steps, uint32_t capacity)
{
    step_list list = {.address = address, .steps = steps, .capacity = capacity};
    return capacity && guarded(list_steps, index, &list) ? list.count : 0;
}
