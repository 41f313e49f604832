/* SPDX-License-Identifier: Apache-2.0 */
/* The process context (OTEP 4719): a mapping with a known name, in which readers outside find the
 * resource of this process, and how to read its threads' records. When it cannot be published there
 * is one warning, and no context; no part of the SDK needs it. Threads: any, one lock guards all.
 * Signals: never. */
#ifndef SP_EXPORT_PROCESS_CONTEXT_PUBLISH_H
#define SP_EXPORT_PROCESS_CONTEXT_PUBLISH_H

#include "trace/resource.h"

/* The begin of the mapping, with a layout that every reader relies on. */
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
 * copied. A later call replaces what was published. When another SDK of this process has published
 * a context already, that one stays. */
void sp_process_context_publish(const sp_resource *resource, const char *const *keys,
                                uint32_t key_count);
/* The same with the keys that contexts have given to their attributes (context/sample_keys.h), now
 * and whenever there is a new key. RESOURCE must live until sp_process_context_unpublish. */
void sp_process_context_follow_keys(const sp_resource *resource);
/* Drop what was published. */
void sp_process_context_unpublish(void);

/* Fork: the child does not have the mapping, and publishes one of its own when it starts. */
void sp_process_context_fork_prepare(void);
void sp_process_context_fork_parent(void);
void sp_process_context_fork_child(void);

#endif
