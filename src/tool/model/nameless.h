/* SPDX-License-Identifier: Apache-2.0 */
/* Samples in functions that have no name, as those of a stripped program. */
#ifndef SP_TOOL_MODEL_NAMELESS_H
#define SP_TOOL_MODEL_NAMELESS_H

#include "tool/model/model.h"

#define SP_NAMELESS_MODULE 128

typedef struct sp_nameless {
    uint64_t all;      /* samples of the type */
    uint64_t nameless; /* of these, those whose innermost function is MODULE+0xADDRESS */
    char module[SP_NAMELESS_MODULE]; /* the one that has most of them; "": there is none */
} sp_nameless;

/* Of the samples of TYPE. Code that belongs to no file is not counted as nameless: no symbols would
 * name it. False when memory is short. */
bool sp_model_find_nameless(sp_nameless *out, const sp_model *model, uint32_t type);

#endif
