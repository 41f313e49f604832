/* SPDX-License-Identifier: Apache-2.0 */
/* Finds names that several functions have. Two different files are not enough: code may be included
 * into a function. The instructions of the function then belong to two files, but the function
 * begins on one line. So functions with addresses count as several if their files differ, and also
 * their modules or their first lines. Functions without addresses, as in Python, have no included
 * code, so different files are enough. */
#include <stdlib.h>
#include <string.h>

#include "tool/model/names.h"

typedef struct piece {
    const char *file; /* NULL: no piece was seen yet */
    const char *module;
    int64_t start_line; /* the first line of the function; 0: unknown */
} piece;

static bool begin_elsewhere(const piece *x, const piece *y)
{
    return x->start_line > 0 && y->start_line > 0 && x->start_line != y->start_line;
}

/* The path of the module of LOCATION. Paths are compared, because a module may be mapped several
 * times. */
static const char *module_of(const Sp__Profiles__ProfilesDictionary *d,
                             const Sp__Profiles__Location *location)
{
    int32_t index = location->mapping_index;
    if (index < 0 || (size_t)index >= d->n_mapping_table)
        return "";
    int32_t path = d->mapping_table[index]->filename_strindex;
    return path >= 0 && (size_t)path < d->n_string_table ? d->string_table[path] : "";
}

/* The number of the function that LOCATION belongs to, and its place in *OUT. It is the last of the
 * location's lines; inlined functions come before it. SP_INTERN_FAILED: unknown. */
static uint32_t find_piece(const Sp__Profiles__ProfilesDictionary *d, const uint32_t *numbers,
                           const Sp__Profiles__Location *location, piece *out)
{
    size_t lines = location->n_lines;
    int32_t index = lines ? location->lines[lines - 1]->function_index : -1;
    if (index < 0 || (size_t)index >= d->n_function_table)
        return SP_INTERN_FAILED;
    int32_t file = d->function_table[index]->filename_strindex;
    if (file <= 0 || (size_t)file >= d->n_string_table || !*d->string_table[file])
        return SP_INTERN_FAILED;
    *out = (piece){d->string_table[file], module_of(d, location),
                   d->function_table[index]->start_line};
    return numbers[index];
}

bool sp_names_tell_apart(sp_names *names, const Sp__Profiles__ProfilesDictionary *dictionary,
                         const uint32_t *numbers)
{
    piece *first = calloc(names->full.count + (size_t)1, sizeof *first);
    for (size_t i = 0; first && i < dictionary->n_location_table; i++) {
        const Sp__Profiles__Location *location = dictionary->location_table[i];
        piece now = {0};
        uint32_t number = find_piece(dictionary, numbers, location, &now);
        if (number == SP_INTERN_FAILED || !names->named[number].is_of_its_file)
            continue;
        piece *seen = &first[number];
        if (!seen->file)
            *seen = now;
        else if (strcmp(seen->file, now.file) != 0 &&
                 (location->address == 0 || strcmp(seen->module, now.module) != 0 ||
                  begin_elsewhere(seen, &now)))
            names->named[number].several_files = true;
    }
    free(first);
    return first != NULL;
}
