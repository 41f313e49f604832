/* SPDX-License-Identifier: Apache-2.0 */
#include "sdk/config.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "collect/attribute_filter.h"
#include "core/buffer.h"
#include "core/env.h"
#include "core/log.h"
#include "trace/propagators.h"

spanprof_status sp_options_check(const spanprof_options *options, spanprof_options *out,
                                 spanprof_error *error)
{
    static const spanprof_options zero;
    *out = zero;
    if (!options)
        return SPANPROF_OK;
    bool valid = options->struct_size != 0;
    if (valid && options->struct_size > sizeof *out) {
        const char *bytes = (const char *)options;
        for (uint32_t i = sizeof *out; i < options->struct_size; i++)
            valid &= bytes[i] == 0;
    }
    if (!valid) {
        if (error)
            *error = (spanprof_error){
                .status = SPANPROF_ERROR_INVALID_ARGUMENT,
                .message = options->struct_size
                               ? "spanprof_options has fields set that this version does not know"
                               : "spanprof_options.struct_size is 0: use SPANPROF_OPTIONS_INIT"};
        return SPANPROF_ERROR_INVALID_ARGUMENT;
    }
    memcpy(out, options, options->struct_size < sizeof *out ? options->struct_size : sizeof *out);
    out->struct_size = sizeof *out;
    return SPANPROF_OK;
}

void sp_config_log(const spanprof_options *options)
{
    static const char *const levels[] = {"default", "off", "error", "warn", "info", "debug"};
    sp_log_configure_queued(options->log_level, options->log, options->log_user);
    if (options->log_level != SPANPROF_LOG_DEFAULT)
        return;
    const char *name = sp_env("SPANPROF_LOG") ? "SPANPROF_LOG" : "OTEL_LOG_LEVEL";
    int level = sp_env_word(name, levels + 1, 5, SPANPROF_LOG_WARN - 1) + 1;
    sp_log_configure_queued((spanprof_log_level)level, options->log, options->log_user);
}

/* The value of a numeric setting: the option when it is in range (with a warning when not), else
 * the variable, else FALLBACK. */
static uint32_t number(const char *variable, uint32_t option, uint32_t minimum, uint32_t maximum,
                       uint32_t fallback)
{
    if (option >= minimum && option <= maximum)
        return option;
    uint32_t value = sp_env_u32(variable, minimum, maximum, fallback);
    if (option)
        sp_log_warn("config", "option for %s is %u, which is not from %u to %u: using %u", variable,
                    option, minimum, maximum, value);
    return value;
}

static int signal_number(const char *text)
{
    static const struct {
        const char *name;
        int number;
    } names[] = {{"PROF", SIGPROF}, {"VTALRM", SIGVTALRM}, {"STKFLT", SIGSTKFLT}, {"PWR", SIGPWR},
                 {"USR1", SIGUSR1}, {"USR2", SIGUSR2},     {"ALRM", SIGALRM}};
    const char *name = strncasecmp(text, "SIG", 3) == 0 ? text + 3 : text;
    for (size_t i = 0; i < SP_ARRAY_LENGTH(names); i++)
        if (strcasecmp(names[i].name, name) == 0)
            return names[i].number;
    uint64_t value;
    if (!sp_parse_u64(text, &value) || value == 0 || value >= (uint64_t)SIGRTMAX)
        return 0;
    /* Signals that the kernel or the C library need for themselves, or that report faults. */
    static const int reserved[] = {SIGKILL, SIGSTOP, SIGSEGV, SIGBUS, SIGILL, SIGFPE,
                                   SIGTRAP, SIGABRT, SIGCHLD, 32,     33};
    for (size_t i = 0; i < SP_ARRAY_LENGTH(reserved); i++)
        if ((int)value == reserved[i])
            return 0;
    return (int)value;
}

static int read_signal(const spanprof_options *options)
{
    const char *text = options->signal ? options->signal : sp_env("SPANPROF_SIGNAL");
    int number = text ? signal_number(text) : SIGPROF;
    if (number)
        return number;
    sp_log_warn("config", "SPANPROF_SIGNAL=%s is no signal that sampling may use: using SIGPROF",
                text);
    return SIGPROF;
}

/* A set of 1 << spanprof_profile_kind. */
static uint32_t read_profiles(const spanprof_options *options)
{
    static const char *const kinds[] = {"cpu", "wall", "alloc", "heap", "lock", "none"};
    const char *text = options->profiles ? options->profiles : sp_env("SPANPROF_PROFILES");
    return text ? sp_parse_word_list("SPANPROF_PROFILES", text, kinds, 6, 1) : 1;
}

static void read_wall(sp_config *config, const spanprof_options *options)
{
    static const char *const words[] = {"spans", "all"};
    const char *threads =
        options->wall_threads ? options->wall_threads : sp_env("SPANPROF_WALL_THREADS");
    config->wall_profiler = (sp_wall_config){
        .hz = number("SPANPROF_WALL_HZ", options->wall_hz, 1, SP_WALL_HZ_MAX, 20),
        .max_depth = config->cpu_engine.max_depth,
        .all_threads = sp_parse_word("SPANPROF_WALL_THREADS", threads, words, 2, 0) != 0,
    };
}

static bool read_alloc_mmap(const spanprof_options *options)
{
    static const char *const switches[] = {"0", "1"};
    const char *text = options->alloc_mmap ? options->alloc_mmap : sp_env("SPANPROF_ALLOC_MMAP");
    return sp_parse_word("SPANPROF_ALLOC_MMAP", text, switches, 2, 0) != 0;
}

static void read_allocations(sp_config *config, const spanprof_options *options)
{
    config->allocations = (sp_alloc_config){
        .period_bytes =
            number("SPANPROF_ALLOC_BYTES", options->alloc_bytes, 1, 1u << 30, 512 * 1024),
        .heap = config->heap,
        .maps = read_alloc_mmap(options),
        .live_max = number("SPANPROF_HEAP_SAMPLES", options->heap_samples, 1000, 10000000, 65536),
    };
}

static sp_engine read_engine(const spanprof_options *options)
{
    static const char *const words[] = {
        [SP_ENGINE_AUTO] = "auto", [SP_ENGINE_PERF] = "perf", [SP_ENGINE_TIMER] = "timer"};
    const char *text = options->engine ? options->engine : sp_env("SPANPROF_ENGINE");
    return (sp_engine)sp_parse_word("SPANPROF_ENGINE", text, words, 3, SP_ENGINE_AUTO);
}

/* Parse a share, as "0.1%" or "0.001". strtod is not used, because its decimal point depends on the
 * locale. 0 when TEXT is no share. */
static double parse_share(const char *text)
{
    double value = 0, unit = 1;
    bool digits = false, fraction = false;
    for (; (*text >= '0' && *text <= '9') || (*text == '.' && !fraction); text++) {
        if (*text == '.') {
            fraction = true;
            continue;
        }
        digits = true;
        value = value * 10 + (*text - '0');
        unit = fraction ? unit * 10 : unit;
    }
    if (*text == '%') {
        unit *= 100;
        text++;
    }
    return digits && *text == 0 && value / unit <= 1 ? value / unit : 0;
}

static double read_budget(const spanprof_options *options)
{
    const char *text = options->cpu_budget ? options->cpu_budget : sp_env("SPANPROF_CPU_BUDGET");
    double share = text ? parse_share(text) : 0;
    if (text && share == 0)
        sp_log_warn("config",
                    "SPANPROF_CPU_BUDGET=%s is no share above 0 and up to 100%%, such as 0.1%%: no "
                    "budget is kept",
                    text);
    return share;
}

static sp_symbolizer_options read_symbols(const spanprof_options *options)
{
    static const char *const styles[] = {[SP_DEMANGLE_SHORT] = "short",
                                         [SP_DEMANGLE_FOLDED] = "folded",
                                         [SP_DEMANGLE_FULL] = "full",
                                         [SP_DEMANGLE_NONE] = "none"};
    static const char *const switches[] = {"0", "1"};
    const char *style = options->demangle ? options->demangle : sp_env("SPANPROF_DEMANGLE");
    const char *ask = options->debuginfod ? options->debuginfod : sp_env("SPANPROF_DEBUGINFOD");
    return (sp_symbolizer_options){
        .style = (sp_demangle_style)sp_parse_word("SPANPROF_DEMANGLE", style, styles, 4,
                                                  SP_DEMANGLE_SHORT),
        .debuginfod = sp_parse_word("SPANPROF_DEBUGINFOD", ask, switches, 2, 0) != 0};
}

static sp_cpu_time read_cpu_time(const spanprof_options *options)
{
    static const char *const words[] = {
        [SP_CPU_TIME_NONE] = "none", [SP_CPU_TIME_ROOT] = "root", [SP_CPU_TIME_ALL] = "all"};
    const char *text = options->cpu_time ? options->cpu_time : sp_env("SPANPROF_CPU_TIME");
    return (sp_cpu_time)sp_parse_word("SPANPROF_CPU_TIME", text, words, 3, SP_CPU_TIME_NONE);
}

static bool read_timestamps(const spanprof_options *options)
{
    static const char *const switches[] = {"0", "1"};
    const char *text = options->timestamps ? options->timestamps : sp_env("SPANPROF_TIMESTAMPS");
    return sp_parse_word("SPANPROF_TIMESTAMPS", text, switches, 2, 0) != 0;
}

static bool read_sample_attributes(sp_config *config, const spanprof_options *options)
{
    const char *list = options->sample_attributes ? options->sample_attributes
                                                  : sp_env("SPANPROF_SAMPLE_ATTRIBUTES");
    if (!sp_attribute_list_takes_some(list))
        return true;
    config->cpu_engine.with_attributes = true;
    config->wall_profiler.with_attributes = true;
    config->sample_attributes = strdup(list);
    return config->sample_attributes != NULL;
}

static const char *read_switches(const spanprof_options *options)
{
    const char *path = options->switches ? options->switches : sp_env("SPANPROF_SWITCHES");
    return path && *path && strcasecmp(path, "off") != 0 ? path : NULL;
}

/* A limit. 0 is valid in the environment; as an option it means the default. */
static uint32_t limit(uint32_t option, const char *variable, uint32_t fallback)
{
    return option ? option : sp_env_u32(variable, 0, INT32_MAX, fallback);
}

/* The variables for spans have precedence over those for all signals. Events and links have only
 * variables of their own. */
static sp_span_limits read_limits(const spanprof_options *options)
{
    const sp_span_limits defaults = SP_SPAN_LIMITS_INIT;
    uint32_t attributes = limit(0, "OTEL_ATTRIBUTE_COUNT_LIMIT", defaults.attributes);
    uint32_t value_length = limit(0, "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT", defaults.value_length);
    return (sp_span_limits){
        .attributes =
            limit(options->attribute_count_limit, "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", attributes),
        .value_length = limit(options->attribute_value_length_limit,
                              "OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT", value_length),
        .events = limit(options->event_count_limit, "OTEL_SPAN_EVENT_COUNT_LIMIT", defaults.events),
        .links = limit(options->link_count_limit, "OTEL_SPAN_LINK_COUNT_LIMIT", defaults.links),
        .event_attributes = limit(options->event_attribute_count_limit,
                                  "OTEL_EVENT_ATTRIBUTE_COUNT_LIMIT", defaults.event_attributes),
        .link_attributes = limit(options->link_attribute_count_limit,
                                 "OTEL_LINK_ATTRIBUTE_COUNT_LIMIT", defaults.link_attributes),
    };
}

/* An address that cannot be used is not replaced by another, because everyone who can reach an
 * address may pull. */
static void read_pull(sp_config *config)
{
    const char *text = sp_env("SPANPROF_PULL");
    config->pull.request_ms = 5000;
    config->pull.window_ms = 60000;
    config->pull.kinds =
        (uint32_t)config->cpu << SP_PULL_CPU | (uint32_t)config->heap << SP_PULL_HEAP |
        (uint32_t)config->alloc << SP_PULL_ALLOCATIONS |
        (uint32_t)config->lock << SP_PULL_CONTENTIONS | (uint32_t)config->lock << SP_PULL_WAITS;
    if (!text || strcasecmp(text, "off") == 0 || sp_pull_address_parse(&config->pull.address, text))
        return;
    config->pull.address.length = 0;
    sp_log_warn("config",
                "SPANPROF_PULL=%s is no address with a port, as 127.0.0.1:6060 or [::1]:6060: "
                "using off",
                text);
}

/* Warn about variables that the contract names and this version does not have. */
static void warn_not_built(void)
{
    static const char *const variables[] = {"SPANPROF_SPAN_NAME", "OTEL_CONFIG_FILE",
                                            "OTEL_ENTITIES"};
    for (size_t i = 0; i < SP_ARRAY_LENGTH(variables); i++)
        if (sp_env(variables[i]))
            sp_log_warn("config", "%s is not built yet: ignored", variables[i]);
}

/* The next entry of the list at *TEXT, without blanks around it, and its length; *TEXT advances
 * past it. */
static const char *next_entry(const char **text, size_t *length)
{
    const char *entry = *text + strspn(*text, ", \t");
    *length = strcspn(entry, ",");
    *text = entry + *length;
    while (*length > 0 && (entry[*length - 1] == ' ' || entry[*length - 1] == '\t'))
        --*length;
    return entry;
}

/* Add what NAME, of LENGTH bytes, means to SET; false when it is not known or not built. */
static bool add_propagator(uint32_t *set, const char *name, size_t length)
{
    static const struct {
        const char *name;
        uint32_t value;
    } known[] = {{"tracecontext", SP_PROPAGATE_TRACE_CONTEXT},
                 {"baggage", SP_PROPAGATE_BAGGAGE},
                 {"none", 0}};
    for (size_t i = 0; i < SP_ARRAY_LENGTH(known); i++)
        if (strlen(known[i].name) == length && strncasecmp(known[i].name, name, length) == 0) {
            *set |= known[i].value;
            return true;
        }
    return false;
}

/* As OpenTelemetry specifies, duplicates count once, and an empty list counts as not set. Entries
 * that are unknown or not built are left out; when no entry is left, the default applies. */
uint32_t sp_config_propagators(const spanprof_options *options)
{
    static const char *const words[] = {"none", "tracecontext", "baggage", "tracecontext,baggage"};
    const char *text = options->propagators ? options->propagators : sp_env("OTEL_PROPAGATORS");
    sp_buffer unknown = SP_BUFFER_INIT(1000);
    uint32_t set = 0;
    bool any = false;
    size_t length;
    for (const char *entry; text && *(entry = next_entry(&text, &length));) {
        if (add_propagator(&set, entry, length))
            any = true;
        else
            sp_propagation_add_member(&unknown, entry, length);
    }
    if (!any)
        set = SP_PROPAGATE_TRACE_CONTEXT | SP_PROPAGATE_BAGGAGE;
    if (unknown.length)
        sp_log_warn("config", "OTEL_PROPAGATORS: %s: not built, or not known: using %s",
                    (const char *)unknown.data, words[set]);
    sp_buffer_deinit(&unknown);
    return set;
}

/* Set which spans get pyroscope.profile.id: those whose own id the link of a sample may have
 * (design of the join, docs/design/span-context.md). */
static void mark_spans(sp_config *config)
{
    bool network = config->export.http[SP_PROFILES].enabled;
    spanprof_link_scope scope = config->export.link_scope;
    if (scope == SPANPROF_LINK_SCOPE_DEFAULT)
        scope = network ? SPANPROF_LINK_SCOPE_ROOT : SPANPROF_LINK_SCOPE_INNERMOST;
    config->tracer.mark_roots = scope != SPANPROF_LINK_SCOPE_NONE;
    config->tracer.mark_all =
        scope == SPANPROF_LINK_SCOPE_INNERMOST || scope == SPANPROF_LINK_SCOPE_BOTH;
}

bool sp_config_init(sp_config *config, const spanprof_options *options)
{
    memset(config, 0, sizeof *config);
    if (!sp_export_config_init(&config->export, options))
        return false;
    uint32_t profiles = read_profiles(options);
    config->cpu = profiles & 1u << SPANPROF_PROFILE_CPU;
    config->wall = profiles & 1u << SPANPROF_PROFILE_WALL;
    config->alloc = profiles & 1u << SPANPROF_PROFILE_ALLOC;
    config->heap = profiles & 1u << SPANPROF_PROFILE_HEAP;
    config->lock = profiles & 1u << SPANPROF_PROFILE_LOCK;
    config->lock_period_ns = number("SPANPROF_LOCK_NS", options->lock_ns, 1, 1u << 30, 100000);
    read_allocations(config, options);
    config->cpu_engine.without_ticks = !config->cpu && !config->wall;
    config->cpu_engine.cpu_hz = number("SPANPROF_CPU_HZ", options->cpu_hz, 1, SP_CPU_HZ_MAX, 99);
    config->cpu_engine.engine = read_engine(options);
    config->cpu_engine.with_times = read_timestamps(options);
    config->cpu_engine.spares_calls = config->wall;
    config->cpu_budget = read_budget(options);
    config->cpu_engine.measure_cost = config->cpu_budget > 0;
    config->cpu_engine.max_depth = number("SPANPROF_MAX_DEPTH", options->max_depth, 2, 512, 128);
    config->cpu_engine.signal = read_signal(options);
    read_wall(config, options);
    config->window_ms = number("SPANPROF_WINDOW_MS", options->window_ms, 100, 10000, 10000);
    config->max_samples = number("SPANPROF_MAX_SAMPLES", options->max_samples, 1, 10000000, 10000);
    config->symbols = read_symbols(options);
    config->switches = read_switches(options);
    if (!read_sample_attributes(config, options)) {
        sp_config_deinit(config);
        return false;
    }
    config->tracer.queue_spans = sp_env_u32("OTEL_BSP_MAX_QUEUE_SIZE", 1, INT32_MAX, 2048);
    config->tracer.limits = read_limits(options);
    config->tracer.record = config->export.traces_enabled;
    sp_config_sampler(config, options);
    read_pull(config);
    config->tracer.cpu_time = read_cpu_time(options);
    mark_spans(config);
    warn_not_built();
    return true;
}

void sp_config_deinit(sp_config *config)
{
    sp_export_config_deinit(&config->export);
    free(config->sample_attributes);
    config->sample_attributes = NULL;
}
