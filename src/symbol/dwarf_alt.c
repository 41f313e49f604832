/* SPDX-License-Identifier: Apache-2.0 */
/* The file that several debug files share, written by dwz and named in .gnu_debugaltlink. libdw
 * would look for it when it first needs it, and take one of any build id. Here it is searched at
 * once, and must have the build id. */
#include "symbol/dwarf_alt.h"

#include <elfutils/libdwelf.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/hex.h"

enum { ID_MAX = 64, PLACES = 3 };

/* The file that is searched, and its possible places. An empty path: there is no such place. */
typedef struct alt_search {
    const char *name;
    const void *id;
    size_t id_length;
    char paths[PLACES][PATH_MAX];
} alt_search;

/* Set PATH to NAME below DIRECTORY (LENGTH bytes), or to "" when that would be cut. */
static void set_path(char *path, const char *directory, int length, const char *name)
{
    if (snprintf(path, PATH_MAX, "%.*s/%s", length, directory, name) >= PATH_MAX)
        path[0] = 0;
}

/* An absolute name is taken as it is. Another one is relative to the directory of the debug file
 * itself, with symbolic links resolved. */
static void set_relative(alt_search *search, const char *path)
{
    char target[PATH_MAX];
    if (search->name[0] == '/') {
        (void)snprintf(search->paths[1], PATH_MAX, "%s", search->name);
        return;
    }
    const char *slash = path && realpath(path, target) ? strrchr(target, '/') : NULL;
    if (slash)
        set_path(search->paths[1], target, (int)(slash - target), search->name);
}

static void set_places(alt_search *search, const char *path, const char *debug_directory)
{
    char hex[2 * ID_MAX + 1], name[2 * ID_MAX + 32];
    const char *slash = strrchr(search->name, '/');
    sp_hex_encode(hex, search->id, search->id_length);
    (void)snprintf(name, sizeof name, ".build-id/%.2s/%s.debug", hex, hex + 2);
    set_path(search->paths[0], debug_directory, INT_MAX, name);
    set_relative(search, path);
    char below[PATH_MAX];
    (void)snprintf(below, sizeof below, "%s/.dwz", debug_directory);
    set_path(search->paths[2], below, INT_MAX, slash ? slash + 1 : search->name);
}

bool sp_dwarf_alt_open(sp_dwarf_alt *alt, Dwarf *dwarf, const char *path,
                       const char *debug_directory, char *problem, size_t bytes)
{
    alt_search search = {0};
    *alt = (sp_dwarf_alt){0};
    ssize_t length = dwelf_dwarf_gnu_debugaltlink(dwarf, &search.name, &search.id);
    if (length < 2 || length > ID_MAX)
        return true;
    search.id_length = (size_t)length;
    set_places(&search, path, debug_directory);
    bool found_others = false;
    for (int i = 0; i < PLACES && !alt->dwarf; i++) {
        sp_elf_file file =
            search.paths[i][0] ? sp_elf_file_open(search.paths[i]) : SP_ELF_FILE_NONE;
        if (file.elf && sp_elf_has_build_id(file.elf, search.id, search.id_length) &&
            sp_elf_inflated_bytes(file.elf) <= SP_ELF_LARGEST_INFLATED)
            alt->dwarf = dwarf_begin_elf(file.elf, DWARF_C_READ, NULL);
        if ((file.elf || file.problem) && !alt->dwarf) {
            found_others = true;
            (void)snprintf(problem, bytes, "%s, which it shares with others: %s", search.paths[i],
                           file.problem ? file.problem : "not the one that it was made with");
        }
        if (alt->dwarf)
            alt->elf = sp_elf_file_take(&file, &alt->mark);
        else
            sp_elf_file_close(&file);
    }
    if (alt->dwarf)
        dwarf_setalt(dwarf, alt->dwarf);
    return alt->dwarf || !found_others;
}

void sp_dwarf_alt_close(sp_dwarf_alt *alt)
{
    dwarf_end(alt->dwarf);
    elf_end(alt->elf);
    sp_file_mark_deinit(&alt->mark);
    *alt = (sp_dwarf_alt){0};
}
