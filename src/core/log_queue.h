/* SPDX-License-Identifier: Apache-2.0 */
/* The queue of log lines. The host's log function may need a lock that the logging thread holds, or
 * may never return; standard error may be a full pipe. So the thread that logs does not deliver its
 * line: it puts the line into a queue, from which one thread of the SDK takes it. While there is no
 * such thread, lines wait until the next one starts, or until a call that settles the queue.
 *
 * | operation              | thread                                                                 |
 * |------------------------|------------------------------------------------------------------------|
 * | push                   | any; never waits, a line that finds no room is counted and reported    |
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

/* If BEGUN, lines are queued from now on even while no thread takes them. */
void sp_log_queue_set_begun(bool begun);
/* Queue a copy of TEXT. False when lines are not queued yet: the caller delivers the line
 * itself. */
bool sp_log_queue_push(spanprof_log_level level, const char *text);

/* A thread begins to take lines. Returns its ticket, which it passes to sp_log_queue_take. */
uint32_t sp_log_queue_open(void);
/* Wait for the next line and copy it to OUT. False when the thread with TICKET has to end. OUT must
 * have the line of the previous call, which the thread has delivered; all zero at the first
 * call. */
bool sp_log_queue_take(uint32_t ticket, sp_log_line *out);
/* Ask the thread to end. False when it is delivering a line: it ends only after the host's function
 * returns. */
bool sp_log_queue_close(void);

/* Wait until all lines are delivered, but not long beyond DEADLINE_NS (monotonic): at least
 * SP_LOG_SETTLE_MIN_MS and at most SP_LOG_SETTLE_MAX_MS. If no thread takes lines, the calling
 * thread delivers them, unless another thread is still inside the host's function. */
enum { SP_LOG_SETTLE_MIN_MS = 100, SP_LOG_SETTLE_MAX_MS = 1000 };
void sp_log_settle(uint64_t deadline_ns);

#endif
