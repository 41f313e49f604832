/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>

#include "export/exporter.h"
#include "unit/export/captured_log.h"
#include "export/export_internal.h"

static sp_export_config config;

/* Each test starts from an empty environment and an empty log. */
static int setup(void **state)
{
    (void)state;
    clearenv();
    capture_log();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    sp_export_config_deinit(&config);
    return 0;
}

static void read_config(const spanprof_options *options)
{
    sp_export_config_deinit(&config);
    assert_true(sp_export_config_init(&config, options));
}

static void nothing_set_has_the_defaults(void **state)
{
    (void)state;
    read_config(NULL);
    assert_string_equal(config.http[SP_TRACES].url, "http://localhost:4318/v1/traces");
    assert_string_equal(config.http[SP_PROFILES].url,
                        "http://localhost:4318/v1development/profiles");
    for (int i = 0; i < 2; i++) {
        assert_true(config.http[i].enabled && config.http[i].gzip);
        assert_int_equal(config.http[i].timeout_ms, 10000);
        assert_null(config.http[i].headers);
        assert_null(config.http[i].ca_file);
    }
    assert_false(config.file_enabled);
    assert_true(config.traces_enabled);
    assert_int_equal(config.batch_spans, 512);
    assert_int_equal(config.batch_delay_ms, 5000);
    assert_int_equal(config.link_scope, SPANPROF_LINK_SCOPE_DEFAULT);
    assert_int_equal(config.thread_attributes, SP_THREAD_ATTRIBUTES_DEFAULT);
    assert_int_equal(log_length, 0);
}

static void endpoint_is_resolved_by_the_specification(void **state)
{
    (void)state;
    static const struct {
        const char *general, *traces, *expected;
        int warnings;
    } rows[] = {
        {"http://c:4318", NULL, "http://c:4318/v1/traces", 0},
        {"http://c:4318/", NULL, "http://c:4318/v1/traces", 0},
        {"https://c/base", NULL, "https://c/base/v1/traces", 0},
        {"https://c/base/", NULL, "https://c/base/v1/traces", 0},
        {"https://c/base?key=1", NULL, "https://c/base/v1/traces?key=1", 0},
        {"http://c?key=1#part", NULL, "http://c/v1/traces?key=1", 0},
        {"HTTP://[::1]:4318", NULL, "HTTP://[::1]:4318/v1/traces", 0},
        {"http://c/v1/traces/", NULL, "http://c/v1/traces/v1/traces", 1},
        {"http://c:4318", "http://t:1/my/path", "http://t:1/my/path", 0},
        {"http://c:4318", "http://t:1/my/path/", "http://t:1/my/path/", 0},
        {"http://c:4318", "http://t:1", "http://t:1/", 1},
        {"http://c:4318", "http://t:1/", "http://t:1/", 0},
        {NULL, "http://t:1?q=1", "http://t:1/?q=1", 1},
        {"localhost:4318", NULL, "http://localhost:4318/v1/traces", 1},
        {"c:4318", NULL, "http://c:4318/v1/traces", 1},
        {"c", NULL, "http://c/v1/traces", 1},
        {"c/base?key=1", NULL, "http://c/base/v1/traces?key=1", 1},
        {"user:p@c:1", NULL, "http://user:p@c:1/v1/traces", 1},
        {"http://c:4318", "t:1", "http://t:1/", 2},
        {"http://c:4318", "t:1/x", "http://t:1/x", 1},
        {"c:99999", "http://t:1/x", "http://t:1/x", 1},
        {"ftp://c", NULL, NULL, 1},
        {"http://", NULL, NULL, 1},
        {"http:///c", NULL, NULL, 1},
        {"http://c:99999", NULL, NULL, 1},
        {"http://c c/", NULL, NULL, 1},
        {"c:99999", NULL, NULL, 1},
        {"c c:1", NULL, NULL, 1},
        {"/c", NULL, NULL, 1},
        {"http:/c", NULL, NULL, 1},
        {"unix:/c", NULL, NULL, 1},
        {"http://c:4318", "ftp://t", NULL, 1},
    };
    for (size_t i = 0; i < SP_ARRAY_LENGTH(rows); i++) {
        setup(NULL);
        if (rows[i].general)
            setenv("OTEL_EXPORTER_OTLP_ENDPOINT", rows[i].general, 1);
        if (rows[i].traces)
            setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", rows[i].traces, 1);
        read_config(NULL);
        assert_int_equal(config.http[SP_TRACES].enabled, rows[i].expected != NULL);
        if (rows[i].expected)
            assert_string_equal(config.http[SP_TRACES].url, rows[i].expected);
        assert_int_equal(log_length, rows[i].warnings);
    }
}

static void endpoint_of_one_signal_without_a_path_is_named(void **state)
{
    (void)state;
    setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://u:secret@c:4318", 1);
    setenv("OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT", "http://c:4318", 1);
    read_config(NULL);
    assert_int_equal(log_length, 2);
    assert_string_equal(log_lines[0],
                        "config: OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://***@c:4318 has no path, "
                        "and none is added to the endpoint of one signal: requests go to /; most "
                        "receivers want them at /v1/traces");
    assert_int_equal(log_count("want them at /v1development/profiles"), 1);
    setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", 1);
    capture_log();
    read_config(NULL);
    assert_int_equal(log_length, 0);
}

static void endpoint_without_scheme_warning_says_what_to_write_and_what_is_used(void **state)
{
    (void)state;
    setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4318", 1);
    read_config(NULL);
    assert_int_equal(log_length, 1);
    assert_string_equal(log_lines[0], "config: OTEL_EXPORTER_OTLP_ENDPOINT=collector:4318 has no "
                                      "scheme: write http:// or https:// "
                                      "in front of it: using http://collector:4318");
}

static void endpoint_that_cannot_be_a_url_sends_nothing_and_is_named_once(void **state)
{
    (void)state;
    setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "ftp://collector", 1);
    read_config(NULL);
    for (int i = 0; i < 2; i++) {
        assert_false(config.http[i].enabled);
        assert_null(config.http[i].url);
    }
    assert_false(config.traces_enabled);
    assert_int_equal(log_length, 1);
    assert_int_equal(log_count("OTEL_EXPORTER_OTLP_ENDPOINT=ftp://collector begins with neither "
                               "http:// nor https://: nothing is sent there"),
                     1);
}

static void endpoint_of_one_signal_that_cannot_be_a_url_leaves_the_other(void **state)
{
    (void)state;
    setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:1", 1);
    setenv("OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT", "c:port", 1);
    setenv("SPANPROF_EXPORTER", "otlp,file", 1);
    read_config(NULL);
    assert_string_equal(config.http[SP_TRACES].url, "http://c:1/v1/traces");
    assert_false(config.http[SP_PROFILES].enabled);
    assert_true(config.file_enabled);
    assert_int_equal(log_length, 1);
}

static void endpoint_with_secrets_they_are_not_in_the_warning(void **state)
{
    (void)state;
    setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "ftp://user:p@ss/word@host/x?token=abc", 1);
    read_config(NULL);
    assert_int_equal(log_count("ftp://***@host/x?*** begins with neither"), 1);
}

static void profiles_have_variables_of_their_own(void **state)
{
    (void)state;
    setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c", 1);
    setenv("OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT", "http://p/x", 1);
    setenv("OTEL_EXPORTER_OTLP_HEADERS", "a=1", 1);
    setenv("OTEL_EXPORTER_OTLP_PROFILES_HEADERS", "b=2", 1);
    setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "2000", 1);
    setenv("OTEL_EXPORTER_OTLP_PROFILES_TIMEOUT", "0", 1);
    setenv("OTEL_EXPORTER_OTLP_PROFILES_COMPRESSION", "none", 1);
    read_config(NULL);
    const sp_http_target *traces = &config.http[SP_TRACES], *profiles = &config.http[SP_PROFILES];
    assert_string_equal(traces->url, "http://c/v1/traces");
    assert_string_equal(profiles->url, "http://p/x");
    assert_string_equal(traces->headers, "a=1");
    assert_string_equal(profiles->headers, "b=2");
    assert_int_equal(traces->timeout_ms, 2000);
    assert_int_equal(profiles->timeout_ms, 0);
    assert_true(traces->gzip);
    assert_false(profiles->gzip);
    assert_int_equal(log_length, 0);
}

static void file_prefix_without_the_exporter_is_named_once(void **state)
{
    (void)state;
    setenv("SPANPROF_FILE", "app", 1);
    for (int set = 0; set < 2; set++) {
        capture_log();
        read_config(NULL);
        assert_false(config.file_enabled);
        assert_int_equal(log_length, 1);
        assert_int_equal(log_count("SPANPROF_FILE=app has no effect"), 1);
        assert_int_equal(log_count("SPANPROF_EXPORTER=file"), 1);
        setenv("SPANPROF_EXPORTER", "otlp", 1);
    }
    static const char *const meant[] = {"none", "file", "otlp,file"};
    capture_log();
    for (size_t i = 0; i < SP_ARRAY_LENGTH(meant); i++) {
        setenv("SPANPROF_EXPORTER", meant[i], 1);
        read_config(NULL);
    }
    unsetenv("SPANPROF_EXPORTER");
    spanprof_options options = SPANPROF_OPTIONS_INIT;
    options.exporter = "otlp";
    read_config(&options);
    assert_int_equal(log_length, 0);
}

static void file_prefix_that_looks_like_a_file_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *prefix, *format, *says;
    } rows[] = {
        {"m.traces.jsonl", "jsonl", "m.traces.jsonl.traces.jsonl; set it to m"},
        {"d/m.profiles.jsonl", "jsonl", "d/m.profiles.jsonl.traces.jsonl; set it to d/m"},
        {"m.profiles.binpb", "proto", "m.profiles.binpb.traces.binpb; set it to m"},
        {"dir/", "jsonl", "hidden ones, dir/.traces.jsonl; add a name, such as dir/app"},
        {"m", "jsonl", NULL},
        {"m.jsonl", "jsonl", NULL},
        {".traces.jsonl", "jsonl", NULL},
    };
    setenv("SPANPROF_EXPORTER", "file", 1);
    for (size_t i = 0; i < SP_ARRAY_LENGTH(rows); i++) {
        setenv("SPANPROF_FILE", rows[i].prefix, 1);
        setenv("SPANPROF_FILE_FORMAT", rows[i].format, 1);
        capture_log();
        read_config(NULL);
        assert_string_equal(config.file_prefix, rows[i].prefix);
        assert_int_equal(log_length, rows[i].says ? 1 : 0);
        assert_int_equal(rows[i].says ? log_count(rows[i].says) : 0, rows[i].says ? 1 : 0);
    }
    spanprof_options options = SPANPROF_OPTIONS_INIT;
    options.file = "dir/";
    capture_log();
    read_config(&options);
    assert_int_equal(log_count("options.file=dir/ ends with a slash"), 1);
}

static void options_win_over_all_variables(void **state)
{
    (void)state;
    static const char *const names[] = {"ENDPOINT", "TRACES_ENDPOINT", "HEADERS",
                                        "TIMEOUT",  "TRACES_TIMEOUT",  "COMPRESSION"};
    for (size_t i = 0; i < SP_ARRAY_LENGTH(names); i++) {
        char name[64];
        snprintf(name, sizeof name, "OTEL_EXPORTER_OTLP_%s", names[i]);
        setenv(name, "nonsense", 1);
    }
    setenv("SPANPROF_EXPORTER", "none", 1);
    setenv("SPANPROF_FILE", "elsewhere", 1);
    setenv("SPANPROF_LINK_SCOPE", "none", 1);
    spanprof_options options = SPANPROF_OPTIONS_INIT;
    options.endpoint = "http://option:1";
    options.headers = "k=v";
    options.timeout_ms = 77;
    options.compression = "none";
    options.exporter = "otlp,file";
    options.file = "here";
    options.file_format = "proto";
    options.link_scope = SPANPROF_LINK_SCOPE_BOTH;
    read_config(&options);
    assert_string_equal(config.http[SP_TRACES].url, "http://option:1/v1/traces");
    assert_string_equal(config.http[SP_PROFILES].headers, "k=v");
    assert_int_equal(config.http[SP_TRACES].timeout_ms, 77);
    assert_false(config.http[SP_PROFILES].gzip);
    assert_true(config.file_enabled);
    assert_string_equal(config.file_prefix, "here");
    assert_int_equal(config.file_format, SP_OTLP_PROTOBUF);
    assert_int_equal(config.link_scope, SPANPROF_LINK_SCOPE_BOTH);
    assert_int_equal(log_length, 0);
}

static void option_endpoint_wins_also_when_it_lacks_its_scheme_or_is_no_url(void **state)
{
    (void)state;
    spanprof_options options = SPANPROF_OPTIONS_INIT;
    options.endpoint = "option:1";
    setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:1", 1);
    read_config(&options);
    assert_string_equal(config.http[SP_TRACES].url, "http://option:1/v1/traces");
    assert_int_equal(log_count("options.endpoint=option:1 has no scheme"), 1);
    assert_int_equal(log_length, 1);
    options.endpoint = "option:";
    read_config(&options);
    assert_false(config.http[SP_TRACES].enabled || config.http[SP_PROFILES].enabled);
    assert_int_equal(log_length, 2);
}

static void exporter_list_chooses_destinations(void **state)
{
    (void)state;
    static const struct {
        const char *list;
        bool http, file;
        unsigned warnings;
    } rows[] = {
        {"otlp", true, false, 0},
        {"file", false, true, 0},
        {" File , OTLP ", true, true, 0},
        {"none", false, false, 0},
        {"pyroscope", false, false, 2},
        {"file,pyroscope", false, true, 1},
        {"none,file", false, true, 1},
        {"stdout", false, false, 2},
        {"files", false, false, 2},
        {" , ", false, false, 1},
        {"file,stdout", false, true, 1},
        {"", true, false, 0},
        {"none,pyroscope", false, false, 1},
    };
    for (size_t i = 0; i < SP_ARRAY_LENGTH(rows); i++) {
        setup(NULL);
        setenv("SPANPROF_EXPORTER", rows[i].list, 1);
        read_config(NULL);
        assert_int_equal(config.http[SP_TRACES].enabled, rows[i].http);
        assert_int_equal(config.http[SP_PROFILES].enabled, rows[i].http);
        assert_int_equal(config.file_enabled, rows[i].file);
        assert_int_equal(config.traces_enabled, rows[i].http || rows[i].file);
        assert_int_equal(log_length, rows[i].warnings);
    }
}

static void traces_exporter_none_stops_spans_of_otlp_only(void **state)
{
    (void)state;
    setenv("OTEL_TRACES_EXPORTER", "none", 1);
    read_config(NULL);
    assert_false(config.http[SP_TRACES].enabled);
    assert_true(config.http[SP_PROFILES].enabled);
    assert_false(config.traces_enabled);
    setenv("SPANPROF_EXPORTER", "otlp,file", 1);
    read_config(NULL);
    assert_false(config.http[SP_TRACES].enabled);
    assert_true(config.traces_enabled);
    assert_int_equal(log_length, 0);
    setenv("OTEL_TRACES_EXPORTER", "zipkin", 1);
    read_config(NULL);
    assert_true(config.http[SP_TRACES].enabled);
    assert_int_equal(log_count("zipkin"), 1);
}

static void header_entries_unusable_are_named_by_position_only(void **state)
{
    (void)state;
    setenv("OTEL_EXPORTER_OTLP_HEADERS",
           "good=1,secret,evil=a%0d%0aX-Injected:1,b%zz=secret,host name=secret,Content-Type=x", 1);
    read_config(NULL);
    assert_int_equal(log_length, 5);
    assert_int_equal(log_count("OTEL_EXPORTER_OTLP_HEADERS: entry 2 is not key=value"), 1);
    assert_int_equal(log_count("entry 3 has a control character in its value"), 1);
    assert_int_equal(log_count("entry 4 has a broken percent escape"), 1);
    assert_int_equal(log_count("entry 5 has a name that HTTP does not allow"), 1);
    assert_int_equal(log_count("entry 6 is a header that the exporter sets itself"), 1);
    assert_int_equal(log_count("secret") + log_count("Injected"), 0);
}

static void assert_targets(const char *traces, const char *profiles)
{
    assert_string_equal(config.http[SP_TRACES].url, traces);
    assert_string_equal(config.http[SP_PROFILES].url, profiles);
}

#define TRACE_SERVICE "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
#define PROFILES_SERVICE                                                                           \
    "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export"

static void grpc_goes_to_the_services_of_a_host(void **state)
{
    (void)state;
    setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", 1);
    read_config(NULL);
    assert_targets("http://localhost:4317" TRACE_SERVICE, "http://localhost:4317" PROFILES_SERVICE);
    assert_int_equal(config.http[SP_TRACES].protocol, SP_PROTOCOL_GRPC);
    assert_int_equal(sp_http_target_format(&config.http[SP_TRACES]), SP_OTLP_PROTOBUF);
    setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "https://h:1/ignored?q", 1);
    setenv("OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT", "http://other", 1);
    read_config(NULL);
    assert_targets("https://h:1" TRACE_SERVICE, "http://other" PROFILES_SERVICE);
    assert_int_equal(log_length, 0);
}

static void protocol_is_each_signal_s_own(void **state)
{
    (void)state;
    setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json", 1);
    setenv("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "grpc", 1);
    read_config(NULL);
    assert_targets("http://localhost:4317" TRACE_SERVICE,
                   "http://localhost:4318/v1development/profiles");
    assert_int_equal(sp_http_target_format(&config.http[SP_PROFILES]), SP_OTLP_JSON);
    spanprof_options options = SPANPROF_OPTIONS_INIT;
    options.protocol = "http/json"; /* for both: what code says counts */
    read_config(&options);
    assert_targets("http://localhost:4318/v1/traces",
                   "http://localhost:4318/v1development/profiles");
}

/* The specification wants TLS for gRPC where the endpoint does not say, and HTTP without it. */
static void grpc_without_a_scheme_is_secure_unless_told_otherwise(void **state)
{
    (void)state;
    setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", 1);
    setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "h:4317", 1);
    read_config(NULL);
    assert_targets("https://h:4317" TRACE_SERVICE, "https://h:4317" PROFILES_SERVICE);
    assert_int_equal(log_count("using https://h:4317"), 1);
    setenv("OTEL_EXPORTER_OTLP_INSECURE", "true", 1);
    read_config(NULL);
    assert_targets("http://h:4317" TRACE_SERVICE, "http://h:4317" PROFILES_SERVICE);
    setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "https://h:4317", 1);
    read_config(NULL);
    assert_targets("https://h:4317" TRACE_SERVICE, "https://h:4317" PROFILES_SERVICE);
}

static void values_unusable_are_named_with_what_is_used_instead(void **state)
{
    (void)state;
    static const struct {
        const char *name, *value, *says;
    } rows[] = {
        {"OTEL_EXPORTER_OTLP_TIMEOUT", "soon", "using 10000"},
        {"OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "-1", "using 10000"},
        {"OTEL_EXPORTER_OTLP_COMPRESSION", "brotli", "using gzip"},
        {"OTEL_EXPORTER_OTLP_PROTOCOL", "tcp", "using http/protobuf"},
        {"OTEL_EXPORTER_OTLP_CERTIFICATE", "/no/such/file",
         "No such file or directory): using none"},
        {"OTEL_BSP_SCHEDULE_DELAY", "x", "using 5000"},
        {"OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "0", "using 512"},
        {"OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "4096", "using 2048"},
        {"OTEL_BSP_EXPORT_TIMEOUT", "x", "using 30000"},
        {"SPANPROF_LINK_SCOPE", "outermost", "innermost, root, both, none"},
        {"SPANPROF_THREAD_ATTRIBUTES", "maybe", "using the default"},
        {"SPANPROF_PYROSCOPE_URL", "http://u:p@h", "not built yet"},
    };
    for (size_t i = 0; i < SP_ARRAY_LENGTH(rows); i++) {
        setup(NULL);
        setenv(rows[i].name, rows[i].value, 1);
        read_config(NULL);
        assert_int_equal(log_length, 1);
        assert_int_equal(log_count(rows[i].name), 1);
        assert_int_equal(log_count(rows[i].says), 1);
    }
}

static void batch_timeout_bounds_that_of_traces(void **state)
{
    (void)state;
    setenv("OTEL_BSP_EXPORT_TIMEOUT", "3000", 1);
    read_config(NULL);
    assert_int_equal(config.http[SP_TRACES].timeout_ms, 3000);
    assert_int_equal(config.http[SP_PROFILES].timeout_ms, 10000);
    setenv("OTEL_BSP_EXPORT_TIMEOUT", "0", 1);
    setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0", 1);
    read_config(NULL);
    assert_int_equal(config.http[SP_TRACES].timeout_ms, 0);
}

static void batch_is_bounded_by_the_queue(void **state)
{
    (void)state;
    setenv("OTEL_BSP_MAX_QUEUE_SIZE", "100", 1);
    read_config(NULL);
    assert_int_equal(config.batch_spans, 100);
    assert_int_equal(log_length, 0);
}

static void request_maximum_bytes_is_bounded(void **state)
{
    (void)state;
    static const struct {
        uint32_t option, used;
        bool warns;
    } rows[] = {{0, 0, false},
                {4096, 4096, false},
                {4194304, 4194304, false},
                {4194305, 0, true},
                {4095, 0, true}};
    for (size_t i = 0; i < SP_ARRAY_LENGTH(rows); i++) {
        spanprof_options options = SPANPROF_OPTIONS_INIT;
        options.request_maximum_bytes = rows[i].option;
        size_t before = log_length;
        read_config(&options);
        assert_int_equal(config.request_maximum_bytes, rows[i].used);
        assert_int_equal(log_length > before, rows[i].warns);
    }
}

static void files_are_limited_within_reason(void **state)
{
    (void)state;
    static const struct {
        const char *bytes, *parts;
        uint32_t option;
        uint32_t used_bytes, used_parts;
        bool warns;
    } rows[] = {
        {NULL, NULL, 0, 0, 0, false},           {"0", "0", 0, 0, 0, false},
        {"4096", "2", 0, 4096, 2, false},       {"2147483648", "9999", 0, 2147483648, 9999, false},
        {"2147483649", "10000", 0, 0, 0, true}, {"4095", "1", 0, 0, 0, true},
        {"100M", NULL, 0, 0, 0, true},          {"8192", NULL, 5000, 5000, 0, false},
        {"8192", NULL, 5, 0, 0, true},
    };
    for (size_t i = 0; i < SP_ARRAY_LENGTH(rows); i++) {
        spanprof_options options = SPANPROF_OPTIONS_INIT;
        options.exporter = "file";
        options.file_maximum_bytes = rows[i].option;
        rows[i].bytes ? setenv("SPANPROF_FILE_MAX_BYTES", rows[i].bytes, 1)
                      : unsetenv("SPANPROF_FILE_MAX_BYTES");
        rows[i].parts ? setenv("SPANPROF_FILE_MAX_PARTS", rows[i].parts, 1)
                      : unsetenv("SPANPROF_FILE_MAX_PARTS");
        size_t before = log_length;
        read_config(&options);
        assert_int_equal(config.file_maximum_bytes, rows[i].used_bytes);
        assert_int_equal(config.file_maximum_parts, rows[i].used_parts);
        assert_int_equal(log_length > before, rows[i].warns);
    }
    unsetenv("SPANPROF_FILE_MAX_BYTES");
    unsetenv("SPANPROF_FILE_MAX_PARTS");
}

static void destinations_have_the_shape_that_each_wants(void **state)
{
    (void)state;
    static const struct {
        const char *scope, *threads;
        spanprof_link_scope http_scope, file_scope;
        bool http_threads, file_threads;
    } rows[] = {
        {"", "", SPANPROF_LINK_SCOPE_ROOT, SPANPROF_LINK_SCOPE_INNERMOST, false, true},
        {"both", "1", SPANPROF_LINK_SCOPE_BOTH, SPANPROF_LINK_SCOPE_BOTH, true, true},
        {"none", "false", SPANPROF_LINK_SCOPE_NONE, SPANPROF_LINK_SCOPE_NONE, false, false},
    };
    for (size_t i = 0; i < SP_ARRAY_LENGTH(rows); i++) {
        sp_profile_destination out[4];
        char directory[] = "/tmp/spanprof-test-XXXXXX", prefix[64], path[96];
        assert_non_null(mkdtemp(directory));
        snprintf(prefix, sizeof prefix, "%s/out", directory);
        setenv("SPANPROF_EXPORTER", "otlp,file", 1);
        setenv("SPANPROF_FILE", prefix, 1);
        setenv("SPANPROF_LINK_SCOPE", rows[i].scope, 1);
        setenv("SPANPROF_THREAD_ATTRIBUTES", rows[i].threads, 1);
        read_config(NULL);
        sp_resource resource = {0};
        sp_exporter *exporter = sp_exporter_create(&config, &resource, NULL);
        assert_int_equal(sp_exporter_profile_destinations(exporter, out), 2);
        sp_exporter_destroy(exporter, 0, NULL);
        assert_int_equal(out[0].link_scope, rows[i].http_scope);
        assert_int_equal(out[1].link_scope, rows[i].file_scope);
        assert_int_equal(out[0].thread_attributes, rows[i].http_threads);
        assert_int_equal(out[1].thread_attributes, rows[i].file_threads);
        assert_int_equal(out[0].format, SP_OTLP_PROTOBUF);
        assert_int_equal(out[1].format, SP_OTLP_JSON);
        assert_int_equal(out[0].request_bytes, 2 * 1024 * 1024);
        assert_int_equal(out[0].request_samples, 16000);
        assert_int_equal(out[1].request_bytes, 64 * 1024 * 1024);
        assert_int_equal(out[1].request_samples, 0);
        snprintf(path, sizeof path, "%s.traces.jsonl", prefix);
        assert_int_equal(remove(path), 0);
        snprintf(path, sizeof path, "%s.profiles.jsonl", prefix);
        assert_int_equal(remove(path), 0);
        assert_int_equal(remove(directory), 0);
    }
    assert_int_equal(log_length, 0);
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

static void endpoint_of_the_other_protocol_s_port_has_advice(void **state)
{
    (void)state;
    assert_string_equal(sp_endpoint_port_advice("http://host:4317/v1/traces", false),
                        ": 4317 is mostly the port for gRPC, and 4318 that for HTTP");
    assert_string_equal(sp_endpoint_port_advice("https://[::1]:4318/a.B/Export", true),
                        ": 4318 is mostly the port for HTTP, and 4317 that for gRPC");
    static const char *const fine[] = {"http://host:4318/v1/traces",
                                       "http://host:14317/",
                                       "http://host/v1/traces:4317",
                                       "http://:4317",
                                       "nothing",
                                       ""};
    for (size_t i = 0; i < SP_ARRAY_LENGTH(fine); i++)
        assert_string_equal(sp_endpoint_port_advice(fine[i], false), "");
    assert_string_equal(sp_endpoint_port_advice("http://host:4317", true), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(endpoint_of_the_other_protocol_s_port_has_advice),
        CASE(nothing_set_has_the_defaults),
        CASE(endpoint_is_resolved_by_the_specification),
        CASE(endpoint_of_one_signal_without_a_path_is_named),
        CASE(endpoint_without_scheme_warning_says_what_to_write_and_what_is_used),
        CASE(endpoint_that_cannot_be_a_url_sends_nothing_and_is_named_once),
        CASE(endpoint_of_one_signal_that_cannot_be_a_url_leaves_the_other),
        CASE(endpoint_with_secrets_they_are_not_in_the_warning),
        CASE(profiles_have_variables_of_their_own),
        CASE(file_prefix_without_the_exporter_is_named_once),
        CASE(file_prefix_that_looks_like_a_file_is_named),
        CASE(options_win_over_all_variables),
        CASE(option_endpoint_wins_also_when_it_lacks_its_scheme_or_is_no_url),
        CASE(exporter_list_chooses_destinations),
        CASE(traces_exporter_none_stops_spans_of_otlp_only),
        CASE(header_entries_unusable_are_named_by_position_only),
        CASE(grpc_goes_to_the_services_of_a_host),
        CASE(protocol_is_each_signal_s_own),
        CASE(grpc_without_a_scheme_is_secure_unless_told_otherwise),
        CASE(values_unusable_are_named_with_what_is_used_instead),
        CASE(batch_timeout_bounds_that_of_traces),
        CASE(batch_is_bounded_by_the_queue),
        CASE(request_maximum_bytes_is_bounded),
        CASE(files_are_limited_within_reason),
        CASE(destinations_have_the_shape_that_each_wants),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
