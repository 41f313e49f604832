/* SPDX-License-Identifier: Apache-2.0 */
/* The payload of the process context (OTEP 4719): the attributes of this process, and what readers
 * outside need to read its threads' records (OTEP 4947). Threads: any, each with its own OUT. */
#ifndef SP_WIRE_PROCESS_CONTEXT_MESSAGE_H
#define SP_WIRE_PROCESS_CONTEXT_MESSAGE_H

#include "core/buffer.h"
#include "trace/resource.h"

/* The value of "threadlocal.schema_version". OTEP 4947 will call it tls_v1 one day; all known
 * readers and writers use this one. */
#ifndef SP_THREADLOCAL_SCHEMA_VERSION
#define SP_THREADLOCAL_SCHEMA_VERSION "tlsdesc_v1_dev"
#endif

/* Readers accept no more than this. */
enum { SP_PROCESS_CONTEXT_BYTES = 65536, SP_THREADLOCAL_KEYS = 256 };

/* Append the payload for RESOURCE and the names of the KEY_COUNT (at most SP_THREADLOCAL_KEYS)
 * attributes of thread records, in the order of their indices. Attributes that would make it longer
 * than SP_PROCESS_CONTEXT_BYTES are left out, and counted in *LEFT_OUT. Those that identify the
 * service are left out last. Of the names the last ones are left out, because an index must not
 * change its meaning. False, and nothing appended, when memory is short. */
bool sp_otlp_encode_process_context(sp_buffer *out, const sp_resource *resource,
                                    const char *const *keys, uint32_t key_count,
                                    uint32_t *left_out);

#endif
