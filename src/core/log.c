/* SPDX-License-Identifier: Apache-2.0 */
#include "core/log.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/at_fork.h"
#include "core/atomic.h"
#include "core/cancel.h"
#include "core/lock.h"
#include "core/log_queue.h"
#include "core/utf8.h"

enum { WRITABLE_MS = 100 };

/* Where lines go: the host's function with its user, or standard error. */
typedef struct log_target {
    spanprof_log_function function;
    void *user;
} log_target;

static struct {
    _Atomic spanprof_log_level
        level; /* any thread may read it, also while the next start changes it */
    sp_lock lock;
    log_target target; /* under the lock: a function is called with its own user */
} sink = {.level = SPANPROF_LOG_WARN, .lock = SP_LOCK_AT(SP_LOCK_LOG_SINK)};

/* In a forked child: another thread of the parent may have held the lock. */
static void init_lock(void)
{
    sp_lock_init(&sink.lock, SP_LOCK_LOG_SINK);
}

SP_AT_FORK(SP_LOCK_LOG_SINK, NULL, NULL, init_lock);

static log_target current_target(void)
{
    sp_lock_take(&sink.lock);
    log_target target = sink.target;
    sp_lock_give(&sink.lock);
    return target;
}

static void configure(bool queued, spanprof_log_level level, log_target target)
{
    sp_lock_take(&sink.lock);
    sp_log_queue_set_begun(queued);
    sp_store_relaxed(&sink.level, level == SPANPROF_LOG_DEFAULT ? SPANPROF_LOG_WARN : level);
    sink.target = target;
    sp_lock_give(&sink.lock);
}

void sp_log_configure(spanprof_log_level level, spanprof_log_function function, void *user)
{
    configure(false, level, (log_target){function, user});
}

void sp_log_configure_queued(spanprof_log_level level, spanprof_log_function function, void *user)
{
    configure(true, level, (log_target){function, user});
}

bool sp_log_enabled(spanprof_log_level level)
{
    spanprof_log_level loudest = sp_load_relaxed(&sink.level);
    return level <= loudest && loudest != SPANPROF_LOG_OFF;
}

/* Standard error may be a pipe that is full, because its reader sleeps. A pipe that poll reports as
 * writable has room for PIPE_BUF bytes, so that the write of a line does not block. */
static bool takes_a_line(int fd)
{
    struct pollfd writable = {.fd = fd, .events = POLLOUT};
    return poll(&writable, 1, WRITABLE_MS) == 1 && (writable.revents & POLLOUT);
}

/* One write call for each line, so that lines of several threads do not mix. */
static void write_to_stderr(spanprof_log_level level, const char *line)
{
    static const char *const names[] = {"", "", "error", "warning", "info", "debug"};
    char out[1100];
    int length = snprintf(out, sizeof out, "spanprof: %s: %s\n", names[level], line);
    if (length >= (int)sizeof out) {
        length = sizeof out - 1;
        out[length - 1] = '\n';
    }
    ssize_t written = takes_a_line(STDERR_FILENO) ? write(STDERR_FILENO, out, (size_t)length) : 0;
    (void)written; /* a failure to log cannot be logged */
}

static void deliver(log_target target, spanprof_log_level level, const char *line)
{
    if (target.function)
        target.function(level, line, target.user);
    else
        write_to_stderr(level, line);
}

void sp_log(spanprof_log_level level, const char *module, const char *format, ...)
{
    if (!sp_log_enabled(level))
        return;
    SP_UNCANCELLED;                                            /* the caller may hold locks */
    char text[SP_LOG_LINE_BYTES + 4], line[SP_LOG_LINE_BYTES]; /* sp_utf8_show cuts a longer text */
    int prefix = snprintf(text, sizeof text, "%s: ", module);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + prefix, sizeof text - (size_t)prefix, format, arguments);
    va_end(arguments);
    /* The text may contain names of spans, answers of receivers and values of the environment. */
    sp_utf8_show(line, sizeof line, text, strlen(text));
    /* Looked up before the push: if the queue is opened in between, the line still goes to the
     * target that was set before. */
    log_target target = current_target();
    if (!sp_log_queue_push(level, line))
        deliver(target, level, line);
}

void sp_log_say_alone(spanprof_log_level level, const char *line)
{
    if (sp_log_enabled(level) && !current_target().function)
        write_to_stderr(level, line);
}

void sp_log_deliver(spanprof_log_level level, const char *line)
{
    deliver(current_target(), level, line);
}
