/* SPDX-License-Identifier: Apache-2.0 */
/* The name of one frame of a stack, and the place of its code in the source. */
#ifndef SP_SYMBOL_FRAME_H
#define SP_SYMBOL_FRAME_H

#include <stdbool.h>
#include <stdint.h>

/* Strings live as long as the frame; "" when not known, never NULL. Lines count from 1; 0: not
 * known. */
typedef struct sp_frame {
    const char *name;        /* for people: demangled, in the style that is configured */
    const char *system_name; /* as in the symbol table; "" when it equals name */
    const char *file;
    uint32_t line;
    uint32_t column;
    uint32_t start_line; /* of the function */
    bool unresolved;     /* name is the substitute "module+0xaddr" */
} sp_frame;

#endif
