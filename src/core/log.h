/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of the SDK. One line each: "MODULE: what was tried, on what: why it failed". Levels are
 * spanprof_log_level. Threads: any. Signals: never (a handler increments a counter, which the
 * collector thread reports). */
#ifndef SP_CORE_LOG_H
#define SP_CORE_LOG_H

#include <spanprof/sdk.h>
#include "core/compiler.h"

/* Choose level and sink; DEFAULT is warn, a NULL function is standard error. Each thread delivers
 * its own lines, unless there is a thread that takes lines from the queue. Other threads may log
 * meanwhile: they always call a function with the user that belongs to it. */
void sp_log_configure(spanprof_log_level level, spanprof_log_function function, void *user);
/* The same for the SDK in a host: from now on lines go through the queue (log_queue.h), also after
 * the SDK has stopped. */
void sp_log_configure_queued(spanprof_log_level level, spanprof_log_function function, void *user);
bool sp_log_enabled(spanprof_log_level level);
void sp_log(spanprof_log_level level, const char *module, const char *format, ...) SP_PRINTF(3, 4);

/* Write LINE to standard error on the calling thread, unless the host has a log function, or LEVEL
 * is not shown. For a forked child, in which no thread of the SDK runs. */
void sp_log_say_alone(spanprof_log_level level, const char *line);

/* Deliver LINE now, by the calling thread: to the host's function, or to standard error. For code
 * that takes lines from the queue (log_queue.h). */
void sp_log_deliver(spanprof_log_level level, const char *line);

#define sp_log_error(module, ...) sp_log(SPANPROF_LOG_ERROR, module, __VA_ARGS__)
#define sp_log_warn(module, ...)  sp_log(SPANPROF_LOG_WARN, module, __VA_ARGS__)
#define sp_log_info(module, ...)  sp_log(SPANPROF_LOG_INFO, module, __VA_ARGS__)
#define sp_log_debug(module, ...) sp_log(SPANPROF_LOG_DEBUG, module, __VA_ARGS__)

#endif
