/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/command/commands.h"

int main(int argc, char **argv)
{
    return sp_tool_call(argc, argv);
}
