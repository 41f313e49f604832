/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this folder share. */
#ifndef SP_OUTSIDE_OUTSIDE_INTERNAL_H
#define SP_OUTSIDE_OUTSIDE_INTERNAL_H

#include <stddef.h>

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

/* Say what is missing, and return RESULT. */
sp_outside_result sp_outside_say(sp_outside_process *process, sp_outside_result result,
                                 const char *format, ...) __attribute__((format(printf, 3, 4)));

/* memory.c */

/* A line of /proc/PID/maps. */
typedef struct sp_outside_mapping {
    uint64_t low, high, offset, inode;
    unsigned major, minor;
    bool is_executable;
    char path[4096]; /* or a name; "" for none */
} sp_outside_mapping;

/* Called for each mapping in order of addresses, until it returns false. */
typedef bool sp_outside_each_mapping(const sp_outside_mapping *mapping, void *user);
/* False, and errno, when the mappings cannot be read. */
bool sp_outside_mappings(pid_t pid, sp_outside_each_mapping *each, void *user);
/* Copy BYTES at ADDRESS of the process, all or nothing (errno). */
bool sp_outside_copy(pid_t pid, void *out, uint64_t address, size_t bytes);
static inline bool sp_outside_word(pid_t pid, uint64_t address, uint64_t *out)
{
    return sp_outside_copy(pid, out, address, sizeof *out);
}

/* process_context_read.c: find and read it. Where there is none, OK too: the address stays 0. */
sp_outside_result sp_outside_read_process_context(sp_outside_process *process);
/* Whether a mapping's name is that of a process context. */
bool sp_outside_names_context(const char *name);

/* slots.c: where threads have the pointer. */
sp_outside_result sp_outside_find_slots(sp_outside_process *process);
/* The address of SLOT for the thread with thread pointer POINTER; 0 when that thread has not made
 * it yet. */
uint64_t sp_outside_slot_address(const sp_outside_process *process, const sp_outside_slot *slot,
                                 uint64_t pointer);

/* stop.c: a thread stopped, with its thread pointer in *POINTER and in *SIGNAL what go_on is to
 * give it; and on its way again. */
sp_outside_result sp_outside_stop(sp_outside_process *process, pid_t tid, uint64_t *pointer,
                                  int *signal);
void sp_outside_go_on(pid_t tid, int signal);

#endif
