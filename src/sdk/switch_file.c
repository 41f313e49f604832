/* SPDX-License-Identifier: Apache-2.0 */
/* The thread reads all rings 25 times a second, and 200 times while one of them is more than a
 * quarter full. The records in a ring become one block, unchanged. Once a second, at a flush and at
 * the end it also writes the time up to which the file is complete.
 *
 * A block is in the file wholly or not at all, also when the disk is full in the middle of it. Then
 * the recording is over: definitions that later records need would be missing. A process that is
 * killed leaves a block that is cut; a reader stops there. */
#include "sdk/switch_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "context/switch_recorder.h"
#include "context/thread.h"
#include "core/append.h"
#include "core/buffer.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/worker.h"

enum { REST_MS = 40, HURRY_MS = 5, COMPLETE_MS = 1000, WRITABLE_MS = 1000, CLOCK_TRIES = 3 };

/* The state of a run. Stop frees it, or the thread when stop has abandoned it
 * (docs/design/worker.md). */
typedef struct switch_file {
    int fd; /* -1: the recording is over */
    char *path;
    uint32_t run;
    bool has_barrier;
    uint64_t end_bytes; /* of the file; bytes after these are of a block that failed */
    uint64_t completed_at_ns;
    sp_buffer open_slots; /* uint32_t */
    sp_worker worker;
} switch_file;

static switch_file *current; /* used by setup, and by the flush under the SDK's lock */
static _Atomic uint64_t recorded, lost_in_rings, lost_on_disk; /* switches */

/* From start until the run is freed, which an abandoned thread does late or never. The rings and
 * the counters belong to that run until then, so no other may begin. */
static _Atomic bool has_run;
/* That run's descriptor, which a forked child closes; -1: none. */
static _Atomic int open_fd = -1;

/* --- blocks ----------------------------------------------------------------------------------- */

static bool is_switch(sp_switch_kind kind)
{
    return kind == SP_SWITCH_TO || kind == SP_SWITCH_SPAN || kind == SP_SWITCH_CONTEXT ||
           kind == SP_SWITCH_UNKNOWN;
}

static uint64_t switches_in(const sp_switch_piece pieces[2])
{
    static const uint8_t words[SP_SWITCH_KINDS_MAX] = SP_SWITCH_RECORD_WORDS;
    size_t at = 0, whole = pieces[0].count + pieces[1].count;
    uint64_t count = 0;
    while (at < whole) {
        uint64_t header =
            at < pieces[0].count ? pieces[0].words[at] : pieces[1].words[at - pieces[0].count];
        sp_switch_kind kind = (sp_switch_kind)(header & SP_SWITCH_KIND_MASK);
        count += is_switch(kind);
        at += words[kind];
    }
    return count;
}

/* Write all RANGES. While a FIFO is full, wait until DEADLINE_NS (UINT64_MAX: for ever). Returns 0,
 * or errno: EAGAIN at the deadline. It does not wait when the host has closed the descriptor. */
static int write_all(int fd, struct iovec *ranges, int count, uint64_t deadline_ns)
{
    uint64_t done = 0;
    for (;;) {
        int error = sp_append_write(fd, ranges, count, &done);
        if (error != EAGAIN || sp_clock_monotonic_ns() >= deadline_ns)
            return error;
        struct pollfd writable = {.fd = fd, .events = POLLOUT};
        poll(&writable, 1, WRITABLE_MS);
    }
}

/* False, with errno, when the last bytes may be missing. open_fd is reset before the close: a child
 * that is forked meanwhile must not close the number, which may be another file's by then. */
static bool close_file(switch_file *file)
{
    int fd = file->fd;
    file->fd = -1;
    atomic_store(&open_fd, -1);
    return close(fd) == 0;
}

static void give_up(switch_file *file, int error)
{
    struct stat status;
    sp_log_error("switches", "writing %s: %s: no switch is recorded any more", file->path,
                 strerror(error));
    sp_switch_recorder_stop();
    if (fstat(file->fd, &status) == 0 && S_ISREG(status.st_mode) &&
        ftruncate(file->fd, (off_t)file->end_bytes) != 0)
        sp_log_warn("switches", "%s: its last block is cut", file->path);
    close_file(file);
}

/* Write a block of TYPE with the COUNT ranges of DATA as content. False when that fails; the
 * recording is over then. */
static bool write_block(switch_file *file, sp_switch_block_type type, uint32_t slot,
                        const struct iovec *data, int count)
{
    struct iovec ranges[4];
    sp_switch_block block = {.type = type, .slot = slot};
    for (int i = 0; i < count; i++)
        block.bytes += (uint32_t)data[i].iov_len;
    ranges[0] = (struct iovec){&block, sizeof block};
    memcpy(ranges + 1, data, (size_t)count * sizeof *data);
    int error = file->fd < 0 ? EBADF : write_all(file->fd, ranges, 1 + count, UINT64_MAX);
    if (error && file->fd >= 0)
        give_up(file, error);
    if (!error)
        file->end_bytes += sizeof block + block.bytes;
    return error == 0;
}

static struct iovec range_of(const void *data, size_t bytes)
{
    return (struct iovec){(void *)(uintptr_t)data, bytes}; // NOLINT(performance-no-int-to-ptr)
}

static void write_ring(switch_file *file, sp_thread *thread, double *fullest)
{
    sp_switch_piece pieces[2];
    uint64_t head;
    double full;
    if (sp_switch_ring_look(thread, file->run, pieces, &head, &full) == 0)
        return;
    const struct iovec data[] = {
        range_of(pieces[0].words, pieces[0].count * sizeof(uint64_t)),
        range_of(pieces[1].words, pieces[1].count * sizeof(uint64_t)),
    };
    uint64_t switches = switches_in(pieces);
    bool written = write_block(file, SP_SWITCH_BLOCK_RECORDS, thread->slot, data, 2);
    sp_switch_ring_release(thread, head);
    sp_count_owned(written ? &recorded : &lost_on_disk, switches);
    *fullest = full > *fullest ? full : *fullest;
}

/* --- up to which time the file is complete ---------------------------------------------------- */

typedef struct moment {
    uint64_t monotonic_ns, realtime_ns;
} moment;

/* Read both clocks at one moment: of several tries the shortest one counts. */
static moment read_moment(void)
{
    moment best = {0};
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < CLOCK_TRIES; i++) {
        uint64_t before = sp_clock_monotonic_ns(), realtime = sp_clock_realtime_ns();
        uint64_t took = sp_clock_monotonic_ns() - before;
        if (took < least) {
            least = took;
            best = (moment){before + took / 2, realtime};
        }
    }
    return best;
}

/* Make every running thread of the process pass a full barrier. False when the kernel cannot. */
static bool pass_barrier(const switch_file *file)
{
    return file->has_barrier &&
           syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
}

static void write_complete(switch_file *file, const moment *now, uint64_t lost_records,
                           bool has_barrier)
{
    static const uint8_t padding[8];
    sp_switch_complete complete = {
        .monotonic_ns = now->monotonic_ns,
        .realtime_ns = now->realtime_ns,
        .lost = lost_records,
        .slot_count = (uint32_t)(file->open_slots.length / sizeof(uint32_t)),
    };
    const struct iovec data[] = {
        range_of(&complete, sizeof complete),
        range_of(file->open_slots.data, file->open_slots.length),
        range_of(padding, file->open_slots.length % 8),
    };
    if (has_barrier && !file->open_slots.failed)
        write_block(file, SP_SWITCH_BLOCK_COMPLETE, 0, data, 3);
    file->completed_at_ns = now->monotonic_ns;
}

/* Take the records of all rings. The clock is read first: then all that threads recorded before
 * that time is in their rings, unless a thread is inside a record. Returns how full the fullest
 * ring was. */
static double take_all(switch_file *file, bool complete)
{
    double fullest = 0;
    sp_switch_lost lost = {0};
    moment now = read_moment();
    complete |= now.monotonic_ns - file->completed_at_ns >= COMPLETE_MS * SP_NS_PER_MS;
    bool has_barrier = complete && pass_barrier(file);
    sp_buffer_clear(&file->open_slots);
    for (uint32_t slot = 0; slot < sp_thread_slots(); slot++) {
        sp_thread *thread = sp_thread_by_slot(slot);
        if (complete && sp_switch_ring_is_open(thread, file->run))
            sp_buffer_add(&file->open_slots, &slot, sizeof slot);
        write_ring(file, thread, &fullest);
        sp_switch_lost here = sp_switch_ring_lost(thread, file->run);
        lost.records += here.records;
        lost.switches += here.switches;
    }
    sp_store_relaxed(&lost_in_rings, lost.switches);
    if (complete)
        write_complete(file, &now, lost.records, has_barrier);
    return fullest;
}

/* --- the thread ------------------------------------------------------------------------------- */

/* Free FILE; another run may begin then. */
static void destroy(void *owner)
{
    switch_file *file = owner;
    if (file->fd >= 0 && !close_file(file))
        sp_log_warn("switches", "closing %s: %s: its last blocks may be missing", file->path,
                    strerror(errno));
    sp_buffer_deinit(&file->open_slots);
    sp_worker_deinit(&file->worker);
    free(file->path);
    free(file);
    sp_store_release(&has_run, false); /* pairs with sp_switch_file_start */
}

static sp_worker_orders rest(switch_file *file, double fullest)
{
    uint64_t ms = fullest > 0.25 ? HURRY_MS : REST_MS;
    return sp_worker_wait(&file->worker, sp_clock_monotonic_ns() + ms * SP_NS_PER_MS);
}

static void run(void *owner)
{
    switch_file *file = owner;
    sp_thread_self_internal();
    double fullest = 0;
    sp_worker_orders orders = {0};
    while (!orders.ending) {
        orders = rest(file, fullest);
        fullest = take_all(file, orders.flush);
        sp_worker_publish_flushed(&file->worker, orders.flush_ticket);
    }
}

static const sp_worker_role role = {.name = "spanprof-switch", .run = run, .destroy = destroy};

/* --- start, flush, stop ----------------------------------------------------------------------- */

/* Lock and empty the file. EWOULDBLOCK when another recorder has it. On a file system without locks
 * it is not locked. A file that is not regular has no content to lose. */
static int take_for_own(int fd)
{
    struct stat status;
    if (fstat(fd, &status) != 0)
        return errno;
    if (!S_ISREG(status.st_mode))
        return 0;
    if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return EWOULDBLOCK;
    return ftruncate(fd, 0) == 0 ? 0 : errno;
}

/* Open the file as file->fd, which may be set on failure, too. Returns 0, or errno. */
static int open_file(switch_file *file)
{
    file->fd = sp_append_open(file->path, 0);
    if (file->fd < 0)
        return errno;
    atomic_store(&open_fd, file->fd);
    return take_for_own(file->fd);
}

/* Called by the thread that starts the SDK, so it does not wait for the reader of a FIFO. */
static int write_header(switch_file *file)
{
    moment now = read_moment();
    sp_switch_file_header header = {
        .version = SP_SWITCH_VERSION,
        .header_bytes = sizeof header,
        .pid = (uint64_t)getpid(),
        .clock_id = CLOCK_MONOTONIC,
        .known_count = SP_SWITCH_KNOWN,
        .monotonic_ns = now.monotonic_ns,
        .realtime_ns = now.realtime_ns,
        .record_words = SP_SWITCH_RECORD_WORDS,
    };
    memcpy(header.magic, SP_SWITCH_MAGIC, sizeof header.magic);
    struct iovec range = range_of(&header, sizeof header);
    file->end_bytes = sizeof header;
    file->completed_at_ns = now.monotonic_ns;
    int error = write_all(file->fd, &range, 1, 0);
    return error == EAGAIN ? EBUSY
                           : error; /* EAGAIN is EWOULDBLOCK, which means another recorder */
}

static void init(switch_file *file)
{
    sp_worker_init(&file->worker, SP_LOCK_SWITCH_FILE);
    file->open_slots = (sp_buffer)SP_BUFFER_INIT(SP_THREADS_MAX * sizeof(uint32_t));
    file->has_barrier =
        syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
}

bool sp_switch_file_start(const char *path)
{
    if (sp_load_acquire(&has_run)) {
        sp_log_warn(
            "switches",
            "%s: an earlier run's thread still waits for its own file, or disk, to take what it "
            "has: no switch is recorded",
            path);
        return false;
    }
    switch_file *file = calloc(1, sizeof *file);
    char *copy = strdup(path);
    sp_store_relaxed(&recorded, 0);
    sp_store_relaxed(&lost_in_rings, 0);
    sp_store_relaxed(&lost_on_disk, 0);
    if (!file || !copy) {
        free(file);
        free(copy);
        sp_log_warn("switches", "no memory: no switch is recorded");
        return false;
    }
    file->path = copy;
    sp_store_relaxed(&has_run, true);
    init(file);
    int error = open_file(file);
    if (!error)
        error = write_header(file);
    if (error == EWOULDBLOCK) {
        sp_log_error(
            "switches",
            "%s: another time recorder writes it, maybe the one of this process's parent: no "
            "switch is recorded; give each process a path of its own",
            path);
    } else if (error) {
        sp_log_warn("switches", "creating %s: %s: no switch is recorded", path, strerror(error));
    } else {
        file->run = sp_switch_recorder_start();
        if (sp_worker_start(&file->worker, &role, file) == 0) {
            current = file;
            return true;
        }
        sp_switch_recorder_stop();
        sp_log_warn("switches", "the thread that writes %s could not be started", path);
    }
    destroy(file);
    return false;
}

spanprof_status sp_switch_file_flush(uint64_t deadline_ns)
{
    if (!current || sp_worker_flush(&current->worker, deadline_ns))
        return SPANPROF_OK;
    return SPANPROF_ERROR_TIMEOUT;
}

spanprof_status sp_switch_file_stop(uint64_t deadline_ns)
{
    switch_file *file = current;
    if (!file)
        return SPANPROF_OK;
    current = NULL;
    sp_switch_recorder_stop();
    sp_worker_end(&file->worker, deadline_ns);
    if (!sp_worker_release(&file->worker))
        return SPANPROF_ERROR_TIMEOUT;
    destroy(file);
    return SPANPROF_OK;
}

/* The run is not freed, because the thread may have been changing it. */
void sp_switch_file_after_fork(void)
{
    sp_switch_recorder_after_fork();
    int fd = atomic_exchange(&open_fd, -1);
    if (fd >= 0)
        close(fd);
    current = NULL;
    sp_store_relaxed(&has_run, false);
}

void sp_switch_file_counters_get(sp_switch_counters *out)
{
    *out = (sp_switch_counters){
        .recorded = sp_load_relaxed(&recorded),
        .lost = sp_load_relaxed(&lost_in_rings) + sp_load_relaxed(&lost_on_disk),
    };
}
