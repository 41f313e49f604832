/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/compiler.h"
#include "wall/wait.h"

/* One of each, open from the first test to the last, so that no number of theirs gets into other
 * hands: what epoll instances watch is remembered by number. */
static int sockets[2], pipes[2], file, directory, null, terminal, event, timer, signals, watcher;

static int opened(int fd)
{
    assert_true(fd >= 0);
    return fd;
}

static int open_all(void **state)
{
    (void)state;
    char path[] = "/tmp/spanprof-wait-XXXXXX";
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
    assert_int_equal(pipe(pipes), 0);
    file = opened(mkstemp(path));
    unlink(path);
    directory = opened(open("/", O_RDONLY | O_DIRECTORY));
    null = opened(open("/dev/null", O_RDWR));
    terminal = opened(posix_openpt(O_RDWR | O_NOCTTY));
    event = opened(eventfd(0, 0));
    timer = opened(timerfd_create(CLOCK_MONOTONIC, 0));
    signals = opened(signalfd(-1, &set, 0));
    watcher = opened(inotify_init());
    return 0;
}

static uint64_t address_of(const void *pointer)
{
    return (uint64_t)(uintptr_t)pointer;
}

#define WAIT(number, ...) sp_wait_of(number, (const uint64_t[6]){__VA_ARGS__})

static void expect(sp_wait wait, const char *wait_class, const char *descriptor)
{
    assert_string_equal(sp_wait_descriptor_name(wait.descriptor), descriptor);
    assert_string_equal(sp_wait_class_name(wait.wait_class), wait_class);
}

static void read_waits_for_what_the_descriptor_is(void **state)
{
    (void)state;
    expect(WAIT(SYS_read, (uint64_t)sockets[0]), "network", "socket");
    expect(WAIT(SYS_read, (uint64_t)pipes[0]), "other", "pipe");
    expect(WAIT(SYS_pread64, (uint64_t)file), "disk", "file");
    expect(WAIT(SYS_read, (uint64_t)directory), "disk", "directory");
    expect(WAIT(SYS_write, (uint64_t)null), "other", "device");
    expect(WAIT(SYS_readv, (uint64_t)terminal), "other", "device");
    expect(WAIT(SYS_read, (uint64_t)event), "other", "eventfd");
    expect(WAIT(SYS_read, (uint64_t)timer), "sleep", "timerfd");
    expect(WAIT(SYS_read, (uint64_t)signals), "other", "signalfd");
    expect(WAIT(SYS_read, (uint64_t)watcher), "other", "inotify");
}

static void read_of_a_block_device_waits_for_a_disk(void **state)
{
    (void)state;
    char path[] = "/tmp/spanprof-wait-XXXXXX";
    assert_non_null(mkdtemp(path));
    char node[64];
    (void)snprintf(node, sizeof node, "%s/disk", path);
    /* An open by path only needs no device behind the node. */
    int made = mknod(node, S_IFBLK | 0600, 0xffff);
    int fd = made == 0 ? open(node, O_PATH) : -1;
    unlink(node);
    rmdir(path);
    if (fd < 0)
        skip(); /* making one is root's right */
    expect(WAIT(SYS_read, (uint64_t)fd), "disk", "block_device");
    close(fd);
}

static void rarer_descriptors_have_names_too(void **state)
{
    (void)state;
    char parameters[120] = {0}; /* struct io_uring_params */
    int ring = (int)syscall(SYS_io_uring_setup, 1, parameters);
    if (ring >= 0) { /* else this system forbids it */
        expect(WAIT(SYS_read, (uint64_t)ring), "other", "io_uring");
        close(ring);
    }
    int process = (int)syscall(SYS_pidfd_open, getpid(), 0);
    if (process >= 0) {
        expect(WAIT(SYS_read, (uint64_t)process), "other", "pidfd");
        close(process);
    }
    int epoll = opened(epoll_create1(0));
    expect(WAIT(SYS_read, (uint64_t)epoll), "other", "epoll");
    close(epoll);
}

static void calls_that_say_it_all_need_no_descriptor(void **state)
{
    (void)state;
    expect(WAIT(SYS_futex, 0), "lock", "none");
    expect(WAIT(SYS_semop, 0), "lock", "none");
    expect(WAIT(SYS_nanosleep, 0), "sleep", "none");
    expect(WAIT(SYS_clock_nanosleep, 0), "sleep", "none");
    expect(WAIT(SYS_recvfrom, (uint64_t)sockets[0]), "network", "socket");
    expect(WAIT(SYS_accept4, (uint64_t)sockets[0]), "network", "socket");
    expect(WAIT(SYS_connect, (uint64_t)sockets[0]), "network", "socket");
    expect(WAIT(SYS_sendmsg, (uint64_t)sockets[0]), "network", "socket");
    expect(WAIT(SYS_openat, (uint64_t)AT_FDCWD), "disk", "none");
    expect(WAIT(SYS_unlinkat, (uint64_t)AT_FDCWD), "disk", "none");
    expect(WAIT(SYS_io_uring_enter, 0), "other", "io_uring");
    expect(WAIT(SYS_wait4, 0), "other", "none");
    expect(WAIT(SYS_waitid, 0), "other", "none");
    expect(WAIT(-1, 0), "other", "none");
}

static void writing_out_waits_for_a_disk(void **state)
{
    (void)state;
    expect(WAIT(SYS_fsync, (uint64_t)file), "disk", "file");
    expect(WAIT(SYS_fdatasync, (uint64_t)file), "disk", "file");
    expect(WAIT(SYS_getdents64, (uint64_t)directory), "disk", "directory");
    expect(WAIT(SYS_sync, 0), "disk", "none");
}

static void locks_on_files_are_locks(void **state)
{
    (void)state;
    expect(WAIT(SYS_flock, (uint64_t)file, 2), "lock", "file");
    expect(WAIT(SYS_fcntl, (uint64_t)file, F_SETLKW), "lock", "file");
    expect(WAIT(SYS_fcntl, (uint64_t)file, F_OFD_SETLKW), "lock", "file");
    expect(WAIT(SYS_fcntl, (uint64_t)file, F_SETFL), "disk", "file");
}

static void of_two_ends_the_slower_kind_counts(void **state)
{
    (void)state;
    expect(WAIT(SYS_sendfile, (uint64_t)sockets[0], (uint64_t)file), "network", "socket");
    expect(WAIT(SYS_sendfile, (uint64_t)file, (uint64_t)file), "disk", "file");
    expect(WAIT(SYS_splice, (uint64_t)file, 0, (uint64_t)pipes[1]), "other", "pipe");
    expect(WAIT(SYS_splice, (uint64_t)pipes[0], 0, (uint64_t)sockets[1]), "network", "socket");
    expect(WAIT(SYS_copy_file_range, (uint64_t)file, 0, (uint64_t)file), "disk", "file");
    expect(WAIT(SYS_splice, UINT64_MAX, 0, UINT64_MAX), "other", "none");
}

static sp_wait wait_in_poll(const struct pollfd *polled, uint64_t count)
{
    sp_wait wait = WAIT(SYS_ppoll, address_of(polled), count);
#ifdef SYS_poll
    sp_wait older = WAIT(SYS_poll, address_of(polled), count);
    assert_memory_equal(&wait, &older, sizeof wait);
#endif
    return wait;
}

static void poll_waits_for_the_most_telling_descriptor(void **state)
{
    (void)state;
    struct pollfd socket_last[] = {{.fd = pipes[0]}, {.fd = event}, {.fd = sockets[0]}};
    struct pollfd pipe_first[] = {{.fd = -1}, {.fd = pipes[0]}, {.fd = terminal}};
    struct pollfd device_last[] = {{.fd = event}, {.fd = file}, {.fd = terminal}};
    struct pollfd events[] = {{.fd = timer}, {.fd = event}, {.fd = signals}};
    struct pollfd timers[] = {{.fd = timer}, {.fd = timer}};
    expect(wait_in_poll(socket_last, 3), "network", "socket");
    expect(wait_in_poll(pipe_first, 3), "other", "pipe");
    expect(wait_in_poll(device_last, 3), "other", "device");
    expect(wait_in_poll(events, 3), "other", "eventfd");
    expect(wait_in_poll(timers, 2), "sleep", "timerfd");
}

static void poll_of_nothing_is_a_sleep(void **state)
{
    (void)state;
    struct pollfd ignored[] = {{.fd = -1}, {.fd = -sockets[0]}};
    expect(wait_in_poll(NULL, 0), "sleep", "none");
    expect(wait_in_poll(ignored, 2), "sleep", "none");
}

static void poll_of_many_looks_at_sixteen(void **state)
{
    (void)state;
    struct pollfd polled[40];
    for (size_t i = 0; i < SP_ARRAY_LENGTH(polled); i++)
        polled[i].fd = i < 15 ? pipes[0] : -1;
    polled[15].fd = sockets[0];
    expect(wait_in_poll(polled, 40), "network", "socket");
    polled[15].fd = pipes[0];
    polled[16].fd = sockets[0];
    expect(wait_in_poll(polled, 40), "other", "pipe");
    for (size_t i = 0; i < 16; i++)
        polled[i].fd = -1;
    expect(wait_in_poll(polled, 40), "other", "none"); /* not known to be a sleep */
    expect(wait_in_poll(polled, 16), "sleep", "none");
}

static sp_wait wait_in_select(int64_t count, const fd_set *in, const fd_set *out, const fd_set *err)
{
    const uint64_t arguments[6] = {(uint64_t)count, address_of(in), address_of(out),
                                   address_of(err)};
    sp_wait wait = sp_wait_of(SYS_pselect6, arguments);
#ifdef SYS_select
    sp_wait older = sp_wait_of(SYS_select, arguments);
    assert_memory_equal(&wait, &older, sizeof wait);
#endif
    return wait;
}

static void select_looks_at_all_three_sets(void **state)
{
    (void)state;
    fd_set in, out;
    FD_ZERO(&in);
    FD_ZERO(&out);
    expect(wait_in_select(0, NULL, NULL, NULL), "sleep", "none");
    expect(wait_in_select(FD_SETSIZE, &in, &out, NULL), "sleep", "none");
    FD_SET(pipes[0], &in);
    expect(wait_in_select(pipes[0] + 1, &in, NULL, NULL), "other", "pipe");
    expect(wait_in_select(pipes[0], &in, NULL, NULL), "sleep", "none");
    FD_SET(sockets[0], &out);
    expect(wait_in_select(FD_SETSIZE, &in, &out, NULL), "network", "socket");
    expect(wait_in_select(FD_SETSIZE, &in, NULL, &out), "network", "socket");
}

static void select_finds_high_numbers(void **state)
{
    (void)state;
    fd_set in;
    int high = fcntl(sockets[0], F_DUPFD, 700);
    assert_true(high >= 700 && high < FD_SETSIZE);
    FD_ZERO(&in);
    FD_SET(high, &in);
    expect(wait_in_select(high + 1, &in, NULL, NULL), "network", "socket");
    close(high);
}

/* An epoll instance over FDS. It stays open: see above. */
static int epoll_over(const int *fds, size_t count)
{
    int epoll = opened(epoll_create1(0));
    for (size_t i = 0; i < count; i++) {
        struct epoll_event wanted = {.events = EPOLLIN, .data.u64 = UINT64_MAX};
        assert_int_equal(epoll_ctl(epoll, EPOLL_CTL_ADD, fds[i], &wanted), 0);
    }
    return epoll;
}

static sp_wait wait_in_epoll(int epoll)
{
    sp_wait wait = WAIT(SYS_epoll_pwait, (uint64_t)epoll);
#ifdef SYS_epoll_wait
    sp_wait older = WAIT(SYS_epoll_wait, (uint64_t)epoll);
    assert_memory_equal(&wait, &older, sizeof wait);
#endif
    return wait;
}

static void epoll_waits_for_what_it_watches(void **state)
{
    (void)state;
    int inner = epoll_over(NULL, 0);
    expect(wait_in_epoll(epoll_over((int[]){event, sockets[0], pipes[0]}, 3)), "network", "socket");
    expect(wait_in_epoll(epoll_over((int[]){pipes[0], event}, 2)), "other", "pipe");
    expect(wait_in_epoll(epoll_over((int[]){timer, event}, 2)), "other", "eventfd");
    expect(wait_in_epoll(epoll_over(&timer, 1)), "sleep", "timerfd");
    expect(wait_in_epoll(epoll_over(&inner, 1)), "other", "epoll");
    expect(wait_in_epoll(inner), "sleep", "epoll");
}

static void epoll_over_what_is_closed_is_not_a_sleep(void **state)
{
    (void)state;
    int extra = fcntl(sockets[0], F_DUPFD, 100); /* the other descriptor keeps it watched */
    int epoll = epoll_over(&extra, 1);
    close(extra);
    expect(wait_in_epoll(epoll), "other", "epoll");
}

/* More lines than are read: the last one may end in the middle of a number. Lines of pipes and of
 * eventfds differ in length, so that each mixture ends elsewhere; and what a number of 700 to 769
 * begins with is the number of a socket. */
static void epoll_over_many_does_not_take_half_a_number(void **state)
{
    (void)state;
    int copies[70];
    for (int i = 70; i < 77; i++)
        assert_int_equal(dup2(sockets[0], i), i);
    for (int mixture = 0; mixture < 70; mixture++) {
        for (int i = 0; i < 70; i++)
            copies[i] = opened(dup2(i < mixture ? event : pipes[0], 700 + i));
        sp_wait wait = wait_in_epoll(epoll_over(copies, SP_ARRAY_LENGTH(copies)));
        assert_int_equal(wait.wait_class, SP_WAIT_OTHER);
    }
    for (int i = 0; i < 70; i++)
        close(copies[i]);
    for (int i = 70; i < 77; i++)
        close(i);
}

/* Asserts nothing about time: a pass that took a second tells nothing and is done again. */
static void epoll_answer_is_kept_for_a_second_and_no_longer_than_needed(void **state)
{
    (void)state;
    int epoll;
    uint64_t began_ns;
    sp_wait kept;
    do {
        began_ns = sp_clock_monotonic_ns();
        epoll = epoll_over(pipes, 1);
        expect(wait_in_epoll(epoll), "other", "pipe");
        struct epoll_event wanted = {.events = EPOLLIN};
        assert_int_equal(epoll_ctl(epoll, EPOLL_CTL_ADD, sockets[0], &wanted), 0);
        kept = wait_in_epoll(epoll);
    } while (sp_clock_monotonic_ns() - began_ns >= SP_NS_PER_S);
    expect(kept, "other", "pipe");
    while (wait_in_epoll(epoll).wait_class != SP_WAIT_NETWORK) /* the test's time limit ends it */
        usleep(10000);
    expect(wait_in_epoll(epoll), "network", "socket");
}

static void epoll_instances_with_one_place_do_not_mix(void **state)
{
    (void)state;
    int over_pipe = epoll_over(pipes, 1), over_socket = epoll_over(sockets, 1);
    int other_place = fcntl(over_socket, F_DUPFD, over_pipe + 256);
    assert_int_equal(other_place, over_pipe + 256);
    expect(wait_in_epoll(over_pipe), "other", "pipe");
    expect(wait_in_epoll(other_place), "network", "socket");
    expect(wait_in_epoll(over_pipe), "other", "pipe");
}

static void descriptors_that_are_none_are_no_error(void **state)
{
    (void)state;
    int closed = opened(dup(sockets[0]));
    close(closed);
    const uint64_t bad[] = {UINT64_MAX, UINT64_C(1) << 31, (uint64_t)closed, (uint64_t)AT_FDCWD,
                            INT32_MAX};
    for (size_t i = 0; i < SP_ARRAY_LENGTH(bad); i++) {
        expect(WAIT(SYS_read, bad[i]), "other", "none");
        expect(WAIT(SYS_epoll_pwait, bad[i]), "other", "none");
        expect(WAIT(SYS_fsync, bad[i]), "disk", "none");
        struct pollfd polled = {.fd = (int)bad[i]};
        expect(wait_in_poll(&polled, 1), polled.fd < 0 ? "sleep" : "other", "none");
    }
    expect(WAIT(SYS_epoll_pwait, (uint64_t)pipes[0]), "other", "none");
}

/* The kernel reads the low half of a descriptor, too. */
static void high_halves_of_descriptors_do_not_count(void **state)
{
    (void)state;
    expect(WAIT(SYS_read, (uint64_t)sockets[0] | UINT64_C(7) << 32), "network", "socket");
}

static void pointers_to_nothing_are_no_error(void **state)
{
    (void)state;
    long page = sysconf(_SC_PAGESIZE);
    char *two =
        mmap(NULL, 2 * (size_t)page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(two, MAP_FAILED);
    assert_int_equal(munmap(two + page, (size_t)page), 0);
    const uint64_t bad[] = {
        1, 8, UINT64_MAX, UINT64_C(1) << 63, address_of(two + page), address_of(two + page - 4)};
    for (size_t i = 0; i < SP_ARRAY_LENGTH(bad); i++) {
        expect(WAIT(SYS_ppoll, bad[i], 3), "other", "none");
        expect(WAIT(SYS_pselect6, 64, bad[i]), "other", "none");
        expect(WAIT(SYS_pselect6, 1024, 0, 0, bad[i]), "other", "none");
    }
    /* What ends with its page is read whole. */
    struct pollfd *last = (struct pollfd *)(void *)(two + page) - 1;
    last->fd = sockets[0];
    expect(WAIT(SYS_ppoll, address_of(last), 1), "network", "socket");
    uint64_t set = UINT64_C(1) << sockets[0];
    memcpy(two + page - sizeof set, &set, sizeof set);
    expect(WAIT(SYS_pselect6, 64, address_of(two + page - sizeof set)), "network", "socket");
    munmap(two, (size_t)page);
}

static void counts_out_of_range_are_no_error(void **state)
{
    (void)state;
    fd_set in;
    struct pollfd polled[16];
    FD_ZERO(&in);
    FD_SET(sockets[0], &in);
    for (size_t i = 0; i < SP_ARRAY_LENGTH(polled); i++)
        polled[i].fd = sockets[0];
    expect(wait_in_select(-1, &in, NULL, NULL), "sleep", "none");
    expect(wait_in_select(INT32_MAX, &in, NULL, NULL), "network", "socket");
    expect(wait_in_poll(polled, UINT32_MAX), "network", "socket");
}

static void numbers_out_of_range_are_other(void **state)
{
    (void)state;
    const int64_t bad[] = {-1, -2, INT64_MIN, INT64_MAX, 1 << 16, 0x40000000, UINT32_MAX};
    for (size_t i = 0; i < SP_ARRAY_LENGTH(bad); i++)
        expect(WAIT(bad[i], (uint64_t)sockets[0]), "other", "none");
    for (int64_t number = 0; number < 1000; number++) {
        sp_wait wait = WAIT(number, UINT64_MAX, UINT64_MAX, UINT64_MAX);
        assert_in_range(wait.wait_class, SP_WAIT_LOCK, SP_WAIT_OTHER);
        assert_in_range(wait.descriptor, SP_DESCRIPTOR_NONE, SP_DESCRIPTOR_OTHER);
    }
}

/* --- Threads that really wait ----------------------------------------------------------------- */

static int watching; /* an epoll instance over a socket */
static sem_t never;

static void block_in_poll(void)
{
    struct pollfd polled[] = {{.fd = event, .events = POLLIN}, {.fd = pipes[0], .events = POLLIN}};
    poll(polled, 2, -1);
}

static void block_in_poll_of_nothing(void)
{
    poll(NULL, 0, -1);
}

static void block_in_select(void)
{
    fd_set in;
    FD_ZERO(&in);
    FD_SET(pipes[0], &in);
    FD_SET(sockets[0], &in);
    select(FD_SETSIZE, &in, NULL, NULL, NULL);
}

static void block_in_epoll(void)
{
    struct epoll_event happened;
    epoll_wait(watching, &happened, 1, -1);
}

static void block_in_read(void)
{
    char byte;
    (void)!read(pipes[0], &byte, 1);
}

static void block_in_recv(void)
{
    char byte;
    recv(sockets[0], &byte, 1, 0);
}

static void block_in_sleep(void)
{
    sleep(INT32_MAX);
}

static void block_in_semaphore(void)
{
    struct timespec later = {.tv_sec = INT32_MAX};
    sem_timedwait(&never, &later);
}

static void block_in_splice(void)
{
    splice(pipes[0], NULL, sockets[0], NULL, 1, 0);
}

/* Libc has the choice between two calls for some. */
static const struct blocked {
    void (*block)(void);
    long number, older;
    const char *wait_class, *descriptor;
} blocked[] = {
#ifdef SYS_poll
    {block_in_poll, SYS_ppoll, SYS_poll, "other", "pipe"},
    {block_in_poll_of_nothing, SYS_ppoll, SYS_poll, "sleep", "none"},
    {block_in_select, SYS_pselect6, SYS_select, "network", "socket"},
    {block_in_epoll, SYS_epoll_pwait, SYS_epoll_wait, "network", "socket"},
#else
    {block_in_poll, SYS_ppoll, -1, "other", "pipe"},
    {block_in_poll_of_nothing, SYS_ppoll, -1, "sleep", "none"},
    {block_in_select, SYS_pselect6, -1, "network", "socket"},
    {block_in_epoll, SYS_epoll_pwait, -1, "network", "socket"},
#endif
    {block_in_read, SYS_read, -1, "other", "pipe"},
    {block_in_recv, SYS_recvfrom, -1, "network", "socket"},
    {block_in_sleep, SYS_clock_nanosleep, SYS_nanosleep, "sleep", "none"},
    {block_in_semaphore, SYS_futex, -1, "lock", "none"},
    {block_in_splice, SYS_splice, -1, "network", "socket"},
};

static _Atomic int tids[SP_ARRAY_LENGTH(blocked)];

static void *block(void *pointer)
{
    const struct blocked *what = pointer;
    atomic_store(&tids[what - blocked], gettid());
    what->block();
    return NULL;
}

/* The system call that thread TID is blocked in: its number, and its arguments in ARGUMENTS. -1
 * when it is in none. */
static int64_t read_system_call(int tid, uint64_t arguments[6])
{
    char path[64], text[256];
    long long number = -1;
    (void)snprintf(path, sizeof path, "/proc/self/task/%d/syscall", tid);
    int fd = opened(open(path, O_RDONLY | O_CLOEXEC));
    ssize_t length = read(fd, text, sizeof text - 1);
    close(fd);
    if (length < 0)
        skip(); /* this system forbids it */
    text[length] = 0;
    if (sscanf(text, "%lld %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64,
               &number, &arguments[0], &arguments[1], &arguments[2], &arguments[3], &arguments[4],
               &arguments[5]) != 7)
        return -1;
    return number;
}

static void blocked_threads_are_told_by_what_the_kernel_shows_of_them(void **state)
{
    (void)state;
#ifdef TESTS_EMULATOR_SIG_H
    skip(); /* the emulator's own system calls are shown */
#endif
    watching = epoll_over(sockets, 1);
    assert_int_equal(sem_init(&never, 0, 0), 0);
    for (size_t i = 0; i < SP_ARRAY_LENGTH(blocked); i++) {
        pthread_t thread;
        uint64_t arguments[6];
        int64_t number = -1;
        assert_int_equal(pthread_create(&thread, NULL, block, (void *)(uintptr_t)&blocked[i]), 0);
        pthread_detach(thread); /* waits until the process ends */
        while (!atomic_load(&tids[i]))
            sched_yield();
        while (number == -1 || (number != blocked[i].number && number != blocked[i].older))
            number = read_system_call(tids[i], arguments);
        expect(sp_wait_of(number, arguments), blocked[i].wait_class, blocked[i].descriptor);
    }
}

static void names_are_distinct_and_there_for_all(void **state)
{
    (void)state;
    for (int i = 0; i < SP_WAIT_CLASS_COUNT; i++)
        for (int j = 0; j < i; j++)
            assert_string_not_equal(sp_wait_class_name(i), sp_wait_class_name(j));
    for (int i = 0; i < SP_DESCRIPTOR_COUNT; i++)
        for (int j = 0; j < i; j++)
            assert_string_not_equal(sp_wait_descriptor_name(i), sp_wait_descriptor_name(j));
    assert_string_equal(sp_wait_class_name(SP_WAIT_RUNNABLE), "runnable");
    assert_string_equal(sp_wait_class_name(SP_WAIT_CLASS_COUNT), "other");
    assert_string_equal(sp_wait_class_name(-1), "other");
    assert_string_equal(sp_wait_descriptor_name(SP_DESCRIPTOR_COUNT), "other");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(read_waits_for_what_the_descriptor_is),
        cmocka_unit_test(read_of_a_block_device_waits_for_a_disk),
        cmocka_unit_test(rarer_descriptors_have_names_too),
        cmocka_unit_test(calls_that_say_it_all_need_no_descriptor),
        cmocka_unit_test(writing_out_waits_for_a_disk),
        cmocka_unit_test(locks_on_files_are_locks),
        cmocka_unit_test(of_two_ends_the_slower_kind_counts),
        cmocka_unit_test(poll_waits_for_the_most_telling_descriptor),
        cmocka_unit_test(poll_of_nothing_is_a_sleep),
        cmocka_unit_test(poll_of_many_looks_at_sixteen),
        cmocka_unit_test(select_looks_at_all_three_sets),
        cmocka_unit_test(select_finds_high_numbers),
        cmocka_unit_test(epoll_waits_for_what_it_watches),
        cmocka_unit_test(epoll_over_what_is_closed_is_not_a_sleep),
        cmocka_unit_test(epoll_over_many_does_not_take_half_a_number),
        cmocka_unit_test(epoll_answer_is_kept_for_a_second_and_no_longer_than_needed),
        cmocka_unit_test(epoll_instances_with_one_place_do_not_mix),
        cmocka_unit_test(descriptors_that_are_none_are_no_error),
        cmocka_unit_test(high_halves_of_descriptors_do_not_count),
        cmocka_unit_test(pointers_to_nothing_are_no_error),
        cmocka_unit_test(counts_out_of_range_are_no_error),
        cmocka_unit_test(numbers_out_of_range_are_other),
        cmocka_unit_test(blocked_threads_are_told_by_what_the_kernel_shows_of_them),
        cmocka_unit_test(names_are_distinct_and_there_for_all),
    };
    return cmocka_run_group_tests(tests, open_all, NULL);
}
