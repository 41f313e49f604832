/* SPDX-License-Identifier: Apache-2.0 */
/* Installs the SDK's signal handler, and keeps the host's. Threads: under the engine's lock.
 * Signals: not safe. */
#ifndef SP_CPU_HANDLER_INSTALL_H
#define SP_CPU_HANDLER_INSTALL_H

#include "core/compiler.h"

/* Install sp_handle_tick for SIGNAL. False, with errno, when the system refuses. */
bool sp_handler_install(int signal);
/* Give the host its handler back. If the host had none, the SDK's handler stays, because a pending
 * tick would end the process otherwise. */
void sp_handler_restore(int signal);
/* Whether a signal reaches the SDK's handler through the installed one. It sends a signal to the
 * calling thread to find out. */
bool sp_handler_is_reached(int signal);
/* Whether the SDK's handler is the installed one. */
bool sp_handler_is_on_top(int signal);

#endif
