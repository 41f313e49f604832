/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_RUN_USES_SPANPROF_H
#define SP_RUN_USES_SPANPROF_H

#include <stdbool.h>

/* Whether the program, or one of its libraries, is linked with libspanprof.so. Such a program
 * starts the SDK itself. Call it only before main. */
bool sp_program_uses_spanprof(void);

#endif
