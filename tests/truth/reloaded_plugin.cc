// SPDX-License-Identifier: Apache-2.0
// One of two libraries that are loaded in turns, at one address (reloaded.cc). WORK says which, FRAME how large its frames are: the unwind
// tables and names of the one are wrong for the other.
#include <stdint.h>

#include "truth/truth_work.h"

#define NAME_OF(name, work)  NAME_OF_(name, work)
#define NAME_OF_(name, work) name##work
#define DIVE                 NAME_OF(plugin_dive_, WORK)

static volatile char kept;

extern "C" {
__attribute__((noinline)) void DIVE(int depth, uint64_t ns)
{
    char frame[FRAME];
    frame[depth] = (char)depth;
    kept = frame[depth];
    if (depth == 0) {
        truth_work(WORK, ns);
        throw WORK;
    }
    DIVE(depth - 1, ns);
    kept = frame[depth]; // no tail call
}

void plugin_run(uint64_t ns)
{
    try {
        DIVE(3 + WORK, ns);
    } catch (int) {
        truth_work(WORK, ns);
    }
}
}
