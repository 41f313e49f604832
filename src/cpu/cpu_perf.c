/* SPDX-License-Identifier: Apache-2.0 */
/* The engine `perf`: a perf event on each thread's CPU clock (perf_event_open(2),
 * PERF_COUNT_SW_CPU_CLOCK), whose overflow signals that very thread (F_SETOWN_EX, F_SETSIG). A
 * high-resolution timer drives it, so it is exact to microseconds, while the kernel checks the CPU
 * timers of POSIX only at its timer ticks. It needs the permission to count kernel time, and a
 * descriptor for each thread. No ring buffer is mapped, because only the signal is used.
 *
 * Descriptors have high numbers, because programs with select(2) need the low ones. They take at
 * most a quarter of RLIMIT_NOFILE; further threads get a timer. A host may close descriptors that
 * it does not know (daemons do) and open its own under their numbers, so before a descriptor is
 * closed or trusted the kernel is asked whether it is still that event. */
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/descriptors.h"
#include "cpu/cpu_source.h"
#include "cpu/perf_owners_sig.h"

_Atomic(void *) *sp_perf_owners;

/* Under the engine's lock. */
static struct {
    uint32_t open_count, open_limit;
    int past_highest; /* one more than the highest that was ever used */
} perf;

/* When the queue of a real-time signal is full, the kernel sends SIGIO in its place, which ends a
 * process that does not handle it. */
static bool prepare(int signal, const char **why_not)
{
    *why_not = "a real-time signal may come as SIGIO when its queue is full; choose another "
               "SPANPROF_SIGNAL";
    if (signal >= SIGRTMIN)
        return false;
    *why_not = "no memory for the table of descriptors";
    perf.open_limit = sp_descriptors_limit(SP_PERF_DESCRIPTORS) / 4;
    if (sp_perf_owners)
        return true;
    void *memory = mmap(NULL, SP_PERF_DESCRIPTORS * sizeof *sp_perf_owners, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return false;
    sp_perf_owners = memory;
    return true;
}

static int open_stopped_event(pid_t tid, uint64_t first_ns)
{
    struct perf_event_attr attributes;
    memset(&attributes, 0, sizeof attributes);
    attributes.type = PERF_TYPE_SOFTWARE;
    attributes.size = sizeof attributes;
    attributes.config = PERF_COUNT_SW_CPU_CLOCK;
    attributes.sample_period = first_ns;
    attributes.disabled = 1;
    return (int)syscall(SYS_perf_event_open, &attributes, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

/* The signal carries the number that the descriptor had when O_ASYNC was set, so this is called
 * after the move. */
static bool route_signal(int fd, pid_t tid, int signal)
{
    struct f_owner_ex owner = {.type = F_OWNER_TID, .pid = tid};
    return fcntl(fd, F_SETOWN_EX, &owner) == 0 && fcntl(fd, F_SETSIG, signal) == 0 &&
           fcntl(fd, F_SETFL, O_ASYNC) == 0;
}

static bool is_open(const sp_ticker *ticker)
{
    uint64_t id;
    return ioctl(ticker->fd, PERF_EVENT_IOC_ID, &id) == 0 && id == ticker->event_id;
}

static void suspend_event(sp_ticker *ticker)
{
    if (is_open(ticker))
        ioctl(ticker->fd, PERF_EVENT_IOC_DISABLE, 0);
}

/* The event is disabled before it is closed, because a child that a raw clone made may hold the
 * descriptor open. */
static void close_event(sp_ticker *ticker)
{
    bool ours = is_open(ticker);
    if (ours)
        ioctl(ticker->fd, PERF_EVENT_IOC_DISABLE, 0);
    sp_store_release(&sp_perf_owners[ticker->fd], NULL);
    if (ours)
        close(ticker->fd);
    perf.open_count--;
    ticker->source = NULL;
}

static bool start_event(sp_ticker *ticker, pid_t tid, void *owner, const sp_tick_plan *plan)
{
    if (ioctl(ticker->fd, PERF_EVENT_IOC_ID, &ticker->event_id) != 0 ||
        !route_signal(ticker->fd, tid, plan->signal))
        return false;
    sp_store_release(&sp_perf_owners[ticker->fd], owner);
    return ioctl(ticker->fd, PERF_EVENT_IOC_ENABLE, 0) == 0;
}

static bool open_event(sp_ticker *ticker, pid_t tid, void *owner, const sp_tick_plan *plan)
{
    if (perf.open_count >= perf.open_limit) {
        errno = EMFILE;
        return false;
    }
    int fd = open_stopped_event(tid, plan->first_ns);
    ticker->fd = fd < 0 ? -1 : sp_descriptor_move_up(fd, SP_PERF_DESCRIPTORS);
    if (ticker->fd < 0)
        return false;
    perf.open_count++;
    perf.past_highest = ticker->fd >= perf.past_highest ? ticker->fd + 1 : perf.past_highest;
    if (!start_event(ticker, tid, owner, plan)) {
        int error = errno;
        close_event(ticker);
        errno = error;
        return false;
    }
    ticker->source = &sp_cpu_perf;
    return true;
}

/* The child inherits the descriptors; the signals still go to the parent's threads. The table lists
 * the descriptors. The copied thread states have the id of each event, and the kernel is asked
 * whether the descriptor still has this id. The probe is never open during a fork, because both
 * hold the engine's lock. */
static void after_fork(void)
{
    for (int fd = 0; fd < perf.past_highest; fd++) {
        void *owner = sp_perf_owner(fd);
        if (sp_thread_is_state(owner)) {
            const sp_ticker *ticker = &sp_cpu_thread_of(owner)->ticker;
            if (ticker->fd == fd && is_open(ticker))
                close(fd);
        }
        if (owner)
            sp_store_relaxed(&sp_perf_owners[fd], NULL);
    }
    perf.open_count = 0;
}

const sp_cpu_source sp_cpu_perf = {.name = "perf",
                                   .counts_steal = true,
                                   .prepare = prepare,
                                   .open = open_event,
                                   .suspend = suspend_event,
                                   .close = close_event,
                                   .is_open = is_open,
                                   .after_fork = after_fork};
