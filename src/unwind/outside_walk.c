/* SPDX-License-Identifier: Apache-2.0 */
/* Reads another thread's stack. It copies one piece of the stack, which begins at or below the
 * current frame and grows upwards, because walks go upwards: first as much as most stacks need,
 * then in steps that double. The kernel copies (process_vm_readv on this process, or /proc/self/mem
 * if a policy forbids that), so an unmapped address is an error and not a fault. */
#include "unwind/outside_walk.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "unwind/frame_pointer.h"

enum {
    PAGE_BYTES = 4096,
    COPY_BYTES = 64 << 10,  /* the limit; beyond it a new copy begins further up */
    FIRST_BYTES = 4096,     /* 26 frames of usual code take 2 KiB */
    ELSEWHERE_BYTES = 1024, /* when a walk leaves the stack, the address is often nonsense */
    PIECES_MAX = COPY_BYTES / PAGE_BYTES + 1,
};

struct sp_stack_copy {
    sp_outside outside; /* first, so that its functions find the rest */
    sp_fp_finder *finder;
    uint64_t step_bytes;
    pid_t pid;       /* whose memory is read */
    bool is_other;   /* pid is another process, also after a fork */
    bool is_dump;    /* the copy is given, and other memory cannot be read */
    int memory_file; /* /proc/self/mem if process_vm_readv is refused; else -1 */
    _Alignas(8) unsigned char margin[SP_OUTSIDE_MARGIN]; /* zeros */
    uint64_t words[COPY_BYTES / 8];
};

_Static_assert(offsetof(sp_stack_copy, margin) + SP_OUTSIDE_MARGIN ==
                   offsetof(sp_stack_copy, words),
               "the margin is in front of the words");

static sp_stack_copy *copy_of(sp_outside *outside)
{
    return (sp_stack_copy *)(void *)outside;
}

/* Read as much as possible of [ADDRESS, ADDRESS + BYTES), from its beginning, page by page. BYTES
 * is at most COPY_BYTES. */
static uint64_t read_by_call(sp_stack_copy *copy, void *out, uint64_t address, uint64_t bytes)
{
    struct iovec to = {.iov_base = out, .iov_len = bytes};
    struct iovec from[PIECES_MAX];
    unsigned long pieces = 0;
    for (uint64_t done = 0, length; done < bytes; done += length) {
        length = PAGE_BYTES - (address + done) % PAGE_BYTES;
        if (length > bytes - done)
            length = bytes - done;
        from[pieces].iov_base =
            (void *)(uintptr_t)(address + done); // NOLINT(performance-no-int-to-ptr)
        from[pieces++].iov_len = length;
    }
    ssize_t count = process_vm_readv(copy->pid, &to, 1, from, pieces, 0);
    if (count < 0 && !copy->is_other && (errno == EPERM || errno == ENOSYS))
        copy->memory_file = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    return count > 0 ? (uint64_t)count : 0;
}

static uint64_t read_by_file(const sp_stack_copy *copy, void *out, uint64_t address, uint64_t bytes)
{
    if (address > INT64_MAX)
        return 0;
    ssize_t count = pread(copy->memory_file, out, bytes, (off_t)address);
    return count > 0 ? (uint64_t)count : 0;
}

static uint64_t read_some(sp_stack_copy *copy, void *out, uint64_t address, uint64_t bytes)
{
    if (copy->memory_file >= 0)
        return read_by_file(copy, out, address, bytes);
    uint64_t count = read_by_call(copy, out, address, bytes);
    if (!count && copy->memory_file >= 0)
        return read_by_file(copy, out, address, bytes);
    return count;
}

static bool read_memory(sp_outside *outside, void *out, uint64_t address, uint64_t bytes)
{
    return bytes <= COPY_BYTES && read_some(copy_of(outside), out, address, bytes) == bytes;
}

/* Begin the copy at ADDRESS, a multiple of 8, with up to BYTES. */
static void begin_at(sp_stack_copy *copy, uint64_t address, uint64_t bytes)
{
    uint64_t count = read_some(copy, copy->words, address, bytes) & ~UINT64_C(7);
    copy->outside.low = address;
    copy->outside.high = address + count;
    copy->outside.delta = (uint64_t)(uintptr_t)copy->words - address;
    copy->step_bytes = bytes;
}

/* Copy more of the stack, after the bytes in the copy. Returns whether there is more. */
static bool grow(sp_stack_copy *copy)
{
    sp_outside *outside = &copy->outside;
    uint64_t held = outside->high - outside->low, bytes = copy->step_bytes;
    if (bytes > COPY_BYTES - held)
        bytes = COPY_BYTES - held;
    uint64_t count =
        read_some(copy, (char *)copy->words + held, outside->high, bytes) & ~UINT64_C(7);
    outside->high += count;
    copy->step_bytes *= 2;
    return count > 0;
}

static bool reach(sp_outside *outside, uint64_t address)
{
    sp_stack_copy *copy = copy_of(outside);
    if (copy->is_dump)
        return address >= outside->low && address < outside->high;
    bool fits = address >= outside->low && address - outside->low <= COPY_BYTES - 8;
    while (fits && address >= outside->high && grow(copy))
        ;
    if (address < outside->low || address >= outside->high)
        begin_at(copy, address & ~(uint64_t)(ELSEWHERE_BYTES - 1), ELSEWHERE_BYTES);
    return address >= outside->low && address < outside->high;
}

static bool find_fp(sp_outside *outside, sp_walk *walk, const sp_registers *frame, bool pc_is_exact,
                    uint64_t *fp)
{
    return sp_fp_find(copy_of(outside)->finder, walk, frame, pc_is_exact, fp);
}

sp_stack_copy *sp_stack_copy_create(void)
{
    sp_stack_copy *copy = calloc(1, sizeof *copy);
    sp_fp_finder *finder = sp_fp_finder_create();
    if (!copy || !finder) {
        sp_fp_finder_destroy(finder);
        free(copy);
        return NULL;
    }
    copy->finder = finder;
    copy->outside.reach = reach;
    copy->outside.read = read_memory;
    copy->outside.find_fp = find_fp;
    copy->memory_file = -1;
    return copy;
}

sp_stack_copy *sp_stack_copy_create_for(pid_t pid)
{
    sp_stack_copy *copy = sp_stack_copy_create();
    if (!copy)
        return NULL;
    copy->pid = pid;
    copy->is_other = true;
    return copy;
}

static void close_memory(sp_stack_copy *copy)
{
    if (copy->memory_file >= 0)
        close(copy->memory_file);
    copy->memory_file = -1;
}

void sp_stack_copy_destroy(sp_stack_copy *copy)
{
    if (!copy)
        return;
    close_memory(copy);
    sp_fp_finder_destroy(copy->finder);
    free(copy);
}

/* A forked child reads its own memory, not its parent's. */
static void update_process(sp_stack_copy *copy)
{
    pid_t pid = getpid();
    if (copy->is_other || pid == copy->pid)
        return;
    close_memory(copy);
    copy->pid = pid;
}

/* Walk the stack whose beginning is in COPY. */
static void walk_copy(sp_stack_copy *copy, sp_walk *walk)
{
    walk->bounds = (sp_stack_bounds){0};
    walk->outside = &copy->outside;
    walk->fp_by_call = walk->fp_by_return = walk->fp_not_found = 0;
    sp_walk_stack(walk);
    walk->outside = NULL;
}

void sp_outside_walk_registers(sp_stack_copy *copy, sp_walk *walk)
{
    update_process(copy);
    copy->is_dump = false;
    begin_at(copy, walk->registers.sp & ~UINT64_C(7), FIRST_BYTES);
    walk_copy(copy, walk);
}

void sp_outside_walk(sp_stack_copy *copy, sp_walk *walk)
{
    uint64_t pc = walk->registers.pc, sp = walk->registers.sp;
    walk->registers = (sp_registers){.pc = pc, .sp = sp};
    sp_outside_walk_registers(copy, walk);
}

void sp_outside_walk_dump(sp_stack_copy *copy, sp_walk *walk, const void *stack, uint64_t bytes)
{
    uint64_t sp = walk->registers.sp, low = (sp + 7) & ~UINT64_C(7), skipped = low - sp;
    uint64_t count = bytes > skipped ? sp_min_u64(bytes - skipped, COPY_BYTES) : 0;
    memcpy(copy->words, (const char *)stack + skipped, count);
    copy->outside.low = low;
    copy->outside.high = low + (count & ~UINT64_C(7));
    copy->outside.delta = (uint64_t)(uintptr_t)copy->words - low;
    copy->is_dump = true;
    walk_copy(copy, walk);
}
