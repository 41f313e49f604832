/* SPDX-License-Identifier: Apache-2.0 */
/* The process context (OTEP 4719): a mapping by whose name readers outside find what this process
 * is, and how to read its threads' records. A failure is one warning, and there is no context then:
 * nothing of the SDK needs it. Threads: any, one lock guards all.  Signals: never. */
#ifndef SP_EXPORT_PROCESS_CONTEXT_PUBLISH_H
#define SP_EXPORT_PROCESS_CONTEXT_PUBLISH_H

#include "trace/resource.h"

/* The begin of the mapping, as every reader knows it. */
typedef struct sp_process_context_header {
    char signature[8]; /* OTEL_CTX */
    uint32_t version;  /* 2 */
    uint32_t payload_bytes;
    _Atomic uint64_t published_at_ns; /* of CLOCK_BOOTTIME; 0: it is being changed */
    uint64_t payload;                 /* its address */
} sp_process_context_header;

_Static_assert(sizeof(sp_process_context_header) == 32 &&
                   offsetof(sp_process_context_header, published_at_ns) == 16,
               "the layout of OTEP 4719");

#define SP_PROCESS_CONTEXT_NAME    "OTEL_CTX"
#define SP_PROCESS_CONTEXT_VERSION 2
#define SP_PROCESS_CONTEXT_SIGNATURE                                                               \
    {                                                                                              \
        'O', 'T', 'E', 'L', '_', 'C', 'T', 'X'                                                     \
    }

/* Whether the mapping called NAME is that of a process context. */
bool sp_process_context_is_name(const char *name);

/* Publish RESOURCE and the names of the KEY_COUNT attributes that thread records may have; all are
 * copied. Again: what is new takes the place of what was. Where another SDK of this process has
 * published one already, that one stays. */
void sp_process_context_publish(const sp_resource *resource, const char *const *keys,
                                uint32_t key_count);
/* The same with the keys that contexts have given to their attributes (context/sample_keys.h), now
 * and whenever there is another. RESOURCE has to live until it is unpublished. */
void sp_process_context_follow_keys(const sp_resource *resource);
/* Drop what was published. */
void sp_process_context_unpublish(void);

/* Fork: the child does not have the mapping, and publishes one of its own when it starts. */
void sp_process_context_fork_prepare(void);
void sp_process_context_fork_parent(void);
void sp_process_context_fork_child(void);

#endif
