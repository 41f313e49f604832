/* SPDX-License-Identifier: Apache-2.0 */
/* The export configuration. For each setting of OTLP: the option, else the signal's own variable
 * (OTEL_EXPORTER_OTLP_TRACES_…), else the general one (OTEL_EXPORTER_OTLP_…), else the default. A
 * value that cannot be used counts as not set, after one warning. Nothing replaces an endpoint that
 * cannot be used: nothing is sent then. Values of header variables are never shown. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/env.h"
#include "core/log.h"
#include "core/run_files.h"
#include "export/export_internal.h"

static const char default_endpoint[] = "http://localhost:4318";
static const char default_grpc_endpoint[] = "http://localhost:4317";

enum { DEFAULT_TIMEOUT_MS = 10000, DEFAULT_BATCH_TIMEOUT_MS = 30000, NAME_MAX_BYTES = 64 };

/* The settings of one signal, or of both, from variables and options. Strings are borrowed from
 * them. */
typedef struct otlp_settings {
    const char *endpoint; /* NULL: none can be used, which a warning reported */
    const char *scheme;   /* for an endpoint that has none */
    bool verbatim;        /* endpoint is a signal's own: no path is added */
    sp_otlp_protocol protocol;
    bool insecure; /* gRPC without TLS, where the endpoint has no scheme */
    const char *headers;
    bool gzip;
    uint32_t timeout_ms;
    const char *ca_file;
    const char *client_key;
    const char *client_certificate;
} otlp_settings;

/* ---- OTLP over HTTP ---- */

/* Returns TEXT, the value of NAME, when data can be sent to it. Else NULL, and no default takes its
 * place: data must not go to a host that the user did not name. A TEXT without a scheme, which gets
 * SCHEME, and one that cannot be used are named in one warning. */
static const char *usable_endpoint(const char *name, const char *text, const char *scheme)
{
    const char *why;
    sp_endpoint_kind kind = sp_endpoint_check(text, &why);
    if (kind == SP_ENDPOINT_GOOD)
        return text;
    char *allocated = sp_endpoint_shown(text);
    const char *shown = allocated ? allocated : "?";
    if (kind == SP_ENDPOINT_BARE)
        sp_log_warn("config", "%s=%s %s: using %s%s", name, shown, why, scheme, shown);
    else
        sp_log_warn("config", "%s=%s %s: nothing is sent there, or anywhere in its place", name,
                    shown, why);
    free(allocated);
    return kind == SP_ENDPOINT_BARE ? text : NULL;
}

/* The full name of a variable for INFIX ("" or "TRACES_"). */
static const char *variable(char out[NAME_MAX_BYTES], const char *infix, const char *suffix)
{
    snprintf(out, NAME_MAX_BYTES, "OTEL_EXPORTER_OTLP_%s%s", infix, suffix);
    return out;
}

/* The scheme of an endpoint without one. For gRPC the specification requires TLS, unless the
 * variable INSECURE is set. */
static const char *scheme_of(const otlp_settings *settings)
{
    bool secure = settings->protocol == SP_PROTOCOL_GRPC && !settings->insecure;
    return secure ? "https://" : "http://";
}

static void read_endpoint(otlp_settings *out, const char *infix)
{
    char name[NAME_MAX_BYTES];
    const char *text = sp_env(variable(name, infix, "ENDPOINT"));
    if (!text)
        return;
    out->scheme = scheme_of(out);
    out->endpoint = usable_endpoint(name, text, out->scheme);
    out->verbatim = *infix != 0;
}

/* Headers are parsed here only to warn once about entries that cannot be used. */
static void check_headers(const char *text, const char *name)
{
    struct curl_slist *list = NULL;
    sp_headers_parse(&list, text, name);
    if (list)
        curl_slist_free_all(list);
}

static void read_headers(otlp_settings *out, const char *infix)
{
    char name[NAME_MAX_BYTES];
    const char *text = sp_env(variable(name, infix, "HEADERS"));
    if (!text)
        return;
    check_headers(text, name);
    out->headers = text;
}

static void read_file_name(const char **out, const char *infix, const char *suffix)
{
    char name[NAME_MAX_BYTES];
    const char *text = sp_env(variable(name, infix, suffix));
    if (!text)
        return;
    if (access(text, R_OK) == 0)
        *out = text;
    else
        sp_log_warn("config", "%s=%s cannot be read (%s): using %s", name, text, strerror(errno),
                    *out ? *out : "none");
}

static bool gzip_from_word(const char *name, const char *text, bool fallback)
{
    static const char *const words[] = {"none", "gzip"};
    return sp_parse_word(name, text, words, 2, fallback) == 1;
}

static sp_otlp_protocol protocol_from_word(const char *name, const char *text,
                                           sp_otlp_protocol fallback)
{
    static const char *const words[] = {"http/protobuf", "grpc", "http/json"};
    return (sp_otlp_protocol)sp_parse_word(name, text, words, SP_ARRAY_LENGTH(words),
                                           (int)fallback);
}

static void read_protocol(otlp_settings *out, const char *infix, const spanprof_options *options)
{
    char name[NAME_MAX_BYTES];
    if (!options->protocol) {
        variable(name, infix, "PROTOCOL");
        out->protocol = protocol_from_word(name, sp_env(name), out->protocol);
    }
    if (sp_env(variable(name, infix, "INSECURE")))
        out->insecure = sp_env_bool(name);
}

/* Overwrite OUT with the values of the variables with INFIX. A variable that an option overrides is
 * not read. */
static void read_settings(otlp_settings *out, const char *infix, const spanprof_options *options)
{
    char name[NAME_MAX_BYTES];
    read_protocol(out, infix, options);
    if (!options->endpoint)
        read_endpoint(out, infix);
    if (!options->headers)
        read_headers(out, infix);
    if (!options->compression) {
        variable(name, infix, "COMPRESSION");
        out->gzip = gzip_from_word(name, sp_env(name), out->gzip);
    }
    if (!options->timeout_ms)
        out->timeout_ms =
            sp_env_u32(variable(name, infix, "TIMEOUT"), 0, INT32_MAX, out->timeout_ms);
    read_file_name(&out->ca_file, infix, "CERTIFICATE");
    read_file_name(&out->client_key, infix, "CLIENT_KEY");
    read_file_name(&out->client_certificate, infix, "CLIENT_CERTIFICATE");
}

/* NULL stays NULL. False when memory is short. */
static bool copy_text(char **out, const char *text)
{
    *out = text ? strdup(text) : NULL;
    return !text || *out;
}

static char *url_of(const otlp_settings *settings, sp_telemetry_signal signal)
{
    const char *endpoint = settings->endpoint;
    if (settings->protocol == SP_PROTOCOL_GRPC)
        return sp_endpoint_grpc(endpoint == default_endpoint ? default_grpc_endpoint : endpoint,
                                settings->scheme, signal);
    return settings->verbatim ? sp_endpoint_verbatim(endpoint, settings->scheme)
                              : sp_endpoint_from_base(endpoint, settings->scheme, signal);
}

static bool fill_target(sp_http_target *target, const otlp_settings *settings,
                        sp_telemetry_signal signal)
{
    target->enabled = settings->endpoint != NULL;
    if (!target->enabled)
        return true;
    target->protocol = settings->protocol;
    target->gzip = settings->gzip;
    target->timeout_ms = settings->timeout_ms;
    target->url = url_of(settings, signal);
    return target->url && copy_text(&target->headers, settings->headers) &&
           copy_text(&target->ca_file, settings->ca_file) &&
           copy_text(&target->client_key, settings->client_key) &&
           copy_text(&target->client_certificate, settings->client_certificate);
}

static otlp_settings settings_from_options(const spanprof_options *options)
{
    otlp_settings settings = {
        .endpoint = default_endpoint,
        .headers = options->headers,
        .gzip = gzip_from_word("options.compression", options->compression, true),
        .timeout_ms = options->timeout_ms ? options->timeout_ms : DEFAULT_TIMEOUT_MS,
        .protocol =
            protocol_from_word("options.protocol", options->protocol, SP_PROTOCOL_HTTP_PROTOBUF)};
    if (options->headers)
        check_headers(options->headers, "options.headers");
    return settings;
}

/* Call it after the variables were read, because they may set the protocol, which decides the
 * scheme. */
static void use_endpoint_option(otlp_settings *settings, const spanprof_options *options)
{
    settings->scheme = scheme_of(settings);
    if (options->endpoint)
        settings->endpoint =
            usable_endpoint("options.endpoint", options->endpoint, settings->scheme);
}

/* Warn when the general endpoint has the path of a signal. The specification adds each signal's
 * path to it all the same, so this is most likely a mistake. */
static void warn_of_path(const otlp_settings *general, const spanprof_options *options)
{
    if (!general->endpoint || general->protocol == SP_PROTOCOL_GRPC)
        return;
    char *base = strdup(general->endpoint), *shown = sp_endpoint_shown(general->endpoint);
    if (base && shown && sp_endpoint_cut_path(base) != SP_ENDPOINT_OF_BOTH)
        sp_log_warn("config",
                    "%s=%s is a base, to which the path of each signal is added: leave the path "
                    "out, or give each signal its own (OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, …)",
                    options->endpoint ? "options.endpoint" : "OTEL_EXPORTER_OTLP_ENDPOINT", shown);
    free(base);
    free(shown);
}

/* Warn when the own endpoint of a signal has no path. Requests go to "/" then, as the specification
 * requires, and nearly no receiver takes them there. A "/" at the end says that it is intended. */
static void warn_of_no_path(const otlp_settings *own, const char *infix, sp_telemetry_signal signal)
{
    if (!own->endpoint || !own->verbatim || own->protocol == SP_PROTOCOL_GRPC)
        return;
    char name[NAME_MAX_BYTES], *shown = sp_endpoint_shown(own->endpoint);
    const char *path = sp_endpoint_missing_path(own->endpoint, signal);
    if (path && shown)
        sp_log_warn("config",
                    "%s=%s has no path, and none is added to the endpoint of one signal: requests "
                    "go to /; most receivers want them at /%s",
                    variable(name, infix, "ENDPOINT"), shown, path);
    free(shown);
}

static bool read_http(sp_export_config *config, const spanprof_options *options, bool spans)
{
    static const char *const infixes[] = {"TRACES_", "PROFILES_"};
    otlp_settings general = settings_from_options(options);
    read_settings(&general, "", options);
    use_endpoint_option(&general, options);
    warn_of_path(&general, options);
    for (int signal = 0; signal < 2; signal++) {
        if (signal == SP_TRACES && !spans)
            continue;
        otlp_settings settings = general;
        read_settings(&settings, infixes[signal], options);
        warn_of_no_path(&settings, infixes[signal], (sp_telemetry_signal)signal);
        if (!fill_target(&config->http[signal], &settings, (sp_telemetry_signal)signal))
            return false;
    }
    return true;
}

/* ---- Everything else ---- */

typedef enum destination_word { WORD_OTLP, WORD_FILE, WORD_NONE } destination_word;

/* Returns a set of 1 << destination_word, without NONE. It is empty when the list names no
 * destination that is built: data must not go to a host that the user did not name. */
static uint32_t read_destinations(const spanprof_options *options)
{
    static const char *const words[] = {"otlp", "file", "none"};
    const uint32_t built = 1u << WORD_OTLP | 1u << WORD_FILE;
    const char *text = options->exporter ? options->exporter : sp_env("SPANPROF_EXPORTER");
    if (!text)
        return 1u << WORD_OTLP;
    uint32_t set = sp_parse_word_list("SPANPROF_EXPORTER", text, words, SP_ARRAY_LENGTH(words), 0);
    if (set == 0 && *text)
        sp_log_warn("config",
                    "SPANPROF_EXPORTER=%s names no destination: nothing is sent, and no "
                    "file is written",
                    text);
    if ((set & 1u << WORD_NONE) && (set & built))
        sp_log_warn("config", "SPANPROF_EXPORTER=%s names none and others: using the others", text);
    return set & built;
}

/* SPANPROF_FILE alone writes no files. There is no warning when the program chose exporter or file
 * itself, or when the exporter is not just OTLP: then it is intended. */
static void warn_of_unused_file(uint32_t destinations, const spanprof_options *options)
{
    const char *prefix = sp_env("SPANPROF_FILE");
    if (!prefix || options->exporter || options->file || destinations != 1u << WORD_OTLP)
        return;
    sp_log_warn("config",
                "SPANPROF_FILE=%s has no effect: files are written when SPANPROF_EXPORTER has file "
                "in it (SPANPROF_EXPORTER=file)",
                prefix);
}

/* OTEL_TRACES_EXPORTER may switch off the spans of OTLP. */
static bool read_traces_exporter(void)
{
    static const char *const words[] = {"otlp", "none"};
    const char *text = sp_env("OTEL_TRACES_EXPORTER");
    return !text || (sp_parse_word_list("OTEL_TRACES_EXPORTER", text, words, 2, 1) & 1);
}

/* The value of OPTION, else that of the variable. Returns 0, which is no limit, when neither is set
 * or the value is out of range. */
static uint32_t read_limit(uint32_t option, const char *option_name, const char *variable_name,
                           uint32_t lowest, uint32_t highest)
{
    uint32_t value = option ? option : sp_env_u32(variable_name, 0, UINT32_MAX, 0);
    if (value == 0 || (value >= lowest && value <= highest))
        return value;
    sp_log_warn("config", "%s=%u is not from %u to %u: going on without this limit",
                option ? option_name : variable_name, value, lowest, highest);
    return 0;
}

/* A file is limited to 2 GiB at most, because the command reads no larger ones. */
static void read_file_limits(sp_export_config *config, const spanprof_options *options)
{
    enum { SMALLEST = 4 * 1024, FEWEST = 2, MOST = 9999 };
    const uint32_t largest = UINT32_C(2) << 30;
    config->file_maximum_bytes =
        read_limit(options->file_maximum_bytes, "options.file_maximum_bytes",
                   "SPANPROF_FILE_MAX_BYTES", SMALLEST, largest);
    config->file_maximum_parts =
        read_limit(options->file_maximum_parts, "options.file_maximum_parts",
                   "SPANPROF_FILE_MAX_PARTS", FEWEST, MOST);
}

/* The length of PREFIX without ".traces.jsonl" or the like, which users may take for a part of the
 * prefix; 0 when PREFIX does not end so. */
static size_t length_without_ending(const char *prefix)
{
    size_t length = strlen(prefix);
    for (uint8_t i = 0; i < SP_RUN_FILE_SIGNALS * SP_RUN_FILE_FORMATS; i++) {
        char ending[SP_RUN_FILE_ENDING];
        const sp_run_file file = {.signal = i / SP_RUN_FILE_FORMATS,
                                  .format = i % SP_RUN_FILE_FORMATS};
        size_t count = strlen(sp_run_file_ending(ending, file));
        if (length > count && strcmp(prefix + length - count, ending) == 0)
            return length - count;
    }
    return 0;
}

/* NAME: of the variable or option that PREFIX comes from. */
static void warn_of_odd_prefix(const char *name, const char *prefix, sp_otlp_format format)
{
    const char *ending = format == SP_OTLP_JSON ? ".traces.jsonl" : ".traces.binpb";
    size_t length = strlen(prefix), without = length_without_ending(prefix);
    if (without)
        sp_log_warn("config", "%s=%s is a prefix, so a file is called %s%s; set it to %.*s", name,
                    prefix, prefix, ending, (int)without, prefix);
    else if (length && prefix[length - 1] == '/')
        sp_log_warn("config",
                    "%s=%s ends with a slash, so the files are hidden ones, %s%s; add a name, such "
                    "as %sapp",
                    name, prefix, prefix, ending, prefix);
}

static bool read_file(sp_export_config *config, const spanprof_options *options)
{
    static const char *const formats[] = {"jsonl", "proto"};
    const char *prefix = options->file ? options->file : sp_env("SPANPROF_FILE");
    const char *format =
        options->file_format ? options->file_format : sp_env("SPANPROF_FILE_FORMAT");
    read_file_limits(config, options);
    config->file_enabled = true;
    config->file_format = sp_parse_word("SPANPROF_FILE_FORMAT", format, formats, 2, 0) == 0
                              ? SP_OTLP_JSON
                              : SP_OTLP_PROTOBUF;
    if (prefix)
        warn_of_odd_prefix(options->file ? "options.file" : "SPANPROF_FILE", prefix,
                           config->file_format);
    return copy_text(&config->file_prefix, prefix ? prefix : "spanprof");
}

static bool read_spool(sp_export_config *config, const spanprof_options *options)
{
    const char *spool = options->spool ? options->spool : sp_env("SPANPROF_SPOOL");
    return !spool || !*spool || strcmp(spool, "off") == 0 || copy_text(&config->spool, spool);
}

static void read_batch(sp_export_config *config, const spanprof_options *options)
{
    static const char *const processors[] = {"batch", "simple"};
    const char *processor =
        options->span_processor ? options->span_processor : sp_env("SPANPROF_SPAN_PROCESSOR");
    config->spans_at_once =
        sp_parse_word("SPANPROF_SPAN_PROCESSOR", processor, processors, 2, 0) == 1;
    uint64_t queue = 2048;
    const char *text =
        sp_env("OTEL_BSP_MAX_QUEUE_SIZE"); /* the tracer reads it, too, and warns about it */
    if (text && (!sp_parse_u64(text, &queue) || queue == 0 || queue > INT32_MAX))
        queue = 2048;
    config->batch_delay_ms = sp_env_u32("OTEL_BSP_SCHEDULE_DELAY", 0, INT32_MAX, 5000);
    config->batch_spans = sp_env_u32("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", 1, INT32_MAX,
                                     (uint32_t)sp_min_u64(512, queue));
    if (config->batch_spans > queue) {
        sp_log_warn("config",
                    "OTEL_BSP_MAX_EXPORT_BATCH_SIZE=%u is more than the queue holds: using %u",
                    config->batch_spans, (uint32_t)queue);
        config->batch_spans = (uint32_t)queue;
    }
    uint32_t limit = sp_env_u32("OTEL_BSP_EXPORT_TIMEOUT", 0, INT32_MAX, DEFAULT_BATCH_TIMEOUT_MS);
    sp_http_target *traces = &config->http[SP_TRACES];
    if (limit && (traces->timeout_ms == 0 || traces->timeout_ms > limit))
        traces->timeout_ms = limit;
}

static void read_shape(sp_export_config *config, const spanprof_options *options)
{
    static const char *const scopes[] = {"innermost", "root", "both", "none"};
    static const char *const truths[] = {"1", "true", "0", "false"};
    if ((unsigned)options->link_scope > SPANPROF_LINK_SCOPE_NONE)
        sp_log_warn("config", "options.link_scope is %u, which is no link scope: ignored",
                    (unsigned)options->link_scope);
    else
        config->link_scope = options->link_scope;
    if (config->link_scope == SPANPROF_LINK_SCOPE_DEFAULT)
        config->link_scope =
            (spanprof_link_scope)(sp_env_word("SPANPROF_LINK_SCOPE", scopes, 4, -1) + 1);
    int truth = sp_env_word("SPANPROF_THREAD_ATTRIBUTES", truths, 4, -1);
    if (truth >= 0)
        config->thread_attributes = truth < 2 ? SP_THREAD_ATTRIBUTES_ON : SP_THREAD_ATTRIBUTES_OFF;
}

static void read_request_bytes(sp_export_config *config, const spanprof_options *options)
{
    enum { SMALLEST = 4 * 1024, LARGEST = 4 * 1024 * 1024 };
    uint32_t bytes = options->request_maximum_bytes;
    bool is_usable = bytes >= SMALLEST && bytes <= LARGEST;
    if (bytes && !is_usable)
        sp_log_warn("config",
                    "options.request_maximum_bytes is %u, which is not from %d to %d: using 2 MiB",
                    bytes, SMALLEST, LARGEST);
    config->request_maximum_bytes = is_usable ? bytes : 0;
}

static void warn_not_built(void)
{
    static const char *const names[] = {"SPANPROF_PYROSCOPE_URL", "SPANPROF_PYROSCOPE_HEADERS"};
    for (size_t i = 0; i < SP_ARRAY_LENGTH(names); i++)
        if (sp_env(names[i]))
            sp_log_warn("config", "%s is not built yet: ignored", names[i]);
}

sp_otlp_format sp_http_target_format(const sp_http_target *target)
{
    return target->protocol == SP_PROTOCOL_HTTP_JSON ? SP_OTLP_JSON : SP_OTLP_PROTOBUF;
}

bool sp_export_config_init(sp_export_config *config, const spanprof_options *given)
{
    *config = (sp_export_config){0};
    spanprof_options options = {0};
    if (given)
        options = *given;
    uint32_t destinations = read_destinations(&options);
    warn_of_unused_file(destinations, &options);
    bool otlp_spans = read_traces_exporter();
    bool done = true;
    /* Without OTLP the endpoint is not checked, because that would load libcurl. */
    if (destinations & 1u << WORD_OTLP)
        done = read_http(config, &options, otlp_spans) && read_spool(config, &options);
    if (done && (destinations & 1u << WORD_FILE))
        done = read_file(config, &options);
    config->traces_enabled = config->http[SP_TRACES].enabled || config->file_enabled;
    read_batch(config, &options);
    read_shape(config, &options);
    read_request_bytes(config, &options);
    warn_not_built();
    if (!done)
        sp_export_config_deinit(config);
    return done;
}

bool sp_export_config_copy(sp_export_config *out, const sp_export_config *config)
{
    *out = *config;
    bool done = copy_text(&out->file_prefix, config->file_prefix);
    done &= copy_text(&out->spool, config->spool);
    for (int i = 0; i < 2; i++) {
        const sp_http_target *from = &config->http[i];
        sp_http_target *to = &out->http[i];
        done &= copy_text(&to->url, from->url);
        done &= copy_text(&to->headers, from->headers);
        done &= copy_text(&to->ca_file, from->ca_file);
        done &= copy_text(&to->client_key, from->client_key);
        done &= copy_text(&to->client_certificate, from->client_certificate);
    }
    return done;
}

void sp_export_config_deinit(sp_export_config *config)
{
    free(config->file_prefix);
    free(config->spool);
    for (int i = 0; i < 2; i++) {
        sp_http_target *target = &config->http[i];
        free(target->url);
        free(target->headers);
        free(target->ca_file);
        free(target->client_key);
        free(target->client_certificate);
    }
    *config = (sp_export_config){0};
}
