/* SPDX-License-Identifier: Apache-2.0 */
/* Makes profiles from selected samples, with all that the files say about them: addresses, lines,
 * attributes. The model has only names. */
#ifndef SP_TOOL_MODEL_SELECTED_H
#define SP_TOOL_MODEL_SELECTED_H

#include "core/buffer.h"
#include "tool/model/select.h"

/* Make one request from the samples of COUNT SELECTIONS, which are of one model and of different
 * types. Its dictionary has only what these samples use. If a selection is what grew, its samples
 * have the values of the model and no attributes. The request lives in MEMORY and borrows from the
 * input. Returns NULL after a message. */
Sp__Profiles__ProfilesData *sp_selected_request(sp_arena *memory, const sp_selection *selections,
                                                size_t count);
/* Append the same samples to OUT as one gzipped pprof. Returns SP_TOOL_DONE, or SP_TOOL_WRONG after
 * a message. */
int sp_selected_pprof(sp_buffer *out, const sp_selection *selections, size_t count);

#endif
