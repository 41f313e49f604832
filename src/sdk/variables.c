/* SPDX-License-Identifier: Apache-2.0 */
#include "sdk/variables.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "core/compiler.h"
#include "core/log.h"

#define PREFIX "SPANPROF_"

/* Behind the prefix; all that docs/settings.md has, and what is named there as not built. */
static const char *const known[] = {
    "ALLOC_BYTES",
    "ALLOC_MMAP",
    "CPU_BUDGET",
    "CPU_HZ",
    "CPU_TIME",
    "DEBUGINFOD",
    "DEMANGLE",
    "ENGINE",
    "EXPORTER",
    "FILE",
    "FILE_FORMAT",
    "FILE_MAX_BYTES",
    "FILE_MAX_PARTS",
    "HEAP_SAMPLES",
    "LINK_SCOPE",
    "LOCK_NS",
    "LOG",
    "MAX_DEPTH",
    "MAX_SAMPLES",
    "PROFILES",
    "PULL",
    "PYROSCOPE_HEADERS",
    "PYROSCOPE_URL",
    "RUN",
    "SAMPLE_ATTRIBUTES",
    "SIGNAL",
    "SPAN_NAME",
    "SPAN_PROCESSOR",
    "SPOOL",
    "SWITCHES",
    "THREAD_ATTRIBUTES",
    "TIMESTAMPS",
    "WALL_HZ",
    "WALL_THREADS",
    "WINDOW_MS",
};

enum { NAME_BYTES = 64 };

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* How many letters are to be added, removed or changed (Levenshtein). Both are shorter than
 * NAME_BYTES. */
static uint32_t distance(const char *a, size_t a_length, const char *b)
{
    uint32_t row[NAME_BYTES + 1];
    size_t b_length = strlen(b);
    for (uint32_t j = 0; j <= b_length; j++)
        row[j] = j;
    for (uint32_t i = 1; i <= a_length; i++) {
        uint32_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            uint32_t changed = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            row[j] = least(changed, least(row[j], row[j - 1]) + 1);
        }
    }
    return row[b_length];
}

/* NULL: none is near. */
static const char *nearest(const char *name, size_t length)
{
    const char *found = NULL;
    uint32_t least_so_far = (uint32_t)length / 3 + 2;
    for (size_t i = 0; i < SP_ARRAY_LENGTH(known); i++) {
        uint32_t far = distance(name, length, known[i]);
        if (far < least_so_far) {
            least_so_far = far;
            found = known[i];
        }
    }
    return found;
}

static bool is_known(const char *name, size_t length)
{
    for (size_t i = 0; i < SP_ARRAY_LENGTH(known); i++)
        if (strlen(known[i]) == length && memcmp(known[i], name, length) == 0)
            return true;
    return strncmp(name, "TEST_", strlen("TEST_")) == 0;
}

/* NAME behind the prefix; its value is not shown. */
static void check(const char *name)
{
    size_t length = strcspn(name, "=");
    if (length >= NAME_BYTES || is_known(name, length))
        return;
    const char *meant = nearest(name, length);
    if (meant)
        sp_log_warn("config", PREFIX "%.*s is no variable of spanprof: " PREFIX "%s is",
                    (int)length, name, meant);
    else
        sp_log_warn("config", PREFIX "%.*s is no variable of spanprof: it does nothing",
                    (int)length, name);
}

void sp_variables_check(void)
{
    static bool checked;
    for (char **variable = environ; !checked && variable && *variable; variable++)
        if (strncmp(*variable, PREFIX, strlen(PREFIX)) == 0)
            check(*variable + strlen(PREFIX));
    checked = true;
}
