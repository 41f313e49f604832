/* SPDX-License-Identifier: Apache-2.0 */
/* For tests that make files with tools: a temporary folder, and the warnings that were logged. */
#ifndef SP_TEST_FILES_H
#define SP_TEST_FILES_H

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/buffer.h"
#include "core/log.h"

static sp_buffer test_logged = SP_BUFFER_INIT(1 << 20);
static unsigned test_logged_count;
static char test_folder[] = "/tmp/spanprof-test-XXXXXX";

static inline void test_keep_line(spanprof_log_level level, const char *line, void *user)
{
    (void)user;
    if (level > SPANPROF_LOG_WARN)
        return;
    test_logged_count++;
    sp_buffer_printf(&test_logged, "%s\n", line);
}

static inline void test_forget_lines(void)
{
    test_logged_count = 0;
    sp_buffer_clear(&test_logged);
}

static inline bool test_was_logged(const char *text)
{
    return test_logged.length && strstr((const char *)test_logged.data, text);
}

static inline bool test_files_begin(void)
{
    sp_log_configure(SPANPROF_LOG_WARN, test_keep_line, NULL);
    return mkdtemp(test_folder) != NULL;
}

static inline void test_files_end(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", test_folder);
    if (system(command) != 0)
        abort();
    sp_buffer_deinit(&test_logged);
}

/* The path of NAME in the folder. It is in one of four static buffers, which are used in turn. */
static inline char *test_path(const char *name)
{
    static char paths[4][PATH_MAX];
    static unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, PATH_MAX, "%.100s/%.200s", test_folder, name);
    return path;
}

static inline void test_write(const char *path, const void *data, size_t length)
{
    FILE *file = fopen(path, "w");
    if (!file || fwrite(data, 1, length, file) != length || fclose(file) != 0)
        abort();
}

/* Run a command in the folder, without DEBUGINFOD_URLS. If the command fails, print a message and
 * skip the test. */
#define test_run(...)                                                                              \
    do {                                                                                           \
        if (!test_run_command(__VA_ARGS__))                                                        \
            skip();                                                                                \
    } while (0)

static inline __attribute__((format(printf, 1, 2))) bool test_run_command(const char *format, ...)
{
    char command[4 * PATH_MAX];
    size_t prefix =
        (size_t)snprintf(command, sizeof command, "unset DEBUGINFOD_URLS; cd %s; ", test_folder);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(command + prefix, sizeof command - prefix, format, arguments);
    va_end(arguments);
    int status = system(command);
    if (status != 0)
        printf("SKIPPED: \"%s\" ended with %d: a tool is missing (binutils, gcc, xz-utils, dwz)\n",
               command, status);
    return status == 0;
}

#endif
