/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks: addresses with names, and markers where frames are missing. */
#include <inttypes.h>
#include <stdio.h>

#include "context/ring_sig.h"
#include "profile/build.h"
#include "symbol/syscall_names.h"

/* The name of a marker, which says why frames are missing. It is in the place of these frames: at
 * the root, or between both ends of a stack that was too deep. */
static const char *marker_name(uint32_t end)
{
    switch (end) {
    case SP_WALK_TRUNCATED:
        return "[truncated]";
    case SP_WALK_NO_TABLE:
        return "[unwind: no table]";
    case SP_WALK_BAD_MEMORY:
        return "[unwind: unreadable stack]";
    case SP_WALK_NO_PROGRESS:
        return "[unwind: no progress]";
    case SP_WALK_NO_REGISTER:
        return "[unwind: no register]";
    case SP_WALK_UNLOADED:
        return "[unwind: library unloaded]";
    case SP_WALK_WOKE:
        return "[unwind: thread woke]";
    case SP_WALK_FOLDED:
        return "[folded]";
    default:
        return "[unwind: incomplete]";
    }
}

/* Build a marker that is among the addresses. The leaf of a visit is such a marker: the system call
 * in which the thread waits, with its name from the kernel's headers. */
static uint32_t build_marker(sp_build *b, uint64_t address)
{
    char unnamed[40];
    int64_t number = (int32_t)(uint32_t)address;
    if (address == SP_PC_SIGNAL_HANDLER)
        return sp_dictionary_marker(&b->dictionary, "[signal handler called]");
    if (address == SP_PC_RUNNABLE)
        return sp_dictionary_marker(&b->dictionary, "[runnable]");
    if (number == -1)
        return sp_dictionary_marker(&b->dictionary, "[kernel]");
    const char *name = sp_syscall_name(number);
    if (!name)
        snprintf(unnamed, sizeof unnamed, "[system call %d]", (int)number);
    return sp_dictionary_marker(&b->dictionary, name ? name : unnamed);
}

/* The location of a frame for which the symbolizer had no memory, or whose module's path is too
 * long for it. Only this frame loses its name. */
static uint32_t build_unnamed(sp_build *b, const sp_window_location *location)
{
    char name[40];
    snprintf(name, sizeof name, "[unknown]+0x%" PRIx64, location->address);
    const sp_frame frame = {.name = name, .system_name = "", .file = "", .unresolved = true};
    return sp_dictionary_location(&b->dictionary, location->module, location->address, &frame, 1);
}

static uint32_t build_code(sp_build *b, const sp_window_location *location)
{
    const sp_frame *frames;
    uint32_t count =
        sp_symbolizer_frames(b->symbolizer, location->module, location->address, &frames);
    if (!count)
        return build_unnamed(b, location);
    return sp_dictionary_location(&b->dictionary, location->module, location->address, frames,
                                  count);
}

static uint32_t build_location(sp_build *b, uint32_t number)
{
    if (b->locations[number])
        return b->locations[number] - 1;
    const sp_window_location *location = sp_intern_key(&b->window->locations, number);
    bool is_marker = !location->module && sp_pc_is_marker(location->address);
    uint32_t index = is_marker ? build_marker(b, location->address) : build_code(b, location);
    b->locations[number] = index + 1;
    return index;
}

uint32_t sp_build_stack(sp_build *b, uint32_t number)
{
    if (b->stacks[number])
        return b->stacks[number] - 1;
    const uint32_t *key = sp_intern_key(&b->window->stacks, number);
    uint32_t count = b->window->stacks.entries[number].length / sizeof *key - 1;
    uint32_t end = key[count];
    for (uint32_t i = 0; i < count; i++)
        b->stack_scratch[i] =
            key[i] == SP_WINDOW_GAP
                ? sp_dictionary_marker(&b->dictionary, marker_name(SP_WALK_TRUNCATED))
                : build_location(b, key[i]);
    if (end != SP_WALK_COMPLETE)
        b->stack_scratch[count++] = sp_dictionary_marker(&b->dictionary, marker_name(end));
    uint32_t index = sp_dictionary_stack(&b->dictionary, b->stack_scratch, count);
    b->stacks[number] = index + 1;
    return index;
}
