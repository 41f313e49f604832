/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the interfaces of libspanprof-preload.so. Threads: setup. */
#ifndef SP_CALL_PRELOAD_FIND_H
#define SP_CALL_PRELOAD_FIND_H

#include <stdint.h>

/* The result of the library's function GETTER for VERSION, if the program's calls of SYMBOL reach
 * the library. Else NULL, and *REASON completes "… are not seen: ". */
void *sp_preload_find(const char *getter, uint32_t version, const char *symbol,
                      const char **reason);

#endif
