/* SPDX-License-Identifier: Apache-2.0 */
#include "sdk/variables.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "core/compiler.h"
#include "core/log.h"
#include "core/spelling.h"

#define PREFIX      "SPANPROF_"
#define OTEL_PREFIX "OTEL_"

/* Names without the prefix: all that docs/settings.md lists, also those that are not built yet. */
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

/* Variables of OpenTelemetry that the SDK reads, or warns about because they are not built yet. */
#define OF_SIGNALS(name)                                                                           \
    "EXPORTER_OTLP_" name, "EXPORTER_OTLP_TRACES_" name, "EXPORTER_OTLP_PROFILES_" name
static const char *const known_otel[] = {
    "ATTRIBUTE_COUNT_LIMIT",
    "ATTRIBUTE_VALUE_LENGTH_LIMIT",
    "BSP_EXPORT_TIMEOUT",
    "BSP_MAX_EXPORT_BATCH_SIZE",
    "BSP_MAX_QUEUE_SIZE",
    "BSP_SCHEDULE_DELAY",
    "CONFIG_FILE",
    "ENTITIES",
    "EVENT_ATTRIBUTE_COUNT_LIMIT",
    OF_SIGNALS("CERTIFICATE"),
    OF_SIGNALS("CLIENT_CERTIFICATE"),
    OF_SIGNALS("CLIENT_KEY"),
    OF_SIGNALS("COMPRESSION"),
    OF_SIGNALS("ENDPOINT"),
    OF_SIGNALS("HEADERS"),
    OF_SIGNALS("INSECURE"),
    OF_SIGNALS("PROTOCOL"),
    OF_SIGNALS("TIMEOUT"),
    "LINK_ATTRIBUTE_COUNT_LIMIT",
    "LOG_LEVEL",
    "PROPAGATORS",
    "RESOURCE_ATTRIBUTES",
    "SDK_DISABLED",
    "SERVICE_NAME",
    "SPAN_ATTRIBUTE_COUNT_LIMIT",
    "SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT",
    "SPAN_EVENT_COUNT_LIMIT",
    "SPAN_LINK_COUNT_LIMIT",
    "TRACES_EXPORTER",
    "TRACES_SAMPLER",
    "TRACES_SAMPLER_ARG",
};

/* The name in NAMES that is most similar to NAME and differs in less than FAR_OFF letters. NULL:
 * none does. */
static const char *nearest(const char *name, size_t length, const char *const *names, size_t count,
                           uint32_t far_off)
{
    sp_spelling spelling = {.text = name, .length = length, .far_off = far_off};
    for (size_t i = 0; i < count; i++)
        sp_spelling_try(&spelling, names[i]);
    return spelling.found;
}

/* The first of NAMES that is NAME, or ends in it as a word: CPU_HZ for HZ. */
static const char *longer(const char *name, size_t length, const char *const *names, size_t count)
{
    for (size_t i = 0; length && i < count; i++) {
        size_t all = strlen(names[i]);
        if (all >= length && memcmp(names[i] + all - length, name, length) == 0 &&
            (all == length || names[i][all - length - 1] == '_'))
            return names[i];
    }
    return NULL;
}

static bool is_one_of(const char *name, size_t length, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strlen(names[i]) == length && memcmp(names[i], name, length) == 0)
            return true;
    return false;
}

/* Warn when NAME, a variable without its prefix, is not known. The variable's value is not shown.
 */
static void check(const char *name)
{
    size_t length = strcspn(name, "="), count = SP_ARRAY_LENGTH(known);
    if (length >= SP_SPELLING_LONGEST || strncmp(name, "TEST_", strlen("TEST_")) == 0 ||
        is_one_of(name, length, known, count))
        return;
    const char *prefix = PREFIX;
    const char *meant = nearest(name, length, known, count, sp_spelling_far(length));
    if (!meant)
        meant = longer(name, length, known, count);
    if (!meant) {
        meant = longer(name, length, known_otel, SP_ARRAY_LENGTH(known_otel));
        prefix = OTEL_PREFIX;
    }
    if (meant)
        sp_log_warn("config", PREFIX "%.*s is no variable of spanprof: %s%s is", (int)length, name,
                    prefix, meant);
    else
        sp_log_warn("config", PREFIX "%.*s is no variable of spanprof: it does nothing",
                    (int)length, name);
}

/* The same for OTEL_…. A name that is not similar to one of ours gets no warning, because it is
 * another program's; so does OTEL_BLRP_…, of logs, although it is similar to OTEL_BSP_…. */
static void check_otel(const char *name)
{
    size_t length = strcspn(name, "="), count = SP_ARRAY_LENGTH(known_otel);
    if (length >= SP_SPELLING_LONGEST || strncmp(name, "BLRP_", strlen("BLRP_")) == 0 ||
        is_one_of(name, length, known_otel, count))
        return;
    const char *meant = nearest(name, length, known_otel, count, 3);
    if (meant)
        sp_log_warn("config", OTEL_PREFIX "%.*s is no variable of spanprof: " OTEL_PREFIX "%s is",
                    (int)length, name, meant);
}

void sp_variables_check(void)
{
    static bool checked;
    for (char **variable = environ; !checked && variable && *variable; variable++) {
        if (strncmp(*variable, PREFIX, strlen(PREFIX)) == 0)
            check(*variable + strlen(PREFIX));
        else if (strncmp(*variable, OTEL_PREFIX, strlen(OTEL_PREFIX)) == 0)
            check_otel(*variable + strlen(OTEL_PREFIX));
    }
    checked = true;
}
