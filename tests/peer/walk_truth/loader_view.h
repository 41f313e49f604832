/* SPDX-License-Identifier: Apache-2.0 */
/* libunwind asks dl_iterate_phdr for the libraries, which takes the loader's lock: in a signal
 * handler another thread may hold it and wait for a lock that the interrupted one holds. So this
 * program's dl_iterate_phdr answers from a copy while a stop is taken; all other callers get the
 * real one.  Threads: one takes the copy and asks for stops. */
#ifndef TESTS_PEER_WALK_TRUTH_LOADER_VIEW_H
#define TESTS_PEER_WALK_TRUTH_LOADER_VIEW_H

#include <stdbool.h>
#include <sys/types.h>

/* Copy what the loader has now. Not for handlers. */
void loader_view_take(void);

/* From here on the calls of TID are answered from the copy; 0: nobody's. */
void loader_view_serve(pid_t tid);

#endif
