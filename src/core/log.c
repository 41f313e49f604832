/* SPDX-License-Identifier: Apache-2.0 */
#include "core/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "core/cancel.h"

static struct {
    spanprof_log_level level;
    spanprof_log_function function;
    void *user;
} sink = {.level = SPANPROF_LOG_WARN};

/* Of the calling thread; NULL: none. */
static _Thread_local struct {
    spanprof_log_function function;
    void *user;
} redirection;

void sp_log_configure(spanprof_log_level level, spanprof_log_function function, void *user)
{
    sink.level = level == SPANPROF_LOG_DEFAULT ? SPANPROF_LOG_WARN : level;
    sink.function = function;
    sink.user = user;
}

bool sp_log_enabled(spanprof_log_level level)
{
    return level <= sink.level && sink.level != SPANPROF_LOG_OFF;
}

/* One write call a line, so that lines of several threads do not mix. */
static void write_to_stderr(spanprof_log_level level, const char *line)
{
    static const char *const names[] = {"", "", "error", "warning", "info", "debug"};
    char out[1100];
    int length = snprintf(out, sizeof out, "spanprof: %s: %s\n", names[level], line);
    if (length >= (int)sizeof out) {
        length = sizeof out - 1;
        out[length - 1] = '\n';
    }
    ssize_t written = write(STDERR_FILENO, out, (size_t)length);
    (void)written; /* nobody is left to tell */
}

void sp_log(spanprof_log_level level, const char *module, const char *format, ...)
{
    if (!sp_log_enabled(level))
        return;
    SP_UNCANCELLED; /* the caller may hold locks */
    char line[1024];
    int prefix = snprintf(line, sizeof line, "%s: ", module);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line + prefix, sizeof line - (size_t)prefix, format, arguments);
    va_end(arguments);
    if (redirection.function)
        redirection.function(level, line, redirection.user);
    else
        sp_log_deliver(level, line);
}

void sp_log_deliver(spanprof_log_level level, const char *line)
{
    if (sink.function)
        sink.function(level, line, sink.user);
    else
        write_to_stderr(level, line);
}

bool sp_log_has_function(void)
{
    return sink.function != NULL;
}

void sp_log_redirect(spanprof_log_function function, void *user)
{
    redirection.function = function;
    redirection.user = user;
}
