/* SPDX-License-Identifier: Apache-2.0 */
/* Does the parts of one task on all cores. The result does not depend on the order of the parts:
 * each part has its own results, and each thread has its own memory. */
#ifndef SP_TOOL_READ_PARALLEL_H
#define SP_TOOL_READ_PARALLEL_H

#include <stddef.h>

enum { SP_PARALLEL_MOST = 16 };
/* The size of one part of a file. A smaller part is not worth a thread. */
enum { SP_PARALLEL_PART_BYTES = 256 * 1024 };

/* How many threads to use for COUNT parts: at least 1, and at most COUNT, one for each core that
 * the process may use, and SP_PARALLEL_MOST. */
size_t sp_parallel_threads(size_t count);

/* Call RUN for each part from 0 to COUNT - 1, from up to THREADS threads (1 to SP_PARALLEL_MOST);
 * thread 0 is the caller, and calls it for part 0. Returns when all parts are done. If the kernel
 * refuses a thread, the others do its parts. RUN reports mistakes in the results of its part and
 * prints nothing, except that thread 0 may show progress. */
void sp_parallel_run(size_t threads, size_t count,
                     void (*run)(void *state, size_t thread, size_t part), void *state);

#endif
