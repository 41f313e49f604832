/* SPDX-License-Identifier: Apache-2.0 */
#include "outside/outside.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "outside/outside_internal.h"
#include "wire/process_context_message.h"

/* The begin of a record, as it is in memory. */
typedef struct record {
    uint8_t trace_id[16], span_id[8];
    uint8_t is_valid, trace_flags;
    uint16_t attributes_bytes;
} record;

_Static_assert(sizeof(record) == 28, "the layout of OTEP 4947");

sp_outside_result sp_outside_say(sp_outside_process *process, sp_outside_result result,
                                 const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(process->problem, sizeof process->problem, format, arguments);
    va_end(arguments);
    return result;
}

sp_outside_result sp_outside_refresh(sp_outside_process *process)
{
    sp_outside_result result = sp_outside_read_process_context(process);
    return result == SP_OUTSIDE_OK ? sp_outside_find_slots(process) : result;
}

sp_outside_result sp_outside_open(pid_t pid, sp_outside_process **out)
{
    *out = calloc(1, sizeof **out);
    if (!*out)
        return SP_OUTSIDE_FAILED;
    (*out)->pid = pid;
    return sp_outside_refresh(*out);
}

void sp_outside_close(sp_outside_process *process)
{
    if (!process)
        return;
    if (process->context)
        sp__process_context__process_context__free_unpacked(process->context, NULL);
    free(process);
}

const char *sp_outside_problem(const sp_outside_process *process)
{
    return process->problem;
}

const sp_outside_slot *sp_outside_slots(const sp_outside_process *process, uint32_t *count)
{
    *count = process->slot_count;
    return process->slots;
}

/* Each attribute is an index, a length and a value, one after the other. One that is cut at the end
 * is dropped. Of several with the same index the last counts, so it takes the place of the first.
 */
static void split_attributes(sp_outside_context *out, size_t bytes)
{
    const char *at = out->attribute_bytes, *end = at + bytes;
    while (end - at >= 2 && end - at - 2 >= (uint8_t)at[1]) {
        sp_outside_attribute attribute = {
            .index = (uint8_t)at[0], .length = (uint8_t)at[1], .value = at + 2};
        uint32_t place = 0;
        while (place < out->attribute_count && out->attributes[place].index != attribute.index)
            place++;
        if (place < SP_OUTSIDE_ATTRIBUTES)
            out->attributes[place] = attribute;
        if (place == out->attribute_count && place < SP_OUTSIDE_ATTRIBUTES)
            out->attribute_count++;
        at += 2 + attribute.length;
    }
}

/* The thread must not run meanwhile. */
static sp_outside_result copy_record(const sp_outside_process *process, uint64_t address,
                                     sp_outside_context *out)
{
    record record;
    memset(out, 0, offsetof(sp_outside_context, attributes));
    if (!sp_outside_copy(process->pid, &record, address, sizeof record) || record.is_valid != 1)
        return SP_OUTSIDE_NONE;
    memcpy(out->trace_id, record.trace_id, sizeof out->trace_id);
    memcpy(out->span_id, record.span_id, sizeof out->span_id);
    out->trace_flags = record.trace_flags;
    size_t bytes = record.attributes_bytes < sizeof out->attribute_bytes
                       ? record.attributes_bytes
                       : sizeof out->attribute_bytes;
    if (bytes > 0 &&
        sp_outside_copy(process->pid, out->attribute_bytes, address + sizeof record, bytes))
        split_attributes(out, bytes);
    return SP_OUTSIDE_OK;
}

static sp_outside_result find_record(const sp_outside_process *process, uint64_t pointer,
                                     sp_outside_context *out)
{
    for (uint32_t i = 0; i < process->slot_count; i++) {
        uint64_t slot = sp_outside_slot_address(process, &process->slots[i], pointer), record;
        if (slot && sp_outside_word(process->pid, slot, &record) && record)
            return copy_record(process, record, out);
    }
    return SP_OUTSIDE_NONE;
}

/* Set the keys of attributes. The process may have added keys, so when one is not known the process
 * context is read again. */
static void name_attributes(sp_outside_process *process, sp_outside_context *out)
{
    bool is_known = true;
    for (uint32_t i = 0; i < out->attribute_count; i++)
        is_known &= sp_outside_key(process, out->attributes[i].index) != NULL;
    if (!is_known)
        sp_outside_read_process_context(process);
    for (uint32_t i = 0; i < out->attribute_count; i++)
        out->attributes[i].key = sp_outside_key(process, out->attributes[i].index);
}

/* Whether threads' contexts can be found; if not, the problem says why. */
static sp_outside_result check_published(sp_outside_process *process)
{
    const char *schema = sp_outside_schema(process);
    if (schema && strcmp(schema, SP_THREADLOCAL_SCHEMA_VERSION) != 0 &&
        strcmp(schema, "tls_v1") != 0)
        return sp_outside_say(process, SP_OUTSIDE_MISSING,
                              "process %d publishes threads' contexts by the schema \"%.40s\", "
                              "which is not known here",
                              (int)process->pid, schema);
    if (process->slot_count == 0)
        return sp_outside_say(process, SP_OUTSIDE_MISSING,
                              "neither the executable nor a library of process %d has the "
                              "thread-local symbol otel_thread_ctx_v1 in its dynamic symbol table",
                              (int)process->pid);
    return SP_OUTSIDE_OK;
}

sp_outside_result sp_outside_thread_look(sp_outside_process *process, pid_t tid,
                                         sp_outside_look *look, void *user, sp_outside_context *out)
{
    sp_outside_stopped stopped;
    bool is_published = check_published(process) == SP_OUTSIDE_OK;
    sp_outside_result result = sp_outside_stop(process, tid, &stopped);
    if (result != SP_OUTSIDE_OK)
        return result;
    result = is_published ? find_record(process, stopped.pointer, out) : SP_OUTSIDE_NONE;
    if (look)
        look(user, &stopped.registers);
    sp_outside_continue(&stopped);
    if (result == SP_OUTSIDE_OK)
        name_attributes(process, out);
    return result;
}

sp_outside_result sp_outside_thread_peek(sp_outside_process *process, pid_t tid,
                                         sp_outside_context *out)
{
    sp_outside_result result = check_published(process);
    if (result != SP_OUTSIDE_OK)
        return result;
    uint64_t pointer = sp_outside_thread_pointer(process->pid, tid);
    return pointer ? find_record(process, pointer, out)
                   : sp_outside_say(process, SP_OUTSIDE_FAILED,
                                    "the control block of thread %d is not found", (int)tid);
}

sp_outside_result sp_outside_thread_context(sp_outside_process *process, pid_t tid,
                                            sp_outside_context *out)
{
    sp_outside_result result = check_published(process);
    return result == SP_OUTSIDE_OK ? sp_outside_thread_look(process, tid, NULL, NULL, out) : result;
}
