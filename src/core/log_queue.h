/* SPDX-License-Identifier: Apache-2.0 */
/* The queue of log lines. The host's log function may need a lock that the logging thread holds, or
 * may never return; standard error may be a full pipe. So the thread that logs does not deliver its
 * line: it puts the line into a queue, from which one thread of the SDK takes it. While there is no
 * such thread, lines wait until the next one starts, or until a call that settles the queue.
 *
 * | operation              | thread                                                                 |
 * |------------------------|------------------------------------------------------------------------|
 * | push                   | any; never waits, a line that finds no room is counted and said later  |
 * | set_begun, open, close | setup                                                                  |
 * | take                   | the thread that delivers                                               |
 * | settle                 | inside the host's calls of start, flush and stop                       |
 *
 * The lock is an innermost one.  Signals: never.  Fork: the child's queue is empty, and has no
 * thread. */
#ifndef SP_CORE_LOG_QUEUE_H
#define SP_CORE_LOG_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include <spanprof/sdk.h>

enum { SP_LOG_QUEUE_LINES = 64, SP_LOG_LINE_BYTES = 1024 };

typedef struct sp_log_line {
    spanprof_log_level level;
    char text[SP_LOG_LINE_BYTES];
} sp_log_line;

/* BEGUN: from now on lines are queued also without a thread that takes them. */
void sp_log_queue_set_begun(bool begun);
/* TEXT (copied) is to be delivered. False when lines are not queued yet: the caller delivers it
 * itself. */
bool sp_log_queue_push(spanprof_log_level level, const char *text);

/* A thread begins to take lines. Returns its ticket, which it passes to sp_log_queue_take. */
uint32_t sp_log_queue_open(void);
/* The next line into OUT, which has the line that was delivered since the last call, or is zeroed
 * at first. Waits for one; false when the thread with TICKET shall end. */
bool sp_log_queue_take(uint32_t ticket, sp_log_line *out);
/* The thread shall end. False when it is delivering a line: it ends only after the host's function
 * returns. */
bool sp_log_queue_close(void);

/* Wait until all lines are delivered, but not long beyond DEADLINE_NS (monotonic): at least
 * SP_LOG_SETTLE_MIN_MS and at most SP_LOG_SETTLE_MAX_MS. Without a thread that takes them the
 * calling one delivers them, unless a thread is still kept by the host's function. */
enum { SP_LOG_SETTLE_MIN_MS = 100, SP_LOG_SETTLE_MAX_MS = 1000 };
void sp_log_settle(uint64_t deadline_ns);

#endif
