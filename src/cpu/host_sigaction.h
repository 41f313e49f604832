/* SPDX-License-Identifier: Apache-2.0 */
/* sigaction for a program that does not know the SDK (libspanprof-run.so): its action for the
 * signal of ticks is stored, the SDK's handler stays installed, and later calls return the stored
 * action. So ticks neither disturb nor end a program that handles SIGPROF itself, or that sets all
 * signals to their defaults.
 *
 * Not part of the API: libspanprof.so exports these functions for libspanprof-run.so of the same
 * build.
 *
 * Threads: any.  Signals: safe; so are children of fork and vfork. */
#ifndef SP_CPU_HOST_SIGACTION_H
#define SP_CPU_HOST_SIGACTION_H

#include <signal.h>

typedef int sp_sigaction(int signal, const struct sigaction *action, struct sigaction *before);

/* Called before main: from now on the program's calls of sigaction are calls of sp_host_sigaction.
 * SYSTEM is the C library's sigaction. */
__attribute__((visibility("default"))) void sp_host_sigaction_begin(sp_sigaction *system);
/* As sigaction; see above. SA_RESTART of the program's action is ignored, because the SDK's handler
 * has it. */
__attribute__((visibility("default"))) int
sp_host_sigaction(int signal, const struct sigaction *action, struct sigaction *before);
/* The signal of ticks, which a thread that blocks all signals should not block; 0: nothing ticks,
 * or the program handles that signal itself. */
__attribute__((visibility("default"))) int sp_host_tick_signal(void);

#endif
