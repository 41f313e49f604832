/* SPDX-License-Identifier: Apache-2.0 */
/* Selected samples as profiles again, with all that the files say of them: addresses, lines,
 * attributes. The model itself knows names only. */
#ifndef SP_TOOL_MODEL_SELECTED_H
#define SP_TOOL_MODEL_SELECTED_H

#include "core/buffer.h"
#include "tool/model/select.h"

/* The samples of COUNT SELECTIONS, which are of one model and of different types, as one request
 * with a dictionary of what they use. Of what grew the values are those of the model, without
 * attributes. It lives in MEMORY and borrows from the input. NULL having said why. */
Sp__Profiles__ProfilesData *sp_selected_request(sp_arena *memory, const sp_selection *selections,
                                                size_t count);
/* Append them to OUT as one pprof, gzipped. SP_TOOL_DONE, or SP_TOOL_WRONG having said why. */
int sp_selected_pprof(sp_buffer *out, const sp_selection *selections, size_t count);

#endif
