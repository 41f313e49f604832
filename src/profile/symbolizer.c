/* SPDX-License-Identifier: Apache-2.0 */
/* What was asked is remembered twice: the frames of an address stay for good, and a module's files stay open for a while, for libdw's
 * view of a debug file takes tens of MiB: until the round ends where opening them again each round would take little time, else until
 * no new address was asked for in six rounds. Modules are told apart by path and build id, so that a library which is unloaded and loaded again (a new
 * sp_module) finds its names. docs/design/symbols.md. */
#include "profile/symbolizer.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/arena.h"
#include "core/clock.h"
#include "core/intern.h"
#include "profile/demangle.h"
#include "profile/dwarf_frames.h"
#include "profile/elf_object.h"
#include "profile/elf_symbols.h"
#include "profile/heap_trim.h"

enum {
    LONGEST_NAME = 16 * 1024,
    REST_ROUNDS = 6,
    REOPEN_SHARE = 50, /* a file may be opened anew for 1/50 of the time, in CPU time of a core, */
    TRIM_SHARE = 1000, /* and memory be given back to the system for 1/1000 */
};

/* What is known of one module; all but base only while it is open. */
typedef struct module_names {
    bool is_open;
    uint32_t idle;    /* rounds since it was last needed */
    uint64_t cost_ns; /* CPU time that opening took */
    sp_elf_object object;
    sp_elf_symbols symbols;
    sp_dwarf_index *dwarf; /* NULL: none */
    const char *base;      /* last part of the path */
} module_names;

/* Key of `addresses`. No padding: compared bytewise. */
typedef struct address_key {
    uint64_t address;
    uint64_t module; /* number of the module + 1; 0: in none */
} address_key;

typedef struct frame_list {
    const sp_frame *frames;
    uint32_t count;
} frame_list;

struct sp_symbolizer {
    sp_arena memory;      /* module_names and frames */
    sp_intern strings;    /* every string that is handed out */
    sp_intern modules;    /* path, NUL, build id; number n has names[n] */
    module_names **names; /* module_capacity */
    uint32_t module_capacity;
    sp_intern addresses; /* address_key; number n has lists[n] */
    frame_list *lists;   /* address_capacity */
    uint32_t address_capacity;
    sp_buffer key, text; /* scratch */
    uint64_t rested_ns;  /* monotonic: when the last round ended */
    bool trim_is_due;    /* something was closed since the last trim */
    uint64_t trimmed_ns, trim_cost_ns;
};

sp_symbolizer *sp_symbolizer_create(void)
{
    sp_symbolizer *symbolizer = calloc(1, sizeof *symbolizer);
    if (!symbolizer)
        return NULL;
    symbolizer->key = (sp_buffer)SP_BUFFER_INIT(LONGEST_NAME);
    symbolizer->text = (sp_buffer)SP_BUFFER_INIT(LONGEST_NAME);
    symbolizer->rested_ns = sp_clock_monotonic_ns();
    return symbolizer;
}

static uint64_t own_cpu_ns(void)
{
    struct timespec time;
    return clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) == 0
               ? (uint64_t)time.tv_sec * SP_NS_PER_S + (uint64_t)time.tv_nsec
               : 0;
}

static void open_names(module_names *names, const sp_module *module)
{
    names->idle = 0;
    if (names->is_open)
        return;
    names->is_open = true;
    uint64_t before_ns = own_cpu_ns();
    sp_elf_object_open(&names->object, module);
    names->dwarf = sp_dwarf_index_create(names->object.dwarf);
    sp_elf_symbols_init(&names->symbols, names->object.loaded, names->object.debug);
    names->cost_ns = own_cpu_ns() - before_ns;
}

static void close_names(module_names *names)
{
    if (!names->is_open)
        return;
    sp_dwarf_index_destroy(names->dwarf);
    sp_elf_symbols_deinit(&names->symbols);
    sp_elf_object_close(&names->object);
    const char *base = names->base;
    *names = (module_names){.base = base};
}

/* The C library would keep freed pages for itself. Giving all back goes through the application's free memory, too, and holds up its
 * allocations meanwhile: where that takes long it is done seldom. */
static void trim(sp_symbolizer *symbolizer, uint64_t now_ns)
{
    if (!symbolizer->trim_is_due)
        return;
    sp_heap_trim_end();
    if (now_ns - symbolizer->trimmed_ns < TRIM_SHARE * symbolizer->trim_cost_ns)
        return;
    uint64_t before_ns = own_cpu_ns();
    malloc_trim(0);
    symbolizer->trim_is_due = false;
    symbolizer->trimmed_ns = now_ns;
    symbolizer->trim_cost_ns = own_cpu_ns() - before_ns;
}

void sp_symbolizer_rest(sp_symbolizer *symbolizer)
{
    uint64_t now_ns = sp_clock_monotonic_ns();
    uint64_t round_ns = now_ns - symbolizer->rested_ns;
    symbolizer->rested_ns = now_ns;
    for (uint32_t i = 0; i < symbolizer->modules.count && i < symbolizer->module_capacity; i++) {
        module_names *names = symbolizer->names[i];
        if (!names || !names->is_open ||
            (++names->idle < REST_ROUNDS && names->cost_ns * REOPEN_SHARE > round_ns))
            continue;
        close_names(names);
        symbolizer->trim_is_due = true;
    }
    trim(symbolizer, now_ns);
}

void sp_symbolizer_destroy(sp_symbolizer *symbolizer)
{
    if (!symbolizer)
        return;
    for (uint32_t i = 0; i < symbolizer->modules.count && i < symbolizer->module_capacity; i++) {
        if (symbolizer->names[i])
            close_names(symbolizer->names[i]);
    }
    sp_intern_deinit(&symbolizer->strings);
    sp_intern_deinit(&symbolizer->modules);
    sp_intern_deinit(&symbolizer->addresses);
    sp_buffer_deinit(&symbolizer->key);
    sp_buffer_deinit(&symbolizer->text);
    free(symbolizer->names);
    free(symbolizer->lists);
    sp_arena_deinit(&symbolizer->memory);
    free(symbolizer);
}

/* TEXT (NULL: "") among the strings that live on; NULL when memory is short. */
static const char *keep(sp_symbolizer *symbolizer, const char *text)
{
    uint32_t number = sp_intern_put_string(&symbolizer->strings, text ? text : "");
    return number == SP_INTERN_FAILED ? NULL : sp_intern_key(&symbolizer->strings, number);
}

static const char *keep_scratch(sp_symbolizer *symbolizer)
{
    return symbolizer->text.failed ? NULL : keep(symbolizer, (const char *)symbolizer->text.data);
}

/* Room for element NUMBER in an array of SIZE bytes each, new ones zeroed. */
static bool reach(void **items, uint32_t *capacity, uint32_t number, size_t size)
{
    if (number < *capacity)
        return true;
    uint32_t wanted = *capacity ? *capacity * 2 : 64;
    while (wanted <= number)
        wanted *= 2;
    char *grown = realloc(*items, wanted * size);
    if (!grown)
        return false;
    memset(grown + *capacity * size, 0, (wanted - *capacity) * size);
    *items = grown;
    *capacity = wanted;
    return true;
}

static module_names *add_names(sp_symbolizer *symbolizer, const sp_module *module)
{
    module_names *names = sp_arena_alloc(&symbolizer->memory, sizeof *names);
    if (!names)
        return NULL;
    const char *slash = strrchr(module->path, '/');
    names->base = keep(symbolizer, slash ? slash + 1 : module->path[0] ? module->path : "[main]");
    return names->base ? names : NULL;
}

/* The number of MODULE, which has names then, open or not; SP_INTERN_FAILED when memory is short. */
static uint32_t find_module(sp_symbolizer *symbolizer, const sp_module *module)
{
    sp_buffer *key = &symbolizer->key;
    sp_buffer_clear(key);
    sp_buffer_add(key, module->path, strlen(module->path) + 1);
    sp_buffer_add(key, module->build_id, module->build_id_length);
    if (key->failed)
        return SP_INTERN_FAILED;
    uint32_t number = sp_intern_put(&symbolizer->modules, key->data, key->length, NULL);
    void *all = symbolizer->names;
    bool room = number != SP_INTERN_FAILED &&
                reach(&all, &symbolizer->module_capacity, number, sizeof *symbolizer->names);
    symbolizer->names = all;
    if (!room)
        return SP_INTERN_FAILED;
    if (!symbolizer->names[number])
        symbolizer->names[number] = add_names(symbolizer, module);
    return symbolizer->names[number] ? number : SP_INTERN_FAILED;
}

/* FRAME's names from a symbol as in the symbol table. A version ("qsort@@GLIBC_2.2.5") is no part of the name. PLAIN is the name
 * in the source (NULL: not known), better than a mangled one that cannot be demangled. */
static void name_frame(sp_symbolizer *symbolizer, sp_frame *frame, const char *symbol,
                       const char *plain)
{
    sp_buffer *text = &symbolizer->text;
    sp_buffer_clear(text);
    const char *version = strchr(symbol, '@');
    sp_buffer_add(text, symbol, version ? (size_t)(version - symbol) : strlen(symbol));
    frame->system_name = keep_scratch(symbolizer);
    if (!frame->system_name)
        return;
    sp_demangle_short(text, frame->system_name);
    frame->name = keep_scratch(symbolizer);
    if (frame->name == frame->system_name && plain)
        frame->name = keep(symbolizer, plain);
    if (frame->name == frame->system_name) /* one string has one address here */
        frame->system_name = keep(symbolizer, NULL);
}

static void name_unresolved(sp_symbolizer *symbolizer, sp_frame *frame, const char *base,
                            uint64_t address)
{
    sp_buffer_clear(&symbolizer->text);
    sp_buffer_printf(&symbolizer->text, "%s+0x%llx", base, (unsigned long long)address);
    frame->name = keep_scratch(symbolizer);
    frame->system_name = keep(symbolizer, NULL);
    frame->unresolved = true;
}

/* A frame of the ELF symbol around ADDRESS, or of none. */
static void name_by_symbol(sp_symbolizer *symbolizer, sp_frame *frame, const module_names *names,
                           uint64_t address)
{
    const sp_elf_symbol *symbol = sp_elf_symbols_find(&names->symbols, address);
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
    sp_buffer_printf(text, "%s/%s", source->directory, source->file);
    return keep_scratch(symbolizer);
}

/* What the symbol table calls SOURCE's function. Compilers give no linkage name to C++ functions that no other file can see; for
 * the PHYSICAL function of ADDRESS the ELF symbol knows it. */
static const char *symbol_of(const sp_dwarf_frame *source, const module_names *names,
                             uint64_t address, bool physical)
{
    if (source->linkage_name)
        return source->linkage_name;
    const sp_elf_symbol *symbol = physical ? sp_elf_symbols_find(&names->symbols, address) : NULL;
    bool mangled =
        symbol && symbol->name[0] == '_' && (symbol->name[1] == 'Z' || symbol->name[1] == 'R');
    return mangled ? symbol->name : source->name;
}

static void fill_frame(sp_symbolizer *symbolizer, sp_frame *frame, const sp_dwarf_frame *source,
                       const module_names *names, uint64_t address, bool physical)
{
    *frame = (sp_frame){
        .line = source->line, .column = source->column, .start_line = source->start_line};
    const char *symbol = symbol_of(source, names, address, physical);
    if (symbol && symbol[0])
        name_frame(symbolizer, frame, symbol, source->name);
    else
        name_by_symbol(symbolizer, frame, names, address);
    frame->file = keep_file(symbolizer, source);
    if (frame->unresolved) { /* a line without a function is padding: code has a symbol at least */
        frame->file = keep(symbolizer, NULL);
        frame->line = frame->column = 0;
    }
}

static frame_list make_frames(sp_symbolizer *symbolizer, const module_names *names,
                              uint64_t address)
{
    static const sp_dwarf_frame nothing;
    sp_dwarf_frame sources[SP_DWARF_DEPTH];
    uint32_t found = names->dwarf ? sp_dwarf_frames(names->dwarf, address, sources) : 0;
    uint32_t count = found ? found : 1;
    sp_frame *frames = sp_arena_array(&symbolizer->memory, count, sizeof *frames);
    for (uint32_t i = 0; i < count && frames; i++) {
        fill_frame(symbolizer, &frames[i], found ? &sources[i] : &nothing, names, address,
                   i + 1 == count);
        if (!frames[i].name || !frames[i].system_name || !frames[i].file)
            frames = NULL;
    }
    return (frame_list){frames, frames ? count : 0};
}

uint32_t sp_symbolizer_frames(sp_symbolizer *symbolizer, const sp_module *module, uint64_t address,
                              const sp_frame **frames)
{
    static const module_names unknown = {.base = "[unknown]"};
    *frames = NULL;
    uint32_t number = module ? find_module(symbolizer, module) : 0;
    if (number == SP_INTERN_FAILED)
        return 0;
    address_key key = {.address = address, .module = module ? (uint64_t)number + 1 : 0};
    uint32_t slot = sp_intern_put(&symbolizer->addresses, &key, sizeof key, NULL);
    void *lists = symbolizer->lists;
    bool room = slot != SP_INTERN_FAILED &&
                reach(&lists, &symbolizer->address_capacity, slot, sizeof *symbolizer->lists);
    symbolizer->lists = lists;
    if (!room)
        return 0;
    frame_list *list = &symbolizer->lists[slot];
    if (!list->count && module)
        open_names(symbolizer->names[number], module);
    if (!list->count)
        *list = make_frames(symbolizer, module ? symbolizer->names[number] : &unknown, address);
    *frames = list->frames;
    return list->count;
}
