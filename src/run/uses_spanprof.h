/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_RUN_USES_SPANPROF_H
#define SP_RUN_USES_SPANPROF_H

#include <stdbool.h>

/* Whether the program, or a library that it was linked with, is linked with libspanprof.so: it
 * starts the SDK itself. Before main only. */
bool sp_program_uses_spanprof(void);

#endif
