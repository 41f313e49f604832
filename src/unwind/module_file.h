/* SPDX-License-Identifier: Apache-2.0 */
/* The file of a module, found at the moment when the module is discovered. The loader keeps the
 * name that the program used: a relative path becomes wrong at the next chdir, and a program that
 * was started through the loader has no path. Threads: one at a time. Signals: not safe. */
#ifndef SP_UNWIND_MODULE_FILE_H
#define SP_UNWIND_MODULE_FILE_H

#include <limits.h>

#include "unwind/module_image.h"

/* The file of a module. `origin` identifies it later if the module has no build id. */
typedef struct sp_module_file {
    sp_module_origin origin;
    char path[PATH_MAX]; /* absolute, or the loader's name when no file is found */
} sp_module_file;

/* Find the file of IMAGE. */
void sp_module_file_find(const sp_module_image *image, sp_module_file *out);

/* Whether the file FD is the one that IMAGE was loaded from: by build id, or where there is none,
 * by equal program headers. */
bool sp_module_file_matches(int fd, const sp_module_image *image);

#endif
