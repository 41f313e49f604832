/* SPDX-License-Identifier: Apache-2.0 */
#include "wall/wait.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/compiler.h"
#include "core/guarded_load_sig.h"

/* Of poll and select, at most POLLED_MAX descriptors are checked. Of an epoll instance, as many as
 * FDINFO_BYTES of text hold: about 50. */
enum { POLLED_MAX = 16, WATCHED_MAX = 64, FDINFO_BYTES = 4096, SELECT_BITS = 1024 };

/* --- Names ------------------------------------------------------------------------------------ */

const char *sp_wait_class_name(sp_wait_class wait_class)
{
    static const char *const names[SP_WAIT_CLASS_COUNT] = {
        [SP_WAIT_CPU] = "cpu",     [SP_WAIT_RUNNABLE] = "runnable", [SP_WAIT_LOCK] = "lock",
        [SP_WAIT_DISK] = "disk",   [SP_WAIT_NETWORK] = "network",   [SP_WAIT_SLEEP] = "sleep",
        [SP_WAIT_OTHER] = "other",
    };
    return (unsigned)wait_class < SP_WAIT_CLASS_COUNT ? names[wait_class] : "other";
}

const char *sp_wait_descriptor_name(sp_wait_descriptor descriptor)
{
    static const char *const names[SP_DESCRIPTOR_COUNT] = {
        [SP_DESCRIPTOR_NONE] = "none",           [SP_DESCRIPTOR_SOCKET] = "socket",
        [SP_DESCRIPTOR_PIPE] = "pipe",           [SP_DESCRIPTOR_FILE] = "file",
        [SP_DESCRIPTOR_DIRECTORY] = "directory", [SP_DESCRIPTOR_BLOCK_DEVICE] = "block_device",
        [SP_DESCRIPTOR_DEVICE] = "device",       [SP_DESCRIPTOR_EPOLL] = "epoll",
        [SP_DESCRIPTOR_EVENTFD] = "eventfd",     [SP_DESCRIPTOR_TIMERFD] = "timerfd",
        [SP_DESCRIPTOR_SIGNALFD] = "signalfd",   [SP_DESCRIPTOR_INOTIFY] = "inotify",
        [SP_DESCRIPTOR_IO_URING] = "io_uring",   [SP_DESCRIPTOR_PIDFD] = "pidfd",
        [SP_DESCRIPTOR_OTHER] = "other",
    };
    return (unsigned)descriptor < SP_DESCRIPTOR_COUNT ? names[descriptor] : "other";
}

/* --- What each system call waits for ---------------------------------------------------------- */

/* Where a system call has its descriptors. */
typedef enum place {
    NOWHERE = 0, /* the call has none, or its kind is in the table */
    FIRST,       /* in the first argument */
    FIRST_SECOND,
    FIRST_THIRD,
    FIRST_OF_FCNTL,
    IN_POLL_ARRAY,
    IN_SELECT_SETS,
    IN_EPOLL,
} place;

/* A wait_class of SP_WAIT_CPU, which is 0, means the class of the descriptor. */
typedef struct rule {
    uint8_t place;
    sp_wait wait;
} rule;

/* clang-format off */
#define LOCK         {NOWHERE, {SP_WAIT_LOCK, SP_DESCRIPTOR_NONE}}
#define SLEEP        {NOWHERE, {SP_WAIT_SLEEP, SP_DESCRIPTOR_NONE}}
#define DISK         {NOWHERE, {SP_WAIT_DISK, SP_DESCRIPTOR_NONE}}
/* These calls work on sockets only. */
#define NETWORK      {NOWHERE, {SP_WAIT_NETWORK, SP_DESCRIPTOR_SOCKET}}
/* The kernel does not show the requests in flight. */
#define IO_URING     {NOWHERE, {SP_WAIT_OTHER, SP_DESCRIPTOR_IO_URING}}
#define LOCK_ON(at)  {at, {SP_WAIT_LOCK, SP_DESCRIPTOR_NONE}}
#define DISK_ON(at)  {at, {SP_WAIT_DISK, SP_DESCRIPTOR_NONE}}
#define ON(at)       {at, {SP_WAIT_CPU, SP_DESCRIPTOR_NONE}}

/* By number of the system call. A call without an entry is SP_WAIT_OTHER: wait4, pause, mmap …
 * Names that one architecture or older headers lack are inside #ifdef. An open of a FIFO waits for
 * the other end and not for a disk; this is not distinguished. close has no entry, because its
 * descriptor is gone when it begins to wait. */
static const rule rules[] = {
    [SYS_futex] = LOCK,
#ifdef SYS_futex_waitv
    [SYS_futex_waitv] = LOCK,
#endif
#ifdef SYS_futex_wait
    [SYS_futex_wait] = LOCK,
#endif
    [SYS_semop] = LOCK,
    [SYS_semtimedop] = LOCK,
    [SYS_flock] = LOCK_ON(FIRST),
    [SYS_fcntl] = ON(FIRST_OF_FCNTL),

    [SYS_nanosleep] = SLEEP,
    [SYS_clock_nanosleep] = SLEEP,

    [SYS_ppoll] = ON(IN_POLL_ARRAY),
    [SYS_pselect6] = ON(IN_SELECT_SETS),
    [SYS_epoll_pwait] = ON(IN_EPOLL),
#ifdef SYS_epoll_pwait2
    [SYS_epoll_pwait2] = ON(IN_EPOLL),
#endif
#ifdef SYS_poll
    [SYS_poll] = ON(IN_POLL_ARRAY),
    [SYS_select] = ON(IN_SELECT_SETS),
    [SYS_epoll_wait] = ON(IN_EPOLL),
#endif
    [SYS_io_uring_enter] = IO_URING,

    [SYS_connect] = NETWORK,
    [SYS_accept] = NETWORK,
    [SYS_accept4] = NETWORK,
    [SYS_recvfrom] = NETWORK,
    [SYS_recvmsg] = NETWORK,
    [SYS_recvmmsg] = NETWORK,
    [SYS_sendto] = NETWORK,
    [SYS_sendmsg] = NETWORK,
    [SYS_sendmmsg] = NETWORK,
    [SYS_shutdown] = NETWORK,

    [SYS_read] = ON(FIRST),
    [SYS_readv] = ON(FIRST),
    [SYS_pread64] = ON(FIRST),
    [SYS_preadv] = ON(FIRST),
    [SYS_preadv2] = ON(FIRST),
    [SYS_write] = ON(FIRST),
    [SYS_writev] = ON(FIRST),
    [SYS_pwrite64] = ON(FIRST),
    [SYS_pwritev] = ON(FIRST),
    [SYS_pwritev2] = ON(FIRST),
    [SYS_vmsplice] = ON(FIRST),
    [SYS_ioctl] = ON(FIRST),
    [SYS_lseek] = ON(FIRST),
    [SYS_fstat] = ON(FIRST),
    [SYS_sendfile] = ON(FIRST_SECOND),
    [SYS_tee] = ON(FIRST_SECOND),
    [SYS_splice] = ON(FIRST_THIRD),
    [SYS_copy_file_range] = ON(FIRST_THIRD),

    [SYS_fsync] = DISK_ON(FIRST),
    [SYS_fdatasync] = DISK_ON(FIRST),
    [SYS_syncfs] = DISK_ON(FIRST),
    [SYS_sync_file_range] = DISK_ON(FIRST),
    [SYS_fallocate] = DISK_ON(FIRST),
    [SYS_ftruncate] = DISK_ON(FIRST),
    [SYS_fadvise64] = DISK_ON(FIRST),
    [SYS_readahead] = DISK_ON(FIRST),
    [SYS_fchmod] = DISK_ON(FIRST),
    [SYS_fchown] = DISK_ON(FIRST),
    [SYS_fchdir] = DISK_ON(FIRST),
    [SYS_fstatfs] = DISK_ON(FIRST),
    [SYS_getdents64] = DISK_ON(FIRST),
    [SYS_fgetxattr] = DISK_ON(FIRST),
    [SYS_fsetxattr] = DISK_ON(FIRST),
    [SYS_flistxattr] = DISK_ON(FIRST),
    [SYS_fremovexattr] = DISK_ON(FIRST),
    [SYS_sync] = DISK,
    [SYS_msync] = DISK,
    [SYS_io_submit] = DISK,
    [SYS_io_getevents] = DISK,
#ifdef SYS_io_pgetevents
    [SYS_io_pgetevents] = DISK,
#endif

    [SYS_openat] = DISK,
#ifdef SYS_openat2
    [SYS_openat2] = DISK,
#endif
    [SYS_open_by_handle_at] = DISK,
    [SYS_name_to_handle_at] = DISK,
    [SYS_newfstatat] = DISK,
    [SYS_statx] = DISK,
    [SYS_statfs] = DISK,
    [SYS_faccessat] = DISK,
#ifdef SYS_faccessat2
    [SYS_faccessat2] = DISK,
#endif
    [SYS_readlinkat] = DISK,
    [SYS_linkat] = DISK,
    [SYS_symlinkat] = DISK,
    [SYS_unlinkat] = DISK,
    [SYS_mkdirat] = DISK,
    [SYS_mknodat] = DISK,
#ifdef SYS_renameat
    [SYS_renameat] = DISK,
#endif
    [SYS_renameat2] = DISK,
    [SYS_fchmodat] = DISK,
    [SYS_fchownat] = DISK,
    [SYS_utimensat] = DISK,
    [SYS_truncate] = DISK,
    [SYS_chdir] = DISK,
    [SYS_getxattr] = DISK,
    [SYS_lgetxattr] = DISK,
    [SYS_setxattr] = DISK,
    [SYS_lsetxattr] = DISK,
    [SYS_listxattr] = DISK,
    [SYS_llistxattr] = DISK,
    [SYS_removexattr] = DISK,
    [SYS_lremovexattr] = DISK,
#ifdef SYS_open /* the older calls with a path, which newer architectures do not have */
    [SYS_open] = DISK,
    [SYS_creat] = DISK,
    [SYS_stat] = DISK,
    [SYS_lstat] = DISK,
    [SYS_access] = DISK,
    [SYS_readlink] = DISK,
    [SYS_link] = DISK,
    [SYS_symlink] = DISK,
    [SYS_unlink] = DISK,
    [SYS_mkdir] = DISK,
    [SYS_rmdir] = DISK,
    [SYS_mknod] = DISK,
    [SYS_rename] = DISK,
    [SYS_chmod] = DISK,
    [SYS_chown] = DISK,
    [SYS_lchown] = DISK,
    [SYS_utime] = DISK,
    [SYS_utimes] = DISK,
    [SYS_futimesat] = DISK,
    [SYS_getdents] = DISK_ON(FIRST),
#endif
};
/* clang-format on */

/* The class of a wait on each kind of descriptor; 0 is SP_WAIT_OTHER. The writer of a pipe, a
 * terminal or an eventfd is unknown. */
static const uint8_t class_by_descriptor[SP_DESCRIPTOR_COUNT] = {
    [SP_DESCRIPTOR_SOCKET] = SP_WAIT_NETWORK, [SP_DESCRIPTOR_FILE] = SP_WAIT_DISK,
    [SP_DESCRIPTOR_DIRECTORY] = SP_WAIT_DISK, [SP_DESCRIPTOR_BLOCK_DEVICE] = SP_WAIT_DISK,
    [SP_DESCRIPTOR_TIMERFD] = SP_WAIT_SLEEP,
};

/* --- One descriptor --------------------------------------------------------------------------- */

/* The process whose descriptors and memory are read; 0: this process. */
static pid_t other_process;
static char process_folder[24] = "/proc/self";

void sp_wait_set_process(pid_t pid)
{
    other_process = pid;
    (void)snprintf(process_folder, sizeof process_folder, "/proc/%d", (int)pid);
}

static bool read_mode(int fd, struct statx *out)
{
    char path[48];
    if (fd < 0)
        return false;
    if (!other_process)
        return statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, out) == 0;
    snprintf(path, sizeof path, "%s/fd/%d", process_folder, fd);
    return statx(AT_FDCWD, path, AT_STATX_DONT_SYNC, STATX_TYPE, out) == 0;
}

/* The kind of descriptor FD by the type of its inode; SP_DESCRIPTOR_OTHER for those without a type
 * of their own (eventfd, epoll …). statx uses only what the kernel has cached: fstat would ask a
 * file server, and if the server does not answer, the caller would wait like the visited thread. */
static uint8_t kind_by_mode(int fd)
{
    struct statx status;
    if (!read_mode(fd, &status))
        return SP_DESCRIPTOR_NONE;
    switch (status.stx_mode & S_IFMT) {
    case S_IFSOCK:
        return SP_DESCRIPTOR_SOCKET;
    case S_IFIFO:
        return SP_DESCRIPTOR_PIPE;
    case S_IFREG:
        return SP_DESCRIPTOR_FILE;
    case S_IFDIR:
        return SP_DESCRIPTOR_DIRECTORY;
    case S_IFBLK:
        return SP_DESCRIPTOR_BLOCK_DEVICE;
    case S_IFCHR:
        return SP_DESCRIPTOR_DEVICE;
    default:
        return SP_DESCRIPTOR_OTHER;
    }
}

/* The kind of descriptor FD by the text of its link in /proc. This takes five times as long. */
static uint8_t kind_by_link(int fd)
{
    static const struct {
        const char *text;
        uint8_t kind;
    } links[] = {
        {"anon_inode:[eventfd]", SP_DESCRIPTOR_EVENTFD},
        {"anon_inode:[timerfd]", SP_DESCRIPTOR_TIMERFD},
        {"anon_inode:[eventpoll]", SP_DESCRIPTOR_EPOLL},
        {"anon_inode:[signalfd]", SP_DESCRIPTOR_SIGNALFD},
        {"anon_inode:inotify", SP_DESCRIPTOR_INOTIFY},
        {"anon_inode:[io_uring]", SP_DESCRIPTOR_IO_URING},
        {"anon_inode:[pidfd]", SP_DESCRIPTOR_PIDFD},
    };
    char path[48], link[32];
    snprintf(path, sizeof path, "%s/fd/%d", process_folder, fd);
    ssize_t length = readlink(path, link, sizeof link - 1);
    if (length < 0)
        return SP_DESCRIPTOR_NONE;
    link[length] = 0;
    for (size_t i = 0; i < SP_ARRAY_LENGTH(links); i++)
        if (strcmp(link, links[i].text) == 0)
            return links[i].kind;
    return SP_DESCRIPTOR_OTHER;
}

/* --- Several descriptors ---------------------------------------------------------------------- */

typedef struct descriptors {
    int fds[WATCHED_MAX];
    uint32_t count;
    bool whole; /* these are all that are waited on */
} descriptors;

static void add(descriptors *set, int fd)
{
    if (fd >= 0 && set->count < WATCHED_MAX)
        set->fds[set->count++] = fd;
}

/* Of several descriptors, the kind with the highest rank counts. Next to a socket, other
 * descriptors mostly serve to wake an event loop. Files have the lowest rank, because poll does not
 * wait on them, and splice waits longer for the pipe at the other end. For OTHER, only the link
 * shows the kind. */
static uint8_t rank_of(uint8_t kind)
{
    switch (kind) {
    case SP_DESCRIPTOR_NONE:
        return 0;
    case SP_DESCRIPTOR_FILE:
        return 1;
    case SP_DESCRIPTOR_OTHER:
        return 2;
    case SP_DESCRIPTOR_SOCKET:
        return 4;
    default:
        return 3;
    }
}

/* The kind of the first descriptor that is not a timer, because a thread that waits for a timer or
 * for something else does not sleep. */
static uint8_t kind_of_links(const descriptors *set)
{
    uint8_t found = SP_DESCRIPTOR_NONE;
    for (uint32_t i = 0; i < set->count; i++) {
        uint8_t kind = kind_by_link(set->fds[i]);
        if (kind != SP_DESCRIPTOR_NONE)
            found = kind;
        if (found != SP_DESCRIPTOR_NONE && found != SP_DESCRIPTOR_TIMERFD)
            break;
    }
    return found;
}

static uint8_t kind_of_set(const descriptors *set)
{
    uint8_t found = SP_DESCRIPTOR_NONE;
    for (uint32_t i = 0; i < set->count && found != SP_DESCRIPTOR_SOCKET; i++) {
        uint8_t kind = kind_by_mode(set->fds[i]);
        if (rank_of(kind) > rank_of(found))
            found = kind;
    }
    return found == SP_DESCRIPTOR_OTHER ? kind_of_links(set) : found;
}

static sp_wait wait_on_kind(uint8_t kind)
{
    uint8_t wait_class = class_by_descriptor[kind];
    return (sp_wait){wait_class ? wait_class : SP_WAIT_OTHER, kind};
}

/* Programs use a wait on no descriptor to sleep for less than a second. */
static sp_wait wait_on_set(const descriptors *set)
{
    if (set->count == 0 && set->whole)
        return (sp_wait){SP_WAIT_SLEEP, SP_DESCRIPTOR_NONE};
    return wait_on_kind(kind_of_set(set));
}

static sp_wait wait_on_two(uint64_t one, uint64_t other)
{
    descriptors set = {.count = 0};
    add(&set, (int)one);
    add(&set, (int)other);
    return wait_on_set(&set);
}

static sp_wait wait_in_poll(uint64_t array, uint32_t count)
{
    struct pollfd polled[POLLED_MAX] = {{0}};
    descriptors set = {.count = 0};
    uint32_t seen = count < POLLED_MAX ? count : POLLED_MAX;
    sp_guarded guarded;
    sp_guarded_init(&guarded);
    guarded.pid = other_process;
    if (seen && !sp_guarded_copy(&guarded, polled, array, seen * sizeof polled[0]))
        return wait_on_kind(SP_DESCRIPTOR_NONE);
    for (uint32_t i = 0; i < seen; i++)
        add(&set, polled[i].fd);
    set.whole = seen == count;
    return wait_on_set(&set);
}

/* Add the first descriptors of one of the three sets, which has a bit for each descriptor, in words
 * of 64. False when the set cannot be read. */
static bool add_selected(descriptors *set, uint64_t address, uint32_t bits)
{
    uint64_t words[SELECT_BITS / 64] = {0};
    sp_guarded guarded;
    if (address == 0 || bits == 0)
        return true;
    sp_guarded_init(&guarded);
    guarded.pid = other_process;
    if (!sp_guarded_copy(&guarded, words, address, (bits + 63) / 64 * sizeof words[0]))
        return false;
    if (bits % 64)
        words[bits / 64] &= (UINT64_C(1) << bits % 64) - 1;
    for (uint32_t i = 0; i < (bits + 63) / 64; i++)
        for (; words[i] && set->count < POLLED_MAX; words[i] &= words[i] - 1)
            add(set, (int)(i * 64) + __builtin_ctzll(words[i]));
    return true;
}

static sp_wait wait_in_select(const uint64_t arguments[6])
{
    descriptors set = {.count = 0};
    int count = (int)arguments[0];
    uint32_t bits = count < 0 ? 0 : count < SELECT_BITS ? (uint32_t)count : SELECT_BITS;
    for (int i = 1; i <= 3; i++)
        if (!add_selected(&set, arguments[i], bits))
            return wait_on_kind(SP_DESCRIPTOR_NONE);
    set.whole = count <= SELECT_BITS;
    return wait_on_set(&set);
}

/* --- The descriptors that an epoll instance watches ------------------------------------------- */

/* The kernel shows them in /proc/self/fdinfo/N, with a line for each descriptor. It makes the whole
 * text for the first byte that is read, and the application's own calls for the instance wait
 * meanwhile: 4 µs for one descriptor, 0.04 ms for 100, 10 ms for 10,000. So the answer is kept for
 * a second, or for 10,000 times what it has cost, if that is longer: a minute and more where it
 * takes 10 ms.
 *
 * Until then the answer may be stale: descriptors may have been added or removed, or the instance
 * was closed and another one has its number. Besides, the lines have the numbers that descriptors
 * had when they were added. A descriptor that was closed, but is still watched because of a
 * duplicate, is looked up by a number that another file may have by now. An instance within an
 * instance is SP_DESCRIPTOR_EPOLL. */

enum { KEPT_COUNT = 256, COST_FACTOR = 10000 }; /* KEPT_COUNT is a power of two */

typedef struct kept_wait {
    uint64_t until_ns; /* monotonic; 0: nothing is kept */
    int epoll;
    sp_wait wait;
} kept_wait;

/* An instance's number determines its place; another instance with the same place replaces it. */
static kept_wait kept[KEPT_COUNT];

/* Read the watched descriptors of EPOLL from the first FDINFO_BYTES of the text. False when there
 * is no such descriptor. */
static bool read_watched(int epoll, descriptors *set)
{
    char path[48], text[FDINFO_BYTES + 1];
    snprintf(path, sizeof path, "%s/fdinfo/%d", process_folder, epoll);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t length = read(fd, text, FDINFO_BYTES);
    close(fd);
    if (length <= 0)
        return false;
    while (length > 0 && text[length - 1] != '\n')
        length--; /* the text may end in the middle of a number */
    text[length] = 0;
    const char *line = text;
    while ((line = strstr(line, "\ntfd:")) != NULL) {
        line += strlen("\ntfd:");
        add(set, (int)strtol(line, NULL, 10));
    }
    return true;
}

static sp_wait classify_epoll(int epoll, const descriptors *watched)
{
    uint8_t kind = kind_of_set(watched);
    if (kind != SP_DESCRIPTOR_NONE)
        return wait_on_kind(kind);
    if (kind_by_link(epoll) != SP_DESCRIPTOR_EPOLL)
        return wait_on_kind(SP_DESCRIPTOR_NONE);
    uint8_t wait_class = watched->count ? SP_WAIT_OTHER : SP_WAIT_SLEEP;
    return (sp_wait){wait_class, SP_DESCRIPTOR_EPOLL};
}

static sp_wait wait_in_epoll(int epoll)
{
    kept_wait *entry = &kept[(unsigned)epoll % KEPT_COUNT];
    descriptors watched = {.count = 0};
    uint64_t now_ns = sp_clock_monotonic_ns();
    if (entry->epoll == epoll && now_ns < entry->until_ns)
        return entry->wait;
    uint64_t cpu_ns = sp_clock_own_cpu_ns(); /* the cost, without waits for a core */
    if (!read_watched(epoll, &watched))
        return wait_on_kind(SP_DESCRIPTOR_NONE);
    entry->epoll = epoll;
    entry->wait = classify_epoll(epoll, &watched);
    cpu_ns = sp_clock_own_cpu_ns() - cpu_ns;
    entry->until_ns = now_ns + sp_max_u64(SP_NS_PER_S, cpu_ns * COST_FACTOR);
    return entry->wait;
}

/* --- One system call -------------------------------------------------------------------------- */

static sp_wait wait_on_one(const rule *rule, int fd)
{
    uint8_t kind = kind_by_mode(fd);
    if (kind == SP_DESCRIPTOR_OTHER)
        kind = kind_by_link(fd);
    sp_wait wait = wait_on_kind(kind);
    if (rule->wait.wait_class)
        wait.wait_class = rule->wait.wait_class;
    return wait;
}

static sp_wait wait_in_fcntl(const rule *rule, const uint64_t arguments[6])
{
    sp_wait wait = wait_on_one(rule, (int)arguments[0]);
    int command = (int)arguments[1];
    if (command == F_SETLKW || command == F_OFD_SETLKW)
        wait.wait_class = SP_WAIT_LOCK;
    return wait;
}

sp_wait sp_wait_of(int64_t system_call, const uint64_t arguments[6])
{
    static const rule unknown = {NOWHERE, {SP_WAIT_OTHER, SP_DESCRIPTOR_NONE}};
    bool is_known = system_call >= 0 && (uint64_t)system_call < SP_ARRAY_LENGTH(rules);
    const rule *rule = is_known ? &rules[system_call] : &unknown;
    switch ((place)rule->place) {
    case FIRST:
        return wait_on_one(rule, (int)arguments[0]);
    case FIRST_SECOND:
        return wait_on_two(arguments[0], arguments[1]);
    case FIRST_THIRD:
        return wait_on_two(arguments[0], arguments[2]);
    case FIRST_OF_FCNTL:
        return wait_in_fcntl(rule, arguments);
    case IN_POLL_ARRAY:
        return wait_in_poll(arguments[0], (uint32_t)arguments[1]);
    case IN_SELECT_SETS:
        return wait_in_select(arguments);
    case IN_EPOLL:
        return wait_in_epoll((int)arguments[0]);
    case NOWHERE:
        break;
    }
    return rule->wait.wait_class ? rule->wait : unknown.wait;
}
