/* SPDX-License-Identifier: Apache-2.0 */
/* Finds link tables whose entry 0 is a link to a span. In OTLP, index 0 means "no link". So samples
 * of that span and samples without a link have the same index and cannot be distinguished. */
#ifndef SP_TOOL_READ_ZERO_LINK_H
#define SP_TOOL_READ_ZERO_LINK_H

#include "tool/read/input.h"

/* Print one line on standard error if INPUT has such a table. */
void sp_input_say_zero_links(const sp_input *input);

#endif
