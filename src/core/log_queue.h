/* SPDX-License-Identifier: Apache-2.0 */
/* Lines on their way to the log. The host's function may take a lock that the thread that has
 * something to say holds, or never return; standard error may be a pipe that nobody reads. So no
 * thread that works delivers a line: it is put into a queue, from which one thread of ours takes
 * it. While there is no such thread lines wait, until the next one, or until a call in which the
 * host expects to be told.
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

/* A thread will take lines. Returns the ticket that it takes them with. */
uint32_t sp_log_queue_open(void);
/* The next line into OUT, which has the line that was delivered since the last call, or is zeroed
 * at first. Waits for one; false when the thread with TICKET shall end. */
bool sp_log_queue_take(uint32_t ticket, sp_log_line *out);
/* The thread shall end. False when it is delivering a line, for as long as the host's function
 * likes. */
bool sp_log_queue_close(void);

/* Until all lines are delivered, but not long beyond DEADLINE_NS (monotonic): SP_LOG_SETTLE_MIN_MS
 * are always given, and SP_LOG_SETTLE_MAX_MS at most. Without a thread that takes them the calling
 * one delivers them, unless a thread is still kept by the host's function. */
enum { SP_LOG_SETTLE_MIN_MS = 100, SP_LOG_SETTLE_MAX_MS = 1000 };
void sp_log_settle(uint64_t deadline_ns);

#endif
