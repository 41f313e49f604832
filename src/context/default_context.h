/* SPDX-License-Identifier: Apache-2.0 */
/* The default context (spanprof_context_set_default): samples of threads that have no context of
 * their own belong to it.
 *
 * Threads: any.  Signals: not safe.  Fork: the child keeps it. */
#ifndef SP_CONTEXT_DEFAULT_CONTEXT_H
#define SP_CONTEXT_DEFAULT_CONTEXT_H

#include <spanprof/context.h>

/* All zero: there is none. */
spanprof_context sp_default_context_get(void);

#endif
