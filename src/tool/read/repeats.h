/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles that are in the input more than once: the same file named twice, or one file in two
 * formats. OTLP says that a profile_id is one profile's alone, so the first with an id counts and
 * the others go, as with spans. Two profiles of different types are never the same, because some
 * producers give one id to all profiles of a window; neither are profiles without an id. */
#ifndef SP_TOOL_READ_REPEATS_H
#define SP_TOOL_READ_REPEATS_H

#include "tool/read/input.h"

/* Remove the repeated profiles from INPUT's messages, and say how many they are. SP_TOOL_DONE, or
 * SP_TOOL_WRONG: memory is short. */
int sp_input_drop_repeats(sp_input *input);
/* sp_input_read, without repeated profiles; says what its link tables lose (zero_link.h). */
int sp_input_read_once(sp_input *input, const sp_operands *files);

#endif
