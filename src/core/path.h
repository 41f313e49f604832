/* SPDX-License-Identifier: Apache-2.0 */
/* Threads: any.  Signals: safe. */
#ifndef SP_CORE_PATH_H
#define SP_CORE_PATH_H

#include <string.h>

/* The part of PATH after its last slash; all of PATH when it has none. */
static inline const char *sp_path_base(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

#endif
