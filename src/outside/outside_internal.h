/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this folder share. */
#ifndef SP_OUTSIDE_OUTSIDE_INTERNAL_H
#define SP_OUTSIDE_OUTSIDE_INTERNAL_H

#include <stddef.h>

#include "core/mappings.h"
#include "outside/memory.h"
#include "outside/outside.h"
#include "proto/process_context.pb-c.h"

struct sp_outside_process {
    pid_t pid;
    bool is_musl;
    sp_outside_slot slots[SP_OUTSIDE_SLOTS];
    uint32_t slot_count;
    uint64_t header; /* address of the process context's mapping; 0: none */
    uint64_t published_at_ns;
    Sp__ProcessContext__ProcessContext *context;
    char problem[256];
};

/* Set the problem, and return RESULT. */
sp_outside_result sp_outside_say(sp_outside_process *process, sp_outside_result result,
                                 const char *format, ...) __attribute__((format(printf, 3, 4)));

/* process_context_read.c: find and read the process context. OK also when there is none: then
 * `header` is 0. */
sp_outside_result sp_outside_read_process_context(sp_outside_process *process);

/* slots.c: find the places where threads have the pointer. */
sp_outside_result sp_outside_find_slots(sp_outside_process *process);
/* The address of SLOT for the thread with thread pointer POINTER; 0 when that thread has not made
 * it yet. */
uint64_t sp_outside_slot_address(const sp_outside_process *process, const sp_outside_slot *slot,
                                 uint64_t pointer);

/* thread_pointer.c: the thread pointer of TID, found without a stop; 0: it is not found. */
uint64_t sp_outside_thread_pointer(pid_t pid, pid_t tid);

/* stop.c: stop a thread, and let it run again. */
typedef struct sp_outside_stopped {
    pid_t tid;
    int signal;       /* delivered when it runs again; 0: none */
    uint64_t pointer; /* the thread pointer */
    sp_outside_registers registers;
} sp_outside_stopped;

sp_outside_result sp_outside_stop(sp_outside_process *process, pid_t tid, sp_outside_stopped *out);
void sp_outside_continue(const sp_outside_stopped *stopped);

#endif
