/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_RUN_RUN_EXITS_H
#define SP_RUN_RUN_EXITS_H

/* Find the C library's own functions, before main, so that ours never have to ask the loader: the
 * thread that calls them may have no usable thread-local storage, as a child of clone(CLONE_VM). */
void sp_run_prepare_exits(void);

#endif
