/* SPDX-License-Identifier: Apache-2.0 */
/* Samples in functions that have no name, such as functions of a stripped program. Threads: the
 * main thread.
 */
#ifndef SP_TOOL_MODEL_NAMELESS_H
#define SP_TOOL_MODEL_NAMELESS_H

#include "tool/model/model.h"

#define SP_NAMELESS_MODULE 128

typedef struct sp_nameless {
    uint64_t all;      /* samples of the type */
    uint64_t nameless; /* of these, those whose innermost function is MODULE+0xADDRESS */
    char module[SP_NAMELESS_MODULE]; /* the module with the most of them; "": none */
} sp_nameless;

/* Count the samples of TYPE that have no name. Code that belongs to no file does not count, because
 * no symbols could name it. Returns false when memory is short. */
bool sp_model_find_nameless(sp_nameless *out, const sp_model *model, uint32_t type);

#endif
