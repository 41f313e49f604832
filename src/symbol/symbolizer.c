/* SPDX-License-Identifier: Apache-2.0 */
/* Results are cached in two ways. The frames of addresses are kept within a bound (name_cache.h). A
 * module's files stay open for a limited time, because libdw's data of a debug file takes tens of
 * MiB: until the round ends when it takes little time to open them again, else until six rounds
 * have passed without a new address. Modules are identified by build id, or by path and file where
 * they have none. So a library keeps its names when it is unloaded and loaded again (a new
 * sp_module), or has two paths. docs/design/symbols.md. */
#include "symbol/symbolizer.h"

#include <limits.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "core/buffer.h"
#include "core/clock.h"
#include "core/intern.h"
#include "core/utf8.h"
#include "symbol/heap_range.h"
#include "symbol/heap_trim.h"
#include "symbol/module_names.h"
#include "symbol/name_cache.h"
#include "symbol/name_rows.h"
#include "symbol/outside_names.h"
#include "core/reach.h"

enum {
    LONGEST_NAME = 16 * 1024,
    OFFSET_LENGTH = 24, /* "+0x" and a number */
    REST_ROUNDS = 6,
    REOPEN_SHARE = 50, /* a file may be opened again for 1/50 of the time, in CPU time of a core */
    TRIM_SHARE = 1000, /* malloc_trim may run for 1/1000 of the time */
    STEPS_MAX = 1024,  /* of one function */
    MODULES_MIN = 256, /* below this number no module is forgotten */
    LARGEST_INDEX = 128 * 1024 * 1024, /* bytes; one module's debug information, as read */
};

typedef struct known_module {
    uint64_t id;      /* > 0, key of its names in `cache`; a new id when they are made anew */
    uint32_t idle;    /* rounds since a new address was last requested */
    uint32_t unasked; /* rounds since any address was requested */
    sp_module_names *names;
    sp_name_rows rows; /* of whole functions; `cache` has their frames */
} known_module;

struct sp_symbolizer {
    sp_name_cache cache;
    size_t names_limit;  /* of the cache, in bytes */
    size_t index_limit;  /* of one module's `dwarf`, in bytes */
    uint64_t long_ns;    /* opening files takes this long: name whole functions at once */
    sp_intern modules;   /* keys as in look_up; number n has known[n] */
    known_module *known; /* module_capacity */
    size_t module_capacity;
    uint32_t module_limit; /* above this number, modules without requests are forgotten */
    uint64_t last_id;
    sp_debuginfod *debuginfod; /* NULL: not wanted, or not available */
    sp_outside_names *outside; /* NULL until a name is requested */
    sp_symbolizer_options options;
    sp_buffer key, text; /* scratch */
    sp_heap_range heap;
    uint64_t rested_ns; /* when the last round ended, monotonic clock */
    bool trim_is_due;   /* something was closed since the last trim */
    uint64_t trimmed_ns, trim_cost_ns;
};

#define LONG_OPENING_NS (5 * SP_NS_PER_MS)

/* In the cache, the address of a variable has this bit, which no address of a program has. So a
 * request for code at an address in data does not return the name of a variable. */
#define VARIABLE (UINT64_C(1) << 63)

static void forget_module(known_module *known)
{
    sp_module_names_destroy(known->names);
    sp_name_rows_deinit(&known->rows);
}

sp_symbolizer *sp_symbolizer_create(void)
{
    sp_symbolizer *symbolizer = calloc(1, sizeof *symbolizer);
    if (!symbolizer)
        return NULL;
    symbolizer->key = (sp_buffer)SP_BUFFER_INIT(LONGEST_NAME);
    symbolizer->text = (sp_buffer)SP_BUFFER_INIT(LONGEST_NAME);
    symbolizer->rested_ns = sp_clock_monotonic_ns();
    sp_symbolizer_set_limits(symbolizer, SP_NAME_CACHE_BYTES, LARGEST_INDEX);
    symbolizer->long_ns = LONG_OPENING_NS;
    symbolizer->module_limit = MODULES_MIN;
    return symbolizer;
}

void sp_symbolizer_configure(sp_symbolizer *symbolizer, const sp_symbolizer_options *options)
{
    symbolizer->options = *options;
    if (options->debuginfod && !symbolizer->debuginfod)
        symbolizer->debuginfod = sp_debuginfod_create();
}

/* The C library keeps freed pages. malloc_trim returns all of them to the system, but also scans
 * the application's free memory, and delays its allocations meanwhile; so it is called less often
 * the longer it takes. */
static void trim(sp_symbolizer *symbolizer, uint64_t now_ns)
{
    if (!symbolizer->trim_is_due)
        return;
    sp_heap_trim_end();
    if (now_ns - symbolizer->trimmed_ns < TRIM_SHARE * symbolizer->trim_cost_ns)
        return;
    uint64_t before_ns = sp_clock_own_cpu_ns();
    malloc_trim(0);
    symbolizer->trim_is_due = false;
    symbolizer->trimmed_ns = now_ns;
    symbolizer->trim_cost_ns = sp_clock_own_cpu_ns() - before_ns;
}

/* Some programs load and unload modules all the time, each with another path. Modules without
 * requests in the last REST_ROUNDS rounds are forgotten. Their entries in the cache are not found
 * any more, and are freed with its next generations. */
static void forget_modules(sp_symbolizer *symbolizer)
{
    sp_intern kept = {0};
    if (symbolizer->modules.count <= symbolizer->module_limit)
        return;
    for (uint32_t i = 0; i < symbolizer->modules.count && i < symbolizer->module_capacity; i++) {
        known_module known = symbolizer->known[i];
        const sp_intern_entry *key = &symbolizer->modules.entries[i];
        symbolizer->known[i] = (known_module){0};
        uint32_t number = known.names && known.unasked < REST_ROUNDS
                              ? sp_intern_put(&kept, key->key, key->length, NULL)
                              : SP_INTERN_FAILED;
        if (number == SP_INTERN_FAILED)
            forget_module(&known);
        else
            symbolizer->known[number] = known; /* number <= i */
    }
    sp_intern_deinit(&symbolizer->modules);
    symbolizer->modules = kept;
    symbolizer->module_limit = kept.count > MODULES_MIN / 2 ? kept.count * 2 : MODULES_MIN;
}

static void close_module(sp_symbolizer *symbolizer, known_module *known)
{
    sp_module_names_close(known->names);
    symbolizer->trim_is_due = true;
}

static void rest_module(sp_symbolizer *symbolizer, known_module *known, uint64_t round_ns)
{
    known->unasked++;
    if (!known->names->is_open ||
        (++known->idle < REST_ROUNDS && known->names->cost_ns * REOPEN_SHARE > round_ns))
        return;
    close_module(symbolizer, known);
}

void sp_symbolizer_close_files(sp_symbolizer *symbolizer)
{
    for (uint32_t i = 0; i < symbolizer->modules.count && i < symbolizer->module_capacity; i++)
        if (symbolizer->known[i].names && symbolizer->known[i].names->is_open)
            close_module(symbolizer, &symbolizer->known[i]);
    trim(symbolizer, sp_clock_monotonic_ns());
}

void sp_symbolizer_rest(sp_symbolizer *symbolizer)
{
    uint64_t now_ns = sp_clock_monotonic_ns();
    uint64_t round_ns = now_ns - symbolizer->rested_ns;
    symbolizer->rested_ns = now_ns;
    for (uint32_t i = 0; i < symbolizer->modules.count && i < symbolizer->module_capacity; i++)
        if (symbolizer->known[i].names)
            rest_module(symbolizer, &symbolizer->known[i], round_ns);
    forget_modules(symbolizer);
    if (sp_name_cache_age(&symbolizer->cache, symbolizer->names_limit))
        symbolizer->trim_is_due = true;
    if (symbolizer->outside)
        sp_outside_names_rest(symbolizer->outside);
    symbolizer->heap.is_sought = false;
    trim(symbolizer, now_ns);
}

size_t sp_symbolizer_bytes(const sp_symbolizer *symbolizer)
{
    return sp_name_cache_bytes(&symbolizer->cache) + sp_intern_bytes(&symbolizer->modules);
}

void sp_symbolizer_set_limits(sp_symbolizer *symbolizer, size_t names_bytes, size_t index_bytes)
{
    symbolizer->names_limit = names_bytes;
    symbolizer->index_limit = index_bytes;
}

void sp_symbolizer_set_long_opening(sp_symbolizer *symbolizer, uint64_t opening_ns)
{
    symbolizer->long_ns = opening_ns;
}

void sp_symbolizer_destroy(sp_symbolizer *symbolizer)
{
    if (!symbolizer)
        return;
    for (uint32_t i = 0; i < symbolizer->modules.count && i < symbolizer->module_capacity; i++)
        forget_module(&symbolizer->known[i]);
    sp_name_cache_deinit(&symbolizer->cache);
    sp_intern_deinit(&symbolizer->modules);
    sp_buffer_deinit(&symbolizer->key);
    sp_buffer_deinit(&symbolizer->text);
    sp_outside_names_destroy(symbolizer->outside);
    sp_debuginfod_destroy(symbolizer->debuginfod);
    free(symbolizer->known);
    free(symbolizer);
}

static const char *keep_scratch(sp_symbolizer *symbolizer)
{
    const sp_buffer *text = &symbolizer->text;
    return text->failed ? NULL : sp_name_cache_string(&symbolizer->cache, (const char *)text->data);
}

/* A copy of TEXT (NULL: "") in the cache, cut to LONGEST_NAME; NULL when memory is short. */
static const char *keep(sp_symbolizer *symbolizer, const char *text)
{
    size_t length = text ? strlen(text) : 0;
    if (length <= LONGEST_NAME)
        return sp_name_cache_string(&symbolizer->cache, text ? text : "");
    sp_buffer_clear(&symbolizer->text);
    sp_buffer_add_cut(&symbolizer->text, text, length);
    return keep_scratch(symbolizer);
}

/* Make `known` large enough for NUMBER, with new entries zeroed. */
static bool reach(sp_symbolizer *symbolizer, uint32_t number)
{
    size_t old = symbolizer->module_capacity;
    if (!SP_REACH(symbolizer->known, number, symbolizer->module_capacity, 64))
        return false;
    memset(symbolizer->known + old, 0,
           (symbolizer->module_capacity - old) * sizeof *symbolizer->known);
    return true;
}

/* The entry of MODULE by its build id, and if WITH_PATH also by its path and file; a new one when
 * there is none. NULL when memory is short. */
static known_module *look_up(sp_symbolizer *symbolizer, const sp_module *module, bool with_path)
{
    sp_buffer *key = &symbolizer->key;
    uint8_t length = (uint8_t)module->build_id_length;
    sp_buffer_clear(key);
    sp_buffer_add(key, &length, 1);
    sp_buffer_add(key, module->build_id, length);
    if (with_path) {
        sp_buffer_add(key, &module->origin.device, sizeof module->origin.device);
        sp_buffer_add(key, &module->origin.inode, sizeof module->origin.inode);
        sp_buffer_add(key, module->path, strlen(module->path));
    }
    if (key->failed)
        return NULL;
    uint32_t number = sp_intern_put(&symbolizer->modules, key->data, key->length, NULL);
    if (number == SP_INTERN_FAILED || !reach(symbolizer, number))
        return NULL;
    known_module *known = &symbolizer->known[number];
    if (!known->names)
        *known = (known_module){.id = ++symbolizer->last_id,
                                .names = sp_module_names_create(module->path)};
    return known->names ? known : NULL;
}

/* Copies of a library share their names. But when the file of the first copy is gone, that of
 * another may still be there, so this copy gets an entry of its own. */
static known_module *find_module(sp_symbolizer *symbolizer, const sp_module *module)
{
    known_module *known = look_up(symbolizer, module, module->build_id_length == 0);
    if (known && known->names->has_nothing && strcmp(known->names->path, module->path) != 0)
        known = look_up(symbolizer, module, true);
    if (!known)
        return NULL;
    known->unasked = 0;
    if (sp_module_names_has_answer(known->names, module, symbolizer->debuginfod)) {
        known->id = ++symbolizer->last_id; /* older names in the cache are not found any more */
        sp_name_rows_deinit(&known->rows);
    }
    return known;
}

/* A copy of PLAIN, a name in the source, in the style of SYMBOLIZER. */
static const char *keep_plain(sp_symbolizer *symbolizer, const char *plain)
{
    sp_buffer *text = &symbolizer->text;
    if (symbolizer->options.style != SP_DEMANGLE_FOLDED)
        return keep(symbolizer, plain);
    sp_buffer_clear(text);
    sp_buffer_add_cut(text, plain, strlen(plain));
    return sp_demangle_fold(text) ? keep_scratch(symbolizer) : keep(symbolizer, plain);
}

/* FRAME's names from a symbol as in the symbol table, cut to LONGEST_NAME. A version
 * ("qsort@@GLIBC_2.2.5") is no part of the name. PLAIN is the name in the source (NULL: not known);
 * it is used when a mangled name cannot be demangled. When it is SYMBOL, the symbol table has no
 * name. */
static void name_frame(sp_symbolizer *symbolizer, sp_frame *frame, const char *symbol,
                       const char *plain)
{
    sp_buffer *text = &symbolizer->text;
    sp_buffer_clear(text);
    const char *version = strchr(symbol, '@');
    sp_buffer_add_cut(text, symbol, version ? (size_t)(version - symbol) : strlen(symbol));
    frame->system_name = keep_scratch(symbolizer);
    if (!frame->system_name)
        return;
    sp_demangle(text, frame->system_name, symbolizer->options.style);
    frame->name = keep_scratch(symbolizer);
    if (frame->name == frame->system_name && plain && symbolizer->options.style != SP_DEMANGLE_NONE)
        frame->name = keep_plain(symbolizer, plain);
    /* equal strings have the same address here */
    if (frame->name == frame->system_name || symbol == plain)
        frame->system_name = keep(symbolizer, NULL);
}

/* A copy of "NAME+0xOFFSET", with NAME cut to LIMIT bytes. */
static const char *keep_offset(sp_symbolizer *symbolizer, const char *name, size_t limit,
                               uint64_t offset)
{
    size_t length = sp_utf8_fit(name, strlen(name), limit);
    sp_buffer_clear(&symbolizer->text);
    sp_buffer_printf(&symbolizer->text, "%.*s+0x%llx", (int)length, name,
                     (unsigned long long)offset);
    return keep_scratch(symbolizer);
}

/* BASE is a file's name, which has no more than NAME_MAX bytes. */
static void name_unresolved(sp_symbolizer *symbolizer, sp_frame *frame, const char *base,
                            uint64_t address)
{
    frame->name = keep_offset(symbolizer, base, NAME_MAX, address);
    frame->system_name = keep(symbolizer, NULL);
    frame->unresolved = true;
}

/* Name FRAME by the ELF symbol around ADDRESS, or by the address when there is none. */
static void name_by_symbol(sp_symbolizer *symbolizer, sp_frame *frame, const sp_module_names *names,
                           uint64_t address)
{
    const sp_elf_symbol *symbol = sp_module_names_symbol(names, address);
    if (symbol)
        name_frame(symbolizer, frame, symbol->name, NULL);
    else
        name_unresolved(symbolizer, frame, names->base, address);
}

static const char *keep_file(sp_symbolizer *symbolizer, const sp_dwarf_frame *source)
{
    sp_buffer *text = &symbolizer->text;
    if (!source->file || source->file[0] == '/' || !source->directory)
        return keep(symbolizer, source->file);
    sp_buffer_clear(text);
    bool fits = sp_buffer_printf(text, "%s/%s", source->directory, source->file);
    return fits ? keep_scratch(symbolizer) : keep(symbolizer, source->file);
}

/* The name of SOURCE's function in the symbol table. Compilers give no linkage name to C++
 * functions that are local to a file; for the PHYSICAL function of ADDRESS the ELF symbol has it.
 */
static const char *symbol_of(const sp_dwarf_frame *source, const sp_module_names *names,
                             uint64_t address, bool physical)
{
    if (source->linkage_name)
        return source->linkage_name;
    const sp_elf_symbol *symbol = physical ? sp_module_names_symbol(names, address) : NULL;
    bool mangled =
        symbol && symbol->name[0] == '_' && (symbol->name[1] == 'Z' || symbol->name[1] == 'R');
    return mangled ? symbol->name : source->name;
}

static void fill_frame(sp_symbolizer *symbolizer, sp_frame *frame, const sp_dwarf_frame *source,
                       const sp_module_names *names, uint64_t address, bool physical)
{
    *frame = (sp_frame){
        .line = source->line, .column = source->column, .start_line = source->start_line};
    const char *symbol = symbol_of(source, names, address, physical);
    if (symbol && symbol[0])
        name_frame(symbolizer, frame, symbol, source->name);
    else
        name_by_symbol(symbolizer, frame, names, address);
    frame->file = keep_file(symbolizer, source);
    if (frame->unresolved) { /* a line without a function is of padding: all code has at least a
                                symbol */
        frame->file = keep(symbolizer, NULL);
        frame->line = frame->column = 0;
    }
}

static sp_frame_list make_frames(sp_symbolizer *symbolizer, const sp_module_names *names,
                                 uint64_t address)
{
    static const sp_dwarf_frame nothing;
    sp_dwarf_frame sources[SP_DWARF_DEPTH];
    uint32_t found = names->dwarf ? sp_dwarf_frames(names->dwarf, address, sources) : 0;
    uint32_t count = found ? found : 1;
    sp_frame *frames = sp_name_cache_frames(&symbolizer->cache, count);
    for (uint32_t i = 0; i < count && frames; i++) {
        fill_frame(symbolizer, &frames[i], found ? &sources[i] : &nothing, names, address,
                   i + 1 == count);
        if (!frames[i].name || !frames[i].system_name || !frames[i].file)
            frames = NULL;
    }
    return (sp_frame_list){frames, frames ? count : 0};
}

/* Name the rows between COUNT steps, and return how many rows have names now. Stops when MOST_NS of
 * CPU time are used up, or at an address without a symbol: its name contains the address, so it is
 * not the same for a whole row. */
static uint32_t name_rows(sp_symbolizer *symbolizer, const known_module *known,
                          const uint64_t *steps, uint32_t count, uint64_t most_ns)
{
    uint64_t begin_ns = sp_clock_own_cpu_ns();
    for (uint32_t i = 0; i + 1 < count; i++) {
        if (sp_clock_own_cpu_ns() - begin_ns > most_ns)
            return i;
        sp_frame_list list = make_frames(symbolizer, known->names, steps[i]);
        if (!list.count || list.frames[list.count - 1].unresolved ||
            !sp_name_cache_put(&symbolizer->cache, known->id, steps[i], list))
            return i;
    }
    return count ? count - 1 : 0;
}

/* Name the whole function around ADDRESS, so that its other addresses do not open the files again.
 * For all functions of a module together this takes no more time than opening its files took. */
static void name_function(sp_symbolizer *symbolizer, known_module *known, uint64_t address)
{
    sp_module_names *names = known->names;
    uint64_t steps[STEPS_MAX], begin_ns = sp_clock_own_cpu_ns();
    bool is_bounded = symbolizer->long_ns > 0;
    if (!names->dwarf || names->cost_ns < symbolizer->long_ns ||
        (is_bounded && names->ahead_ns >= names->cost_ns))
        return;
    uint32_t count = sp_dwarf_steps(names->dwarf, address, steps, STEPS_MAX);
    uint64_t most_ns = is_bounded ? names->cost_ns - names->ahead_ns : UINT64_MAX;
    uint32_t named = name_rows(symbolizer, known, steps, count, most_ns);
    sp_name_rows_add(&known->rows, steps, named + 1);
    names->ahead_ns += sp_clock_own_cpu_ns() - begin_ns;
}

static sp_frame_list find_named(sp_symbolizer *symbolizer, const known_module *known,
                                uint64_t address)
{
    sp_frame_list list = sp_name_cache_find(&symbolizer->cache, known->id, address);
    const sp_name_row *row = list.count ? NULL : sp_name_rows_find(&known->rows, address);
    return row ? sp_name_cache_find(&symbolizer->cache, known->id, row->start) : list;
}

/* Make the frames of an address that is not in the cache. */
static sp_frame_list name_address(sp_symbolizer *symbolizer, known_module *known,
                                  const sp_module *module, uint64_t address)
{
    known->idle = 0;
    sp_module_names_open(known->names, module, symbolizer->debuginfod,
                         &symbolizer->options.meanwhile);
    sp_frame_list list = make_frames(symbolizer, known->names, address);
    name_function(symbolizer, known, address);
    if (sp_dwarf_index_bytes(known->names->dwarf) > symbolizer->index_limit)
        close_module(symbolizer, known);
    return list;
}

static uint32_t outside_frames(sp_symbolizer *symbolizer, uint64_t address, const sp_frame **frames)
{
    if (!symbolizer->outside)
        symbolizer->outside =
            sp_outside_names_create(symbolizer->options.style, symbolizer->options.process);
    *frames = symbolizer->outside ? sp_outside_names_frame(symbolizer->outside, address) : NULL;
    return *frames != NULL;
}

uint32_t sp_symbolizer_frames(sp_symbolizer *symbolizer, const sp_module *module, uint64_t address,
                              const sp_frame **frames)
{
    *frames = NULL;
    if (!module)
        return outside_frames(symbolizer, address, frames);
    known_module *known = find_module(symbolizer, module);
    if (!known)
        return 0;
    sp_frame_list list = find_named(symbolizer, known, address);
    if (!list.count) {
        list = name_address(symbolizer, known, module, address);
        if (!list.count || !sp_name_cache_put(&symbolizer->cache, known->id, address, list))
            return 0;
    }
    *frames = list.frames;
    return list.count;
}

/* ---- variables ---- */

/* NAME without the number that GCC appends to a static variable of a function (".17"). It means
 * nothing to people and may differ in the next build. */
static const char *keep_without_number(sp_symbolizer *symbolizer, const char *name)
{
    size_t length = strlen(name), end = length;
    while (end > 1 && name[end - 1] >= '0' && name[end - 1] <= '9')
        end--;
    if (end == length || end < 2 || name[end - 1] != '.')
        return name;
    sp_buffer_clear(&symbolizer->text);
    sp_buffer_add(&symbolizer->text, name, end - 1);
    return keep_scratch(symbolizer);
}

static void name_by_variable(sp_symbolizer *symbolizer, sp_frame *frame, const char *symbol)
{
    name_frame(symbolizer, frame, symbol, NULL);
    if (frame->name && symbolizer->options.style != SP_DEMANGLE_NONE)
        frame->name = keep_without_number(symbolizer, frame->name);
}

static void name_variable(sp_symbolizer *symbolizer, sp_frame *frame, sp_module_names *names,
                          uint64_t address)
{
    const sp_elf_symbol *symbol = sp_module_names_variable(names, address);
    if (symbol)
        name_by_variable(symbolizer, frame, symbol->name);
    else if (sp_module_names_has_data_at(names, address))
        name_unresolved(symbolizer, frame, names->base, address);
    else
        frame->name = frame->system_name = keep(symbolizer, NULL);
    if (symbol && symbol->start < address && frame->name)
        frame->name = keep_offset(symbolizer, frame->name, LONGEST_NAME - OFFSET_LENGTH,
                                  address - symbol->start);
}

/* Make the name of a variable, as a list of one frame, because the cache keeps such lists. */
static sp_frame_list make_variable(sp_symbolizer *symbolizer, known_module *known,
                                   const sp_module *module, uint64_t address)
{
    known->idle = 0;
    sp_module_names_open(known->names, module, symbolizer->debuginfod,
                         &symbolizer->options.meanwhile);
    sp_frame *frame = sp_name_cache_frames(&symbolizer->cache, 1);
    if (!frame)
        return (sp_frame_list){0};
    frame->file = keep(symbolizer, NULL);
    name_variable(symbolizer, frame, known->names, address);
    bool is_whole = frame->name && frame->system_name && frame->file;
    return is_whole ? (sp_frame_list){frame, 1} : (sp_frame_list){0};
}

static const char *name_outside(sp_symbolizer *symbolizer, uint64_t address)
{
    uint64_t offset;
    return sp_heap_range_has(&symbolizer->heap, address, &offset)
               ? keep_offset(symbolizer, "[heap]", NAME_MAX, offset)
               : keep(symbolizer, NULL);
}

const char *sp_symbolizer_variable(sp_symbolizer *symbolizer, const sp_module *module,
                                   uint64_t address)
{
    if (!module)
        return name_outside(symbolizer, address);
    known_module *known = find_module(symbolizer, module);
    if (!known)
        return NULL;
    sp_frame_list list = sp_name_cache_find(&symbolizer->cache, known->id, address | VARIABLE);
    if (!list.count) {
        list = make_variable(symbolizer, known, module, address);
        if (!list.count ||
            !sp_name_cache_put(&symbolizer->cache, known->id, address | VARIABLE, list))
            return NULL;
    }
    return list.frames[0].name;
}

bool sp_symbolizer_wait(sp_symbolizer *symbolizer, uint32_t ms)
{
    return symbolizer->debuginfod && sp_debuginfod_wait(symbolizer->debuginfod, ms);
}
