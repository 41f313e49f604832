/* SPDX-License-Identifier: Apache-2.0 */
/* Says in words what threads waited for: the lock, the span that held it, and the function that
 * released it. */
#ifndef SP_TOOL_MODEL_WAITED_H
#define SP_TOOL_MODEL_WAITED_H

#include "tool/model/select.h"

/* Whether the function NAME is part of the implementation of a lock. The locks of C++ are library
 * functions around those of the C library, and they are inlined into the code that uses them. */
bool sp_waited_is_of_a_lock(const char *name);
/* The innermost function of STACK that is not part of the implementation of a lock, or else the
 * innermost of all. STACK is "root;…;leaf", and is changed. */
const char *sp_waited_function(char *stack);

#define SP_WAITED_LENGTH 512
/* Write what the samples of SELECTION waited for most: "waited for index_lock, held by GET /rebuild
 * in rebuild_index (38.0 ms of 40.0 ms)". "": unknown, or memory is short. */
void sp_waited_format(char out[SP_WAITED_LENGTH], const sp_selection *selection);

#endif
