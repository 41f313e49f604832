/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of one work on all cores. What comes out depends on no order: each part has results of its
 * own, and each thread memory of its own. */
#ifndef SP_TOOL_READ_PARALLEL_H
#define SP_TOOL_READ_PARALLEL_H

#include <stddef.h>

enum { SP_PARALLEL_MOST = 16 };
/* Of a file, are worth a thread. */
enum { SP_PARALLEL_PART_BYTES = 256 * 1024 };

/* How many threads are worth it for COUNT parts: at most one for each core that the process may
 * use, and at most SP_PARALLEL_MOST. */
size_t sp_parallel_threads(size_t count);

/* Call RUN for each part below COUNT, from up to THREADS threads, of which number 0 is the
 * caller's; returns when all are done. A thread that the kernel refuses leaves its parts to the
 * others. RUN writes to no file and reports in its results. */
void sp_parallel_run(size_t threads, size_t count,
                     void (*run)(void *state, size_t thread, size_t part), void *state);

#endif
