/* SPDX-License-Identifier: Apache-2.0 */
/* Removes profiles that are in the input more than once: the same file was named twice, or there is
 * one file in two formats. In OTLP a profile_id identifies one profile, so the first profile with
 * an id is kept and the others are removed, as with spans. Profiles of different types are never
 * the same, because some producers give one id to all profiles of a window. Profiles without an id
 * are never the same either. */
#ifndef SP_TOOL_READ_REPEATS_H
#define SP_TOOL_READ_REPEATS_H

#include "tool/read/input.h"

/* Remove the repeated profiles from INPUT's messages, and print how many there were. Returns
 * SP_TOOL_DONE, or SP_TOOL_WRONG when memory is short. */
int sp_input_drop_repeats(sp_input *input);
/* sp_input_read, then sp_input_say_zero_links (zero_link.h) and sp_input_drop_repeats. */
int sp_input_read_once(sp_input *input, const sp_operands *files);

#endif
