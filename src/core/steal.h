/* SPDX-License-Identifier: Apache-2.0 */
/* Time that the host of a virtual machine takes while its cores have work ("steal", proc_stat(5)). A thread that is on a core then neither
 * runs nor waits: no clock of its own counts that time. Of all threads together the kernel tells it, core by core.
 * Threads: one.  Signals: not safe. */
#ifndef SP_CORE_STEAL_H
#define SP_CORE_STEAL_H

#include <stdint.h>

enum { SP_STEAL_CORES = 1024 };

/* In clock ticks (sysconf(_SC_CLK_TCK)), since the machine started. */
typedef struct sp_steal_core {
    uint64_t busy, idle, stolen;
} sp_steal_core;

/* All zero at first. */
typedef struct sp_steal {
    sp_steal_core cores[SP_STEAL_CORES];
    double busy, stolen; /* from running threads, since the last take; clock ticks */
} sp_steal;

/* Read /proc/stat (2 us, and more with many cores). Often enough, so that in between a core is either busy or idle: what the host takes of one
 * that was both is shared out between them. Where it cannot be read nothing is stolen. */
void sp_steal_look(sp_steal *steal);
/* The same with what /proc/stat would say. */
void sp_steal_look_at(sp_steal *steal, const char *text);
/* How much was taken from running threads since the last call, as a part of the time that they ran: 0.03 means 30 ms beside each second. */
double sp_steal_take(sp_steal *steal);

#endif
