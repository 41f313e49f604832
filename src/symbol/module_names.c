/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol/module_names.h"

#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/log.h"
#include "core/path.h"
#include "symbol/elf_file.h"

sp_module_names *sp_module_names_create(const char *path)
{
    size_t length = strlen(path);
    sp_module_names *names = calloc(1, sizeof *names + length + 1);
    if (!names)
        return NULL;
    memcpy(names->path, path, length + 1);
    names->base = names->path[0] ? sp_path_base(names->path) : "[main]";
    return names;
}

void sp_module_names_destroy(sp_module_names *names)
{
    if (names)
        sp_module_names_close(names);
    free(names);
}

void sp_module_names_close(sp_module_names *names)
{
    if (!names->is_open)
        return;
    sp_dwarf_index_destroy(names->dwarf);
    sp_elf_symbols_deinit(&names->symbols);
    sp_elf_symbols_deinit(&names->more);
    sp_elf_symbols_deinit(&names->variables);
    sp_elf_object_close(&names->object);
    names->dwarf = NULL;
    names->is_open = names->has_variables = false;
}

/* A module without a build id is named by the file at its path, but only as long as it is the file
 * that was opened first. */
static bool is_other_file(sp_module_names *names, const sp_module *module)
{
    const sp_file_mark *now = &names->object.loaded_mark;
    if (module->build_id_length || !now->path)
        return false;
    if (!names->is_marked)
        names->marked = *now;
    names->marked.path = NULL; /* the object owns the path */
    names->is_marked = true;
    return !sp_file_mark_is_equal(&names->marked, now);
}

static void open_object(sp_module_names *names, const sp_module *module,
                        const sp_meanwhile *meanwhile)
{
    sp_elf_object_open(&names->object, module, names->fetched, &names->has_warned, meanwhile);
    if (is_other_file(names, module)) {
        sp_log_warn("symbols", "reading %s: another file than before: its frames get no names",
                    module->path);
        sp_elf_object_close(&names->object);
    }
    names->has_nothing = !names->object.loaded && !names->object.debug;
}

/* Request the debug file from a server when there is none on this machine. */
static void ask_server(sp_module_names *names, const sp_module *module, sp_debuginfod *debuginfod)
{
    if (!debuginfod || names->asked || names->object.dwarf || !module->build_id_length ||
        strcmp(module->path, "[vdso]") == 0)
        return;
    names->asked = names->waits = true;
    sp_debuginfod_ask(debuginfod, module->build_id, module->build_id_length, &names->fetched);
}

void sp_module_names_open(sp_module_names *names, const sp_module *module,
                          sp_debuginfod *debuginfod, const sp_meanwhile *meanwhile)
{
    if (names->is_open && sp_elf_object_is_written(&names->object))
        sp_module_names_close(names);
    if (names->is_open)
        return;
    names->is_open = true;
    uint64_t before_ns = sp_clock_own_cpu_ns();
    open_object(names, module, meanwhile);
    names->dwarf = sp_dwarf_index_create(names->object.dwarf);
    sp_elf_symbols_init(&names->symbols, SP_ELF_FUNCTIONS, names->object.loaded,
                        names->object.debug);
    sp_elf_symbols_init(&names->more, SP_ELF_FUNCTIONS, NULL, names->object.debugdata.elf);
    names->cost_ns = sp_clock_own_cpu_ns() - before_ns;
    names->ahead_ns = 0;
    ask_server(names, module, debuginfod);
}

bool sp_module_names_has_answer(sp_module_names *names, const sp_module *module,
                                sp_debuginfod *debuginfod)
{
    if (!names->waits)
        return false;
    sp_debuginfod_answer answer =
        sp_debuginfod_ask(debuginfod, module->build_id, module->build_id_length, &names->fetched);
    names->waits = answer == SP_DEBUGINFOD_PENDING;
    if (answer != SP_DEBUGINFOD_FETCHED)
        return false;
    sp_module_names_close(names);
    names->has_warned = false; /* problems of the fetched file have not been reported yet */
    return true;
}

const sp_elf_symbol *sp_module_names_symbol(const sp_module_names *names, uint64_t address)
{
    const sp_elf_symbol *symbol = sp_elf_symbols_find(&names->symbols, address);
    return symbol ? symbol : sp_elf_symbols_find(&names->more, address);
}

/* Few modules have locks that threads wait for, so a module's variables are read when the first one
 * is requested. */
const sp_elf_symbol *sp_module_names_variable(sp_module_names *names, uint64_t address)
{
    if (!names->has_variables)
        sp_elf_symbols_init(&names->variables, SP_ELF_VARIABLES, names->object.loaded,
                            names->object.debug);
    names->has_variables = true;
    return sp_elf_symbols_find(&names->variables, address);
}

bool sp_module_names_has_data_at(const sp_module_names *names, uint64_t address)
{
    return !names->object.loaded || sp_elf_has_data_at(names->object.loaded, address);
}
