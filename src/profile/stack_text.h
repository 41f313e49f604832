/* SPDX-License-Identifier: Apache-2.0 */
/* A stack of a window as one text. Collector thread. */
#ifndef SP_PROFILE_STACK_TEXT_H
#define SP_PROFILE_STACK_TEXT_H

#include "core/buffer.h"
#include "profile/window.h"
#include "symbol/symbolizer.h"

enum { SP_STACK_TEXT_MAX = 16 * 1024 };

/* Append the functions of STACK, a number of WINDOW->stacks, as "root;…;leaf", inlined ones too. A
 * semicolon in a name becomes a colon. Where they take more than SP_STACK_TEXT_MAX bytes, those
 * nearest to the root are left out. OUT fails when memory is short. */
void sp_stack_text(sp_buffer *out, const sp_window *window, sp_symbolizer *symbolizer,
                   uint32_t stack);

#endif
