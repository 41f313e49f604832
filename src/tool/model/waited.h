/* SPDX-License-Identifier: Apache-2.0 */
/* What samples of waits were for, in words: the lock, the span that held it, and the function that
 * gave it back. */
#ifndef SP_TOOL_MODEL_WAITED_H
#define SP_TOOL_MODEL_WAITED_H

#include "tool/model/select.h"

/* Whether a function of this NAME is a part of a lock: C++'s locks are functions of its library
 * around those of the C library, inlined into the code that takes them. */
bool sp_waited_is_of_a_lock(const char *name);
/* Of the functions of STACK, "root;…;leaf", which is changed, the innermost one that is none of a
 * lock, or else the innermost of all. */
const char *sp_waited_function(char *stack);

#define SP_WAITED_LENGTH 512
/* What the samples of SELECTION waited for most: "waited for index_lock, held by GET /rebuild in
 * rebuild_index (38.0 ms of 40.0 ms)". "": they tell nothing, or memory is short. */
void sp_waited_format(char out[SP_WAITED_LENGTH], const sp_selection *selection);

#endif
