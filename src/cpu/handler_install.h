/* SPDX-License-Identifier: Apache-2.0 */
/* Puts our handler beside the host's. Threads: under the engine's lock.  Signals: not safe. */
#ifndef SP_CPU_HANDLER_INSTALL_H
#define SP_CPU_HANDLER_INSTALL_H

#include "core/compiler.h"

/* Install sp_handle_tick for SIGNAL. False, with errno, when the system refuses. */
bool sp_handler_install(int signal);
/* Give the host its handler back. Where there was none ours stays: a tick still on its way would
 * end the process otherwise. */
void sp_handler_restore(int signal);
/* Whether a signal reaches our handler through the one that is installed now. Asked by sending one
 * to the calling thread. */
bool sp_handler_is_reached(int signal);
/* Whether ours is the one that is installed now. */
bool sp_handler_is_on_top(int signal);

#endif
