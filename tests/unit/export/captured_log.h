/* SPDX-License-Identifier: Apache-2.0 */
/* Captures the log of one test: call capture_log in the setup, and later log_count. Threads: one.
 */
#ifndef TESTS_UNIT_EXPORT_CAPTURED_LOG_H
#define TESTS_UNIT_EXPORT_CAPTURED_LOG_H

#include <stdio.h>
#include <string.h>

#include "core/log.h"

static char log_lines[64][1100];
static unsigned log_length;

static void log_line(spanprof_log_level level, const char *line, void *user)
{
    (void)level;
    (void)user;
    if (log_length < SP_ARRAY_LENGTH(log_lines))
        snprintf(log_lines[log_length++], sizeof log_lines[0], "%s", line);
}

static inline void capture_log(void)
{
    log_length = 0;
    sp_log_configure(SPANPROF_LOG_WARN, log_line, NULL);
}

/* How many lines contain TEXT. */
static inline unsigned log_count(const char *text)
{
    unsigned count = 0;
    for (unsigned i = 0; i < log_length; i++)
        count += strstr(log_lines[i], text) != NULL;
    return count;
}

#endif
