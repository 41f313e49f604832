/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that a program maps itself counts as blocks, if the SDK asks for it. Only mappings without
 * a file count. A block ends when its first page is unmapped. Before the library is initialized a
 * call goes to the kernel, because a search for the next function may map, too. */
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/compiler.h"
#include "preload/preload.h"

#define PUBLIC         __attribute__((visibility("default")))
#define RETURN_ADDRESS __builtin_return_address(0)

enum { PAGE_BYTES = 4096 }; /* the smallest page size */

typedef void *mmap_function(void *at, size_t bytes, int access, int flags, int fd, off_t offset);
typedef int munmap_function(void *at, size_t bytes);
typedef void *mremap_function(void *old, size_t old_bytes, size_t bytes, int flags, ...);

static mmap_function *next_mmap;
static munmap_function *next_munmap;
static mremap_function *next_mremap;

__attribute__((constructor(101))) static void find_all(void)
{
    next_mmap = (mmap_function *)dlsym(RTLD_NEXT, "mmap");
    next_munmap = (munmap_function *)dlsym(RTLD_NEXT, "munmap");
    next_mremap = (mremap_function *)dlsym(RTLD_NEXT, "mremap");
}

/* Larger ranges are address space that was reserved, or a mistake of the caller. */
#define FORGET_BYTES_MAX ((size_t)1 << 36)

/* Called before the pages are unmapped, because another thread may map them right after. It reads a
 * filter byte for each page. */
static void forget(char *at, size_t bytes)
{
    size_t end = bytes < FORGET_BYTES_MAX ? bytes : FORGET_BYTES_MAX;
    for (size_t offset = 0; offset < end; offset += PAGE_BYTES)
        sp_block_forget(at + offset);
}

static void *map(void *at, size_t bytes, int access, int flags, int fd, off_t offset,
                 const void *return_address)
{
    if ((flags & MAP_FIXED) && sp_maps_are_counted())
        forget(at, bytes);
    void *mapped = next_mmap ? next_mmap(at, bytes, access, flags, fd, offset)
                             : (void *)syscall(SYS_mmap, at, bytes, access, flags, fd, offset);
    if ((flags & MAP_ANONYMOUS) && mapped != MAP_FAILED && sp_maps_are_counted())
        sp_block_count(mapped, bytes, return_address);
    return mapped;
}

PUBLIC void *mmap(void *at, size_t bytes, int access, int flags, int fd, off_t offset)
{
    return map(at, bytes, access, flags, fd, offset, RETURN_ADDRESS);
}

PUBLIC void *mmap64(void *at, size_t bytes, int access, int flags, int fd, off64_t offset)
{
    return map(at, bytes, access, flags, fd, offset, RETURN_ADDRESS);
}

PUBLIC int munmap(void *at, size_t bytes)
{
    if (sp_maps_are_counted())
        forget(at, bytes);
    return next_munmap ? next_munmap(at, bytes) : (int)syscall(SYS_munmap, at, bytes);
}

/* Counts as a free of the old block and a new mapping. */
PUBLIC void *mremap(void *old, size_t old_bytes, size_t bytes, int flags, ...)
{
    void *wanted = NULL;
    uint32_t held = 0;
    int is_counted = sp_maps_are_counted();
    if (flags & MREMAP_FIXED) {
        va_list arguments;
        va_start(arguments, flags);
        wanted = va_arg(arguments, void *);
        va_end(arguments);
    }
    if (is_counted)
        held = sp_block_hold(old);
    void *moved = next_mremap ? next_mremap(old, old_bytes, bytes, flags, wanted)
                              : (void *)syscall(SYS_mremap, old, old_bytes, bytes, flags, wanted);
    if (held)
        sp_block_settle(held, moved != MAP_FAILED);
    if (is_counted && moved != MAP_FAILED)
        sp_block_count(moved, bytes, RETURN_ADDRESS);
    return moved;
}
