/* SPDX-License-Identifier: Apache-2.0 */
/* CPU time that no sample stands for. A span without samples may have used it. Threads: the main
 * thread. */
#ifndef SP_TOOL_MODEL_TIME_WITHOUT_SAMPLES_H
#define SP_TOOL_MODEL_TIME_WITHOUT_SAMPLES_H

#include "tool/model/model.h"

/* The unattributed CPU time in the windows of TYPE, if it is more than a tenth of all CPU time in
 * them; else 0. With a SPAN only windows of its process that overlap it count; NULL: all do. */
uint64_t sp_model_unattributed_ns(const sp_model *model, uint32_t type, const sp_model_span *span);

#endif
