/* SPDX-License-Identifier: Apache-2.0 */
/* Samples of interpreters and virtual machines.  Threads: one. */
#ifndef SP_TOOL_MODEL_INTERPRETED_H
#define SP_TOOL_MODEL_INTERPRETED_H

#include "tool/model/model.h"

/* Write a note when most samples of TYPE are of an interpreter or a virtual machine, and none shows
 * a function of the program that it runs. */
void sp_model_note_interpreted(const sp_model *model, uint32_t type);

#endif
