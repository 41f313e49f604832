/* SPDX-License-Identifier: Apache-2.0 */
/* Removes from samples the attributes that name a lock and its holder. */
#ifndef SP_TOOL_MODEL_LOCK_ATTRIBUTES_H
#define SP_TOOL_MODEL_LOCK_ATTRIBUTES_H

#include "tool/read/input.h"

/* Remove these attributes from the profiles of INPUT. A backend makes a series for each set of
 * attributes, and these contain ids and addresses, so there would be too many series. A request
 * without such attributes is unchanged. Returns false, after a message, when memory is short or an
 * index is outside its table. */
bool sp_lock_attributes_remove(sp_input *input);

#endif
