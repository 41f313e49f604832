/* SPDX-License-Identifier: Apache-2.0 */
/* Link tables that begin with a link to a span. Index 0 stands for no link, and a sample without
 * one has the same index, so nothing tells which samples meant that span. */
#ifndef SP_TOOL_READ_ZERO_LINK_H
#define SP_TOOL_READ_ZERO_LINK_H

#include "tool/read/input.h"

/* One line on standard error when INPUT has such a table. */
void sp_input_say_zero_links(const sp_input *input);

#endif
