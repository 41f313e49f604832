/* SPDX-License-Identifier: Apache-2.0 */
/* The process may change its context while it is read. A reader reads the timestamp, then copies
 * header and payload, then reads the timestamp again. When both are equal and not zero, the copy is
 * what was published at that time. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "export/process_context_publish.h"
#include "outside/outside_internal.h"
#include "wire/process_context_message.h"
#include "wire/unpack.h"

enum { ATTEMPTS = 100, PAUSE_NS = 100000 };

static bool check_mapping(const sp_mapping *mapping, void *user)
{
    static const char signature[] = SP_PROCESS_CONTEXT_SIGNATURE;
    sp_outside_process *process = user;
    sp_process_context_header header;
    if (!sp_mapping_is_executable(mapping) && sp_process_context_is_name(mapping->path) &&
        sp_outside_copy(process->pid, &header, mapping->start, sizeof header) &&
        memcmp(header.signature, signature, sizeof signature) == 0 &&
        header.version == SP_PROCESS_CONTEXT_VERSION)
        process->header = mapping->start;
    return process->header == 0;
}

static bool is_stamped(pid_t pid, uint64_t header, uint64_t *stamp)
{
    return sp_outside_word(pid, header + offsetof(sp_process_context_header, published_at_ns),
                           stamp) &&
           *stamp != 0;
}

/* One attempt. Returns the payload, which the caller frees; NULL when it is being changed, or
 * cannot be read. */
static uint8_t *copy_payload(pid_t pid, uint64_t address, size_t *bytes, uint64_t *stamp)
{
    sp_process_context_header header;
    uint64_t stamp_after;
    if (!is_stamped(pid, address, stamp) ||
        !sp_outside_copy(pid, &header, address, sizeof header) || header.payload_bytes == 0 ||
        header.payload_bytes > SP_PROCESS_CONTEXT_BYTES)
        return NULL;
    uint8_t *payload = malloc(header.payload_bytes);
    *bytes = header.payload_bytes;
    if (payload && sp_outside_copy(pid, payload, header.payload, *bytes) &&
        is_stamped(pid, address, &stamp_after) && stamp_after == *stamp)
        return payload;
    free(payload);
    return NULL;
}

static uint8_t *copy_patiently(pid_t pid, uint64_t address, size_t *bytes, uint64_t *stamp)
{
    struct timespec pause = {.tv_nsec = PAUSE_NS};
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        uint8_t *payload = copy_payload(pid, address, bytes, stamp);
        if (payload)
            return payload;
        nanosleep(&pause, NULL);
    }
    return NULL;
}

static void forget(sp_outside_process *process)
{
    if (process->context)
        sp__process_context__process_context__free_unpacked(process->context, NULL);
    process->context = NULL;
    process->published_at_ns = 0;
}

/* When the timestamp is still the same, the context that was read before is kept: what callers have
 * borrowed from it stays valid. */
sp_outside_result sp_outside_read_process_context(sp_outside_process *process)
{
    uint64_t stamp;
    size_t bytes;
    process->header = 0;
    if (!sp_mappings_of_process(process->pid, check_mapping, process))
        return sp_outside_say(process, errno == ENOENT ? SP_OUTSIDE_GONE : SP_OUTSIDE_DENIED,
                              "the mappings of process %d cannot be read: %s", (int)process->pid,
                              strerror(errno));
    if (!process->header) {
        forget(process);
        return SP_OUTSIDE_OK;
    }
    if (is_stamped(process->pid, process->header, &stamp) && stamp == process->published_at_ns)
        return SP_OUTSIDE_OK;
    uint8_t *payload = copy_patiently(process->pid, process->header, &bytes, &stamp);
    forget(process);
    if (!payload)
        return sp_outside_say(process, SP_OUTSIDE_FAILED,
                              "the process context changes all the time, or cannot be read");
    process->context = (Sp__ProcessContext__ProcessContext *)sp_otlp_unpack(
        &sp__process_context__process_context__descriptor, payload, bytes);
    free(payload);
    if (!process->context)
        return sp_outside_say(process, SP_OUTSIDE_FAILED,
                              "the payload of the process context is no message");
    process->published_at_ns = stamp;
    return SP_OUTSIDE_OK;
}

static const Sp__Common__AnyValue *value_of(Sp__Common__KeyValue *const *attributes, size_t count,
                                            const char *key)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(attributes[i]->key, key) == 0)
            return attributes[i]->value;
    return NULL;
}

static const char *text_of(const Sp__Common__AnyValue *value)
{
    return value && value->value_case == SP__COMMON__ANY_VALUE__VALUE_STRING_VALUE
               ? value->string_value
               : NULL;
}

uint64_t sp_outside_published_at_ns(const sp_outside_process *process)
{
    return process->published_at_ns;
}

const char *sp_outside_resource(const sp_outside_process *process, const char *key)
{
    if (!process->context || !process->context->resource)
        return NULL;
    const Sp__Resource__Resource *resource = process->context->resource;
    return text_of(value_of(resource->attributes, resource->n_attributes, key));
}

const char *sp_outside_schema(const sp_outside_process *process)
{
    const Sp__ProcessContext__ProcessContext *context = process->context;
    return context ? text_of(value_of(context->attributes, context->n_attributes,
                                      "threadlocal.schema_version"))
                   : NULL;
}

const char *sp_outside_key(const sp_outside_process *process, uint32_t index)
{
    const Sp__ProcessContext__ProcessContext *context = process->context;
    const Sp__Common__AnyValue *map = context ? value_of(context->attributes, context->n_attributes,
                                                         "threadlocal.attribute_key_map")
                                              : NULL;
    if (!map || map->value_case != SP__COMMON__ANY_VALUE__VALUE_ARRAY_VALUE ||
        index >= map->array_value->n_values)
        return NULL;
    return text_of(map->array_value->values[index]);
}
