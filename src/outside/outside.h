/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a live process from outside: its process context (OTEP 4719), and the span that a thread
 * works for (OTEP 4947), whichever library wrote them. The thread is stopped by ptrace meanwhile,
 * because its record is whole only then (docs/design/outside-readers.md). The stop lasts some tens
 * of microseconds, and as long as both threads wait for a core. Nothing is written to the process's
 * memory; a system call that the stop ended with EINTR begins anew.
 *
 * Needs the right to trace the process: the same user and kernel.yama.ptrace_scope 0, being its
 * parent, or CAP_SYS_PTRACE. Threads: one at a time.  Signals: not safe. */
#ifndef SP_OUTSIDE_OUTSIDE_H
#define SP_OUTSIDE_OUTSIDE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct sp_outside_process sp_outside_process;

typedef enum sp_outside_result {
    SP_OUTSIDE_OK = 0,
    SP_OUTSIDE_NONE,    /* the thread works for no span */
    SP_OUTSIDE_GONE,    /* the process, or the thread, has ended */
    SP_OUTSIDE_MISSING, /* the process does not publish what was requested */
    SP_OUTSIDE_DENIED,  /* the kernel does not permit it */
    SP_OUTSIDE_FAILED,  /* memory is short, or what was read makes no sense */
} sp_outside_result;

enum { SP_OUTSIDE_ATTRIBUTES = 32, SP_OUTSIDE_ATTRIBUTE_BYTES = 612, SP_OUTSIDE_SLOTS = 8 };

/* One attribute of a record. */
typedef struct sp_outside_attribute {
    const char *key;   /* NULL: the process has published no key for this index. Borrowed until the
                          next call for the process. */
    const char *value; /* not terminated; a part of the context */
    uint8_t index, length;
} sp_outside_attribute;

/* The record of a thread. Ids are in network order. */
typedef struct sp_outside_context {
    uint8_t trace_id[16], span_id[8];
    uint8_t trace_flags;
    uint32_t attribute_count;
    sp_outside_attribute attributes[SP_OUTSIDE_ATTRIBUTES];
    char attribute_bytes[SP_OUTSIDE_ATTRIBUTE_BYTES];
} sp_outside_context;

/* How a module gives the place of a thread's thread-local pointer. */
typedef enum sp_outside_model {
    SP_OUTSIDE_LOCAL_EXEC,      /* the executable's own; its program headers give the offset */
    SP_OUTSIDE_INITIAL_EXEC,    /* TPOFF: the loader wrote the offset */
    SP_OUTSIDE_GENERAL_DYNAMIC, /* DTPMOD, DTPOFF: a module's number and an offset in its block */
    SP_OUTSIDE_TLSDESC,         /* a descriptor of one of these two */
} sp_outside_model;

/* A place where threads have the pointer. */
typedef struct sp_outside_slot {
    sp_outside_model model;
    uint64_t module; /* its number in a thread's vector; 0: the offset is from the thread pointer */
    int64_t offset;
    char path[128]; /* of the module that gives it; only its end when it is longer */
} sp_outside_slot;

/* Begin to read process PID. *OUT must be closed; it is NULL when memory is short. Process context
 * and slots are searched; the functions below say whether there are any. */
sp_outside_result sp_outside_open(pid_t pid, sp_outside_process **out);
/* NULL is fine. */
void sp_outside_close(sp_outside_process *process);
/* Search again for the process context, and for slots, because libraries may have been loaded or
 * unloaded. */
sp_outside_result sp_outside_refresh(sp_outside_process *process);

/* The context of thread TID now, in *OUT when the result is OK. */
sp_outside_result sp_outside_thread_context(sp_outside_process *process, pid_t tid,
                                            sp_outside_context *out);
/* The registers of a stopped thread. base: rbx, or x19; link: aarch64's only. in_call: it was in a
 * system call; always false on aarch64, where that is not known. */
typedef struct sp_outside_registers {
    uint64_t pc, sp, fp, base, link;
    bool in_call;
} sp_outside_registers;

/* Called while the thread is stopped, so it must be short. */
typedef void sp_outside_look(void *user, const sp_outside_registers *registers);
/* The same, and LOOK is called while the thread is stopped, whatever its context is; not when the
 * result is GONE, DENIED or FAILED. When the process publishes nothing, the result is NONE here. */
sp_outside_result sp_outside_thread_look(sp_outside_process *process, pid_t tid,
                                         sp_outside_look *look, void *user,
                                         sp_outside_context *out);
/* The context of thread TID without a stop. It is right if the thread waits, and does not run
 * meanwhile: the caller makes sure of that. FAILED: the thread's control block is not found. */
sp_outside_result sp_outside_thread_peek(sp_outside_process *process, pid_t tid,
                                         sp_outside_context *out);
/* Why the last failed call failed: one sentence without a full stop. Borrowed until the next call.
 */
const char *sp_outside_problem(const sp_outside_process *process);

/* When the process context was published, in ns of CLOCK_BOOTTIME; 0: there is none. */
uint64_t sp_outside_published_at_ns(const sp_outside_process *process);
/* A string of the resource, NULL when it has none of that KEY; borrowed until the next refresh or
 * thread context. */
const char *sp_outside_resource(const sp_outside_process *process, const char *key);
/* The key for INDEX of a record's attributes, or NULL. Borrowed likewise. */
const char *sp_outside_key(const sp_outside_process *process, uint32_t index);
/* The schema of the threads' records, as the process publishes it ("threadlocal.schema_version");
 * NULL: it does not. Borrowed likewise. */
const char *sp_outside_schema(const sp_outside_process *process);
/* The slots that were found, COUNT of them. */
const sp_outside_slot *sp_outside_slots(const sp_outside_process *process, uint32_t *count);

#endif
