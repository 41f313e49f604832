/* SPDX-License-Identifier: Apache-2.0 */
/* libspanprof-preload.so: the malloc family, passed on to the next allocator, with each block
 * counted. Loaded by LD_PRELOAD, or linked before the C library. It does nothing else until the SDK
 * asks it to (alloc/preload_link.h), and knows nothing of it.
 *
 * Threads: any.  Signals: as the allocator that comes next.  Fork: no lock, nothing to do. */
#ifndef SP_PRELOAD_PRELOAD_H
#define SP_PRELOAD_PRELOAD_H

#include "alloc/preload_link.h"

/* Whoever frees POINTER, in the bootstrap room, looks twice. */
void sp_filter_mark(const void *pointer);

#endif
