/* SPDX-License-Identifier: Apache-2.0 */
/* Locks, and the spans that held them, as attributes of samples. */
#ifndef SP_TOOL_MODEL_HOLDERS_H
#define SP_TOOL_MODEL_HOLDERS_H

#include "tool/read/input.h"

/* Take them out of the profiles of INPUT: backends make a series of each set of attributes, and
 * these have ids and addresses. Requests without any stay as they are. False when memory is short,
 * or an index is outside its table; then that was said. */
bool sp_holders_forget(sp_input *input);

#endif
