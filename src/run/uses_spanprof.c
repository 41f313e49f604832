/* SPDX-License-Identifier: Apache-2.0 */
#include "run/uses_spanprof.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string.h>

#define LIBRARY "libspanprof.so"

static const char *string_table(const struct link_map *object)
{
    for (const ElfW(Dyn) *entry = object->l_ld; entry->d_tag != DT_NULL; entry++)
        if (entry->d_tag == DT_STRTAB)
            return (const char *)entry->d_un.d_ptr; /* the loader has relocated it */
    return NULL;
}

static bool needs_spanprof(const struct link_map *object)
{
    const char *strings = string_table(object);
    for (const ElfW(Dyn) *entry = object->l_ld; strings && entry->d_tag != DT_NULL; entry++)
        if (entry->d_tag == DT_NEEDED &&
            strncmp(strings + entry->d_un.d_val, LIBRARY, sizeof LIBRARY - 1) == 0)
            return true;
    return false;
}

/* Whether OBJECT is a file, and not the vdso. The vdso's table may be in read-only memory, so the
 * loader does not relocate the table. */
static bool is_file(const struct link_map *object)
{
    return object->l_name && strncmp(object->l_name, "linux-vdso", 10) != 0;
}

/* _DYNAMIC is this library's own table. */
bool sp_program_uses_spanprof(void)
{
    for (const struct link_map *object = _r_debug.r_map; object; object = object->l_next)
        if (object->l_ld && object->l_ld != _DYNAMIC && is_file(object) && needs_spanprof(object))
            return true;
    return false;
}
