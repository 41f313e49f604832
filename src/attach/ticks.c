/* SPDX-License-Identifier: Apache-2.0 */
/* One buffer for each core; the events of all threads on that core write to it. The kernel gives no
 * buffer to an inherited event that is of all cores, so each thread has an event for each core. */
#include "attach/ticks.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "attach/target.h"
#include "attach/thread_list.h"
#include "core/atomic.h"
#include "core/clock.h"
#include "core/compiler.h"
#include "core/reach.h"

enum {
    STACK_BYTES = 32 << 10, /* of a tick with its stack; deeper ones are cut */
    BUFFER_MOST = 4 << 20,
    BUFFER_LEAST = 128 << 10,
    ROUNDS_MAX = 10, /* of listing threads that begin meanwhile */
};

#if defined(__x86_64__)
enum { REGISTERS = 4, REGISTER_MASK = 1 << 1 | 1 << 6 | 1 << 7 | 1 << 8 }; /* bx, bp, sp, ip */
#elif defined(__aarch64__)
enum { REGISTERS = 5 };
/* x19, x29, lr, sp, pc */
#define REGISTER_MASK (UINT64_C(1) << 19 | UINT64_C(15) << 29)
#endif

/* The buffer for the records of one core, which the kernel writes. */
typedef struct core_buffer {
    int fd; /* of the event that the buffer belongs to; -1: none */
    struct perf_event_mmap_page *page;
    uint64_t bytes; /* of records, a power of two */
} core_buffer;

struct sp_attach_ticks {
    pid_t pid;
    uint64_t period_ns;
    bool counts_kernel;
    bool is_polling;
    uint64_t polled_ns; /* monotonic: when states were last polled */
    long core_count;
    core_buffer *cores;
    struct pollfd *polled; /* a place for each core, and one for the caller's descriptor */
    int *fds;
    size_t fd_count, fd_capacity;
    uint64_t *record; /* scratch: a record that wraps, in one piece */
};

/* ---- events ---- */

static int open_event(const sp_attach_ticks *ticks, pid_t tid, int core, bool kernel)
{
    struct perf_event_attr attributes;
    memset(&attributes, 0, sizeof attributes);
    attributes.type = PERF_TYPE_SOFTWARE;
    attributes.size = sizeof attributes;
    attributes.config = PERF_COUNT_SW_CPU_CLOCK;
    attributes.sample_period = ticks->period_ns;
    attributes.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
    attributes.sample_regs_user = REGISTER_MASK;
    attributes.sample_stack_user = STACK_BYTES;
    attributes.inherit = 1;
    attributes.inherit_thread = 1;
    attributes.mmap = 1;
    attributes.comm = attributes.comm_exec = 1;
    attributes.exclude_kernel = !kernel;
    attributes.exclude_hv = 1;
    attributes.wakeup_events = 1;
    return (int)syscall(SYS_perf_event_open, &attributes, tid, core, -1, PERF_FLAG_FD_CLOEXEC);
}

/* Map the buffer of FD, as large as the limit for locked memory allows. */
static bool map_buffer(core_buffer *buffer, int fd)
{
    size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    for (size_t bytes = BUFFER_MOST; bytes >= BUFFER_LEAST; bytes /= 2) {
        void *page = mmap(NULL, page_bytes + bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (page == MAP_FAILED)
            continue;
        *buffer = (core_buffer){.fd = fd, .page = page, .bytes = bytes};
        return true;
    }
    return false;
}

static bool add_event(sp_attach_ticks *ticks, pid_t tid, int core)
{
    core_buffer *buffer = &ticks->cores[core];
    if (!SP_REACH(ticks->fds, ticks->fd_count, ticks->fd_capacity, 64))
        return false;
    int fd = open_event(ticks, tid, core, ticks->counts_kernel);
    if (fd < 0 && errno == EACCES && ticks->counts_kernel && ticks->fd_count == 0) {
        ticks->counts_kernel = false;
        fd = open_event(ticks, tid, core, false);
    }
    if (fd < 0)
        return errno == ESRCH || errno == ENODEV; /* the thread has ended, or the core is off */
    ticks->fds[ticks->fd_count++] = fd;
    return buffer->page ? ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, buffer->fd) == 0
                        : map_buffer(buffer, fd);
}

static bool add_thread(sp_attach_ticks *ticks, pid_t tid)
{
    for (int core = 0; core < ticks->core_count; core++)
        if (!add_event(ticks, tid, core))
            return false;
    return true;
}

/* ---- threads ---- */

static bool is_among(const sp_attach_thread_list *list, pid_t tid)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->tids[i] == tid)
            return true;
    return false;
}

/* One round. *FOUND: there was a thread that is not in KNOWN. */
static bool add_new_threads(sp_attach_ticks *ticks, const sp_attach_thread_list *known,
                            sp_attach_thread_list *now, bool *found)
{
    *found = false;
    sp_attach_thread_list_take(now, ticks->pid);
    for (size_t i = 0; i < now->count; i++) {
        if (is_among(known, now->tids[i]))
            continue;
        *found = true;
        if (!add_thread(ticks, now->tids[i]))
            return false;
    }
    return true;
}

/* A thread that is not known yet may begin another one, which inherits no event. So the threads are
 * listed until a list has no new one. */
static bool add_threads(sp_attach_ticks *ticks)
{
    sp_attach_thread_list known = {0}, now = {0};
    bool done = true, found = true;
    for (int round = 0; round < ROUNDS_MAX && found && done; round++) {
        done = add_new_threads(ticks, &known, &now, &found);
        sp_attach_thread_list before = known;
        known = now;
        now = before;
    }
    int error = errno;
    free(known.tids);
    free(now.tids);
    errno = error;
    return done;
}

static void raise_descriptor_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

/* ---- both kinds ---- */

static sp_attach_ticks *create(pid_t pid, uint64_t period_ns)
{
    sp_attach_ticks *ticks = calloc(1, sizeof *ticks);
    if (!ticks)
        return NULL;
    ticks->pid = pid;
    ticks->period_ns = period_ns;
    ticks->core_count = sysconf(_SC_NPROCESSORS_CONF);
    ticks->cores = calloc((size_t)ticks->core_count, sizeof *ticks->cores);
    ticks->polled = calloc((size_t)ticks->core_count + 1, sizeof *ticks->polled);
    ticks->record = malloc(UINT16_MAX + 1);
    if (ticks->cores && ticks->polled && ticks->record)
        return ticks;
    sp_attach_ticks_close(ticks);
    errno = ENOMEM;
    return NULL;
}

sp_attach_ticks *sp_attach_ticks_open(pid_t pid, uint64_t period_ns)
{
    sp_attach_ticks *ticks = create(pid, period_ns);
    if (!ticks)
        return NULL;
    ticks->counts_kernel = true;
    raise_descriptor_limit();
    if (add_threads(ticks))
        return ticks;
    int error = errno;
    sp_attach_ticks_close(ticks);
    errno = error;
    return NULL;
}

sp_attach_ticks *sp_attach_ticks_poll(pid_t pid, uint64_t period_ns)
{
    sp_attach_ticks *ticks = create(pid, period_ns);
    if (!ticks)
        return NULL;
    ticks->is_polling = true;
    ticks->counts_kernel = true;
    ticks->polled_ns = sp_clock_monotonic_ns();
    return ticks;
}

void sp_attach_ticks_close(sp_attach_ticks *ticks)
{
    if (!ticks)
        return;
    for (long core = 0; core < ticks->core_count && ticks->cores; core++)
        if (ticks->cores[core].page)
            munmap(ticks->cores[core].page,
                   (size_t)sysconf(_SC_PAGESIZE) + ticks->cores[core].bytes);
    for (size_t i = 0; i < ticks->fd_count; i++)
        close(ticks->fds[i]);
    free(ticks->fds);
    free(ticks->cores);
    free(ticks->polled);
    free(ticks->record);
    free(ticks);
}

const char *sp_attach_ticks_name(const sp_attach_ticks *ticks)
{
    return ticks->is_polling ? "poll" : "perf";
}

bool sp_attach_ticks_count_kernel(const sp_attach_ticks *ticks)
{
    return ticks->counts_kernel;
}

void sp_attach_ticks_wait(const sp_attach_ticks *ticks, int fd, int ms)
{
    nfds_t count = 0;
    for (long core = 0; core < ticks->core_count; core++)
        if (ticks->cores[core].page)
            ticks->polled[count++] = (struct pollfd){.fd = ticks->cores[core].fd, .events = POLLIN};
    ticks->polled[count++] = (struct pollfd){.fd = fd, .events = POLLIN};
    uint64_t period_ms = ticks->period_ns / SP_NS_PER_MS;
    if (ticks->is_polling && (uint64_t)ms > period_ms)
        ms = (int)sp_max_u64(period_ms, 1);
    (void)poll(ticks->polled, count, ms);
}

/* ---- the kernel's records ---- */

/* After the header there are pid and tid, then registers, then the stack. */
static void read_sample(const struct perf_event_header *header, const sp_attach_listener *listener)
{
    const uint64_t *at = (const uint64_t *)(const void *)(header + 1);
    const uint64_t *end = at + (header->size - sizeof *header) / sizeof *at;
    uint16_t mode = header->misc & PERF_RECORD_MISC_CPUMODE_MASK;
    sp_attach_tick tick = {.tid = (pid_t)(*at++ >> 32),
                           .periods = 1,
                           .was_in_kernel = mode == PERF_RECORD_MISC_KERNEL,
                           .has_stack = true};
    if (*at++ == PERF_SAMPLE_REGS_ABI_64 && end - at > REGISTERS) {
#if defined(__x86_64__)
        tick.registers = (sp_registers){.base = at[0], .fp = at[1], .sp = at[2], .pc = at[3]};
#elif defined(__aarch64__)
        tick.registers = (sp_registers){
            .base = at[0], .fp = at[1], .link = at[2], .sp = at[3], .pc = at[4], .has_link = true};
#endif
        tick.registers.has_fp = tick.registers.has_base = true;
        at += REGISTERS;
        uint64_t words = *at++ / sizeof *at;
        tick.stack = at;
        if (words > 0 && words < (uint64_t)(end - at))
            tick.stack_bytes = sp_min_u64(at[words], words * sizeof *at);
    }
    listener->tick(listener->user, &tick);
}

static void read_record(const struct perf_event_header *header, const sp_attach_listener *listener)
{
    const uint64_t *words = (const uint64_t *)(const void *)(header + 1);
    switch (header->type) {
    case PERF_RECORD_SAMPLE:
        read_sample(header, listener);
        break;
    case PERF_RECORD_MMAP:
        listener->mapped(listener->user);
        break;
    case PERF_RECORD_COMM:
        if (header->misc & PERF_RECORD_MISC_COMM_EXEC)
            listener->mapped(listener->user);
        break;
    case PERF_RECORD_LOST:
        listener->lost(listener->user, words[1]);
        break;
    default:
        break;
    }
}

/* The record at TAIL, in one piece. */
static const struct perf_event_header *record_at(const sp_attach_ticks *ticks,
                                                 const core_buffer *buffer, uint64_t tail)
{
    const char *data = (const char *)buffer->page + sysconf(_SC_PAGESIZE);
    uint64_t offset = tail & (buffer->bytes - 1), to_end = buffer->bytes - offset;
    const struct perf_event_header *header = (const void *)(data + offset);
    if (header->size <= to_end)
        return header;
    uint64_t size = header->size;
    memcpy(ticks->record, data + offset, to_end);
    memcpy((char *)ticks->record + to_end, data, size - to_end);
    return (const void *)ticks->record;
}

static void read_core(const sp_attach_ticks *ticks, core_buffer *buffer,
                      const sp_attach_listener *listener)
{
    /* Pairs with the kernel's store: the records below it are whole. */
    uint64_t head = __atomic_load_n(&buffer->page->data_head, __ATOMIC_ACQUIRE);
    uint64_t tail = buffer->page->data_tail;
    while (tail != head) {
        const struct perf_event_header *header = record_at(ticks, buffer, tail);
        uint64_t size = header->size;
        if (size < sizeof *header)
            size = head - tail;
        else
            read_record(header, listener);
        tail += size;
        __atomic_store_n(&buffer->page->data_tail, tail, __ATOMIC_RELEASE);
    }
}

/* ---- polling ---- */

static bool is_running(pid_t pid, pid_t tid)
{
    char name[48], stat[512];
    snprintf(name, sizeof name, "task/%d/stat", (int)tid);
    const char *end = sp_attach_read_proc(pid, name, stat, sizeof stat) ? strrchr(stat, ')') : NULL;
    return end && end[1] == ' ' && end[2] == 'R';
}

/* Make a tick of each thread that is running. It counts the periods that have passed since the last
 * poll. */
static void poll_states(sp_attach_ticks *ticks, const sp_attach_listener *listener)
{
    sp_attach_thread_list list = {0};
    uint64_t now_ns = sp_clock_monotonic_ns();
    uint64_t periods = (now_ns - ticks->polled_ns) / ticks->period_ns;
    if (periods == 0)
        return;
    ticks->polled_ns += periods * ticks->period_ns;
    sp_attach_thread_list_take(&list, ticks->pid);
    for (size_t i = 0; i < list.count; i++) {
        const sp_attach_tick tick = {.tid = list.tids[i], .periods = (uint32_t)periods};
        if (is_running(ticks->pid, list.tids[i]))
            listener->tick(listener->user, &tick);
    }
    free(list.tids);
}

void sp_attach_ticks_read(sp_attach_ticks *ticks, const sp_attach_listener *listener)
{
    if (ticks->is_polling)
        poll_states(ticks, listener);
    for (long core = 0; core < ticks->core_count; core++)
        if (ticks->cores[core].page)
            read_core(ticks, &ticks->cores[core], listener);
}
