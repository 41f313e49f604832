/* SPDX-License-Identifier: Apache-2.0 */
/* Giving free memory back. Collector thread only. */
#ifndef SP_SYMBOL_HEAP_TRIM_H
#define SP_SYMBOL_HEAP_TRIM_H

/* Give back what is free at the end of the calling thread's heap, which malloc_trim(3) leaves. Well
 * below a millisecond. */
void sp_heap_trim_end(void);

#endif
