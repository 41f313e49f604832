# SPDX-License-Identifier: Apache-2.0
"""Run inside gdb: write the stacks of all threads to $OUTSIDE_WALK_GDB, a line each: id and addresses, innermost first."""
import os

import gdb


def addresses(thread):
    thread.switch()
    frame, found = gdb.newest_frame(), []
    while frame is not None and frame.is_valid() and len(found) < 250:
        if frame.type() not in (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME):  # those have no place on the stack
            found.append(frame.pc())
        frame = frame.older()
    return found


gdb.execute("set backtrace past-main on")
gdb.execute("set backtrace past-entry on")
with open(os.environ["OUTSIDE_WALK_GDB"], "w", encoding="ascii") as out:
    for one in gdb.selected_inferior().threads():
        print(one.ptid[1], *(f"{pc:x}" for pc in addresses(one)), file=out)
