/* SPDX-License-Identifier: Apache-2.0 */
/* How often the application used the API wrongly while windows filled: written into their profiles,
 * because a reader of files cannot see the counters of the process. Threads: the collector. */
#ifndef SP_COLLECT_MISUSE_H
#define SP_COLLECT_MISUSE_H

#include "profile/window.h"

/* Counts from now on. */
void sp_misuse_begin(sp_window_misuse *seen);
/* Put what was counted since begin, or the last take, into WINDOW. */
void sp_misuse_take(sp_window_misuse *seen, sp_window *window);

#endif
