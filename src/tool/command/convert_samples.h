/* SPDX-License-Identifier: Apache-2.0 */
/* `spanprof convert` to formats that contain only samples: pprof and collapsed stacks. */
#ifndef SP_TOOL_COMMAND_CONVERT_SAMPLES_H
#define SP_TOOL_COMMAND_CONVERT_SAMPLES_H

#include "core/buffer.h"
#include "tool/read/input.h"

/* Append the samples of INPUT to OUT as pprof, or as collapsed stacks: samples of TYPE (as for
 * `spanprof flame`). If TYPE is NULL, samples of all types are converted; the format must be able
 * to contain them all. Returns an exit code, after a message when it is not SP_TOOL_DONE. */
int sp_convert_samples(sp_buffer *out, const sp_input *input, const char *type, bool to_pprof);

#endif
