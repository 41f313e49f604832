/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that never called the SDK is known only by its thread id, and the kernel does not report
 * thread pointers. It does report the address of the thread's list of robust mutexes, which is in
 * the thread's control block. The distance of that list from the thread pointer is the same for all
 * threads, so it is measured on the calling thread. A thread that a language's runtime made with
 * clone() has no such list and no thread pointer of its own, so it has no slot. */
#include "context/context_slot.h"

#include <link.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/worker.h"

sp_context_layout sp_context_layout_now;
_Atomic uint32_t sp_context_is_shared;

static uint64_t own_thread_pointer(void)
{
    uint64_t pointer;
#if defined(__x86_64__)
    __asm__("movq %%fs:0, %0" : "=r"(pointer)); /* by the ABI it points to itself */
#elif defined(__aarch64__)
    __asm__("mrs %0, tpidr_el0" : "=r"(pointer));
#endif
    return pointer;
}

/* 0 if the kernel does not report it, or the thread has none. */
static uint64_t robust_list_of(pid_t tid)
{
    void *head = NULL;
    size_t size;
    return syscall(SYS_get_robust_list, tid, &head, &size) == 0 ? (uint64_t)(uintptr_t)head : 0;
}

typedef struct search {
    uint64_t slot;
    uint64_t module, block;
} search;

/* Find the module whose thread-local block, on this thread, contains the slot. */
static int find_module(struct dl_phdr_info *info, size_t size, void *user)
{
    search *search = user;
    uint64_t block = (uint64_t)(uintptr_t)info->dlpi_tls_data;
    (void)size;
    for (int i = 0; block && i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        if (header->p_type == PT_TLS && search->slot - block < header->p_memsz) {
            search->module = info->dlpi_tls_modid;
            search->block = block;
            return 1;
        }
    }
    return 0;
}

static int64_t own_distance(void)
{
    return (int64_t)((uint64_t)(uintptr_t)sp_context_slot_own() - own_thread_pointer());
}

static void *store_distance(void *distance)
{
    *(int64_t *)distance = own_distance();
    return NULL;
}

/* Whether the variable has the same distance from the thread pointer on another thread. Then the
 * distance is the same on all threads. */
static bool is_static(void)
{
    int64_t distance = 0;
    pthread_t thread;
    bool is_created =
        sp_worker_thread_create(&thread, SP_WORKER_BLOCKS_ALL, store_distance, &distance) == 0;
    return is_created && pthread_join(thread, NULL) == 0 && distance == own_distance();
}

/* glibc's vector consists of pairs whose first word is the address of the block; two words before
 * pair 0 is their count. If the vector does not name the block that the loader names, the C library
 * is not the expected one. */
static bool is_vector_known(const search *search, uint64_t pointer)
{
#if defined(__GLIBC__)
    const uint64_t *vector =
        *(const uint64_t *const *)(uintptr_t)(pointer + SP_CONTEXT_VECTOR_AT); // NOLINT
    return search->module <= vector[-2] && vector[2 * search->module] == search->block;
#else
    (void)search;
    (void)pointer;
    return false;
#endif
}

void sp_context_layout_learn(void)
{
    search search = {.slot = (uint64_t)(uintptr_t)sp_context_slot_own()};
    uint64_t pointer = own_thread_pointer();
    uint64_t list = robust_list_of((pid_t)syscall(SYS_gettid));
    sp_context_layout layout = {.list_offset = (int64_t)(list - pointer)};
    if (list && is_static()) {
        layout.kind = SP_CONTEXT_STATIC;
        layout.offset = own_distance();
    } else if (list && dl_iterate_phdr(find_module, &search) && is_vector_known(&search, pointer)) {
        layout.kind = SP_CONTEXT_BLOCK;
        layout.module = search.module;
        layout.offset = (int64_t)(search.slot - search.block);
    }
    sp_context_layout_now = layout;
}

void sp_context_slot_set(sp_thread *thread, void *slot)
{
    sp_store_relaxed(&thread->tick.context_tp, own_thread_pointer());
    sp_store_release(&thread->tick.context_slot,
                     (uint64_t)(uintptr_t)slot); /* pairs with the tick's */
}

void sp_context_slot_find(sp_thread *thread, pid_t tid)
{
    const sp_context_layout *layout = &sp_context_layout_now;
    uint64_t list = layout->kind == SP_CONTEXT_NOWHERE ? 0 : robust_list_of(tid);
    if (!list)
        return;
    uint64_t pointer = list - (uint64_t)layout->list_offset;
    sp_store_relaxed(&thread->tick.context_tp, pointer);
    if (layout->kind == SP_CONTEXT_STATIC)
        sp_store_release(&thread->tick.context_slot, pointer + (uint64_t)layout->offset);
}
