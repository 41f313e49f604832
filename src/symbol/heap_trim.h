/* SPDX-License-Identifier: Apache-2.0 */
/* Returns free memory to the system.  Collector thread only. */
#ifndef SP_SYMBOL_HEAP_TRIM_H
#define SP_SYMBOL_HEAP_TRIM_H

/* Return the free memory at the end of the calling thread's heap, which malloc_trim(3) leaves.
 * Takes well below a millisecond. */
void sp_heap_trim_end(void);

#endif
