/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_RUN_RUN_EXITS_H
#define SP_RUN_RUN_EXITS_H

/* Find the C library's functions that run_exits.c replaces. Call it before main, so that our
 * functions need not call the loader later: their caller may be a child of clone(CLONE_VM), which
 * may have no usable thread-local storage. */
void sp_run_prepare_exits(void);

#endif
