/* SPDX-License-Identifier: Apache-2.0 */
/* The header is in a mapping of its own, which the kernel names and leaves out of forked children;
 * the payload is on the heap. During a change the timestamp is zero, and afterwards it is later
 * than before, so readers notice the change. The mapping is named again each time, because
 * profilers in the kernel listen for that call. */
#include "export/process_context_publish.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "context/sample_keys.h"
#include "core/atomic.h"
#include "core/clock.h"
#include "core/counted.h"
#include "core/lock.h"
#include "core/log.h"
#include "core/mappings.h"
#include "wire/process_context_message.h"

/* System headers of 2022 lack these. */
enum { NOEXEC_SEAL = 8, SET_VMA = 0x53564d41, SET_VMA_ANON_NAME = 0 };

static struct {
    sp_lock lock;                      /* guards all of this, and the mapping; taken last */
    sp_process_context_header *header; /* NULL: nothing is published */
    uint8_t *payload;
    const sp_resource *followed; /* published again with each new key; NULL: none */
} context = {.lock = SP_LOCK_AT(SP_LOCK_PROCESS_CONTEXT)};

static size_t mapping_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static bool name_mapping(void *mapping)
{
    return prctl(SET_VMA, SET_VMA_ANON_NAME, mapping, mapping_bytes(), SP_PROCESS_CONTEXT_NAME) ==
           0;
}

/* Open a memory file, which gives the mapping its name where the kernel cannot name anonymous
 * memory. -1 when there are no such files. */
static int open_memory(void)
{
    unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
    int fd = memfd_create(SP_PROCESS_CONTEXT_NAME, flags | NOEXEC_SEAL);
    if (fd < 0)
        fd = memfd_create(SP_PROCESS_CONTEXT_NAME, flags);
    if (fd >= 0 && ftruncate(fd, (off_t)mapping_bytes()) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static void *map_memory(bool *is_named)
{
    int fd = open_memory();
    int flags = MAP_PRIVATE | (fd < 0 ? MAP_ANONYMOUS : 0);
    void *mapping = mmap(NULL, mapping_bytes(), PROT_READ | PROT_WRITE, flags, fd, 0);
    if (fd >= 0)
        close(fd);
    *is_named = fd >= 0;
    return mapping == MAP_FAILED ? NULL : mapping;
}

/* A mapping that readers ignore, because it has no signature yet. NULL, with errno, when none can
 * be made that readers would find. */
static sp_process_context_header *create_mapping(void)
{
    bool is_named;
    void *mapping = map_memory(&is_named);
    if (!mapping)
        return NULL;
    if (madvise(mapping, mapping_bytes(), MADV_DONTFORK) == 0 &&
        (name_mapping(mapping) || is_named))
        return mapping;
    int error = errno;
    munmap(mapping, mapping_bytes());
    errno = error;
    return NULL;
}

static uint64_t boottime_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (uint64_t)now.tv_sec * SP_NS_PER_S + (uint64_t)now.tv_nsec;
}

/* Takes PAYLOAD. A reader copies it between two reads of the timestamp, so the fences keep all
 * other stores between the two stores to the timestamp. */
static void write_header(uint8_t *payload, size_t bytes)
{
    sp_process_context_header *header = context.header;
    uint64_t before_ns = sp_load_relaxed(&header->published_at_ns), now_ns = boottime_ns();
    sp_store_relaxed(&header->published_at_ns, 0);
    sp_fence_full();
    memcpy(header->signature, SP_PROCESS_CONTEXT_NAME, sizeof header->signature);
    header->version = SP_PROCESS_CONTEXT_VERSION;
    header->payload_bytes = (uint32_t)bytes;
    header->payload = (uint64_t)(uintptr_t)payload;
    sp_fence_full();
    sp_store_relaxed(&header->published_at_ns, now_ns > before_ns ? now_ns : before_ns + 1);
    name_mapping(header); /* profilers listen for this call, also when the kernel rejects it */
    free(context.payload);
    context.payload = payload;
}

bool sp_process_context_is_name(const char *name)
{
    static const char *const names[] = {"[anon_shmem:" SP_PROCESS_CONTEXT_NAME,
                                        "[anon:" SP_PROCESS_CONTEXT_NAME,
                                        "/memfd:" SP_PROCESS_CONTEXT_NAME};
    for (size_t i = 0; i < SP_ARRAY_LENGTH(names); i++)
        if (strncmp(name, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

static bool check_mapping(const sp_mapping *mapping, void *is_found)
{
    *(bool *)is_found = sp_process_context_is_name(mapping->path);
    return !*(bool *)is_found;
}

/* Whether another SDK, or another copy of this one, has published a context. */
static bool is_published_by_another(void)
{
    bool is_found = false;
    (void)sp_mappings_of_process(0, check_mapping, &is_found);
    return is_found;
}

/* Returns the payload, which the caller frees; NULL, with errno, when memory is short. */
static uint8_t *encode(const sp_resource *resource, const char *const *keys, uint32_t key_count,
                       size_t *bytes)
{
    sp_buffer payload = SP_BUFFER_INIT(SP_PROCESS_CONTEXT_BYTES);
    uint32_t left_out;
    if (!sp_otlp_encode_process_context(&payload, resource, keys, key_count, &left_out)) {
        sp_buffer_deinit(&payload);
        errno = ENOMEM;
        return NULL;
    }
    if (left_out > 0)
        sp_log_warn("export", "process context: %s left out: it may have %d bytes only",
                    SP_COUNTED(left_out, "attribute"), SP_PROCESS_CONTEXT_BYTES);
    *bytes = payload.length;
    return payload.data;
}

/* Whether there is a mapping to write to; makes it when there is none yet. Also false when another
 * SDK publishes one. */
static bool has_mapping_locked(void)
{
    if (context.header)
        return true;
    if (is_published_by_another()) {
        sp_log_info("export", "process context: this process has published one already, by another "
                              "SDK; it stays");
        return false;
    }
    context.header = create_mapping();
    if (!context.header)
        sp_log_warn("export",
                    "process context: a mapping that profilers outside would find cannot be made: "
                    "%s; they see this process without its name",
                    strerror(errno));
    return context.header != NULL;
}

static void publish_locked(const sp_resource *resource, const char *const *keys, uint32_t key_count)
{
    size_t bytes;
    if (!has_mapping_locked())
        return;
    uint8_t *payload = encode(resource, keys, key_count, &bytes);
    if (payload)
        write_header(payload, bytes);
    else
        sp_log_warn("export", "process context: %s", strerror(errno));
}

void sp_process_context_publish(const sp_resource *resource, const char *const *keys,
                                uint32_t key_count)
{
    sp_lock_take(&context.lock);
    publish_locked(resource, keys, key_count);
    sp_lock_give(&context.lock);
}

/* A later caller under the lock finds at least as many keys, so no key is ever withdrawn. */
static void publish_known_keys_locked(void)
{
    const char *keys[SP_SAMPLE_KEYS_MAX];
    uint32_t count = sp_sample_keys_count();
    for (uint32_t i = 0; i < count; i++)
        keys[i] = sp_sample_key(i);
    publish_locked(context.followed, keys, count);
}

static void add_key(void)
{
    sp_lock_take(&context.lock);
    if (context.followed)
        publish_known_keys_locked();
    sp_lock_give(&context.lock);
}

void sp_process_context_follow_keys(const sp_resource *resource)
{
    sp_lock_take(&context.lock);
    context.followed = resource;
    sp_sample_keys_set_hook(add_key);
    publish_known_keys_locked();
    sp_lock_give(&context.lock);
}

static void forget_locked(void)
{
    context.header = NULL;
    context.followed = NULL;
    free(context.payload);
    context.payload = NULL;
}

void sp_process_context_unpublish(void)
{
    sp_lock_take(&context.lock);
    if (context.header) {
        sp_store_relaxed(&context.header->published_at_ns, 0);
        munmap(context.header, mapping_bytes());
    }
    forget_locked();
    sp_lock_give(&context.lock);
}

void sp_process_context_fork_prepare(void)
{
    sp_lock_take(&context.lock);
}

void sp_process_context_fork_parent(void)
{
    sp_lock_give(&context.lock);
}

/* The child does not have the mapping; another one may be at its address already. */
void sp_process_context_fork_child(void)
{
    forget_locked();
    sp_lock_give(&context.lock);
}
