/* SPDX-License-Identifier: Apache-2.0 */
/* What it costs to tell what a blocked thread waits for, by the kind of it: medians of single calls
 * in ns, with what reading the counter takes. "anew" is an epoll instance that was not looked at
 * within the last second; each has a number of its own.
 *
 *   bench_wait */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bench/figures.h"
#include "wall/wait.h"

enum { CALLS = 20000, EPOLLS = 250 };

static double times[CALLS];
static double counts_per_ns;

static void print(const char *what, size_t calls, sp_wait wait)
{
    double ninety = figures_quantile(times, calls, 0.9);
    printf("%-34s %8.0f %8.0f   %s, %s\n", what, figures_quantile(times, calls, 0.5), ninety,
           sp_wait_class_name(wait.wait_class), sp_wait_descriptor_name(wait.descriptor));
}

static sp_wait time_call(size_t at, int64_t number, const uint64_t arguments[6])
{
    uint64_t start = figures_count();
    sp_wait wait = sp_wait_of(number, arguments);
    times[at] = (double)(figures_count() - start) / counts_per_ns;
    return wait;
}

static void measure(const char *what, int64_t number, uint64_t first, uint64_t second)
{
    const uint64_t arguments[6] = {first, second};
    sp_wait wait = {0};
    for (size_t i = 0; i < CALLS; i++)
        wait = time_call(i, number, arguments);
    print(what, CALLS, wait);
}

static int opened(int fd)
{
    if (fd < 0) {
        perror("bench_wait");
        exit(1);
    }
    return fd;
}

static int epoll_over(int fd, int count)
{
    int epoll = opened(epoll_create1(0));
    for (int i = 0; i < count; i++) {
        struct epoll_event wanted = {.events = EPOLLIN};
        opened(epoll_ctl(epoll, EPOLL_CTL_ADD, opened(dup(fd)), &wanted));
    }
    return epoll;
}

static void measure_anew(int fd, int count, int epolls)
{
    char what[64];
    sp_wait wait = {0};
    for (int i = 0; i < epolls; i++)
        wait = time_call((size_t)i, SYS_epoll_pwait,
                         (const uint64_t[6]){(uint64_t)epoll_over(fd, count)});
    (void)snprintf(what, sizeof what, "epoll over %d, anew", count);
    print(what, (size_t)epolls, wait);
}

int main(void)
{
    int sockets[2], pipes[2], event = opened(eventfd(0, 0)), file = opened(open("/", O_RDONLY));
    struct rlimit limit;
    opened(getrlimit(RLIMIT_NOFILE, &limit));
    limit.rlim_cur = limit.rlim_max;
    opened(setrlimit(RLIMIT_NOFILE, &limit));
    opened(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets));
    opened(pipe(pipes));
    struct pollfd three[] = {{.fd = event}, {.fd = pipes[0]}, {.fd = sockets[0]}};
    struct pollfd events[16];
    for (size_t i = 0; i < SP_ARRAY_LENGTH(events); i++)
        events[i].fd = event;
    fd_set in;
    FD_ZERO(&in);
    FD_SET(sockets[0], &in);
    counts_per_ns = figures_counts_per_ns();

    printf("%-34s %8s %8s\n", "ns", "median", "90 %");
    measure("futex", SYS_futex, 0, 0);
    measure("recvfrom", SYS_recvfrom, (uint64_t)sockets[0], 0);
    measure("read of a socket", SYS_read, (uint64_t)sockets[0], 0);
    measure("read of a pipe", SYS_read, (uint64_t)pipes[0], 0);
    measure("read of a directory", SYS_read, (uint64_t)file, 0);
    measure("read of an eventfd", SYS_read, (uint64_t)event, 0);
    measure("poll of nothing", SYS_ppoll, 0, 0);
    measure("poll of 1 socket", SYS_ppoll, (uint64_t)(uintptr_t)&three[2], 1);
    measure("poll of 3, the last a socket", SYS_ppoll, (uint64_t)(uintptr_t)three, 3);
    measure("poll of 16 eventfds", SYS_ppoll, (uint64_t)(uintptr_t)events, 16);
    measure("select of 1 socket", SYS_pselect6, FD_SETSIZE, (uint64_t)(uintptr_t)&in);
    measure("epoll over 1, kept", SYS_epoll_pwait, (uint64_t)epoll_over(sockets[0], 1), 0);
    measure_anew(sockets[0], 1, EPOLLS);
    measure_anew(pipes[0], 10, EPOLLS);
    measure_anew(sockets[0], 100, 20);
    measure_anew(sockets[0], 1000, 5);
    return 0;
}
