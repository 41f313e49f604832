/* SPDX-License-Identifier: Apache-2.0 */
/* `spanprof convert` to formats that hold samples alone: pprof and collapsed stacks. */
#ifndef SP_TOOL_COMMAND_CONVERT_SAMPLES_H
#define SP_TOOL_COMMAND_CONVERT_SAMPLES_H

#include "core/buffer.h"
#include "tool/read/input.h"

/* Append the samples of INPUT to OUT as pprof, or as collapsed stacks: those of TYPE (as for
 * `spanprof flame`), or of all types when it is NULL and the format can hold them all. An exit
 * code, having said why when it is not SP_TOOL_DONE. */
int sp_convert_samples(sp_buffer *out, const sp_input *input, const char *type, bool to_pprof);

#endif
