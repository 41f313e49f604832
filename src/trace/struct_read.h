/* SPDX-License-Identifier: Apache-2.0 */
/* Options structs of callers, which may have been built with another version of the header: every
 * one begins with `uint32_t struct_size`, and fields are only ever appended. For calls that have no
 * status to return. Threads: any. */
#ifndef SP_TRACE_STRUCT_READ_H
#define SP_TRACE_STRUCT_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core/compiler.h"

/* SP_STRUCT_READ when the sizes differ. */
bool sp_struct_read_other(void *out, size_t bytes, const void *given, const char *name);

/* Copy the fields of *GIVEN that this version knows to *OUT, and set the others to zero. False,
 * with one warning for the process, when struct_size is 0. Unknown fields that are not zero are
 * ignored, with one warning, too. NAME is the struct's. */
#define SP_STRUCT_READ(out, given, name) sp_struct_read(out, sizeof *(out), given, name)

static inline bool sp_struct_read(void *out, size_t bytes, const void *given, const char *name)
{
    uint32_t given_bytes;
    memcpy(&given_bytes, given, sizeof given_bytes);
    if (SP_UNLIKELY(given_bytes != bytes))
        return sp_struct_read_other(out, bytes, given, name);
    memcpy(out, given, bytes);
    return true;
}

#endif
